//! Writing a series.

use std::io::Write;
use std::path::Path;

use bayesmesh_files::{AtomicFile, FileError, create_folder_of};
use jiff::Timestamp;

use super::error::LoadError;
use super::series::LoadSeries;

/// Writes `timestamp,load` (ISO 8601 UTC, MW) with the fewest digits that give the same values when
/// [`read`](super::read()) back.
pub fn write_csv(series: &LoadSeries, writer: impl Write) -> Result<(), LoadError> {
    write_rows(series, writer, Path::new("the load series"))
}

/// Writes a file as [`write_csv`] does. It appears, or is replaced, when all of it is written.
pub fn save_csv(series: &LoadSeries, path: impl AsRef<Path>) -> Result<(), LoadError> {
    let path = path.as_ref();
    let failed = |error| LoadError::Write(FileError::new(path, "write", &error));
    create_folder_of(path).map_err(LoadError::Write)?;
    let mut file = AtomicFile::create(path).map_err(failed)?;
    write_rows(series, &mut file, path)?;
    file.commit().map_err(failed)
}

/// `name` is for messages.
fn write_rows(series: &LoadSeries, mut writer: impl Write, name: &Path) -> Result<(), LoadError> {
    let failed = |error| LoadError::Write(FileError::new(name, "write", &error));
    writeln!(writer, "timestamp,load").map_err(failed)?;
    for (index, value) in series.values.iter().enumerate() {
        let time = Timestamp::from_second(series.time(index)).map_err(|e| {
            LoadError::Setting(format!("a time of the series is out of range: {e}"))
        })?;
        writeln!(writer, "{time},{value}").map_err(failed)?;
    }
    writer.flush().map_err(failed)
}
