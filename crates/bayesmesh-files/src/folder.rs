//! Making folders.

use std::fs;
use std::io;
use std::path::Path;

use crate::FileError;

/// Makes a folder and those above it, unless they are there.
pub fn create_folder(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        // What is there is not a folder; say that rather than that it exists.
        io::ErrorKind::AlreadyExists => FileError::NotAFolder { path: path.into() },
        _ => FileError::new(path, "create", &error),
    })
}

/// Makes the folder that a file will be in, unless it is there.
pub fn create_folder_of(file: impl AsRef<Path>) -> Result<(), FileError> {
    match file.as_ref().parent() {
        Some(parent) if !parent.as_os_str().is_empty() => create_folder(parent),
        _ => Ok(()),
    }
}
