//! What the operating system can refuse, with the file and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file could not be read or written.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum FileError {
    /// There is nothing at this path, or its folder is missing.
    #[error("{}: no such file or folder. Check the path", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },

    /// The disk, the quota or the allowed file size is exhausted.
    #[error(
        "{}: no space left to {action} it ({reason}). Free some space or choose a folder on \
         another disk; what was saved before is intact", path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The words of the operating system.
        reason: String,
    },

    /// The user may not do this.
    #[error(
        "{}: no permission to {action} it. Change the permissions of the file and its folder, or \
         choose another place", path.display()
    )]
    Permission {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
    },

    /// The file system cannot be written to.
    #[error(
        "{}: cannot {action} it, the file system is read-only. Choose a folder on another one",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
    },

    /// A part of the path that should be a folder is a file.
    #[error(
        "{}: a file stands where this path needs a folder. Remove it or choose another path",
        path.display()
    )]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },

    /// A folder is where a file should be.
    #[error("{}: this is a folder. Name a file in it", path.display())]
    IsAFolder {
        /// The path.
        path: PathBuf,
    },

    /// A link is where a file of the program should be.
    #[error(
        "{}: this is a link, and what it points to would be overwritten. Remove it",
        path.display()
    )]
    Link {
        /// The path.
        path: PathBuf,
    },

    /// Something of somebody else has a name that the program needs.
    #[error(
        "{}: this was not made by bayesmesh, which needs the name for a while. Move it, or choose \
         another name for what is to be written; nothing was changed", path.display()
    )]
    NotOurs {
        /// The path.
        path: PathBuf,
    },

    /// More than anybody can have meant.
    #[error(
        "{}: more than {most} bytes, which is too much for such a file. Check the path",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// As much would have been read.
        most: u64,
    },

    /// Bytes that are not UTF-8.
    #[error(
        "{}, line {line}: not UTF-8 text. Save the file as UTF-8, for example with `iconv -f {} -t \
         UTF-8`", path.display(), if *utf16 { "UTF-16" } else { "LATIN1" }
    )]
    NotText {
        /// The file.
        path: PathBuf,
        /// Line, counted from one.
        line: usize,
        /// Whether it looks like UTF-16.
        utf16: bool,
    },

    /// Anything else.
    #[error("{}: cannot {action} it: {reason}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The words of the operating system.
        reason: String,
    },
}

/// The text, which is what `fn main() -> Result<…>` prints.
impl fmt::Debug for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FileError {
    /// The error of doing `action` ("read", "write", …) to `path`.
    pub fn new(path: impl AsRef<Path>, action: &'static str, error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let path = path.as_ref().to_path_buf();
        let reason = error.to_string();
        match error.kind() {
            Kind::NotFound => Self::Missing { path },
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge | Kind::WriteZero => {
                Self::Full { path, action, reason }
            }
            Kind::PermissionDenied => Self::Permission { path, action },
            Kind::ReadOnlyFilesystem => Self::ReadOnly { path, action },
            Kind::NotADirectory => Self::NotAFolder { path },
            Kind::IsADirectory => Self::IsAFolder { path },
            _ => Self::Other { path, action, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_names_the_file_and_a_remedy() {
        use io::ErrorKind as Kind;
        let cases = [
            (Kind::NotFound, "Check the path"),
            (Kind::StorageFull, "Free some space"),
            (Kind::QuotaExceeded, "Free some space"),
            (Kind::FileTooLarge, "Free some space"),
            (Kind::WriteZero, "Free some space"),
            (Kind::PermissionDenied, "Change the permissions"),
            (Kind::ReadOnlyFilesystem, "read-only"),
            (Kind::NotADirectory, "Remove it or choose another path"),
            (Kind::IsADirectory, "Name a file in it"),
            (Kind::TimedOut, "cannot write it: timed out"),
        ];
        for (kind, words) in cases {
            let message = FileError::new("runs/a", "write", &kind.into()).to_string();
            assert!(message.starts_with("runs/a: "), "{message}");
            assert!(message.contains(words), "{message}");
        }
    }
}
