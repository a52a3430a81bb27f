//! The continuous ranked probability score: the distance of a predictive distribution function from
//! the step at the target, `∫ (F(x) − [x ≥ y])² dx`. It is in the units of the target, and for a
//! certain prediction it is the absolute error.

use std::f64::consts::PI;

use super::{
    EnsembleBatch, EnsembleMetric, Metric, MetricError, RegressionBatch, RegressionMetric, Score,
    normal, statistics_field,
};

/// CRPS of `N(target + error, std²)` at the target: with `z = |error| / σ`,
/// `σ [ z (2Φ(z) − 1) + 2φ(z) − 1/√π ]`.
///
/// It is computed as `|error| (1 − 2Q(z)) + σ (2φ(z) − 1/√π)` with the upper tail `Q = 1 − Φ`, in
/// which nothing overflows for a small σ; the limit at `σ = 0` is `|error|`.
pub fn crps_gaussian(error: f64, std: f64) -> f64 {
    let distance = error.abs();
    if std == 0.0 {
        return distance;
    }
    let z = distance / std;
    distance * (1.0 - 2.0 * normal::upper_tail(z)) + std * (2.0 * normal::pdf(z) - 1.0 / PI.sqrt())
}

/// CRPS of the S draws of one example, `mean_s |x_s − y| − Σ_ij |x_i − x_j| / (2 D)`, for `D = S²`
/// (the empirical distribution of the draws) and for `D = S (S − 1)` (fair: its expectation is the
/// score of the distribution they are drawn from; NaN for one draw). Sorts the draws.
///
/// In ascending order `½ Σ_ij |x_i − x_j| = Σ_k (2k − S + 1) x_k`, k from 0: O(S log S).
pub fn crps_ensemble(draws: &mut [f32], target: f32) -> (f64, f64) {
    draws.sort_unstable_by(f32::total_cmp);
    let count = draws.len() as f64;
    let (mut distance, mut spread) = (0.0, 0.0);
    for (k, &x) in draws.iter().enumerate() {
        // The spread does not change by a shift; that to the target avoids cancellation.
        let x = f64::from(x) - f64::from(target);
        distance += x.abs();
        spread += (2.0 * k as f64 - count + 1.0) * x;
    }
    let distance = distance / count;
    (distance - spread / (count * count), distance - spread / (count * (count - 1.0)))
}

/// `crps_gaussian`: mean over examples of [`crps_gaussian`].
#[derive(Clone, Debug, Default)]
pub struct CrpsGaussian {
    /// Examples, sum of their scores.
    statistics: [f64; 2],
}

impl CrpsGaussian {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for CrpsGaussian {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let [count, sum] = self.statistics;
        vec![Score::new("crps_gaussian", sum / count)]
    }
}

impl RegressionMetric for CrpsGaussian {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for (error, std) in batch.errors() {
            self.statistics[0] += 1.0;
            self.statistics[1] += crps_gaussian(error, std);
        }
    }
}

/// `crps_ensemble` and `crps_ensemble_fair`: mean over examples of the two values of
/// [`crps_ensemble`]. The fair one is NaN if any example had only one draw.
#[derive(Clone, Debug, Default)]
pub struct CrpsEnsemble {
    /// Examples, sum of their scores, sum of their fair scores.
    statistics: [f64; 3],
}

impl CrpsEnsemble {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for CrpsEnsemble {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let [count, sum, fair] = self.statistics;
        vec![
            Score::new("crps_ensemble", sum / count),
            Score::new("crps_ensemble_fair", fair / count),
        ]
    }
}

impl EnsembleMetric for CrpsEnsemble {
    fn add_batch(&mut self, batch: &EnsembleBatch) -> Result<(), MetricError> {
        batch.for_each(|draws, target| {
            let (score, fair) = crps_ensemble(draws, target);
            self.statistics[0] += 1.0;
            self.statistics[1] += score;
            self.statistics[2] += fair;
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    /// `∫ (Φ((x − error)/std) − [x ≥ 0])² dx` by the midpoint rule on both sides of the step.
    fn integral(error: f64, std: f64) -> f64 {
        let n = 40_000;
        let (low, high) = ((error - 9.0 * std).min(0.0), (error + 9.0 * std).max(0.0));
        let side = |a: f64, b: f64, step: f64| {
            let h = (b - a) / n as f64;
            let at = |i: i32| normal::cdf((a + h * (f64::from(i) + 0.5) - error) / std) - step;
            (0..n).map(|i| at(i).powi(2)).sum::<f64>() * h
        };
        side(low, 0.0, 0.0) + side(0.0, high, 1.0)
    }

    #[test]
    fn gaussian_is_its_integral() {
        for std in [0.1, 1.0, 3.0] {
            for error in [-2.0, -0.5, 0.0, 0.01, 1.0, 2.5] {
                assert_close(crps_gaussian(error, std), integral(error, std), 2e-7);
            }
        }
    }

    #[test]
    fn gaussian_has_its_limits() {
        assert_eq!(crps_gaussian(-2.0, 0.0), 2.0);
        assert_eq!(crps_gaussian(0.0, 0.0), 0.0);
        // Far from the target it is |error| − σ/√π, also where z overflows.
        assert_close(crps_gaussian(1e6, 1.0), 1e6 - 1.0 / PI.sqrt(), 1e-9);
        assert_eq!(crps_gaussian(1e20, 1e-300), 1e20);
        assert_close(crps_gaussian(0.0, 1.0), 2.0 * normal::pdf(0.0) - 1.0 / PI.sqrt(), 1e-15);
    }

    /// The definition, O(S²).
    fn pairwise(draws: &[f32], target: f32, fair: bool) -> f64 {
        let s = draws.len() as f64;
        let gap = |a: f32, b: f32| (f64::from(a) - f64::from(b)).abs();
        let distance: f64 = draws.iter().map(|&x| gap(x, target)).sum();
        let pairs: f64 = draws.iter().map(|&x| draws.iter().map(|&y| gap(x, y)).sum::<f64>()).sum();
        distance / s - pairs / (2.0 * s * if fair { s - 1.0 } else { s })
    }

    #[test]
    fn ensemble_is_its_definition() {
        let mut lcg = Lcg(7);
        for draws in [1, 2, 3, 16, 101] {
            let mut x: Vec<f32> = (0..draws).map(|_| 1000.0 + lcg.normal() as f32).collect();
            // Ties, within the draws and with the target.
            x[0] = 1000.5;
            x[draws / 2] = 1000.5;
            for target in [1000.5, 998.25, 1003.0] {
                let expected = (pairwise(&x, target, false), pairwise(&x, target, true));
                let (score, fair) = crps_ensemble(&mut x.clone(), target);
                assert_close(score, expected.0, 1e-11);
                if draws > 1 {
                    assert_close(fair, expected.1, 1e-11);
                } else {
                    assert!(fair.is_nan());
                }
            }
        }
    }

    #[test]
    fn ensemble_is_the_integral_of_the_empirical_distribution() {
        // Draws 0, 1, 3 and target 2: F = 1/3 on (0,1), 2/3 on (1,2); 1 − F = 1/3 on (2,3).
        let (score, _) = crps_ensemble(&mut [3.0, 0.0, 1.0], 2.0);
        assert_close(score, (1.0 + 4.0 + 1.0) / 9.0, 1e-15);
    }

    #[test]
    fn the_fair_score_of_few_draws_is_the_gaussian_score() {
        let (n, mut lcg) = (40_000, Lcg(8));
        let draws: Vec<f32> = (0..4 * n).map(|_| lcg.normal() as f32).collect();
        let mut ensemble = CrpsEnsemble::new();
        ensemble.add(&draws, &vec![0.5; n]).unwrap();
        // A score's standard deviation is below 0.5, so the mean's standard error is below 0.0025.
        let exact = crps_gaussian(0.5, 1.0);
        assert_close(score(&ensemble, "crps_ensemble_fair"), exact, 4.0 * 0.0025);
        // The other is larger by E|x − x'| (1/S) / 2 = 1/(S √π).
        let biased = exact + 0.25 / PI.sqrt();
        assert_close(score(&ensemble, "crps_ensemble"), biased, 4.0 * 0.0025);
    }

    #[test]
    fn invalid_batches_change_nothing() {
        let mut ensemble = CrpsEnsemble::new();
        ensemble.add(&[0.0, 1.0], &[0.5]).unwrap();
        let before = ensemble.statistics().to_vec();
        assert!(ensemble.add(&[0.0, 1.0, f32::NAN, 0.0], &[0.5, 0.5]).is_err());
        assert!(ensemble.add(&[0.0, 1.0, 0.0], &[0.5, 0.5]).is_err());
        assert!(ensemble.add(&[0.0, 1.0], &[0.5, f32::INFINITY]).is_err());
        assert_eq!(ensemble.statistics(), before);
        let mut gaussian = CrpsGaussian::new();
        gaussian.add(&[0.0], &[1.0], &[0.5]).unwrap();
        let before = gaussian.statistics().to_vec();
        assert!(gaussian.add(&[0.0, 0.0], &[1.0, -1.0], &[0.5, 0.5]).is_err());
        assert_eq!(gaussian.statistics(), before);
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(9).regression(100);
        assert_merges(100, CrpsGaussian::new, |metric, rows| {
            metric.add(&mean[rows.clone()], &std[rows.clone()], &target[rows]).unwrap();
        });
        assert_merges(100, CrpsEnsemble::new, |metric, rows| {
            let draws = [&mean[rows.clone()], &std[rows.clone()]].concat();
            metric.add(&draws, &target[rows]).unwrap();
        });
    }
}
