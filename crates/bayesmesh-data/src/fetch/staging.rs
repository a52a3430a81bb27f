//! A file or folder that appears complete or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use bayesmesh_files::{
    FileError, Lock, LockError, create_folder, create_folder_of, hidden_name, read_text, shown,
    sync_folder_of,
};

use super::{FetchError, curl};

/// Where a download is kept to go on with it.
const PART: &str = "download.part";
/// What it is called when it has arrived.
const COMPLETE: &str = "download.complete";
/// The address that it comes from.
const ADDRESS: &str = "download.address";
/// The files that will become the folder that is asked for.
const CONTENTS: &str = "contents";
/// What is needed on the way.
const SCRATCH: &str = "scratch";
/// Held while a process works here. A folder that has it was made by this program.
const LOCK: &str = "bayesmesh.lock";

/// No address is longer.
const LONGEST_ADDRESS: u64 = 1 << 16;

/// A hidden folder beside the file or folder that is asked for, in which that is prepared.
///
/// When dropped, everything is removed but the part of a download that has arrived. What a killed
/// process leaves is removed by the next one.
#[derive(Debug)]
pub(crate) struct Staging {
    target: PathBuf,
    path: PathBuf,
    _lock: Lock,
}

impl Staging {
    /// Begins to prepare `target`.
    pub fn new(target: &Path) -> Result<Self, FetchError> {
        let Some(name) = target.file_name() else {
            let problem = format!("{}: this is no name for something new", target.display());
            return Err(FetchError::Setting(problem));
        };
        // A file in the way of the folder is said to be there, not that the hidden one cannot be.
        create_folder_of(target)?;
        let path = target.with_file_name(hidden_name(name, ".part"));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !is_ours(&path) {
                    return Err(FileError::NotOurs { path }.into());
                }
            }
            created => created.map_err(|error| FileError::new(&path, "create", &error))?,
        }
        let busy = || FetchError::Busy { target: target.into() };
        let (file, owner) = (path.join(LOCK), format!("process {}", process::id()));
        let lock = Lock::take(&file, &owner).map_err(|error| match error {
            LockError::Busy { .. } => busy(),
            LockError::File(error) => error.into(),
        })?;
        // A process that has ended meanwhile has removed the file, and this is a lock of nothing.
        if !fs::read_to_string(&file).is_ok_and(|noted| noted.trim() == owner) {
            return Err(busy());
        }
        let staging = Self { target: target.into(), path, _lock: lock };
        staging.clean();
        Ok(staging)
    }

    /// The folder for the files of a folder, empty at first.
    pub fn contents(&self) -> Result<PathBuf, FetchError> {
        self.folder(CONTENTS)
    }

    /// A folder for anything else, empty at first.
    pub fn scratch(&self) -> Result<PathBuf, FetchError> {
        self.folder(SCRATCH)
    }

    fn folder(&self, name: &str) -> Result<PathBuf, FetchError> {
        let path = self.path.join(name);
        create_folder(&path)?;
        Ok(path)
    }

    /// Downloads a file, going on with what has arrived from the same address.
    pub fn download(
        &self,
        address: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, FetchError> {
        let [part, complete, of] = [PART, COMPLETE, ADDRESS].map(|name| self.path.join(name));
        let noted = read_text(&of, LONGEST_ADDRESS, &mut |_| {});
        if noted.ok().as_deref() != Some(address) {
            // The note goes first and comes last: it is never that of another beginning.
            for file in [&of, &part, &complete] {
                match fs::remove_file(file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(FileError::new(file, "remove", &error).into());
                    }
                    _ => {}
                }
            }
            fs::write(&of, address).map_err(|error| FileError::new(&of, "write", &error))?;
        }
        progress(&format!("downloading {address}"));
        if !complete.exists() {
            curl::curl(address, &part, &self.target)?;
            fs::rename(&part, &complete)
                .map_err(|error| FileError::new(&complete, "write", &error))?;
        }
        Ok(complete)
    }

    /// Removes a download that is good for nothing, so that the next one begins anew.
    pub fn discard_download(&self) {
        let _ = fs::remove_file(self.path.join(COMPLETE));
    }

    /// Gives the files of [`contents`](Self::contents) the name that was asked for, which nothing
    /// or an empty folder may have.
    pub fn commit_contents(self) -> Result<(), FetchError> {
        // Only an empty folder is removed by this.
        match fs::remove_dir(&self.target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::new(&self.target, "write", &error).into());
            }
            _ => {}
        }
        self.commit(CONTENTS)
    }

    /// Gives the download the name that was asked for, in the place of a file that had it.
    pub fn commit_download(self) -> Result<(), FetchError> {
        let file = self.path.join(COMPLETE);
        File::open(&file)
            .and_then(|file| file.sync_all())
            .map_err(|error| FileError::new(&self.target, "write", &error))?;
        self.commit(COMPLETE)
    }

    fn commit(self, name: &str) -> Result<(), FetchError> {
        fs::rename(self.path.join(name), &self.target)
            .and_then(|()| sync_folder_of(&self.target))
            .map_err(|error| FileError::new(&self.target, "write", &error))?;
        // Of another source that could not be reached.
        let _ = fs::remove_file(self.path.join(PART));
        Ok(())
    }

    /// Removes what cannot be gone on with.
    fn clean(&self) {
        let _ = fs::remove_dir_all(self.path.join(CONTENTS));
        let _ = fs::remove_dir_all(self.path.join(SCRATCH));
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.clean();
        let arrived = fs::metadata(self.path.join(PART)).is_ok_and(|part| part.len() > 0);
        if !arrived {
            for name in [PART, COMPLETE, ADDRESS, LOCK] {
                let _ = fs::remove_file(self.path.join(name));
            }
            // Not with anything in it that somebody else has put there.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// What stands in the way of a new folder, in words.
pub(crate) fn occupied(folder: &Path) -> Option<String> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            let first = entries.next()?;
            Some(first.map_or_else(
                |error| error.to_string(),
                |entry| format!("it holds {}", shown(entry.file_name().to_string_lossy())),
            ))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // A parent that is a file is reported when the folder is created.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory && !folder.exists() => None,
        Err(error) => Some(FileError::new(folder, "read", &error).to_string()),
    }
}

/// Whether nothing is lost when this is used and removed: a folder that is empty or was made here.
fn is_ours(path: &Path) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    is_folder && (path.join(LOCK).is_file() || is_empty())
}
