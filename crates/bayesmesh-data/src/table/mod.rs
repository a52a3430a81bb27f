//! Tables: from a CSV or Parquet file to rows that a network takes.
//!
//! ```text
//! file ── read ──► Frame ── infer ──► kinds of columns ── Division ──► rows of each part
//!                                                              │
//!                        Examples ◄── encode ── Encoder ◄── fit on the training part
//! ```
//!
//! [`read()`] takes text with any usual delimiter, and Parquet. [`infer()`] says what each column
//! is: numbers, booleans, categories, dates; and which are better left out, and why. [`Division`]
//! divides the rows; [`Encoder`] learns scales, categories and what may be missing from those for
//! training only, and encodes any rows with the same columns, in any order. [`Folder`] is the
//! layout of the UCI benchmark.

mod columnar;
mod encode;
mod error;
mod examples;
mod frame;
mod infer;
mod read;
mod slashed;
mod split;
mod text;
mod time;
mod uci;

pub use encode::{Code, Cycle, Encoded, Encoder, Input, Scale, target_classes, target_values};
pub use error::TableError;
pub(crate) use error::some;
pub use examples::{Examples, Labels, Targets, Values};
pub use frame::{Cells, Column, Frame, MISSING, NEVER, Texts};
pub use infer::{ColumnKind, Found, Kinds, infer, nearly_numbers};
pub(crate) use infer::{flag, numbers_of, times_of};
pub use read::{Reading, read};
pub use slashed::Order;
pub use split::{By, Division, Parts};
pub(crate) use text::number;
pub use uci::Folder;

#[cfg(test)]
pub(crate) use {text::parse as parse_text, time::parse_time};
