//! Zero mean and unit variance.

use serde::{Deserialize, Serialize};

/// The affine map `z = (x − mean) / std`. Fit it on the training part only: statistics that have
/// seen the test part leak it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Normaliser {
    /// Mean in the unit of the series.
    pub mean: f64,
    /// Standard deviation (of the population) in the unit of the series.
    pub std: f64,
}

impl Normaliser {
    /// Mean and standard deviation of the values that there are, accumulated in double precision.
    /// Nothing where there are none, where one is infinite, or where all are the same.
    pub fn fit(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let present = values.filter(|x| !x.is_nan());
        let count = present.clone().count() as f64;
        let mean = present.clone().sum::<f64>() / count;
        let variance = present.map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let std = variance.sqrt();
        // Far below the resolution of single precision: the values are equal.
        (std.is_finite() && std > 1e-9 * mean.abs().max(1e-30)).then_some(Self { mean, std })
    }

    /// A value to a normalised one.
    pub fn apply(&self, value: f64) -> f32 {
        ((value - self.mean) / self.std) as f32
    }

    /// A normalised value to one in the unit.
    pub fn invert(&self, normalised: f32) -> f32 {
        (f64::from(normalised) * self.std + self.mean) as f32
    }
}
