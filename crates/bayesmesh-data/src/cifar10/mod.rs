//! CIFAR-10: 50,000 photographs to learn from and 10,000 to test with, 32×32 pixels, ten classes.
//!
//! [`Cifar10::open`] maps the canonical binary files into memory, [`Cifar10::train`] and
//! [`Cifar10::test`] select [`Images`] from them. Images are a [`bayesmesh::Dataset`]: they can be
//! split by a seeded permutation, normalised ([`Normalisation`]), augmented (a random crop and
//! flip for every draw) and corrupted ([`Corruption`]) to see what a network says of images unlike
//! those it has learned from.
//!
//! [`install`] brings the files to a folder, checked by SHA-256 and never half of them; [`verify`]
//! checks them again. [`write_synthetic`] and [`Cifar10::synthetic`] make images that can be
//! learned from without any download.
//!
//! # The files
//!
//! Five files of training images and one of test images, each of 10,000 records of 3,073 bytes: a
//! label from 0 to 9 (see [`CLASSES`]), then 1,024 bytes each of red, green and blue, row by row.
//!
//! ```
//! use bayesmesh::Dataset;
//! use bayesmesh_data::cifar10::Cifar10;
//!
//! let cifar = Cifar10::synthetic(20, 1)?;
//! let (train, valid) = cifar.train(None)?.split(0.1, 42)?;
//! let train = train.augmented(true);
//! assert_eq!((train.len(), valid.len(), cifar.test(None)?.len()), (90, 10, 20));
//! let (images, labels) = train.batch(&[3, 1, 4], &Default::default())?;
//! assert_eq!((images.dims(), labels.dims()), ([3, 3, 32, 32], [3]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod augment;
mod corrupt;
mod edition;
mod error;
mod files;
mod images;
mod install;
mod normalisation;
mod records;
mod synth;

pub use corrupt::Corruption;
pub use edition::{Edition, verify};
pub use error::Cifar10Error;
pub use files::{CHANNELS, CLASSES, Cifar10, FILES, IMAGE_BYTES, RECORD_BYTES, SIDE};
pub use images::Images;
pub use install::{Installed, install, install_edition};
pub use normalisation::Normalisation;
pub(crate) use normalisation::Table;
pub use synth::write_synthetic;

pub use crate::fetch::Source;
