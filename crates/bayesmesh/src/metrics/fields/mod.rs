//! Scores of ensembles of fields: maps of several variables, each cell of which has a weight.
//!
//! Outputs are in the order (field, cell). Of an example i and a field, with weights `w_c` of mean
//! 1 and S draws `x_s` of mean x̄,
//!
//! - `e_i = mean_c w_c (x̄ − y)²`, the squared error of the mean, `a_i = mean_c w_c |x̄ − y|`,
//! - `v_i = mean_c w_c 1/(S−1) Σ_s (x_s − x̄)²`, the unbiased variance of the draws,
//! - `c_i = mean_c w_c [ 1/S Σ_s |x_s − y| − 1/(S(S−1)) Σ_{s<t} |x_s − x_t| ]`, the fair CRPS.
//!
//! Scores are made of the means e, a, v, c over examples, as WeatherBench-X makes them: averages
//! first, then roots and ratios. Sums are taken over blocks of cells at fixed places, so that their
//! bits do not depend on how many threads there are.

mod errors;
mod scores;

use std::sync::Arc;

use rayon::prelude::*;

pub use errors::{FieldError, FieldErrors};
pub use scores::{FieldScore, FieldScores};

use super::MetricError;
use super::batch::check_count;
use super::row_mean::{Estimate, standard_error};

/// Cells that are scored at a time: few enough that what is kept of them stays in cache.
const BLOCK: usize = 512;

/// Outputs that are fields, in the order (field, cell): how many there are, how much their cells
/// count, for example by their area, and in what units they are scored.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldLayout {
    fields: usize,
    /// One for each cell, of mean 1.
    weights: Arc<[f32]>,
    /// Units of a field for one unit of the predictions.
    scales: Vec<f64>,
}

impl FieldLayout {
    /// So many fields, and a weight for each cell of them. Weights are scaled to the mean 1.
    pub fn new(fields: usize, weights: &[f32]) -> Result<Self, MetricError> {
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        let valid = weights.iter().all(|w| w.is_finite() && *w >= 0.0) && sum > 0.0;
        if !valid {
            let expected = "zero or positive, and not all zero";
            let wrong = weights.iter().find(|w| !(w.is_finite() && **w >= 0.0));
            let actual = wrong.map_or_else(
                || format!("{} numbers that sum to zero", weights.len()),
                f32::to_string,
            );
            return Err(MetricError::Setting { setting: "weights of cells", expected, actual });
        }
        if fields == 0 {
            let expected = "at least 1";
            let actual = "0".to_owned();
            return Err(MetricError::Setting { setting: "number of fields", expected, actual });
        }
        let factor = weights.len() as f64 / sum;
        let weights = weights.iter().map(|w| (f64::from(*w) * factor) as f32).collect();
        Ok(Self { fields, weights, scales: vec![1.0; fields] })
    }

    /// With scores in the units of each field, which are so many for one unit of the predictions.
    pub fn with_scales(mut self, scales: Vec<f64>) -> Result<Self, MetricError> {
        check_count("scales of fields", scales.len(), self.fields)?;
        if let Some(scale) = scales.iter().find(|scale| !(scale.is_finite() && **scale > 0.0)) {
            let (setting, expected) = ("scale of a field", "a positive number");
            return Err(MetricError::Setting { setting, expected, actual: scale.to_string() });
        }
        self.scales = scales;
        Ok(self)
    }

    /// How many fields there are.
    pub fn fields(&self) -> usize {
        self.fields
    }

    /// The weights of the cells, of mean 1.
    pub fn cells(&self) -> &[f32] {
        &self.weights
    }

    /// Units of each field for one unit of the predictions.
    pub fn scales(&self) -> &[f64] {
        &self.scales
    }

    /// Outputs of an example.
    fn outputs(&self) -> usize {
        self.fields * self.weights.len()
    }

    /// Sums over the cells of each field of each of `rows` examples, `[rows·fields]`: `block` gives
    /// those of some cells, from the place of the first among all outputs of all rows and the
    /// weights. Divided by the number of cells, they are weighted means.
    fn sums<T: Send>(
        &self,
        rows: usize,
        block: impl Fn(usize, &[f32]) -> T + Sync,
        add: impl Fn(T, T) -> T,
    ) -> Vec<T> {
        let cells = self.weights.len();
        let blocks = cells.div_ceil(BLOCK);
        let parts: Vec<T> = (0..rows * self.fields * blocks)
            .into_par_iter()
            .map(|part| {
                let (field, start) = (part / blocks, part % blocks * BLOCK);
                block(field * cells + start, &self.weights[start..cells.min(start + BLOCK)])
            })
            .collect();
        let mut parts = parts.into_iter();
        let mut whole = || parts.by_ref().take(blocks).reduce(&add).expect("at least one cell");
        (0..rows * self.fields).map(|_| whole()).collect()
    }
}

/// The mean of a term from its sum and sum of squares.
fn mean_over_examples(examples: f64, sums: &[f64]) -> Estimate {
    Estimate { value: sums[0] / examples, error: standard_error(examples, sums[0], sums[1]) }
}

#[cfg(test)]
mod testing {
    use super::FieldLayout;

    pub fn layout(fields: usize, weights: &[f32]) -> FieldLayout {
        FieldLayout::new(fields, weights).unwrap()
    }
}
