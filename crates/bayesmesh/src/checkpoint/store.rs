//! The folder in which a run keeps its checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Checkpoint, CheckpointError};
use bayesmesh_files::{AtomicFile, FileError, create_folder};

const PREFIX: &str = "step-";
const SUFFIX: &str = ".safetensors";
const BEST: &str = "best.safetensors";

/// A folder with the last few checkpoints of a run, `step-00001200.safetensors`, and its best one,
/// `best.safetensors`.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    keep_last: usize,
}

/// What [`Store::latest`] or [`Store::best`] found.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The first checkpoint that is not damaged and its file, if there is one.
    pub found: Option<(PathBuf, Checkpoint)>,
    /// What was wrong with the files before it, to be told to the user.
    pub skipped: Vec<CheckpointError>,
}

impl Search {
    /// Loads the first of these files that is not damaged. It is an error if one before it is
    /// sound, but cannot be used.
    fn among(paths: impl IntoIterator<Item = PathBuf>) -> Result<Self, CheckpointError> {
        let mut search = Self::default();
        for path in paths {
            match Checkpoint::load(&path) {
                Ok(checkpoint) => {
                    search.found = Some((path, checkpoint));
                    break;
                }
                Err(error) if error.is_loss() => search.skipped.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(search)
    }
}

impl Store {
    /// The store of a run that writes. Makes the folder unless it is there and removes what a
    /// killed run has left unfinished; nobody else may be writing to it. Of the checkpoints by
    /// step the last `keep_last` are kept, at least one.
    pub fn create(folder: impl AsRef<Path>, keep_last: usize) -> Result<Self, CheckpointError> {
        let folder = folder.as_ref();
        create_folder(folder)?;
        AtomicFile::clean(folder).map_err(|error| FileError::new(folder, "clean", &error))?;
        Ok(Self { folder: folder.to_path_buf(), keep_last: keep_last.max(1) })
    }

    /// The store of a run, to read from; it may be in use by the run. Saves to it keep everything.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, CheckpointError> {
        let store = Self { folder: folder.as_ref().to_path_buf(), keep_last: usize::MAX };
        store.list()?;
        Ok(store)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the best checkpoint, whether or not there is one yet.
    pub fn best_path(&self) -> PathBuf {
        self.folder.join(BEST)
    }

    /// Saves a checkpoint under its step and then removes all earlier ones but the last few.
    ///
    /// Checkpoints of later steps, which can only be ones that [`latest`](Self::latest) skipped,
    /// neither count nor are touched.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let path = self.folder.join(file_name(checkpoint.step));
        checkpoint.save(&path)?;
        let mut until_now = self.list()?;
        until_now.retain(|(step, _)| *step <= checkpoint.step);
        let surplus = until_now.len().saturating_sub(self.keep_last);
        for (_, old) in &until_now[..surplus] {
            fs::remove_file(old).map_err(|error| FileError::new(old, "remove", &error))?;
        }
        Ok(path)
    }

    /// Saves a checkpoint as the best one.
    pub fn save_best(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let path = self.best_path();
        checkpoint.save(&path)?;
        Ok(path)
    }

    /// Loads the best checkpoint, if one was saved. A damaged one is passed over, as
    /// [`latest`](Self::latest) does: the next best one takes its place.
    pub fn best(&self) -> Result<Search, CheckpointError> {
        Search::among(self.best_if_there())
    }

    /// Loads the newest checkpoint that is not damaged; when no other is left, the best one.
    ///
    /// It is an error if a newer one is sound, but cannot be used: one for which permission is
    /// missing, or of a later version of this program.
    pub fn latest(&self) -> Result<Search, CheckpointError> {
        let by_step = self.list()?.into_iter().rev().map(|(_, path)| path);
        Search::among(by_step.chain(self.best_if_there()))
    }

    fn best_if_there(&self) -> Option<PathBuf> {
        Some(self.best_path()).filter(|path| path.exists())
    }

    /// The checkpoints by step, ascending. Their content is not looked at.
    pub fn list(&self) -> Result<Vec<(u64, PathBuf)>, CheckpointError> {
        let io = |error| FileError::new(&self.folder, "read", &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            if let Some(step) = step_of(&entry.file_name().to_string_lossy()) {
                found.push((step, entry.path()));
            }
        }
        found.sort();
        Ok(found)
    }
}

fn file_name(step: u64) -> String {
    format!("{PREFIX}{step:08}{SUFFIX}")
}

/// The step in a file name made by [`file_name`].
fn step_of(name: &str) -> Option<u64> {
    let step = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let step = step.parse().ok()?;
    (name == file_name(step)).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_step() {
        assert_eq!(file_name(1200), "step-00001200.safetensors");
        for step in [0, 7, 99_999_999, 100_000_000, u64::MAX] {
            assert_eq!(step_of(&file_name(step)), Some(step));
        }
        let others = [
            "best.safetensors",
            "step-12.safetensors",
            "step-+0000012.safetensors",
            "step-00000012.safetensors.bak",
            ".step-00000012.safetensors.1-0.bayesmesh-tmp",
        ];
        for name in others {
            assert_eq!(step_of(name), None, "{name}");
        }
    }
}
