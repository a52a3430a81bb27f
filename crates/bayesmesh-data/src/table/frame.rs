//! A table in memory, column by column.

use std::collections::HashMap;

/// The code of a text that is missing.
pub const MISSING: u32 = u32::MAX;

/// A point in time that is missing.
pub const NEVER: i64 = i64::MIN;

/// A table: named columns of the same length.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The columns, in the order of the file.
    pub columns: Vec<Column>,
    /// How many rows there are.
    pub rows: usize,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name, without blanks around it.
    pub name: String,
    /// What its rows have.
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Nothing in any row.
    Empty,
    /// Numbers; NaN where one is missing.
    Numbers(Vec<f64>),
    /// Points in time, in seconds since 1970 UTC; [`NEVER`] where one is missing.
    Times(Vec<i64>),
    /// Texts.
    Texts(Texts),
}

/// Texts, each distinct one once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// For each row the number of its text, or [`MISSING`].
    pub codes: Vec<u32>,
    /// The distinct texts, in the order in which they come.
    pub names: Vec<String>,
}

impl Frame {
    /// A column by its name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The names of all columns, for messages.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }
}

impl Cells {
    /// Whether a row has nothing.
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Empty => true,
            Self::Numbers(numbers) => numbers[row].is_nan(),
            Self::Times(times) => times[row] == NEVER,
            Self::Texts(texts) => texts.codes[row] == MISSING,
        }
    }

    /// How many of so many rows have nothing.
    pub fn missing(&self, rows: usize) -> usize {
        match self {
            Self::Empty => rows,
            Self::Numbers(numbers) => numbers.iter().filter(|number| number.is_nan()).count(),
            Self::Times(times) => times.iter().filter(|time| **time == NEVER).count(),
            Self::Texts(texts) => texts.codes.iter().filter(|code| **code == MISSING).count(),
        }
    }

    /// The same as texts: numbers as they are written shortest.
    pub fn to_texts(&self, rows: usize) -> Texts {
        match self {
            Self::Empty => Texts { codes: vec![MISSING; rows], names: Vec::new() },
            Self::Texts(texts) => texts.clone(),
            Self::Numbers(numbers) => {
                let key = |number: &f64| (!number.is_nan()).then(|| (number + 0.0).to_bits());
                let text = |bits: u64| f64::from_bits(bits).to_string();
                coded(numbers.iter().map(key), text)
            }
            Self::Times(times) => {
                let key = |time: &i64| (*time != NEVER).then_some(*time as u64);
                coded(times.iter().map(key), |bits| crate::load::format_time(bits as i64))
            }
        }
    }
}

fn coded(keys: impl Iterator<Item = Option<u64>>, text: impl Fn(u64) -> String) -> Texts {
    let (mut known, mut texts) = (HashMap::new(), Texts::default());
    for key in keys {
        let code = key.map_or(MISSING, |key| {
            *known.entry(key).or_insert_with(|| {
                texts.names.push(text(key));
                texts.names.len() as u32 - 1
            })
        });
        texts.codes.push(code);
    }
    texts
}

impl Texts {
    /// The text of a row, if it has one.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.names.get(self.codes[row] as usize).map(String::as_str)
    }
}
