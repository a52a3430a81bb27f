//! Images and labels as they lie in files.

use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::error::Cifar10Error;
use super::files::{CLASSES, RECORD_BYTES};

/// Records of 3,073 bytes, numbered across files of equal length.
#[derive(Debug)]
pub(super) struct Records {
    files: Vec<Bytes>,
    per_file: usize,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Memory(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Memory(bytes) => bytes,
        }
    }
}

impl Records {
    /// Maps files of `images` records each; refuses other sizes, and labels that are no class.
    pub fn map(paths: &[PathBuf], images: usize) -> Result<Self, Cifar10Error> {
        let files = paths.iter().map(|path| Ok(Bytes::Mapped(map(path, images)?)));
        Ok(Self { files: files.collect::<Result<_, Cifar10Error>>()?, per_file: images })
    }

    /// Records one after the other, in memory.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { per_file: bytes.len() / RECORD_BYTES, files: vec![Bytes::Memory(bytes)] }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.files.len() * self.per_file
    }

    /// The label and the bytes of the image.
    #[inline]
    pub fn record(&self, number: usize) -> &[u8; RECORD_BYTES] {
        let file = &self.files[number / self.per_file];
        let start = number % self.per_file * RECORD_BYTES;
        file[start..start + RECORD_BYTES].try_into().expect("the length of a record")
    }
}

/// Opens a file of which the operating system knows the length.
pub(super) fn open(path: &Path) -> Result<(File, u64), Cifar10Error> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Cifar10Error::Missing { file: path.into() },
        _ => Cifar10Error::read(path)(error),
    };
    // Before it is opened: opening a pipe would wait for somebody who writes to it.
    let found = fs::metadata(path).map_err(failed)?;
    if found.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if !found.is_file() {
        return Err(failed(io::Error::other("this is a pipe or a device, and not a file")));
    }
    Ok((File::open(path).map_err(failed)?, found.len()))
}

fn map(path: &Path, images: usize) -> Result<Mmap, Cifar10Error> {
    let (file, found) = open(path)?;
    if found != (images * RECORD_BYTES) as u64 {
        return Err(Cifar10Error::Size { file: path.into(), found, images });
    }
    // SAFETY: the map is only ever read as bytes, for which every value is valid. That nobody
    // changes or shortens the file meanwhile is asked of users in the documentation of `Cifar10`.
    let map = unsafe { Mmap::map(&file) }.map_err(Cifar10Error::read(path))?;
    let labels = map.iter().step_by(RECORD_BYTES);
    match labels.enumerate().find(|&(_, &label)| usize::from(label) >= CLASSES.len()) {
        Some((image, &label)) => Err(Cifar10Error::Label { file: path.into(), image, label }),
        None => Ok(map),
    }
}
