//! What can be wrong with a load file, in words that say what to do.

use std::path::PathBuf;

use bayesmesh_files::FileError;

use crate::Blame;

use super::format::KNOWN_FORMATS;
use super::time::utc;
use crate::fetch::FetchError;

/// Error of reading, splitting, normalising or making a load series.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(FileError),

    /// A file cannot be written.
    #[error("{0}")]
    Write(FileError),

    /// Another process is writing the same file.
    #[error("{}: another process is fetching this. Wait until it is done", file.display())]
    Busy {
        /// The file.
        file: PathBuf,
    },

    /// The source could not be reached.
    #[error("{0}. Or download the file elsewhere and use --from FILE")]
    Download(String),

    /// What was downloaded cannot be used.
    #[error("{0}. This is what was downloaded; what has arrived was removed")]
    Downloaded(Box<LoadError>),

    /// A line that no series has.
    #[error(
        "{}: line {line} is longer than {most} bytes; is this a CSV file? If it is, a quote may \
         not be closed: look for `\"` in this line",
        file.display()
    )]
    LongLine {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// As long lines may be.
        most: usize,
    },

    /// The file has no content.
    #[error("{}: the file is empty. Download or export it again", file.display())]
    Empty {
        /// The path as given.
        file: PathBuf,
    },

    /// The file has a header and nothing else.
    #[error(
        "{}: only a header and no rows. Export it again with a time range that has data",
        file.display()
    )]
    HeaderOnly {
        /// The path as given.
        file: PathBuf,
    },

    /// No known format has this header.
    #[error(
        "{}: unknown header\n  {header}\nknown formats, by the columns they need:\n\
         {KNOWN_FORMATS}\nRename the columns to `timestamp,load` (MW) or export the file in one of \
         these formats",
        file.display()
    )]
    UnknownHeader {
        /// The path as given.
        file: PathBuf,
        /// The first line, shortened.
        header: String,
    },

    /// The header is of a known format, but does not say what to take.
    #[error("{}: {problem}", file.display())]
    Header {
        /// The path as given.
        file: PathBuf,
        /// What is missing or ambiguous, and what to do.
        problem: String,
    },

    /// Bytes that are not UTF-8.
    #[error(
        "{}, line {line}: not UTF-8 text. Save the file as UTF-8, for example with \
         `iconv -f LATIN1 -t UTF-8`",
        file.display()
    )]
    NotUtf8 {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
    },

    /// Text in another encoding.
    #[error(
        "{}: this is UTF-16 text. Save the file as UTF-8, for example with \
         `iconv -f UTF-16 -t UTF-8`",
        file.display()
    )]
    Utf16 {
        /// The path as given.
        file: PathBuf,
    },

    /// The rows cannot be told apart.
    #[error("{}, line {line}: {problem}", file.display())]
    Csv {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// What the reader of CSV says.
        problem: String,
    },

    /// A row ends before the column that is needed.
    #[error(
        "{}, line {line}: {found} columns, but column `{column}` is number {needed}. The row is \
         cut off: complete or delete it",
        file.display()
    )]
    ShortRow {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// Number of columns of the row.
        found: usize,
        /// Number of the column that is needed.
        needed: usize,
        /// Its name.
        column: String,
    },

    /// A time that cannot be read.
    #[error(
        "{}, line {line}, column `{column}`: `{value}` is not a time; expected {expected}. Correct \
         or delete the row",
        file.display()
    )]
    BadTime {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// Name of the column.
        column: String,
        /// What stands there.
        value: String,
        /// An example of what the format has.
        expected: &'static str,
    },

    /// A load that is not a number.
    #[error(
        "{}, line {line}, column `{column}`: `{value}` is not a number{hint}. Correct it, or empty \
         the cell to have it treated as missing",
        file.display()
    )]
    BadNumber {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// Name of the column.
        column: String,
        /// What stands there.
        value: String,
        /// How numbers are written in this file.
        hint: &'static str,
    },

    /// A load that single precision cannot hold.
    #[error(
        "{}, line {line}, column `{column}`: `{value}` is larger than a load can be ({most:.1e} \
         {}). Correct it, or empty the cell to have it treated as missing",
        file.display(), if *energy { "MWh" } else { "MW" }
    )]
    TooLarge {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// Name of the column.
        column: String,
        /// What stands there.
        value: String,
        /// The largest load.
        most: f64,
        /// Whether loads are energies.
        energy: bool,
    },

    /// Rows of more than one area.
    #[error(
        "{}, line {line}: area `{found}`, but the rows before are of `{first}`. Export one area",
        file.display()
    )]
    SeveralAreas {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// Area of this row.
        found: String,
        /// Area of the first row.
        first: String,
    },

    /// Not enough values.
    #[error(
        "{}: {found} values in column `{column}`, at least {needed} are needed. Export a longer \
         time range, and check that this column is filled",
        file.display()
    )]
    TooShort {
        /// The path as given.
        file: PathBuf,
        /// Name of the column.
        column: String,
        /// Values that are there.
        found: usize,
        /// Values that are needed.
        needed: usize,
    },

    /// The distance of the rows is none that is supported.
    #[error(
        "{}: the rows are {seconds} seconds apart; supported are 900 (15 min), 1800 and 3600 (an \
         hour). Export the file in one of these resolutions",
        file.display()
    )]
    Step {
        /// The path as given.
        file: PathBuf,
        /// The most common difference of times.
        seconds: i64,
    },

    /// Too many rows do not lie on the grid.
    #[error(
        "{}: {off} of {rows} rows are not on the grid of {step} seconds (the first at {}). The \
         file mixes resolutions: export it in one resolution",
        file.display(), utc(*first)
    )]
    OffGrid {
        /// The path as given.
        file: PathBuf,
        /// Rows that are off.
        off: usize,
        /// Rows in all.
        rows: usize,
        /// The step.
        step: i64,
        /// Time of the first such row.
        first: i64,
    },

    /// A gap that no rule fills.
    #[error(
        "{}: no load from {} to {} ({:.1} hours); {why}. Complete the file, or keep only the part \
         before or after this gap",
        file.display(), utc(*from), utc(*to), *seconds as f64 / 3600.0
    )]
    Gap {
        /// The path as given.
        file: PathBuf,
        /// Time of the first missing value.
        from: i64,
        /// Time of the last missing value.
        to: i64,
        /// Length of the gap.
        seconds: i64,
        /// Why it cannot be filled.
        why: String,
    },

    /// A setting of the generator, or a series to write, is out of range.
    #[error("{0}")]
    Setting(String),
}

impl LoadError {
    /// What it is about.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::Setting(_) => Blame::Setting,
            Self::Write(_) | Self::Busy { .. } => Blame::File,
            _ => Blame::Data,
        }
    }
}

impl From<FetchError> for LoadError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Setting(problem) => {
                Self::Setting(format!("{problem}. Choose another one, for example data/load.csv"))
            }
            FetchError::Busy { target } => Self::Busy { file: target },
            FetchError::Download(problem) => Self::Download(problem),
            FetchError::Write(error) => Self::Write(error),
        }
    }
}
