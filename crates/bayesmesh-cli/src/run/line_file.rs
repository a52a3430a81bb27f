//! Text files that grow by whole lines.

use std::fs;
use std::path::Path;

use bayesmesh_files::{AppendFile, AtomicFile, FileError};

use super::RunError;

/// A text file to which lines are appended.
#[derive(Debug)]
pub(super) struct LineFile(AppendFile);

impl LineFile {
    /// A new file. Refuses one that exists.
    pub(super) fn create(path: &Path) -> Result<Self, RunError> {
        Ok(Self(AppendFile::create(path)?))
    }

    /// Continues a file, or begins it if it is not there. A last line without an end is removed,
    /// and so are lines for which `keep`, called with their number from 1, is false.
    pub(super) fn resume(
        path: &Path,
        mut keep: impl FnMut(usize, &str) -> Result<bool, RunError>,
    ) -> Result<Self, RunError> {
        if !path.exists() {
            return Self::create(path);
        }
        let text = read_lines(path)?;
        let mut kept = String::with_capacity(text.complete.len());
        for (index, line) in text.complete.split_inclusive('\n').enumerate() {
            if keep(index + 1, line.trim_end_matches(['\r', '\n']))? {
                kept.push_str(line);
            }
        }
        if kept != text.complete || text.torn {
            AtomicFile::write(path, &kept)
                .map_err(|error| FileError::new(path, "write", &error))?;
        }
        Ok(Self(AppendFile::open(path)?))
    }

    /// Appends a line.
    pub(super) fn append(&mut self, line: &str) -> Result<(), RunError> {
        Ok(self.0.append(format!("{line}\n").as_bytes())?)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The content of a file of lines.
pub(super) struct Lines {
    /// The complete lines with their ends.
    pub(super) complete: String,
    /// Whether something follows them.
    pub(super) torn: bool,
}

/// Reads a file of lines.
pub(super) fn read_lines(path: &Path) -> Result<Lines, RunError> {
    let mut bytes = fs::read(path).map_err(|error| FileError::new(path, "read", &error))?;
    let all = bytes.len();
    // Looked for before decoding, because a torn line can end within a character.
    let end = bytes.iter().rposition(|&byte| byte == b'\n');
    bytes.truncate(end.map_or(0, |index| index + 1));
    let torn = bytes.len() < all;
    match String::from_utf8(bytes) {
        Ok(complete) => Ok(Lines { complete, torn }),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            Err(RunError::Malformed {
                path: path.into(),
                line: 1 + valid.iter().filter(|&&byte| byte == b'\n').count(),
                problem: "not UTF-8 text".into(),
            })
        }
    }
}
