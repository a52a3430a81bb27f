//! What can be wrong with a table, in words that say what to do.

use std::path::PathBuf;

use bayesmesh_files::FileError;

use crate::Blame;

/// Error of reading, dividing or encoding a table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(FileError),

    /// A file that cannot be written.
    #[error("{0}")]
    Write(FileError),

    /// The file is no table that can be read.
    #[error("{}: {problem}", file.display())]
    File {
        /// The path as given.
        file: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },

    /// A line of a text file that does not fit the others.
    #[error("{}, line {line}: {problem}", file.display())]
    Line {
        /// The path as given.
        file: PathBuf,
        /// Line, counted from one.
        line: u64,
        /// What is wrong with it, and what to do.
        problem: String,
    },

    /// A column that cannot be what it is to be.
    #[error("column `{column}`: {problem}")]
    Column {
        /// Its name.
        column: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },

    /// A column that the table does not have.
    #[error("there is no column `{column}`{}; there are {}", meant.as_ref().map_or_else(String::new,
        |meant| format!(" (did you mean `{meant}`?)")), some(names))]
    NoColumn {
        /// Its name.
        column: String,
        /// The most similar one.
        meant: Option<String>,
        /// Those that there are.
        names: Vec<String>,
    },

    /// Rows that cannot be divided as asked for.
    #[error("{0}")]
    Split(String),

    /// Something that was asked for and cannot be.
    #[error("{0}")]
    Setting(String),
}

impl TableError {
    /// What it is about.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NoColumn { .. } | Self::Setting(_) => Blame::Setting,
            Self::Write(_) => Blame::File,
            _ => Blame::Data,
        }
    }

    /// Of a column.
    pub(crate) fn column(column: &str, problem: impl Into<String>) -> Self {
        Self::Column { column: column.to_owned(), problem: problem.into() }
    }

    /// Of a column that is not there.
    pub(crate) fn no_column(column: &str, names: &[&str]) -> Self {
        let folded = |name: &str| -> String {
            name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
        };
        let near = |name: &&&str| {
            let (own, other) = (folded(column), folded(name));
            own == other || (own.len() >= 3 && (other.contains(&own) || own.contains(&other)))
        };
        Self::NoColumn {
            column: column.to_owned(),
            meant: names.iter().find(near).map(|name| (*name).to_owned()),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

/// Names for a message; of many the first.
pub(crate) fn some(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
