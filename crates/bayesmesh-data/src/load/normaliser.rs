//! Zero mean and unit variance.

use std::ops::Range;

use super::error::LoadError;

/// The affine map `z = (x − mean) / std`. Fit it on the training range only: statistics that have
/// seen the test part leak it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normaliser {
    /// Mean in MW.
    pub mean: f64,
    /// Standard deviation (of the population) in MW.
    pub std: f64,
}

impl Normaliser {
    /// Mean and standard deviation of `values[range]`, accumulated in double precision.
    pub fn fit(values: &[f32], range: Range<usize>) -> Result<Self, LoadError> {
        let n = values.len();
        let part = values.get(range.clone()).filter(|part| !part.is_empty()).ok_or_else(|| {
            LoadError::Normalise(format!("the range {range:?} is empty or not within {n} values"))
        })?;
        let count = part.len() as f64;
        let mean = part.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let variance = part.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
        let std = variance.sqrt();
        if !std.is_finite() {
            return Err(LoadError::Normalise(
                "the training part has values that are not finite; repair them first".into(),
            ));
        }
        // Far below the resolution of single precision: the values are equal.
        if std <= 1e-9 * mean.abs().max(1.0) {
            return Err(LoadError::Normalise(format!(
                "the training part is constant ({mean}); check that the right column was read"
            )));
        }
        Ok(Self { mean, std })
    }

    /// MW to normalised.
    pub fn apply(&self, mw: f32) -> f32 {
        ((f64::from(mw) - self.mean) / self.std) as f32
    }

    /// Normalised to MW.
    pub fn invert(&self, normalised: f32) -> f32 {
        (f64::from(normalised) * self.std + self.mean) as f32
    }

    /// A normalised spread (standard deviation, error, width) to MW.
    pub fn invert_spread(&self, normalised: f32) -> f32 {
        (f64::from(normalised) * self.std) as f32
    }

    /// MW to normalised, for a whole series.
    pub fn apply_all(&self, mw: &[f32]) -> Vec<f32> {
        mw.iter().map(|&x| self.apply(x)).collect()
    }
}
