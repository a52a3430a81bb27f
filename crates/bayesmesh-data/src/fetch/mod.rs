//! Bringing data from where it is: what all kinds of data share.

mod curl;
mod error;
mod source;
mod staging;

pub(crate) use error::FetchError;
pub use source::Source;
pub(crate) use staging::{Staging, occupied};
