//! What can be wrong with folders of images, in words that say what to do.

use std::path::PathBuf;

use bayesmesh_files::FileError;

use crate::Blame;
use crate::cifar10::Cifar10Error;
use crate::fetch::FetchError;

/// Error of reading or making folders of images.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// There is no such folder.
    #[error(
        "{}: no such folder. Check the path, or make images to try things with: `bayesmesh data \
         synth images --out {}`",
        folder.display(), folder.display()
    )]
    NoFolder {
        /// The path as given.
        folder: PathBuf,
    },

    /// What is in a folder cannot be learned from.
    #[error("{}: {problem}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },

    /// An image cannot be used.
    #[error("{}: {problem}", file.display())]
    Image {
        /// The file.
        file: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },

    /// A setting is out of range, or something is in the way of a new folder.
    #[error("{0}")]
    Setting(String),

    /// Something cannot be read.
    #[error(transparent)]
    Read(FileError),

    /// Something cannot be written.
    #[error(transparent)]
    Write(FileError),
}

impl ImagesError {
    /// What it is about.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::Setting(_) => Blame::Setting,
            Self::Write(_) => Blame::File,
            _ => Blame::Data,
        }
    }

    /// What is in a folder cannot be learned from.
    pub(super) fn folder(folder: impl Into<PathBuf>, problem: impl Into<String>) -> Self {
        Self::Folder { folder: folder.into(), problem: problem.into() }
    }

    /// For `map_err`: `path` cannot be read.
    pub(super) fn read(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::Read(FileError::new(path, "read", &error))
    }
}

impl From<FetchError> for ImagesError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Setting(problem) | FetchError::Download(problem) => Self::Setting(problem),
            FetchError::Busy { target } => Self::Setting(format!(
                "{}: another process is writing here. Wait until it is done",
                target.display()
            )),
            FetchError::Write(error) => Self::Write(error),
        }
    }
}

impl From<Cifar10Error> for ImagesError {
    fn from(error: Cifar10Error) -> Self {
        Self::Setting(error.to_string())
    }
}
