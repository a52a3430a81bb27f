//! What can be wrong with a checkpoint, in words that say what to do.

use std::path::PathBuf;

use thiserror::Error;

use super::Group;
use bayesmesh_files::FileError;

/// Why a checkpoint could not be saved, loaded or used.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// The operating system refused to read or write the file.
    #[error(transparent)]
    File(#[from] FileError),

    /// The file ends too early.
    #[error(
        "{}: truncated, {actual} bytes instead of {expected}. It was not copied or written \
         completely: copy it again or use an earlier checkpoint", path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The least number of bytes it should have.
        expected: u64,
        /// The number of bytes it has.
        actual: u64,
    },

    /// The file has another format.
    #[error(
        "{}: not a safetensors file ({reason}). Name a checkpoint, i.e. a *.safetensors file of \
         the checkpoints folder of a run", path.display()
    )]
    NotSafetensors {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },

    /// A safetensors file that somebody else wrote.
    #[error(
        "{}: a safetensors file, but not a checkpoint (no '{key}' in its metadata). Name a file of \
         the checkpoints folder of a run", path.display()
    )]
    NotACheckpoint {
        /// The file.
        path: PathBuf,
        /// The entry that every checkpoint has.
        key: &'static str,
    },

    /// The content is not what was written.
    #[error(
        "{}: damaged, {problem}. Copy it again or use an earlier checkpoint", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },

    /// The file was written by a later version of this program.
    #[error(
        "{}: format version {found}, this program reads up to {supported}. Update the program",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u64,
        /// The latest version this program knows.
        supported: u64,
    },

    /// The tensors are not those of the network or the optimiser.
    #[error(
        "{}: does not fit, {group}: {problem}. It belongs to another network or optimiser: use the \
         recipe saved with its run", path.display()
    )]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The group of the tensor.
        group: Group,
        /// Which tensor differs, and how.
        problem: String,
    },

    /// Numbers that no network can use.
    #[error(
        "{}: {group}: '{name}' is not finite, it holds NaN or infinite numbers, with which every \
         prediction would be wrong. Use an earlier checkpoint, or train again", path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The group of the tensor.
        group: Group,
        /// The name of the tensor.
        name: String,
    },

    /// A checkpoint that could not be read back is not written.
    #[error("{}: not written, {group}: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The group of the tensor.
        group: Group,
        /// What is wrong with it.
        problem: String,
    },
}

bayesmesh_comm::debug_is_display!(CheckpointError);

impl CheckpointError {
    /// Whether the file itself is spoilt or gone, so that an earlier checkpoint is the remedy.
    pub(super) fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::Truncated { .. }
                | Self::NotSafetensors { .. }
                | Self::NotACheckpoint { .. }
                | Self::Damaged { .. }
                | Self::File(FileError::Missing { .. })
        )
    }
}
