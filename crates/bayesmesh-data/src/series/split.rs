//! Dividing series by time.

use std::ops::Range;

use super::panel::Panel;
use super::windows::Part;
use crate::table::TableError;

/// Index ranges of the three parts, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// What a network learns from.
    pub train: Range<usize>,
    /// What stops it and what noise is estimated on.
    pub valid: Range<usize>,
    /// What it is judged by.
    pub test: Range<usize>,
}

/// Splits `n` values by time into training, validation and test parts of the given fractions (for
/// example `[0.6, 0.1, 0.3]`). The bounds are `n·f₀` and `n·(f₀+f₁)`, rounded; every part
/// has values.
pub fn split(n: usize, fractions: [f64; 3]) -> Result<Split, TableError> {
    let wrong = |problem: String| {
        Err(TableError::Split(format!("{n} values cannot be divided as {fractions:?}: {problem}")))
    };
    if fractions.iter().any(|f| !f.is_finite() || *f <= 0.0) {
        return wrong("each of the three fractions must be a number above 0".into());
    }
    let sum: f64 = fractions.iter().sum();
    if (sum - 1.0).abs() > 1e-6 {
        return wrong(format!("the fractions add up to {sum}; make them add up to 1"));
    }
    let bound = |fraction: f64| ((n as f64 * fraction).round() as usize).min(n);
    let (first, second) = (bound(fractions[0]), bound(fractions[0] + fractions[1]));
    let split = Split { train: 0..first, valid: first..second, test: second..n };
    if split.train.is_empty() || split.valid.is_empty() || split.test.is_empty() {
        return wrong("a part would be empty; use a longer series or larger fractions".into());
    }
    Ok(split)
}

impl Panel {
    /// The parts of all series for training, validation and test. All are divided at the same
    /// times, so that no part knows of another's future.
    pub fn divide(&self, fractions: [f64; 3]) -> Result<[Vec<Part>; 3], TableError> {
        let span = self.span();
        let split = split((span.end - span.start) as usize, fractions)?;
        Ok([split.train, split.valid, split.test].map(|steps| {
            let part = |(number, series): (usize, &super::Series)| {
                let place = |step: usize| {
                    let own = span.start + step as i64 - series.first;
                    own.clamp(0, series.values.len() as i64) as usize
                };
                Part { series: number, steps: place(steps.start)..place(steps.end) }
            };
            self.series.iter().enumerate().map(part).collect()
        }))
    }
}
