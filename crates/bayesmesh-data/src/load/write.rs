//! Writing a series.

use std::io::Write;
use std::path::PathBuf;

use jiff::Timestamp;

use super::error::LoadError;
use super::series::LoadSeries;

/// Writes `timestamp,load` (ISO 8601 UTC, MW) with the fewest digits that give the same values when
/// [`read`](super::read()) back.
pub fn write_csv(series: &LoadSeries, mut writer: impl Write) -> Result<(), LoadError> {
    let failed = |source| LoadError::Io { file: PathBuf::from("writing a load series"), source };
    writeln!(writer, "timestamp,load").map_err(failed)?;
    for (index, value) in series.values.iter().enumerate() {
        let time = Timestamp::from_second(series.time(index)).map_err(|e| {
            LoadError::Setting(format!("a time of the series is out of range: {e}"))
        })?;
        writeln!(writer, "{time},{value}").map_err(failed)?;
    }
    writer.flush().map_err(failed)
}
