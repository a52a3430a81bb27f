//! What can be wrong with weights from elsewhere, in words that say what to do.

use std::path::PathBuf;

use bayesmesh_files::FileError;

/// Why the weights of a network could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// The operating system refused to read or write the file.
    #[error(transparent)]
    File(#[from] FileError),

    /// The file has another format, or is not complete.
    #[error(
        "{}: not a complete safetensors file ({reason}). Save the weights with \
         `safetensors.torch.save_file(network.state_dict(), …)`, or copy the file again",
        path.display()
    )]
    NotSafetensors {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },

    /// The tensors of the file are not those of the network.
    #[error(
        "{}: does not fit the network, {}. It belongs to another network: change the sizes of this \
         one, or rename the tensors of the file", path.display(), names(missing, unexpected)
    )]
    Names {
        /// The file.
        path: PathBuf,
        /// What the network has and the file has not.
        missing: Vec<String>,
        /// What the file has and the network has not.
        unexpected: Vec<String>,
    },

    /// A tensor has another shape than in the network.
    #[error(
        "{}: does not fit the network, '{tensor}' has shape {found:?} in it, {expected:?} is \
         expected. It belongs to a network of other sizes: change those of this one", path.display()
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// PyTorch's name of the tensor.
        tensor: String,
        /// Its shape in the network, as PyTorch has it.
        expected: Vec<usize>,
        /// Its shape in the file.
        found: Vec<usize>,
    },

    /// A tensor does not consist of floating-point numbers of one of the known sizes.
    #[error(
        "{}: '{tensor}' has type {found}, only F32, F64 and BF16 can be read. Convert it, e.g. by \
         `network.float()`, and save it again", path.display()
    )]
    Type {
        /// The file.
        path: PathBuf,
        /// PyTorch's name of the tensor.
        tensor: String,
        /// Its type in the file.
        found: String,
    },

    /// A tensor has an infinite number or one that is not a number.
    #[error(
        "{}: '{tensor}' has a number that is not finite. The network was spoilt when it was saved: \
         use an earlier state of it", path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// PyTorch's name of the tensor.
        tensor: String,
    },
}

/// Both lists in words.
fn names(missing: &[String], unexpected: &[String]) -> String {
    let list = |what: &str, names: &[String]| {
        const SHOWN: usize = 5;
        let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect();
        let rest = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        (!names.is_empty()).then(|| format!("it {what} {}{rest}", shown.join(", ")))
    };
    let parts = [list("has no", missing), list("has the unknown", unexpected)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
