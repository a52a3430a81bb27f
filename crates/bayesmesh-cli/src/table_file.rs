//! Predictions as files: text, or numbers for NumPy.

use std::path::Path;

use anyhow::{Result, bail};
use bayesmesh_files::{AtomicFile, FileError};

use crate::exit::Usage;

/// What kind of file predictions are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFile {
    /// Text with a header.
    Csv,
    /// NumPy's format.
    Npy,
}

impl TableFile {
    /// As the name of the file says.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("npy") => Ok(Self::Npy),
            _ => {
                Err(Usage(format!("{}: write to a file that ends in .csv or .npy", path.display()))
                    .into())
            }
        }
    }
}

/// Refuses to write over the file that is read.
pub fn refuse_same_file(input: &Path, out: &Path) -> Result<()> {
    // A file that is not there yet is no other file.
    let real = |path: &Path| path.canonicalize().ok();
    if let (Some(from), Some(to)) = (real(input), real(out))
        && from == to
    {
        return Err(Usage(format!(
            "{}: this is what is read, and would be replaced; write to another file",
            out.display()
        ))
        .into());
    }
    Ok(())
}

/// Writes a file, complete or not at all.
pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
    Ok(AtomicFile::write(path, contents).map_err(|error| FileError::new(path, "write", &error))?)
}

/// Refuses predictions that are not numbers: a file of them would look like a result.
pub fn refuse_not_finite(values: &[f32]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => bail!(
            "the network predicts {}, which is not finite (value {index} of {}), and nothing is \
             written; look for values in the data that are far from those of the training",
            values[index],
            values.len()
        ),
    }
}

/// NumPy's format, version 1: little-endian single precision.
pub fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = shape.join(", ");
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length are 10 bytes; all of it is padded to a multiple of 64.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header += &" ".repeat(padding);
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}
