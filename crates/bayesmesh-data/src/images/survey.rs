//! What is in a folder of images.

use std::path::Path;

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use super::decode;
use super::error::ImagesError;
use super::folder::ImageFolder;
use super::set::Broken;

/// A part of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `train`, `valid` or `test`; `all` where the folder is not divided.
    pub name: &'static str,
    /// Images of each class, broken ones included.
    pub counts: Vec<usize>,
}

/// What is in a folder of images, all of which were decoded.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The classes and files.
    pub folder: ImageFolder,
    /// Images by part and class.
    pub parts: Vec<Part>,
    /// Width and height of the smallest, the median and the largest image, by their pixels; nothing
    /// where all are broken.
    pub sizes: Option<[[u32; 2]; 3]>,
    /// How many images can be read.
    pub readable: usize,
    /// Images that cannot be read, and why.
    pub broken: Vec<Broken>,
}

impl Survey {
    /// Reads every image of a folder.
    pub fn of(root: impl AsRef<Path>, progress: &(dyn Fn() + Sync)) -> Result<Self, ImagesError> {
        let folder = ImageFolder::open(root, None)?;
        let names = if folder.divided { ["train", "valid", "test"] } else { ["all", "", ""] };
        let parts = names.into_iter().enumerate();
        let parts =
            parts.filter_map(|(part, name)| Some(Part { name, counts: folder.counts(part)? }));
        let parts = parts.collect();
        let files: Vec<_> = folder.parts.iter().flatten().flatten().collect();
        let one = |file: &super::ImageFile| {
            let decoded = decode::read(&file.path, 1);
            progress();
            decoded
                .map(|decoded| decoded.original)
                .map_err(|error| Broken { file: file.path.clone(), problem: error.to_string() })
        };
        let found: Vec<Result<[u32; 2], Broken>> = files.into_par_iter().map(one).collect();
        let mut sizes: Vec<[u32; 2]> =
            found.iter().filter_map(|found| found.as_ref().ok().copied()).collect();
        sizes.sort_by_key(|&[width, height]| (u64::from(width) * u64::from(height), width));
        let three = match sizes[..] {
            [] => None,
            [first, ..] => Some([first, sizes[sizes.len() / 2], sizes[sizes.len() - 1]]),
        };
        let broken = found.into_iter().filter_map(Result::err).collect();
        Ok(Self { folder, parts, sizes: three, readable: sizes.len(), broken })
    }
}
