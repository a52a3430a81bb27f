//! Data of the use cases: reading, checking, repairing, and serving batches.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod cifar10;
pub mod era5;
mod fetch;
pub mod images;
pub mod load;
pub mod series;
pub mod table;

pub use fetch::Source;

use std::error::Error;

/// What an error of this crate is about, for programs that tell these apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// What was asked for.
    Setting,
    /// The data: missing, damaged or of another kind.
    Data,
    /// A file or folder that cannot be written.
    File,
}

/// What an error is about, if it is one of this crate.
pub fn blame(error: &(dyn Error + 'static)) -> Option<Blame> {
    let of_load = error.downcast_ref().map(load::LoadError::blame);
    let of_cifar10 = || error.downcast_ref().map(cifar10::Cifar10Error::blame);
    let of_era5 = || error.downcast_ref().map(era5::Era5Error::blame);
    let of_images = || error.downcast_ref().map(images::ImagesError::blame);
    let of_table = || error.downcast_ref().map(table::TableError::blame);
    of_load.or_else(of_cifar10).or_else(of_era5).or_else(of_images).or_else(of_table)
}
