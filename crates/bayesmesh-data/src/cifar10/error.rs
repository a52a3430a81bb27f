//! What can be wrong with CIFAR-10, in words that say what to do.

use std::path::PathBuf;

use bayesmesh_files::FileError;

use crate::Blame;

use super::files::RECORD_BYTES;
use crate::fetch::FetchError;

/// Error of reading, making or installing CIFAR-10.
#[derive(Debug, thiserror::Error)]
pub enum Cifar10Error {
    /// There is no such folder.
    #[error(
        "{}: no such folder. Check the path, or get the data with `bayesmesh data fetch cifar10 \
         --out {}`",
        folder.display(), folder.display()
    )]
    NoFolder {
        /// The path as given.
        folder: PathBuf,
    },

    /// One of the six files is missing.
    #[error(
        "{}: no such file. CIFAR-10 is data_batch_1.bin to data_batch_5.bin and test_batch.bin in \
         one folder; get them with `bayesmesh data fetch cifar10 --out` and a new folder",
        file.display()
    )]
    Missing {
        /// The file.
        file: PathBuf,
    },

    /// A file is too short or too long.
    #[error(
        "{}: {found} bytes instead of {} ({images} images of {RECORD_BYTES} bytes), the file is \
         {}. Remove its folder and get the data again with `bayesmesh data fetch cifar10`",
        file.display(), images * RECORD_BYTES,
        if *found < (images * RECORD_BYTES) as u64 { "cut off" } else { "too long" }
    )]
    Size {
        /// The file.
        file: PathBuf,
        /// Bytes that are there.
        found: u64,
        /// Images that should be there.
        images: usize,
    },

    /// A label that is no class.
    #[error(
        "{}, image {image}: label {label}, but labels are 0 to 9. The file is damaged: remove its \
         folder and get the data again with `bayesmesh data fetch cifar10`",
        file.display()
    )]
    Label {
        /// The file.
        file: PathBuf,
        /// The record, counted from zero.
        image: usize,
        /// What stands there.
        label: u8,
    },

    /// A file is not the published one.
    #[error(
        "{}: SHA-256 {found} instead of {expected}: this is not the published file, or it is \
         damaged. Get the data again with `bayesmesh data fetch cifar10`",
        file.display()
    )]
    Checksum {
        /// The file.
        file: PathBuf,
        /// The sum of what is there.
        found: String,
        /// The published sum.
        expected: String,
    },

    /// An archive or one of its files cannot be used.
    #[error("{}: {problem}", file.display())]
    Archive {
        /// The file.
        file: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },

    /// There is something else where the data should go.
    #[error(
        "{}: this folder is not empty and is not a good copy of CIFAR-10 ({problem}). Remove it, \
         or choose another one with --out; nothing was changed",
        folder.display()
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What was found in it.
        problem: String,
    },

    /// Another process is writing there.
    #[error("{}: another process is installing here. Wait until it is done", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },

    /// No source could be reached.
    #[error("{0}")]
    Download(String),

    /// A setting is out of range.
    #[error("{0}")]
    Setting(String),

    /// Something cannot be read.
    #[error(transparent)]
    Read(FileError),

    /// Something cannot be written.
    #[error(transparent)]
    Write(FileError),
}

impl Cifar10Error {
    /// What it is about.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::Setting(_) | Self::Occupied { .. } => Blame::Setting,
            Self::Write(_) | Self::Busy { .. } => Blame::File,
            _ => Blame::Data,
        }
    }

    /// For `map_err`: `path` cannot be read.
    pub(super) fn read(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::Read(FileError::new(path, "read", &error))
    }

    /// For `map_err`: `path` cannot be written.
    pub(super) fn write(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::Write(FileError::new(path, "write", &error))
    }
}

impl From<FetchError> for Cifar10Error {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Setting(problem) => {
                Self::Setting(format!("{problem}. Choose another one, for example data/cifar10"))
            }
            FetchError::Busy { target } => Self::Busy { folder: target },
            FetchError::Download(problem) => Self::Download(problem),
            FetchError::Write(error) => Self::Write(error),
        }
    }
}
