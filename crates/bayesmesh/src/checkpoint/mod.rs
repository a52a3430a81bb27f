//! Checkpoints: everything a run needs to go on, in one safetensors file.
//!
//! A [`Checkpoint`] appears under its name complete or not at all (see [`AtomicFile`]), carries
//! checksums of its content and refuses to load when they do not fit. A [`Store`] is the folder in
//! which a run keeps its last few checkpoints and the best one.
//!
//! # The file
//!
//! An ordinary safetensors file of `F32` tensors named `parameters/<name>`, `buffers/<name>` and
//! `optimizer/<name>`. Its `__metadata__` holds, all as strings:
//!
//! | key | value |
//! |---|---|
//! | `bayesmesh_checkpoint` | version of this layout, `1` |
//! | `step`, `seed` | decimal |
//! | `parameters`, `buffers`, `optimizer` | JSON list of the names in order |
//! | `counters/<name>` | decimal |
//! | `metadata/<key>` | text |
//! | `digest` | [`Checkpoint::digest`] |
//! | `checksum` | SHA-256 of the digest and of everything else above |
//!
//! Equal checkpoints are equal files, byte for byte.

mod broadcast;
mod digest;
mod error;
mod format;
mod store;
mod tensor;

pub(crate) use broadcast::broadcast;
pub(crate) use digest::of_tensors as digest_of_tensors;
pub use error::CheckpointError;
pub use store::{Search, Store};
pub use tensor::{Group, NamedTensor};

use std::collections::BTreeMap;
use std::path::Path;

use bayesmesh_files::AtomicFile;
/// Why a file could not be read or written.
pub use bayesmesh_files::FileError;

/// The state of a run after some step.
///
/// ```
/// use bayesmesh::checkpoint::{Checkpoint, Group, NamedTensor};
///
/// let checkpoint = Checkpoint {
///     step: 1200,
///     seed: 42,
///     parameters: vec![NamedTensor {
///         name: "linear.weight".into(),
///         shape: vec![1, 3],
///         values: vec![0.5, -1.0, 2.0],
///     }],
///     ..Checkpoint::default()
/// };
/// # let folder = std::env::temp_dir().join(format!("bayesmesh-doctest-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("weights.safetensors");
/// checkpoint.save(&path)?;
///
/// let loaded = Checkpoint::load(&path)?;
/// loaded.expect(&path, Group::Parameters, &[("linear.weight", [1, 3])])?;
/// assert_eq!(loaded.digest(), checkpoint.digest());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Steps done.
    pub step: u64,
    /// The seed of all random streams of the run.
    pub seed: u64,
    /// Trainable numbers.
    pub parameters: Vec<NamedTensor>,
    /// Running statistics and frozen weights.
    pub buffers: Vec<NamedTensor>,
    /// State of the optimiser, e.g. its moments.
    pub optimizer: Vec<NamedTensor>,
    /// Whole numbers, e.g. the optimiser's own step count.
    pub counters: BTreeMap<String, u64>,
    /// Texts, e.g. the resolved recipe, the version that wrote it, the best score.
    pub metadata: BTreeMap<String, String>,
}

impl Checkpoint {
    /// Writes the checkpoint to `path`, whose folder must exist.
    ///
    /// The content goes to a temporary name beside it, is synced and renamed. On an error, and if
    /// the process is killed, a file that was at `path` before is still there untouched; on an
    /// error nothing else is left either.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), CheckpointError> {
        let path = path.as_ref();
        self.check(path)?;
        let header = format::header(self);
        let io = |error| FileError::new(path, "write", &error);
        let mut file = AtomicFile::create(path).map_err(io)?;
        format::write(self, &header, &mut file).map_err(io)?;
        file.commit().map_err(io)?;
        Ok(())
    }

    /// Reads a checkpoint and verifies its checksums.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, CheckpointError> {
        format::read(path.as_ref())
    }

    /// SHA-256 of the parameters as 64 lower-case hexadecimal digits: equal for two runs exactly
    /// when names, shapes and all bits of the weights are.
    ///
    /// Hashed is, for each parameter in order: the length of the name in bytes, the name in UTF-8,
    /// the number of dimensions, the dimensions, then the values as little-endian `f32`; lengths
    /// and dimensions are little-endian `u64`. This will not change.
    pub fn digest(&self) -> String {
        digest::of_parameters(self)
    }

    /// The tensors of one group.
    pub fn group(&self, group: Group) -> &[NamedTensor] {
        match group {
            Group::Parameters => &self.parameters,
            Group::Buffers => &self.buffers,
            Group::Optimizer => &self.optimizer,
        }
    }

    /// Checks that a group consists of exactly the expected tensors in their order, given as
    /// `(name, shape)`; the error says which one differs. `path` is the file it came from.
    pub fn expect(
        &self,
        path: impl AsRef<Path>,
        group: Group,
        expected: &[(impl AsRef<str>, impl AsRef<[usize]>)],
    ) -> Result<(), CheckpointError> {
        let expected: Vec<(&str, &[usize])> =
            expected.iter().map(|(name, shape)| (name.as_ref(), shape.as_ref())).collect();
        match tensor::difference(self.group(group), &expected) {
            None => Ok(()),
            Some(problem) => {
                Err(CheckpointError::Mismatch { path: path.as_ref().into(), group, problem })
            }
        }
    }

    /// Refuses a tensor of the group that holds NaN or infinite numbers, unless it is one of those
    /// that `may` do so. `path` is the file that it came from.
    pub(crate) fn expect_finite(
        &self,
        path: &Path,
        group: Group,
        may: impl Fn(&NamedTensor) -> bool,
    ) -> Result<(), CheckpointError> {
        let wrong = |t: &&NamedTensor| !t.values.iter().all(|value| value.is_finite()) && !may(t);
        match self.group(group).iter().find(wrong) {
            None => Ok(()),
            Some(NamedTensor { name, .. }) => {
                Err(CheckpointError::NotFinite { path: path.into(), group, name: name.clone() })
            }
        }
    }

    /// Refuses what could not be read back.
    fn check(&self, path: &Path) -> Result<(), CheckpointError> {
        for group in Group::ALL {
            if let Some(problem) = tensor::defect(self.group(group)) {
                return Err(CheckpointError::Invalid { path: path.into(), group, problem });
            }
        }
        Ok(())
    }
}
