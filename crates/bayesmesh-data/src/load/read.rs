//! From a file to observations.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use bayesmesh_files::{FileError, is_utf16, open_input, shown};
use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::error::LoadError;
use super::format::{Clock, Layout, TimeStyle};
use super::gaps;
use super::grid::{Grid, Observation};
use super::number::{Decimal, is_missing};
use super::outliers;
use super::report::{RepairEvent, RepairKind, RepairReport};
use super::rules::RepairRules;
use super::series::LoadSeries;
use super::time::{
    Local, Stated, from_berlin_clock, from_utc_clock, parse_clock, parse_interval, parse_iso,
};

/// No line of a series is longer, in bytes; what is endless is refused with this much in memory.
const LONGEST_LINE: usize = 1 << 20;

/// Reads and repairs a load file with the default [`RepairRules`]; see the
/// [module](crate::load) for the formats and the rules. A pipe that nobody writes to is waited for,
/// which is said on standard error; [`read_with`] says it elsewhere.
pub fn read(path: impl AsRef<Path>) -> Result<(LoadSeries, RepairReport), LoadError> {
    read_with(path, &RepairRules::default(), &mut |words| {
        // Where nobody can be told, the file can still be read.
        let _ = writeln!(std::io::stderr(), "{words}");
    })
}

/// Reads and repairs a load file; `say` is told what is waited for.
pub fn read_with(
    path: impl AsRef<Path>,
    rules: &RepairRules,
    say: &mut dyn FnMut(&str),
) -> Result<(LoadSeries, RepairReport), LoadError> {
    let path = path.as_ref();
    read_from(open_input(path, say).map_err(LoadError::Read)?, path, rules)
}

/// Reads and repairs a load file from any source; `name` is for messages.
pub fn read_from(
    reader: impl Read,
    name: impl AsRef<Path>,
    rules: &RepairRules,
) -> Result<(LoadSeries, RepairReport), LoadError> {
    let file = name.as_ref();
    let mut reader = BufReader::new(reader);
    let header = Header::read(&mut reader, file)?;
    let layout = Layout::of_header(&header.names, file)?;
    let mut report = RepairReport::new(file, layout.format, rules.listed_events);
    report.from_energy = layout.energy;

    let table = Table { file, header: &header, layout: &layout };
    let rows = table.rows(reader)?;
    if rows.is_empty() {
        return Err(LoadError::HeaderOnly { file: file.to_path_buf() });
    }
    report.rows = rows.len();
    let (observations, notes) = table.observations(rows, &mut report)?;

    let column = header.shown(layout.load);
    let mut grid =
        Grid::new(file, &column, observations, layout.energy, rules, &mut report, notes)?;
    outliers::replace(&mut grid, rules, &mut report);
    let values = gaps::fill(file, &grid, rules, &mut report)?;
    let series = LoadSeries { start: grid.start, step_seconds: grid.step as u32, values };
    report.finish(&series);
    Ok((series, report))
}

/// The first line that is not blank.
struct Header {
    names: Vec<String>,
    separator: u8,
    /// Line of the file it stands on.
    line: u64,
}

impl Header {
    fn read(reader: &mut impl BufRead, file: &Path) -> Result<Self, LoadError> {
        let mut beginning = reader.take(LONGEST_LINE as u64);
        let mut line = 0;
        let mut bytes = Vec::new();
        let text = loop {
            bytes.clear();
            let read = beginning.read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| unreadable(file, &error))?;
            line += 1;
            if beginning.limit() == 0 {
                return Err(long_line(file, line));
            }
            if read == 0 {
                return Err(LoadError::Empty { file: file.to_path_buf() });
            }
            if line == 1 && is_utf16(&bytes) {
                return Err(LoadError::Utf16 { file: file.to_path_buf() });
            }
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| LoadError::NotUtf8 { file: file.to_path_buf(), line })?;
            let text = text.trim_start_matches('\u{feff}').trim();
            if !text.is_empty() {
                break text;
            }
        };
        let count = |separator: u8| text.bytes().filter(|&b| b == separator).count();
        let separator = if count(b';') > count(b',') {
            b';'
        } else if count(b'\t') > count(b',') {
            b'\t'
        } else {
            b','
        };
        let mut record = StringRecord::new();
        csv_reader(text.as_bytes(), separator)
            .read_record(&mut record)
            .map_err(|error| csv_error(error, file, line))?;
        let names = record.iter().map(|name| name.trim().to_owned()).collect();
        Ok(Self { names, separator, line })
    }

    /// The name of a column, for messages.
    fn shown(&self, column: usize) -> String {
        shown(&self.names[column])
    }
}

/// Counts what is read, and reads no more than [`LONGEST_LINE`] bytes until the count is set back.
struct Limited<'a, R> {
    inner: R,
    count: &'a Cell<usize>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.count.get() > LONGEST_LINE {
            return Err(std::io::Error::other("a line is too long"));
        }
        let count = self.inner.read(buffer)?;
        self.count.update(|before| before + count);
        Ok(count)
    }
}

fn csv_reader<R: Read>(reader: R, separator: u8) -> csv::Reader<R> {
    ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(reader)
}

fn csv_error(error: csv::Error, file: &Path, line: u64) -> LoadError {
    match error.into_kind() {
        ErrorKind::Io(error) => unreadable(file, &error),
        ErrorKind::Utf8 { .. } => LoadError::NotUtf8 { file: file.to_path_buf(), line },
        other => {
            let problem = shown(format!("{other:?}"));
            LoadError::Csv { file: file.to_path_buf(), line, problem }
        }
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> LoadError {
    LoadError::Read(FileError::new(file, "read", error))
}

fn long_line(file: &Path, line: u64) -> LoadError {
    LoadError::LongLine { file: file.to_path_buf(), line, most: LONGEST_LINE }
}

/// A row before its clock reading and its number are understood.
struct Row {
    line: u64,
    time: Stated,
    load: String,
}

struct Table<'a> {
    file: &'a Path,
    header: &'a Header,
    layout: &'a Layout,
}

impl Table<'_> {
    fn rows(&self, reader: impl Read) -> Result<Vec<Row>, LoadError> {
        let count = Cell::new(0);
        let mut reader =
            csv_reader(Limited { inner: reader, count: &count }, self.header.separator);
        let mut record = StringRecord::new();
        let mut rows = Vec::new();
        let mut first_area: Option<String> = None;
        loop {
            let before = reader.position().line();
            let more = reader.read_record(&mut record).map_err(|error| {
                let line = error.position().map_or(before, |position| position.line());
                match count.get() > LONGEST_LINE {
                    true => long_line(self.file, self.header.line + line),
                    false => csv_error(error, self.file, self.header.line + line),
                }
            })?;
            count.set(0);
            if !more {
                return Ok(rows);
            }
            let line = self.header.line + record.position().map_or(before, |p| p.line());
            if record.iter().all(|cell| cell.trim().is_empty()) {
                continue;
            }
            if let Some(area) = self.layout.area {
                let found = self.cell(&record, area, line)?;
                let first = first_area.get_or_insert_with(|| found.to_owned());
                if first != found {
                    return Err(LoadError::SeveralAreas {
                        file: self.file.to_path_buf(),
                        line,
                        found: shown(found),
                        first: shown(first),
                    });
                }
            }
            let time = self.time(&record, line)?;
            let load = self.cell(&record, self.layout.load, line)?.to_owned();
            rows.push(Row { line, time, load });
        }
    }

    fn cell<'r>(
        &self,
        row: &'r StringRecord,
        column: usize,
        line: u64,
    ) -> Result<&'r str, LoadError> {
        row.get(column).map(str::trim).ok_or_else(|| LoadError::ShortRow {
            file: self.file.to_path_buf(),
            line,
            found: row.len(),
            needed: column + 1,
            column: self.header.shown(column),
        })
    }

    fn time(&self, row: &StringRecord, line: u64) -> Result<Stated, LoadError> {
        let mut text = self.cell(row, self.layout.time, line)?.to_owned();
        if let Some(column) = self.layout.time_of_day {
            text = format!("{text} {}", self.cell(row, column, line)?);
        }
        let (stated, expected) = match self.layout.style {
            TimeStyle::Iso => (parse_iso(&text), "2019-01-31T14:15:00Z"),
            TimeStyle::Interval => (parse_interval(&text), "31.01.2019 14:15 - 31.01.2019 14:30"),
            TimeStyle::Clock => {
                (parse_clock(&text).map(Stated::Clock), "31.01.2019 14:15 or Jan 31, 2019 2:15 PM")
            }
        };
        stated.ok_or_else(|| LoadError::BadTime {
            file: self.file.to_path_buf(),
            line,
            column: self.header.shown(self.layout.time),
            value: shown(text),
            expected,
        })
    }

    /// Observations in the file's units, in the order of the file (reversed if that is newest
    /// first), and what is to be noted about them.
    fn observations(
        &self,
        mut rows: Vec<Row>,
        report: &mut RepairReport,
    ) -> Result<(Vec<Observation>, Vec<RepairEvent>), LoadError> {
        let loads = rows.iter().map(|row| row.load.as_str());
        let decimal = Decimal::of_column(loads, self.layout.decimal);
        // The repeated hour is told apart by order, so the order must be that of time.
        let falls = rows.windows(2).filter(|pair| as_read(pair[1].time) < as_read(pair[0].time));
        if 2 * falls.count() > rows.len() {
            rows.reverse();
        }
        let mut observations = Vec::with_capacity(rows.len());
        let mut notes = Vec::new();
        let mut first_passes = HashSet::new();
        for row in rows {
            let load = self.load(&row, decimal)?;
            let mut note = |kind, time| {
                let old = load.map(|x| x as f32);
                notes.push(RepairEvent { time, kind, values: 1, old, new: None });
            };
            let out_of_range = || LoadError::BadTime {
                file: self.file.to_path_buf(),
                line: row.line,
                column: self.header.shown(self.layout.time),
                value: format!("{:?}", row.time),
                expected: "a year from -9999 to 9999",
            };
            let time = match (row.time, self.layout.clock) {
                (Stated::Utc(time), _) => time,
                (Stated::Clock(clock), Clock::Utc) => {
                    from_utc_clock(clock).ok_or_else(out_of_range)?
                }
                (Stated::Clock(clock), Clock::Unstated) => {
                    report.assumed_utc = true;
                    from_utc_clock(clock).ok_or_else(out_of_range)?
                }
                (Stated::Clock(clock), Clock::Berlin) => {
                    match from_berlin_clock(clock).ok_or_else(out_of_range)? {
                        Local::Once(time) => time,
                        Local::Twice(summer, _) if first_passes.insert(summer) => summer,
                        Local::Twice(_, winter) => {
                            note(RepairKind::RepeatedHour, winter);
                            winter
                        }
                        Local::Never => {
                            // An empty row for an hour that does not exist loses nothing.
                            if load.is_some() {
                                note(RepairKind::SkippedHour, as_read(row.time) - 3600);
                            }
                            continue;
                        }
                    }
                }
            };
            observations.push(Observation { time, load });
        }
        Ok((observations, notes))
    }

    fn load(&self, row: &Row, decimal: Decimal) -> Result<Option<f64>, LoadError> {
        if is_missing(&row.load) {
            return Ok(None);
        }
        let column = || self.header.shown(self.layout.load);
        let number = decimal.parse(&row.load).ok_or_else(|| LoadError::BadNumber {
            file: self.file.to_path_buf(),
            line: row.line,
            column: column(),
            value: shown(&row.load),
            hint: decimal.hint(),
        })?;
        // An energy may become four times as many MW. All repairs stay between loads of the file.
        let energy = self.layout.energy;
        let most = f64::from(f32::MAX) / if energy { 4.0 } else { 1.0 };
        if number.abs() > most {
            return Err(LoadError::TooLarge {
                file: self.file.to_path_buf(),
                line: row.line,
                column: column(),
                value: shown(&row.load),
                most,
                energy,
            });
        }
        Ok(Some(number))
    }
}

/// The clock reading as if it were UTC: good enough for the order of rows.
fn as_read(time: Stated) -> i64 {
    match time {
        Stated::Utc(time) => time,
        Stated::Clock(clock) => from_utc_clock(clock).unwrap_or(i64::MAX),
    }
}
