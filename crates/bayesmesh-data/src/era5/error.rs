//! What can be wrong with a store of weather, in words that say what to do.

use std::path::PathBuf;

use bayesmesh_files::FileError;

use super::time::utc;
use super::variable::Variable;
use crate::Blame;

/// Error of opening, reading, dividing, making or writing a store of weather.
///
/// `store` is the location as it was given.
#[derive(Debug, thiserror::Error)]
pub enum Era5Error {
    /// There is nothing, or nothing that is a Zarr store.
    #[error(
        "{store}: no Zarr store here ({problem}). Check the path; a store is a folder or an \
         address that has `.zmetadata`, `.zgroup` or `zarr.json` directly in it"
    )]
    NoStore {
        /// The location.
        store: String,
        /// What was found instead.
        problem: String,
    },

    /// An address of a kind that is not known.
    #[error(
        "{store}: `{scheme}://` is not supported. Use a folder, `file://`, `http://`, `https://` \
         or `gs://` for public buckets"
    )]
    Scheme {
        /// The location.
        store: String,
        /// What stands before `://`.
        scheme: String,
    },

    /// The place could not be reached, or does not give what it has.
    #[error("{store}: {key} cannot be read: {problem}. {remedy}")]
    Unreachable {
        /// The location.
        store: String,
        /// What was asked for.
        key: String,
        /// What the file system, the network or the server says.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },

    /// Metadata that cannot be understood.
    #[error("{store}: the metadata of `{array}` {problem}")]
    Metadata {
        /// The location.
        store: String,
        /// The array, or what stands for the whole store.
        array: String,
        /// What is wrong and what to do.
        problem: String,
    },

    /// A variable is missing.
    #[error(
        "{store}: no variable `{name}`; {}the store has {has}. Correct the list of variables",
        nearest.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default()
    )]
    NoVariable {
        /// The location.
        store: String,
        /// What was asked for.
        name: String,
        /// The most similar name of the store.
        nearest: Option<String>,
        /// All names of the store.
        has: String,
    },

    /// A field without time is missing.
    #[error(
        "{store}: no constant field `{name}`; it has {has}. The masks are `land_sea_mask`, \
         `soil_type` and `geopotential_at_surface`: use a store that has them, or `masks = false`"
    )]
    NoConstant {
        /// The location.
        store: String,
        /// What was asked for.
        name: String,
        /// All constant fields of the store.
        has: String,
    },

    /// A variable lacks a level, or has none, or needs one.
    #[error("{store}: `{variable}`: {problem}")]
    Level {
        /// The location.
        store: String,
        /// What was asked for.
        variable: Variable,
        /// What is wrong and what to do.
        problem: String,
    },

    /// A chunk of a variable is not there.
    #[error(
        "{store}: {field}: chunk `{chunk}` is missing. The store was not copied or \
         written completely: get this chunk again, for example by `bayesmesh data fetch era5`"
    )]
    MissingChunk {
        /// The location.
        store: String,
        /// Variable, with its level, and time.
        field: String,
        /// Its key in the store.
        chunk: String,
    },

    /// A chunk of a variable is damaged.
    #[error(
        "{store}: {field}: chunk `{chunk}` cannot be decoded ({problem}). Get this \
         chunk again"
    )]
    Chunk {
        /// The location.
        store: String,
        /// Variable, with its level, and time.
        field: String,
        /// Its key in the store.
        chunk: String,
        /// The words of the decoder.
        problem: String,
    },

    /// A value that is not a number.
    #[error(
        "{store}: `{variable}` at {}: {count} of {points} values are not finite numbers. Use \
         `missing = \"leave-out\"` to do without this time, or leave the variable out",
        utc(*time)
    )]
    NotFinite {
        /// The location.
        store: String,
        /// Which variable.
        variable: Variable,
        /// Unix seconds.
        time: i64,
        /// How many values.
        count: usize,
        /// Of how many.
        points: usize,
    },

    /// A constant field that has values that are not numbers.
    #[error(
        "{store}: the constant field `{name}` has values that are not finite numbers. Use a store \
         with complete masks, or `masks = false`"
    )]
    ConstantNotFinite {
        /// The location.
        store: String,
        /// Which field.
        name: String,
    },

    /// Times are missing.
    #[error(
        "{store}: a gap in time: no step between {} and {}, where the others are {} apart. \
         Complete the store, put fields of NaN at the missing times (and `missing = \
         \"leave-out\"`), or use the part before or after",
        utc(*from), utc(*to), hours(*step)
    )]
    Gap {
        /// The location.
        store: String,
        /// The last time before the gap.
        from: i64,
        /// The first after it.
        to: i64,
        /// Of the axis elsewhere, in seconds.
        step: i64,
    },

    /// Times do not follow one another in equal steps.
    #[error(
        "{store}: the times are not equally spaced: {} after {} ({}) where it is mostly {}. A \
         forecast of a fixed lead needs a regular axis; choose a store that has one",
        utc(*to), utc(*from), hours(to - from), hours(*step)
    )]
    Irregular {
        /// The location.
        store: String,
        /// A time.
        from: i64,
        /// The next one.
        to: i64,
        /// The most common distance, in seconds.
        step: i64,
    },

    /// The axis of times cannot be used.
    #[error("{store}: the axis `time`: {problem}")]
    Time {
        /// The location.
        store: String,
        /// What is wrong and what to do.
        problem: String,
    },

    /// Latitudes or longitudes that are no global grid.
    #[error("{store}: the axis `{axis}`: {problem}")]
    Grid {
        /// The location.
        store: String,
        /// Which one.
        axis: &'static str,
        /// What is wrong and what to do.
        problem: String,
    },

    /// An array whose shape is not that of its dimensions.
    #[error(
        "{store}: `{variable}` with the dimensions {dimensions:?} has {sizes}. The array or a \
         coordinate is of another store: write it again"
    )]
    Shape {
        /// The location.
        store: String,
        /// The array.
        variable: String,
        /// Names of its dimensions.
        dimensions: Vec<String>,
        /// Its shape, and the one that the coordinates have.
        sizes: String,
    },

    /// An array with other dimensions than a field has.
    #[error(
        "{store}: `{variable}` has the dimensions {dimensions:?}; a field has latitude and \
         longitude and may have time and level. Leave this variable out"
    )]
    Dimensions {
        /// The location.
        store: String,
        /// The array.
        variable: String,
        /// Names of its dimensions.
        dimensions: Vec<String>,
    },

    /// A variable in another unit than ERA5 has.
    #[error(
        "{store}: `{variable}` is in `{found}`, but ERA5 has it in `{expected}`{hint}. Convert it, \
         or correct the attribute `units`"
    )]
    Units {
        /// The location.
        store: String,
        /// Which one.
        variable: String,
        /// As the store states it.
        found: String,
        /// As it should be.
        expected: &'static str,
        /// How to convert it, if that is known.
        hint: &'static str,
    },

    /// Statistics that cannot be used.
    #[error("{file}: {problem}")]
    Statistics {
        /// Where they are from.
        file: String,
        /// What is wrong and what to do.
        problem: String,
    },

    /// Not enough times for what was asked.
    #[error("{store}: {problem}")]
    TooShort {
        /// The location.
        store: String,
        /// What is missing and what to do.
        problem: String,
    },

    /// Something that was asked for does not go.
    #[error("{0}")]
    Setting(String),

    /// A file cannot be read.
    #[error("{0}")]
    Read(FileError),

    /// A file or folder cannot be written.
    #[error("{0}")]
    Write(FileError),

    /// Something has the name of what is to be written.
    #[error(
        "{}: this exists already. Choose another name, or say that it is to be replaced",
        path.display()
    )]
    Exists {
        /// The path.
        path: PathBuf,
    },
}

impl Era5Error {
    /// What it is about.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            Self::Setting(_) | Self::Scheme { .. } | Self::NoVariable { .. } => Blame::Setting,
            Self::Write(_) | Self::Exists { .. } => Blame::File,
            _ => Blame::Data,
        }
    }
}

impl From<Era5Error> for bayesmesh::Error {
    fn from(error: Era5Error) -> Self {
        Self::Data(error.to_string())
    }
}

/// `6 h`, or days where it is whole ones.
pub(super) fn hours(seconds: i64) -> String {
    match seconds {
        _ if seconds % 86_400 == 0 && seconds > 86_400 => format!("{} days", seconds / 86_400),
        _ if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        _ => format!("{seconds} s"),
    }
}
