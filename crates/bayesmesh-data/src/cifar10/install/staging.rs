//! A folder that appears complete or not at all.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use bayesmesh_files::{FileError, create_folder};

use crate::cifar10::error::Cifar10Error;

/// Where a download is kept to go on with it.
const PART: &str = "download.part";
/// What it is called when it has arrived.
const COMPLETE: &str = "download.complete";
/// The address that it comes from.
const ADDRESS: &str = "download.address";
/// The files that will become the folder.
const BATCHES: &str = "batches";
/// What is needed on the way.
const SCRATCH: &str = "scratch";
const LOCK: &str = "lock";

/// A hidden folder beside the one that is asked for, in which that is prepared.
///
/// When dropped, everything is removed but the part of a download that has arrived. What a killed
/// process leaves is removed by the next one.
#[derive(Debug)]
pub(in crate::cifar10) struct Staging {
    target: PathBuf,
    path: PathBuf,
    /// Held while this process works here, and let go by the operating system however it ends.
    _lock: File,
}

/// The files of a download.
#[derive(Debug)]
pub(in crate::cifar10) struct Download {
    /// While it arrives; a part of an earlier try may be there.
    pub part: PathBuf,
    /// When it has arrived.
    pub complete: PathBuf,
}

impl Staging {
    /// Begins to prepare `target`, which must be new or empty.
    pub fn new(target: &Path) -> Result<Self, Cifar10Error> {
        let Some(name) = target.file_name() else {
            return Err(Cifar10Error::Setting(format!(
                "{}: name a folder, for example data/cifar10",
                target.display()
            )));
        };
        if let Some(problem) = occupied(target) {
            return Err(Cifar10Error::Occupied { folder: target.into(), problem });
        }
        let path = target.with_file_name(format!(".{}.part", name.to_string_lossy()));
        // A file in the way of the folder is said to be there, not that the hidden one cannot be.
        if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            create_folder(parent).map_err(Cifar10Error::Write)?;
        }
        create_folder(&path).map_err(Cifar10Error::Write)?;
        let lock_path = path.join(LOCK);
        let lock = File::create(&lock_path).map_err(Cifar10Error::write(&lock_path))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(Cifar10Error::Busy { folder: target.into() });
            }
            // A file system without locks: as good as before there were any.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        let staging = Self { target: target.into(), path, _lock: lock };
        staging.clean();
        Ok(staging)
    }

    /// The folder for the files, empty at first.
    pub fn batches(&self) -> Result<PathBuf, Cifar10Error> {
        self.folder(BATCHES)
    }

    /// A folder for anything else, empty at first.
    pub fn scratch(&self) -> Result<PathBuf, Cifar10Error> {
        self.folder(SCRATCH)
    }

    fn folder(&self, name: &str) -> Result<PathBuf, Cifar10Error> {
        let path = self.path.join(name);
        create_folder(&path).map_err(Cifar10Error::Write)?;
        Ok(path)
    }

    /// The files for a download; what has arrived from another address is removed.
    pub fn download(&self, address: &str) -> Download {
        let [part, complete, of] = [PART, COMPLETE, ADDRESS].map(|name| self.path.join(name));
        if fs::read_to_string(&of).ok().as_deref() != Some(address) {
            let _ = fs::remove_file(&part);
            let _ = fs::remove_file(&complete);
            // Where this cannot be written the download fails as well, and says why.
            let _ = fs::write(&of, address);
        }
        Download { part, complete }
    }

    /// Gives the files the name that was asked for.
    pub fn commit(self) -> Result<(), Cifar10Error> {
        // An empty folder may be there; only such a one is removed by this.
        match fs::remove_dir(&self.target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Cifar10Error::write(&self.target)(error));
            }
            _ => {}
        }
        fs::rename(self.path.join(BATCHES), &self.target)
            .map_err(Cifar10Error::write(&self.target))?;
        let _ = fs::remove_file(self.path.join(PART));
        Ok(())
    }

    /// Removes what cannot be gone on with.
    fn clean(&self) {
        let _ = fs::remove_dir_all(self.path.join(BATCHES));
        let _ = fs::remove_dir_all(self.path.join(SCRATCH));
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.clean();
        let arrived = fs::metadata(self.path.join(PART)).is_ok_and(|part| part.len() > 0);
        if !arrived {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// What stands in the way of a new folder, in words.
pub(super) fn occupied(folder: &Path) -> Option<String> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            let first = entries.next()?;
            Some(first.map_or_else(
                |error| error.to_string(),
                |entry| format!("it holds {}", entry.file_name().to_string_lossy()),
            ))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // A parent that is a file is reported when the folder is created.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory && !folder.exists() => None,
        Err(error) => Some(FileError::new(folder, "read", &error).to_string()),
    }
}
