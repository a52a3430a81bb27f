//! One program at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use thiserror::Error;

use crate::{FileError, shown};

/// No owner notes more bytes than this of itself.
const NOTED: u64 = 1000;

/// A file that only one program can hold. The operating system lets go of it with the process,
/// however that ends; the file stays.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    held: bool,
}

/// Why a lock could not be taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LockError {
    /// Another program has it.
    #[error("another program ({owner}) has the lock")]
    Busy {
        /// What it has noted of itself, as far as known.
        owner: String,
    },
    /// The file cannot be opened or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Lock {
    /// Takes the lock of a file, which is made unless it is there, and notes the owner in it. A
    /// link is refused: what it points to would be overwritten.
    pub fn take(path: &Path, owner: &str) -> Result<Self, LockError> {
        let io = |error: io::Error| match is_link(&error) {
            true => FileError::Link { path: path.into() },
            false => FileError::new(path, "lock", &error),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        not_through_a_link(&mut options);
        let mut file = options.open(path).map_err(io)?;
        let held = match file.try_lock() {
            Ok(()) => true,
            // Some network file systems have no locks; what is done there is still worth doing.
            Err(TryLockError::Error(error)) if has_no_locks(&error) => false,
            Err(TryLockError::Error(error)) => return Err(io(error).into()),
            Err(TryLockError::WouldBlock) => {
                let mut noted = String::new();
                // Only to say who it is; the owner may not have noted it yet, or keep it to itself.
                let read = file.take(NOTED).read_to_string(&mut noted);
                let known = read.is_ok() && !noted.trim().is_empty();
                let owner = if known { noted.trim() } else { "unknown" };
                return Err(LockError::Busy { owner: shown(owner) });
            }
        };
        file.set_len(0).and_then(|()| writeln!(file, "{owner}")).map_err(io)?;
        Ok(Self { _file: file, held })
    }

    /// Whether others are kept out: not where the file system has no locks.
    pub fn is_held(&self) -> bool {
        self.held
    }
}

#[cfg(unix)]
fn not_through_a_link(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(libc::O_NOFOLLOW);
}

#[cfg(not(unix))]
fn not_through_a_link(_: &mut OpenOptions) {}

/// What opening says of a link that is not to be followed.
fn is_link(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::ELOOP);
    #[cfg(not(unix))]
    return {
        let _ = error;
        false
    };
}

/// Whether a file system says that it has no locks: it does not know them, or nobody on the network
/// keeps them.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    let on_network = error.raw_os_error() == Some(libc::ENOLCK);
    #[cfg(not(unix))]
    let on_network = false;
    error.kind() == io::ErrorKind::Unsupported || on_network
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_second_owner_is_told_of_the_first() {
        let scratch = Scratch::new();
        let path = scratch.path().join("lock");
        let first = Lock::take(&path, "process 1").unwrap();
        assert!(first.is_held());
        let busy = Lock::take(&path, "process 2").unwrap_err();
        assert_eq!(busy, LockError::Busy { owner: "process 1".to_owned() });
        drop(first);
        Lock::take(&path, "process 2").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "process 2\n");
    }

    #[cfg(unix)]
    #[test]
    fn what_a_link_points_to_is_untouched() {
        let scratch = Scratch::new();
        let [target, link] = ["precious", "lock"].map(|name| scratch.path().join(name));
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let error = Lock::take(&link, "process 1").unwrap_err().to_string();
        assert!(error.contains("lock: ") && error.contains("link"), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
    }
}
