//! The canonical files and what is in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::edition::Edition;
use super::error::Cifar10Error;
use super::images::Images;
use super::records::Records;
use super::synth;

/// The names of the classes, by label.
pub const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// The files: five of training images, then the test images.
pub const FILES: [&str; 6] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
    "test_batch.bin",
];

/// Rows and columns of an image.
pub const SIDE: usize = 32;
/// Red, green, blue.
pub const CHANNELS: usize = 3;
/// Bytes of an image.
pub const IMAGE_BYTES: usize = CHANNELS * SIDE * SIDE;
/// Bytes of an image with its label.
pub const RECORD_BYTES: usize = 1 + IMAGE_BYTES;

/// The folder that the canonical archive holds the files in.
pub(super) const SUBFOLDER: &str = "cifar-10-batches-bin";

/// CIFAR-10, mapped into memory: what is never looked at is never loaded, and processes of one
/// machine share what is. The files must not be changed while they are in use.
#[derive(Clone, Debug)]
pub struct Cifar10 {
    train: Arc<Records>,
    test: Arc<Records>,
    synthetic: bool,
}

impl Cifar10 {
    /// Maps the files in `folder` or in its sub-folder `cifar-10-batches-bin`, and checks their
    /// sizes and every label; [`verify`](super::verify) checks every bit.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Cifar10Error> {
        let folder = locate(folder.as_ref())?;
        let synthetic = synth::images_per_file(&folder)?;
        let images = synthetic.unwrap_or(Edition::CIFAR10.images_per_file);
        let paths = FILES.map(|name| folder.join(name));
        Ok(Self {
            train: Arc::new(Records::map(&paths[..5], images)?),
            test: Arc::new(Records::map(&paths[5..], images)?),
            synthetic: synthetic.is_some(),
        })
    }

    /// A stand-in that can be learned from, in memory: `5 · images_per_file` training and
    /// `images_per_file` test images, the same as [`write_synthetic`](super::write_synthetic)
    /// writes.
    pub fn synthetic(images_per_file: usize, seed: u64) -> Result<Self, Cifar10Error> {
        synth::check(images_per_file)?;
        let records = |numbers| Arc::new(Records::of_bytes(synth::records(numbers, seed)));
        Ok(Self {
            train: records(0..5 * images_per_file),
            test: records(5 * images_per_file..6 * images_per_file),
            synthetic: true,
        })
    }

    /// Whether these are not the photographs but the stand-in.
    pub fn is_synthetic(&self) -> bool {
        self.synthetic
    }

    /// The first `limit` training images, or all.
    pub fn train(&self, limit: Option<usize>) -> Result<Images, Cifar10Error> {
        Images::first(&self.train, limit, "training")
    }

    /// The first `limit` test images, or all.
    pub fn test(&self, limit: Option<usize>) -> Result<Images, Cifar10Error> {
        Images::first(&self.test, limit, "test")
    }
}

/// The folder that the files are in: `folder`, or the folder of the archive in it.
pub(super) fn locate(folder: &Path) -> Result<PathBuf, Cifar10Error> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Cifar10Error::NoFolder { folder: folder.into() });
        }
        Err(error) => return Err(Cifar10Error::read(folder)(error)),
        Ok(found) if !found.is_dir() => {
            return Err(Cifar10Error::read(folder)(io::ErrorKind::NotADirectory.into()));
        }
        Ok(_) => {}
    }
    let inner = folder.join(SUBFOLDER);
    let here = FILES.iter().any(|name| folder.join(name).exists());
    Ok(if !here && inner.is_dir() { inner } else { folder.into() })
}
