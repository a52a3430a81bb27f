//! Ranges of numbers.

use std::fmt::{self, Display};

/// A range of finite numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    low: Option<End>,
    high: Option<End>,
}

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct End {
    at: f64,
    included: bool,
}

impl Range {
    /// Of this or more.
    pub(crate) fn at_least(self, at: f64) -> Self {
        Self { low: Some(End { at, included: true }), ..self }
    }

    /// Of more than this.
    pub(crate) fn above(self, at: f64) -> Self {
        Self { low: Some(End { at, included: false }), ..self }
    }

    /// Of this or less.
    pub(crate) fn at_most(self, at: f64) -> Self {
        Self { high: Some(End { at, included: true }), ..self }
    }

    /// Of less than this.
    pub(crate) fn below(self, at: f64) -> Self {
        Self { high: Some(End { at, included: false }), ..self }
    }

    /// Whether a number is finite and in the range.
    pub fn contains(&self, x: f64) -> bool {
        let above = |end: End| x > end.at || (end.included && x == end.at);
        let below = |end: End| x < end.at || (end.included && x == end.at);
        x.is_finite() && self.low.is_none_or(above) && self.high.is_none_or(below)
    }
}

/// What follows "a number" in a sentence: " of at least 0 and below 1".
impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(End { at, included }) = self.low {
            let relation = if included { "of at least" } else { "above" };
            write!(f, " {relation} {at}")?;
        }
        if let Some(End { at, included }) = self.high {
            let relation = if included { "at most" } else { "below" };
            let and = if self.low.is_some() { " and" } else { "" };
            write!(f, "{and} {relation} {at}")?;
        }
        Ok(())
    }
}
