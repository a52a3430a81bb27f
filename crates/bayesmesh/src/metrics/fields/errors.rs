//! Errors of forecasts without spread.

use super::{FieldLayout, mean_over_examples};
use crate::metrics::batch::{check_count, check_finite};
use crate::metrics::{Metric, MetricError, MetricSet, Score, statistics_field};

/// Errors of forecasts that are one number a cell, such as persistence and climatology.
#[derive(Clone, Debug)]
pub struct FieldErrors {
    layout: FieldLayout,
    /// Examples, then for each field Σ and Σ² of the squared and the absolute error.
    statistics: Vec<f64>,
}

/// Errors of one field, in its units. Standard errors are those over examples.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Root mean square error.
    pub rmse: Score,
    /// Mean absolute error, which is the CRPS of a forecast that is certain.
    pub mae: Score,
}

impl FieldErrors {
    /// For such fields.
    pub fn new(layout: FieldLayout) -> Self {
        let statistics = vec![0.0; 1 + 4 * layout.fields];
        Self { layout, statistics }
    }

    /// Adds forecasts and the truth, both `[rows, fields·cells]`; changes nothing if they do not
    /// fit.
    pub fn add(&mut self, forecast: &[f32], truth: &[f32]) -> Result<(), MetricError> {
        let outputs = self.layout.outputs();
        check_count("true values of fields", truth.len(), forecast.len())?;
        if !forecast.len().is_multiple_of(outputs) {
            let (what, actual) = ("forecasts of fields", forecast.len());
            return Err(MetricError::Count { what, expected: outputs, actual });
        }
        let sums = self.layout.sums(
            forecast.len() / outputs,
            |first, weights| {
                let cells = forecast[first..].iter().zip(&truth[first..]).zip(weights);
                let mut sums = [0.0; 2];
                for ((x, y), weight) in cells {
                    let error = f64::from(*x) - f64::from(*y);
                    sums[0] += f64::from(*weight) * error * error;
                    sums[1] += f64::from(*weight) * error.abs();
                }
                sums
            },
            |left, right| [left[0] + right[0], left[1] + right[1]],
        );
        if sums.iter().flatten().any(|sum| !sum.is_finite()) {
            check_finite("forecasts", forecast)?;
            check_finite("true values", truth)?;
        }
        let (cells, fields) = (self.layout.weights.len() as f64, self.layout.fields);
        self.statistics[0] += (forecast.len() / outputs) as f64;
        for (index, sums) in sums.into_iter().enumerate() {
            let own = &mut self.statistics[1 + 4 * (index % fields)..][..4];
            for (pair, sum) in own.chunks_exact_mut(2).zip(sums) {
                pair[0] += sum / cells;
                pair[1] += (sum / cells).powi(2);
            }
        }
        Ok(())
    }

    /// The errors of each field; NaN where there are no examples.
    pub fn fields(&self) -> Vec<FieldError> {
        let examples = self.statistics[0];
        let all = self.statistics[1..].chunks_exact(4).zip(&self.layout.scales);
        all.map(|(sums, scale)| {
            let [mse, mae] = [0, 2].map(|first| mean_over_examples(examples, &sums[first..]));
            FieldError {
                rmse: mse.sqrt().named("rmse").in_unit("rmse", *scale),
                mae: mae.named("mae").in_unit("mae", *scale),
            }
        })
        .collect()
    }
}

impl Metric for FieldErrors {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let named = |(field, of): (usize, FieldError)| {
            [of.rmse, of.mae]
                .map(|score| score.in_unit(format!("field_{field}.{}", score.name), 1.0))
        };
        self.fields().into_iter().enumerate().flat_map(named).collect()
    }
}

impl MetricSet for FieldErrors {
    fn metrics(&self) -> Vec<&dyn Metric> {
        vec![self]
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        vec![self]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::layout;
    use super::*;
    use crate::metrics::testing::assert_close;

    #[test]
    fn hand_computed_errors() {
        // Two examples of two fields with two cells, of which the second counts three times.
        let mut errors =
            FieldErrors::new(layout(2, &[0.5, 1.5]).with_scales(vec![1.0, 10.0]).unwrap());
        errors.add(&[1.0, 0.0, 3.0, 3.0, 0.0, 2.0, 3.0, 3.0], &[0.0; 8]).unwrap();
        let fields = errors.fields();
        // Of the first field (0.5·1)/2 and (1.5·4)/2, squares of the second 9 and 9.
        assert_close(fields[0].rmse.value, (0.5f64 * (0.25 + 3.0)).sqrt(), 1e-12);
        assert_close(fields[0].mae.value, 0.5 * (0.25 + 1.5), 1e-12);
        assert_close(fields[1].rmse.value, 30.0, 1e-12);
        assert_eq!(fields[1].mae.se_examples, 0.0);
        assert_eq!(Metric::scores(&errors)[2].name, "field_1.rmse");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut errors = FieldErrors::new(layout(1, &[1.0; 3]));
        assert!(errors.add(&[0.0; 4], &[0.0; 4]).is_err());
        assert!(errors.add(&[0.0; 3], &[0.0; 6]).is_err());
        assert!(errors.add(&[f32::INFINITY, 0.0, 0.0], &[0.0; 3]).is_err());
        assert!(errors.statistics.iter().all(|sum| *sum == 0.0));
    }
}
