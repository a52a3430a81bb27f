//! A table from a file, whatever it is.

use std::io::Read as _;
use std::path::Path;

use bayesmesh_files::{FileError, open_input};

use super::error::TableError;
use super::frame::Frame;
use super::{columnar, text};

/// How cells are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// Columns that are texts, whatever they look like.
    pub texts: &'a [String],
    /// Words for nothing, besides the usual ones.
    pub missing: &'a [String],
}

/// Reads a CSV or Parquet file. People are told, by `say`, what is waited for.
pub fn read(
    path: &Path,
    reading: &Reading<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<Frame, TableError> {
    let failed = |error| TableError::Read(FileError::new(path, "read", &error));
    let mut file = open_input(path, say).map_err(TableError::Read)?;
    let mut bytes = Vec::new();
    if let Ok(found) = file.metadata() {
        bytes.reserve(found.len() as usize);
    }
    file.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.starts_with(b"PAR1") {
        return columnar::parse(path, bytes, reading);
    }
    text::parse(path, &bytes, reading)
}
