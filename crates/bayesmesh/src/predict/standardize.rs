//! Zero mean and unit variance, and back.

use std::ops::Range;

use burn::tensor::{Tensor, TensorData};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::tensors::to_vec;

/// The affine map `z = (x − mean) / std`, one for each column or one for all.
///
/// Networks learn best from numbers of the order of one. Fit it on the training data only, since
/// statistics that have seen the test data leak it, and give predictions back in the units of the
/// data by [`Predictive::scaled`](super::Predictive::scaled). As a text it travels in the metadata
/// of a checkpoint.
///
/// ```
/// # use bayesmesh::predict::Standardize;
/// let scale = Standardize::fit_values(&[1.0, 100.0, 3.0, 300.0], 2)?;
/// assert_eq!(scale.apply(&[2.0, 300.0], 2)?, [0.0, 1.0]);
/// assert_eq!(scale.invert(&[0.0, 1.0], 2)?, [2.0, 300.0]);
/// assert_eq!(scale.columns(1..2)?.invert(&[1.0], 1)?, [300.0]);
/// assert_eq!(Standardize::from_text(&scale.to_text())?, scale);
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Standardize {
    mean: Vec<f64>,
    std: Vec<f64>,
}

impl Standardize {
    /// From the mean and deviation of each column, or one of each for all columns.
    pub fn new(mean: Vec<f64>, std: Vec<f64>) -> Result<Self> {
        if mean.len() != std.len() || mean.is_empty() {
            let (means, stds) = (mean.len(), std.len());
            return Err(Error::Setting(format!(
                "{means} means and {stds} deviations; give one of each for every column, or one of \
                 each for all"
            )));
        }
        let possible =
            |(mean, std): (&f64, &f64)| mean.is_finite() && std.is_finite() && *std > 0.0;
        if let Some(column) = mean.iter().zip(&std).position(|pair| !possible(pair)) {
            let (mean, std) = (mean[column], std[column]);
            return Err(Error::Setting(format!(
                "column {column} with a mean of {mean} and a deviation of {std} cannot be \
                 standardised; means must be finite, deviations finite and above zero"
            )));
        }
        Ok(Self { mean, std })
    }

    /// The map of some columns; of all of them where all have one in common.
    pub fn columns(&self, columns: Range<usize>) -> Result<Self> {
        let of = |values: &[f64]| match values {
            [one] => Some(vec![*one]),
            values => values.get(columns.clone()).map(<[f64]>::to_vec),
        };
        match (of(&self.mean), of(&self.std)) {
            (Some(mean), Some(std)) => Self::new(mean, std),
            _ => Err(Error::Setting(format!(
                "columns {columns:?} of {}: there are not so many",
                self.mean.len()
            ))),
        }
    }

    /// Mean and deviation (of the population) of each column of `[rows, columns]`.
    pub fn fit(values: &Tensor<2>) -> Result<Self> {
        Self::fit_values(&to_vec(values.clone()), values.dims()[1])
    }

    /// The same of row-major values.
    pub fn fit_values(values: &[f32], columns: usize) -> Result<Self> {
        if columns == 0 || values.is_empty() || !values.len().is_multiple_of(columns) {
            return Err(Error::Data(format!(
                "{} values in {columns} columns are not rows to standardise",
                values.len()
            )));
        }
        let rows = (values.len() / columns) as f64;
        let (mut means, mut stds) = (Vec::new(), Vec::new());
        for index in 0..columns {
            let column = || values.iter().skip(index).step_by(columns).map(|&x| f64::from(x));
            let mean = column().sum::<f64>() / rows;
            let std = (column().map(|x| (x - mean).powi(2)).sum::<f64>() / rows).sqrt();
            if !std.is_finite() {
                return Err(Error::Data(format!(
                    "column {index} has values that are not finite; repair or remove them"
                )));
            }
            // Far below the resolution of single precision: the values are equal.
            if std <= 1e-9 * mean.abs().max(f64::from(f32::MIN_POSITIVE)) {
                return Err(Error::Data(format!(
                    "column {index} is constant ({mean}) and cannot be standardised; leave it out, \
                     or give its deviation by `Standardize::new`"
                )));
            }
            means.push(mean);
            stds.push(std);
        }
        Self::new(means, stds)
    }

    /// Mean of each column, or of all.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Deviation of each column, or of all.
    pub fn std(&self) -> &[f64] {
        &self.std
    }

    /// Deviation of a column.
    pub(crate) fn std_of(&self, column: usize) -> f64 {
        self.std[column % self.std.len()]
    }

    fn mean_of(&self, column: usize) -> f64 {
        self.mean[column % self.mean.len()]
    }

    /// `(x − mean) / std` of row-major values.
    pub fn apply(&self, values: &[f32], columns: usize) -> Result<Vec<f32>> {
        self.map(values, columns, |x, column| (x - self.mean_of(column)) / self.std_of(column))
    }

    /// `mean + std·z` of row-major values.
    pub fn invert(&self, values: &[f32], columns: usize) -> Result<Vec<f32>> {
        self.map(values, columns, |z, column| z * self.std_of(column) + self.mean_of(column))
    }

    /// `std·z` of row-major spreads: deviations, errors, widths.
    pub fn invert_spread(&self, spreads: &[f32], columns: usize) -> Result<Vec<f32>> {
        self.map(spreads, columns, |z, column| z * self.std_of(column))
    }

    /// [`apply`](Self::apply) to a tensor `[rows, columns]`.
    pub fn apply_to(&self, values: &Tensor<2>) -> Result<Tensor<2>> {
        self.map_tensor(values, Self::apply)
    }

    /// [`invert`](Self::invert) of a tensor `[rows, columns]`.
    pub fn invert_of(&self, values: &Tensor<2>) -> Result<Tensor<2>> {
        self.map_tensor(values, Self::invert)
    }

    fn map_tensor(
        &self,
        values: &Tensor<2>,
        map: impl Fn(&Self, &[f32], usize) -> Result<Vec<f32>>,
    ) -> Result<Tensor<2>> {
        let mapped = map(self, &to_vec(values.clone()), values.dims()[1])?;
        Ok(Tensor::from_data(TensorData::new(mapped, values.dims()), &values.device()))
    }

    fn map(
        &self,
        values: &[f32],
        columns: usize,
        f: impl Fn(f64, usize) -> f64,
    ) -> Result<Vec<f32>> {
        let known = self.mean.len();
        if known != 1 && known != columns {
            return Err(Error::Mismatch(format!(
                "values of {columns} columns cannot be scaled by {known} means and deviations"
            )));
        }
        let cells = values.iter().enumerate();
        Ok(cells.map(|(i, &x)| f(f64::from(x), i % columns.max(1)) as f32).collect())
    }

    /// As a JSON text that [`from_text`](Self::from_text) reads back to the last bit.
    pub fn to_text(&self) -> String {
        // As texts: not every reader of JSON gives the same double for a number.
        let texts = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>();
        json!({ "mean": texts(&self.mean), "std": texts(&self.std) }).to_string()
    }

    /// What [`to_text`](Self::to_text) wrote.
    pub fn from_text(text: &str) -> Result<Self> {
        let broken = || Error::Mismatch(format!("`{text}` is not the text of a standardisation"));
        let object: Value = serde_json::from_str(text).map_err(|_| broken())?;
        let numbers = |name: &str| {
            let list = object[name].as_array()?;
            list.iter().map(|value| value.as_str()?.parse().ok()).collect::<Option<Vec<f64>>>()
        };
        let (mean, std) = numbers("mean").zip(numbers("std")).ok_or_else(broken)?;
        Self::new(mean, std)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_get_mean_zero_and_deviation_one() {
        let values = [1.0, -50.0, 2.0, 50.0, 6.0, 150.0];
        let scale = Standardize::fit_values(&values, 2).unwrap();
        assert_eq!(scale.mean(), [3.0, 50.0]);
        let z = scale.apply(&values, 2).unwrap();
        let again = Standardize::fit_values(&z, 2).unwrap();
        for (mean, std) in again.mean().iter().zip(again.std()) {
            assert!(mean.abs() < 1e-7 && (std - 1.0).abs() < 1e-7, "{mean} {std}");
        }
        let back = scale.invert(&z, 2).unwrap();
        assert!(back.iter().zip(values).all(|(a, b)| (a - b).abs() < 1e-5));
        let spread = scale.invert_spread(&[1.0, 1.0], 2).unwrap();
        assert_eq!(spread, [scale.std()[0] as f32, scale.std()[1] as f32]);
        assert!(scale.apply(&values, 3).unwrap_err().to_string().contains("3 columns"));
        // One for all columns.
        let one = Standardize::new(vec![2.0], vec![4.0]).unwrap();
        assert_eq!(one.apply(&[2.0, 6.0, 10.0], 3).unwrap(), [0.0, 1.0, 2.0]);
    }

    #[test]
    fn texts_are_read_back_to_the_last_bit() {
        let scale = Standardize::new(vec![0.1 + 0.2, -1e-300], vec![1.0 / 3.0, 5e300]).unwrap();
        assert_eq!(Standardize::from_text(&scale.to_text()).unwrap(), scale);
        for text in ["", "{}", r#"{"mean":[1],"std":[1]}"#, r#"{"mean":["1"],"std":["0"]}"#] {
            assert!(Standardize::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_standardised_is_named() {
        let message = |values: &[f32], columns| {
            Standardize::fit_values(values, columns).unwrap_err().to_string()
        };
        let constant = message(&[1.0, 7.5, 2.0, 7.5], 2);
        assert!(constant.contains("column 1 is constant (7.5)"), "{constant}");
        assert!(message(&[0.0, 0.0], 1).contains("constant"));
        assert!(message(&[1.0, f32::NAN], 1).contains("not finite"));
        assert!(message(&[], 1).contains("not rows"));
        assert!(message(&[1.0; 3], 2).contains("not rows"));
        // Small numbers are not constant ones.
        assert!(Standardize::fit_values(&[1e-20, 2e-20], 1).is_ok());
        assert!(Standardize::new(vec![0.0], vec![0.0]).is_err());
        assert!(Standardize::new(vec![0.0, 1.0], vec![1.0]).is_err());
    }

    #[test]
    fn tensors_are_scaled_like_values() {
        let device = Default::default();
        let x = Tensor::<2>::from_floats([[1.0, 10.0], [3.0, 30.0]], &device);
        let scale = Standardize::fit(&x).unwrap();
        let z = scale.apply_to(&x).unwrap();
        assert_eq!(to_vec(z.clone()), [-1.0, -1.0, 1.0, 1.0]);
        assert_eq!(to_vec(scale.invert_of(&z).unwrap()), to_vec(x));
    }
}
