//! Errors of the predictive mean, the predictive density, and how wide the predictions are.

use super::row_mean::{count_row, mean_over_rows};
use super::{Cell, Metric, RegressionBatch, RegressionMetric, Score, statistics_field};

/// Errors of the predictive mean, `e = mean − target`: `mse` = mean e², `rmse` = √mse,
/// `mae` = mean |e|, `bias` = mean e.
#[derive(Clone, Debug, Default)]
pub struct PointError {
    /// Rows, cells, and the sum and sum of squares of the rows' Σ e², Σ |e| and Σ e.
    statistics: [f64; 8],
}

impl PointError {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for PointError {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let [mse, mae, bias] = [0, 1, 2].map(|index| mean_over_rows(&self.statistics, index));
        vec![mse.named("mse"), mse.sqrt().named("rmse"), mae.named("mae"), bias.named("bias")]
    }
}

impl RegressionMetric for PointError {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for row in batch.rows() {
            let sum = |f: fn(f64) -> f64| row.iter().map(|cell| f(cell.error)).sum::<f64>();
            count_row(
                &mut self.statistics,
                row.len(),
                &[sum(|e| e * e), sum(f64::abs), sum(|e| e)],
            );
        }
    }
}

/// `nll`: mean over rows and outputs of `−ln 1/S Σ_s N(y; m_s, v_s)`, in nats. NaN where the
/// prediction has no noise, and thus no density; not finite where only some outputs have none.
#[derive(Clone, Debug, Default)]
pub struct MixtureNll {
    /// Rows, cells, and the sum and sum of squares of the rows' negative log-densities.
    statistics: [f64; 4],
}

impl MixtureNll {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for MixtureNll {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![mean_over_rows(&self.statistics, 0).named("nll")]
    }
}

impl RegressionMetric for MixtureNll {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for row in batch.rows() {
            let sum = row.iter().map(|cell| -cell.log_density).sum();
            count_row(&mut self.statistics, row.len(), &[sum]);
        }
    }
}

/// How wide the predictions are, right or wrong: `mean_std`, the mean deviation of the mixture.
#[derive(Clone, Debug, Default)]
pub struct Sharpness {
    /// Rows, cells, and the sum and sum of squares of the rows' deviations.
    statistics: [f64; 4],
}

impl Sharpness {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for Sharpness {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![mean_over_rows(&self.statistics, 0).named("mean_std")]
    }
}

impl RegressionMetric for Sharpness {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for row in batch.rows() {
            count_row(&mut self.statistics, row.len(), &[row.iter().map(Cell::std).sum()]);
        }
    }
}

/// Error and width of one output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutputRow {
    /// Root mean square error of the mean; NaN if there are no examples.
    pub rmse: f64,
    /// Mean deviation of the mixture; NaN if there are no examples.
    pub mean_std: f64,
    /// Mean variance of the mixture; NaN if there are no examples.
    pub variance: f64,
}

/// Errors and widths of each output by itself, e.g. of each lead time of a forecast. No named
/// scores.
#[derive(Clone, Debug)]
pub struct ByOutput {
    /// Rows, then for each output Σ e², Σ std and Σ std².
    statistics: Vec<f64>,
}

impl ByOutput {
    /// For so many outputs.
    pub fn new(outputs: usize) -> Self {
        Self { statistics: vec![0.0; 1 + 3 * outputs] }
    }

    /// One row an output.
    pub fn rows(&self) -> Vec<OutputRow> {
        let count = self.statistics[0];
        let row = |sums: &[f64]| OutputRow {
            rmse: (sums[0] / count).sqrt(),
            mean_std: sums[1] / count,
            variance: sums[2] / count,
        };
        self.statistics[1..].chunks_exact(3).map(row).collect()
    }
}

impl Metric for ByOutput {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        Vec::new()
    }
}

impl RegressionMetric for ByOutput {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for row in batch.rows() {
            self.statistics[0] += 1.0;
            for (sums, cell) in self.statistics[1..].chunks_exact_mut(3).zip(row) {
                sums[0] += cell.error * cell.error;
                sums[1] += cell.std();
                sums[2] += cell.epistemic + cell.noise;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::super::{MixtureBatch, normal};
    use super::*;

    /// Means 1 and 2, deviations ½ and 2, truth 2 and −1.
    fn of<M: RegressionMetric>(mut metric: M, outputs: usize) -> M {
        metric
            .add(&MixtureBatch::new(&[1.0, 2.0], &[0.25, 4.0], &[2.0, -1.0], 1, outputs).unwrap());
        metric
    }

    #[test]
    fn hand_computed_values() {
        for outputs in [1, 2] {
            // Errors −1 and 3.
            let error = of(PointError::new(), outputs);
            assert_eq!(score(&error, "mse"), 5.0);
            assert_eq!(score(&error, "rmse"), 5f64.sqrt());
            assert_eq!(score(&error, "mae"), 2.0);
            assert_eq!(score(&error, "bias"), 1.0);
            // ½(4 + 2.25), and ln ½ + ln 2 cancel.
            let nll = 0.25 * 6.25 + 0.5 * (2.0 * std::f64::consts::PI).ln();
            assert_close(score(&of(MixtureNll::new(), outputs), "nll"), nll, 1e-15);
            assert_eq!(score(&of(Sharpness::new(), outputs), "mean_std"), 1.25);
        }
        let rows = of(ByOutput::new(2), 2).rows();
        assert_eq!(rows.iter().map(|row| row.rmse).collect::<Vec<_>>(), [1.0, 3.0]);
        assert_eq!(rows.iter().map(|row| row.mean_std).collect::<Vec<_>>(), [0.5, 2.0]);
    }

    #[test]
    fn standard_errors_are_those_of_rows() {
        // Two rows: e² of 1 and 9, a deviation of √32, over √2.
        let scores = of(PointError::new(), 1).scores();
        assert_close(scores[0].se_examples, 4.0, 1e-15);
        assert_close(scores[1].se_examples, 0.5 * 4.0 / 5f64.sqrt(), 1e-15);
        assert_eq!((scores[2].se_examples, scores[3].se_examples), (1.0, 2.0));
        // One row of two outputs says nothing of its own spread.
        assert!(of(PointError::new(), 2).scores().iter().all(|score| score.se_examples.is_nan()));
    }

    #[test]
    fn the_density_of_several_draws_is_their_mean() {
        let means = [0.5, -0.5, 4.0];
        let variances = [0.25, 1.0, 0.01];
        let mut nll = MixtureNll::new();
        nll.add(&MixtureBatch::new(&means, &variances, &[1.0], 3, 1).unwrap());
        let density = normal::pdf(1.0) / 0.5 + normal::pdf(1.5) + normal::pdf(30.0) / 0.1;
        assert_close(score(&nll, "nll"), -(density / 3.0).ln(), 1e-12);
        // Far from every draw it is that of the nearest, where the sum itself would be zero.
        nll.reset();
        nll.add(&MixtureBatch::new(&[0.0, 1.0], &[1.0, 1.0], &[101.0], 2, 1).unwrap());
        let nearest = 5000.0 + 0.5 * (2.0 * std::f64::consts::PI).ln() + 2f64.ln();
        assert_close(score(&nll, "nll"), nearest, 1e-9);
    }

    #[test]
    fn without_noise_there_is_no_density() {
        let mut nll = MixtureNll::new();
        nll.add(&MixtureBatch::new(&[0.5, 1.0], &[], &[0.5], 2, 1).unwrap());
        assert!(score(&nll, "nll").is_nan());
    }

    #[test]
    fn parts_merge() {
        fn check<M: RegressionMetric>(new: impl Fn() -> M) {
            let [mean, std, target] = Lcg(4).regression(100);
            assert_merges(100, new, |metric, rows| {
                let (mean, noise) = (&mean[rows.clone()], &std[rows.clone()]);
                metric.add(&MixtureBatch::new(mean, noise, &target[rows], 1, 1).unwrap());
            });
        }
        check(PointError::new);
        check(MixtureNll::new);
        check(Sharpness::new);
        check(|| ByOutput::new(1));
    }
}
