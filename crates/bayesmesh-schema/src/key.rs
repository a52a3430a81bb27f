//! A key of a section.

use crate::{Section, Values};

/// A key of a section.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its name within the section.
    pub name: &'static str,
    /// What values it takes.
    pub values: Values,
    /// What holds where it is not given.
    pub absent: Absent,
    /// What it means.
    pub meaning: &'static str,
    /// What people call it elsewhere, for suggestions.
    pub also: &'static [&'static str],
}

/// The text of another key, by its name, e.g. `prior.kind`.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What holds where a key is not given.
#[derive(Clone, Copy, Debug)]
pub enum Absent {
    /// It must be given; with an example of a value, in TOML.
    Refused(&'static str),
    /// This value, in TOML.
    Value(&'static str),
    /// Nothing is set, which means this.
    Unset(&'static str),
    /// What follows from the keys before it, in TOML; with an explanation.
    Derived(fn(Lookup<'_>) -> &'static str, &'static str),
}

/// By what they say; a derived value by its explanation.
impl PartialEq for Absent {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused(a), Self::Refused(b))
            | (Self::Value(a), Self::Value(b))
            | (Self::Unset(a), Self::Unset(b))
            | (Self::Derived(_, a), Self::Derived(_, b)) => a == b,
            _ => false,
        }
    }
}

impl Key {
    /// A key.
    pub fn new(name: &'static str, values: Values, absent: Absent, meaning: &'static str) -> Self {
        Self { name, values, absent, meaning, also: &[] }
    }

    /// A section within a section, which means what it does there.
    pub fn section(name: &'static str, section: Section) -> Self {
        let meaning = section.meaning;
        Self::new(name, Values::section(section), Absent::Value("{}"), meaning)
    }

    /// Other words for it.
    #[must_use]
    pub fn also(mut self, words: &'static [&'static str]) -> Self {
        self.also = words;
        self
    }
}
