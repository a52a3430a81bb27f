//! Errors of the predictive mean, the Gaussian likelihood, and how wide the predictions are.

use super::coverage::percent;
use super::{
    Metric, MetricError, RegressionBatch, RegressionMetric, Score, normal, statistics_field,
};

/// Least standard deviation the Gaussian likelihood sees.
const STD_FLOOR: f64 = 1e-12;

/// Errors of the predictive mean, `e = mean − target`: `mse` = mean e², `rmse` = √mse,
/// `mae` = mean |e|, `bias` = mean e.
#[derive(Clone, Debug, Default)]
pub struct PointError {
    /// Examples, Σ e², Σ |e|, Σ e.
    statistics: [f64; 4],
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
        let [count, squares, absolutes, sum] = self.statistics;
        vec![
            Score::new("mse", squares / count),
            Score::new("rmse", (squares / count).sqrt()),
            Score::new("mae", absolutes / count),
            Score::new("bias", sum / count),
        ]
    }
}

impl RegressionMetric for PointError {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for (error, _) in batch.errors() {
            self.statistics[0] += 1.0;
            self.statistics[1] += error * error;
            self.statistics[2] += error.abs();
            self.statistics[3] += error;
        }
    }
}

/// `gaussian_nll`: mean of `½ (e/σ)² + ln σ + ½ ln 2π`, in nats; σ below 1e-12 counts as 1e-12.
#[derive(Clone, Debug, Default)]
pub struct GaussianNll {
    /// Examples, sum of their negative log-densities.
    statistics: [f64; 2],
}

impl GaussianNll {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for GaussianNll {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let [count, sum] = self.statistics;
        vec![Score::new("gaussian_nll", sum / count)]
    }
}

impl RegressionMetric for GaussianNll {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        let half_log_two_pi = 0.5 * std::f64::consts::TAU.ln();
        for (error, std) in batch.errors() {
            let std = std.max(STD_FLOOR);
            self.statistics[0] += 1.0;
            self.statistics[1] += 0.5 * (error / std).powi(2) + std.ln() + half_log_two_pi;
        }
    }
}

/// How wide the predictions are, right or wrong: `mean_std`, and `interval_width_90`, the mean
/// width `2 Φ⁻¹((1 + level)/2) σ` of the central Gaussian interval at a level.
#[derive(Clone, Debug)]
pub struct Sharpness {
    level: f64,
    /// Examples, Σ σ.
    statistics: [f64; 2],
}

impl Sharpness {
    /// Width at level 0.9.
    pub fn new() -> Self {
        Self { level: 0.9, statistics: [0.0; 2] }
    }

    /// Width at that level, in (0, 1); it names the score.
    pub fn at_level(level: f64) -> Result<Self, MetricError> {
        super::coverage::check_levels(&[level])?;
        Ok(Self { level, statistics: [0.0; 2] })
    }
}

impl Default for Sharpness {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for Sharpness {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let [count, sum] = self.statistics;
        let width = 2.0 * normal::quantile(0.5 + 0.5 * self.level) * sum / count;
        vec![
            Score::new("mean_std", sum / count),
            Score::new(format!("interval_width_{}", percent(self.level)), width),
        ]
    }
}

impl RegressionMetric for Sharpness {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        self.statistics[0] += batch.len() as f64;
        self.statistics[1] += batch.errors().map(|(_, std)| std).sum::<f64>();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    fn of<M: RegressionMetric>(mut metric: M) -> M {
        metric.add(&[1.0, 2.0], &[0.5, 2.0], &[2.0, -1.0]).unwrap();
        metric
    }

    #[test]
    fn hand_computed_values() {
        // Errors −1 and 3.
        let error = of(PointError::new());
        assert_eq!(score(&error, "mse"), 5.0);
        assert_eq!(score(&error, "rmse"), 5f64.sqrt());
        assert_eq!(score(&error, "mae"), 2.0);
        assert_eq!(score(&error, "bias"), 1.0);
        // ½(4 + 2.25), and ln ½ + ln 2 cancel.
        let nll = 0.25 * 6.25 + 0.5 * (2.0 * std::f64::consts::PI).ln();
        assert_close(score(&of(GaussianNll::new()), "gaussian_nll"), nll, 1e-15);
        assert_eq!(score(&of(Sharpness::new()), "mean_std"), 1.25);
        let width = 2.0 * 1.6448536269514715 * 1.25;
        assert_close(score(&of(Sharpness::new()), "interval_width_90"), width, 1e-12);
        let half = of(Sharpness::at_level(0.5).unwrap());
        assert_close(score(&half, "interval_width_50"), 2.5 * 0.6744897501960817, 1e-12);
    }

    #[test]
    fn the_likelihood_is_the_log_of_the_density() {
        let mut nll = GaussianNll::new();
        nll.add(&[0.5], &[0.25], &[1.0]).unwrap();
        let density = normal::pdf(2.0) / 0.25;
        assert_close(score(&nll, "gaussian_nll"), -density.ln(), 1e-14);
    }

    #[test]
    fn certainty_has_a_finite_likelihood() {
        let mut nll = GaussianNll::new();
        nll.add(&[0.5, 1.0], &[0.0, 0.0], &[0.5, 2.0]).unwrap();
        assert!(score(&nll, "gaussian_nll").is_finite());
    }

    #[test]
    fn invalid_batches_change_nothing() {
        fn check<M: RegressionMetric>(metric: M) {
            let mut metric = of(metric);
            let before = metric.statistics().to_vec();
            assert!(metric.add(&[1.0, 1.0], &[1.0, -1.0], &[1.0, 1.0]).is_err());
            assert!(metric.add(&[1.0, 1.0], &[1.0, f32::NAN], &[1.0, 1.0]).is_err());
            assert!(metric.add(&[1.0, 1.0], &[1.0, 1.0], &[1.0, f32::NAN]).is_err());
            assert!(metric.add(&[1.0, 1.0], &[1.0, 1.0], &[1.0]).is_err());
            assert_eq!(metric.statistics(), before);
        }
        check(PointError::new());
        check(GaussianNll::new());
        check(Sharpness::new());
        assert!(Sharpness::at_level(1.0).is_err());
    }

    #[test]
    fn parts_merge() {
        fn check<M: RegressionMetric>(new: impl Fn() -> M) {
            let [mean, std, target] = Lcg(4).regression(100);
            assert_merges(100, new, |metric, rows| {
                metric.add(&mean[rows.clone()], &std[rows.clone()], &target[rows]).unwrap();
            });
        }
        check(PointError::new);
        check(GaussianNll::new);
        check(Sharpness::new);
    }
}
