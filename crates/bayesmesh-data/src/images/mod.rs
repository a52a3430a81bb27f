//! Images in folders: one folder for each class, PNG and JPEG files of any size.
//!
//! [`ImageFolder::open`] finds out which files there are, [`ImageFolder::divide`] says which are
//! learned from, validated and tested with, and [`ImageSet::read`] decodes them: the middle of an
//! image, as large as it can be, resized to a square. An [`ImageSet`] is a [`bayesmesh::Dataset`]
//! of inputs `[rows, 3, size, size]`, normalised and, for training, varied ([`Augmentation`]).
//!
//! [`Survey::of`] says what is in a folder, [`write_synthetic`] makes one to try things with.
//!
//! # Folders
//!
//! ```text
//! photos/cat/001.jpg              photos/train/cat/001.jpg
//! photos/cat/more/002.png         photos/valid/cat/002.png
//! photos/dog/…                    photos/test/cat/…
//! ```
//!
//! On the left the parts are drawn by lot, class by class; on the right they are given. Names that
//! begin with a dot are passed over, links are followed, and no folder is read twice.

mod augment;
mod decode;
mod divide;
mod error;
mod folder;
mod set;
mod survey;
mod synth;

pub use augment::Augmentation;
pub use decode::{MOST_BYTES, MOST_PIXELS};
pub use divide::{Division, Shares};
pub use error::ImagesError;
pub use folder::{ImageFile, ImageFolder, Listing};
pub use set::{Broken, CHANNELS, ImageSet, Reading};
pub use survey::{Part, Survey};
pub use synth::{SYNTHETIC_CLASSES, write_synthetic};

pub use crate::cifar10::Normalisation;
