//! What can be wrong with a run folder, in words that say what to do.

use std::path::PathBuf;

use bayesmesh_files::FileError;
use thiserror::Error;

/// Why a run folder could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The operating system refused to read or write a file.
    #[error(transparent)]
    File(#[from] FileError),

    /// A new run was to be written over an old one.
    #[error(
        "{}: already holds a run. Continue it with --resume, or choose another folder with --out",
        path.display()
    )]
    AlreadyRun {
        /// The folder.
        path: PathBuf,
    },

    /// A new run was to be written among other files.
    #[error(
        "{}: not empty (it has '{name}') and not a run. Choose another folder with --out",
        path.display()
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// One of the files.
        name: String,
    },

    /// The folder is not that of a run.
    #[error(
        "{}: not a run folder, it has no {missing}. Name the folder that a training wrote (--out), \
         or train first", path.display()
    )]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What every run folder has, and this one not.
        missing: String,
    },

    /// Another program is writing the run.
    #[error(
        "{}: another program ({owner}) is writing this run. Wait until it ends, or choose another \
         folder with --out", path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Who it is, as far as known.
        owner: String,
    },

    /// The columns of the metrics are not those of the program.
    #[error(
        "{}: has the columns '{found}', the program writes '{expected}'. Continue the run with the \
         recipe and program it began with, or begin another with --out", path.display()
    )]
    Columns {
        /// The file.
        path: PathBuf,
        /// The header of the file.
        found: String,
        /// The header of the program.
        expected: String,
    },

    /// A column cannot have this name, because the file could not be read back.
    #[error("{}: a column cannot be called '{name}'", path.display())]
    ColumnName {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },

    /// A row has too few or too many cells.
    #[error("{}: a row of {found} cells for {expected} columns", path.display())]
    Cells {
        /// The file.
        path: PathBuf,
        /// Cells of the row, without the step.
        found: usize,
        /// Columns of the file, without the step.
        expected: usize,
    },

    /// A line was changed by somebody else.
    #[error("{}:{line}: {problem}. Correct or remove the line", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}
