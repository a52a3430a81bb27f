//! Where data comes from.

use std::path::PathBuf;

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Where it is published.
    Usual,
    /// The address of a copy.
    Address(String),
    /// A file or folder of this machine.
    Path(PathBuf),
}

impl Source {
    /// As a person names it: an address has `://`, all else is a path.
    pub fn named(name: Option<String>) -> Self {
        match name {
            None => Self::Usual,
            Some(name) if name.contains("://") => Self::Address(name),
            Some(name) => Self::Path(name.into()),
        }
    }
}
