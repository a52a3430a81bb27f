//! A load series from where it is to where it is needed.

use std::io::{self, Read, Write};
use std::path::Path;

use bayesmesh_files::{AtomicFile, FileError, create_folder_of, open_input};

use super::error::LoadError;
use super::read::{read_from, read_with};
use super::report::RepairReport;
use super::rules::RepairRules;
use super::series::LoadSeries;
use crate::fetch::{Source, Staging};

/// Open Power System Data, CC BY 4.0; German load every 15 minutes, 2015 to 2020.
const USUAL: &str = "https://data.open-power-system-data.org/time_series/2020-10-06/\
                     time_series_15min_singleindex.csv";

/// Brings a series to the file `out`, which appears, or is replaced, only when all of it is there
/// and has been read without an error. `progress` is told in words what is being done.
///
/// The usual source is Open Power System Data. An interrupted download goes on where it stopped
/// when the same is asked for again; it is kept in a hidden folder beside `out`.
pub fn fetch(
    source: &Source,
    out: impl AsRef<Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<(LoadSeries, RepairReport), LoadError> {
    let out = out.as_ref();
    // Refused before anything is fetched.
    if out.is_dir() {
        return Err(LoadError::Write(FileError::IsAFolder { path: out.into() }));
    }
    let (series, mut report) = match source {
        Source::Usual => download(USUAL, out, progress)?,
        Source::Address(address) => download(address, out, progress)?,
        Source::Path(path) => copy(path, out, progress)?,
    };
    report.file = out.into();
    Ok((series, report))
}

fn download(
    address: &str,
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(LoadSeries, RepairReport), LoadError> {
    let staging = Staging::new(out)?;
    let file = staging.download(address, progress)?;
    let file = open_input(file, progress).map_err(LoadError::Read)?;
    match read_from(file, address, &RepairRules::default()) {
        Ok(read) => {
            staging.commit_download()?;
            Ok(read)
        }
        Err(error) => {
            staging.discard_download();
            Err(LoadError::Downloaded(Box::new(error)))
        }
    }
}

fn copy(
    path: &Path,
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(LoadSeries, RepairReport), LoadError> {
    if !path.try_exists().unwrap_or(true) {
        return Err(LoadError::Setting(format!(
            "{}: no such file. Name a CSV file, or an address such as https://example.org/load.csv",
            path.display()
        )));
    }
    let rules = RepairRules::default();
    if is_same(path, out) {
        progress(&format!("{}: this file is here already and is only checked", out.display()));
        return read_with(path, &rules, progress);
    }
    let from = open_input(path, progress).map_err(LoadError::Read)?;
    let failed = |error| LoadError::Write(FileError::new(out, "write", &error));
    create_folder_of(out).map_err(LoadError::Write)?;
    let to = AtomicFile::create(out).map_err(failed)?;
    let mut copying = Copying { from, to, failure: None };
    let read = read_from(&mut copying, path, &rules);
    if let Some(error) = copying.failure {
        return Err(failed(error));
    }
    let read = read?;
    copying.to.commit().map_err(failed)?;
    Ok(read)
}

/// Whether two paths lead to one file, also through links.
fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Writes all that is read from `from` to `to`: what was checked is what is kept, also of a pipe.
struct Copying<R, W> {
    from: R,
    to: W,
    /// Why `to` cannot be written.
    failure: Option<io::Error>,
}

impl<R: Read, W: Write> Read for Copying<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(&buffer[..count]).map_err(|error| {
            self.failure = Some(error);
            io::Error::other("the copy cannot be written")
        })?;
        Ok(count)
    }
}
