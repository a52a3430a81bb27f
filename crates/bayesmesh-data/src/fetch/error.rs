//! Why something cannot be fetched. Each kind of data has these among its own errors.

use std::path::PathBuf;

use bayesmesh_files::FileError;

/// Error of preparing or downloading something.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// A target that has no name.
    Setting(String),
    /// Another process prepares the same target.
    Busy { target: PathBuf },
    /// What was asked for has not arrived, and why.
    Download(String),
    /// Something cannot be written.
    Write(FileError),
}

impl From<FileError> for FetchError {
    fn from(error: FileError) -> Self {
        Self::Write(error)
    }
}
