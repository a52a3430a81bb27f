//! Does the predicted spread say how large the error will be?

use super::row_mean::{Estimate, standard_error};
use super::{Metric, MetricError, RegressionBatch, RegressionMetric, Score, statistics_field};

/// Statistics before the bins: rows, and of the rows' sums w of squared spreads and q of squared
/// errors Σ w, Σ q, Σ w², Σ q², Σ w q.
const HEAD: usize = 6;
/// Statistics per bin: cells, Σ of squared spreads, Σ error².
const PER_BIN: usize = 3;

/// One bin of the spread–skill curve.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadSkillRow {
    /// Least std of the bin (inside); 0 for the first.
    pub lower: f64,
    /// Upper edge (outside); ∞ for the last.
    pub upper: f64,
    /// Number of predicted values.
    pub count: f64,
    /// Root mean square spread, corrected for the number of draws; NaN if there are none.
    pub spread: f64,
    /// Root mean square error of the mean; NaN if there are none.
    pub skill: f64,
}

/// Spread against skill, over all predicted values and in bins of the deviation.
///
/// - `spread`: `√(mean [(1 + 1/S) E + N])`, with the variance E of the draws and N of the noise
/// - `skill`: `√(mean (mean − target)²)`, the root mean square error
/// - `spread_skill_ratio`: spread / skill; 1 if calibrated, below 1 if too certain
///
/// The factor is that of a mean of S draws: if the target is distributed like a draw with its
/// noise, the mean of the draws misses it by `E + N`, and by another `E/S` for being the mean of so
/// few.
///
/// The bins are fixed beforehand, so that parts add: by default half octaves (factors of √2) from
/// 2⁻¹⁰ to 2¹⁰, with one bin below and one above.
#[derive(Clone, Debug)]
pub struct SpreadSkill {
    edges: Vec<f64>,
    statistics: Vec<f64>,
}

impl SpreadSkill {
    /// Default bins.
    pub fn new() -> Self {
        Self::of((-20..=20).map(|k| (f64::from(k) / 2.0).exp2()).collect())
    }

    /// Bins `[0, e_0), [e_0, e_1), …, [e_last, ∞)` of strictly ascending, positive, finite edges.
    pub fn with_edges(edges: &[f64]) -> Result<Self, MetricError> {
        let valid = edges.iter().all(|edge| edge.is_finite() && *edge > 0.0);
        if !(valid && edges.is_sorted_by(|a, b| a < b)) {
            let expected = "strictly ascending, positive and finite";
            let actual = format!("{edges:?}");
            return Err(MetricError::Setting { setting: "edges", expected, actual });
        }
        Ok(Self::of(edges.to_vec()))
    }

    fn of(edges: Vec<f64>) -> Self {
        let statistics = vec![0.0; HEAD + PER_BIN * (edges.len() + 1)];
        Self { edges, statistics }
    }

    /// The spread–skill curve: one row per bin, empty ones included.
    pub fn curve(&self) -> Vec<SpreadSkillRow> {
        let lower = std::iter::once(0.0).chain(self.edges.iter().copied());
        let upper = self.edges.iter().copied().chain(std::iter::once(f64::INFINITY));
        let bins = self.statistics[HEAD..].chunks_exact(PER_BIN);
        let rows = lower.zip(upper).zip(bins);
        rows.map(|((lower, upper), bin)| {
            let [spread, skill] = [bin[1], bin[2]].map(|sum| (sum / bin[0]).sqrt());
            SpreadSkillRow { lower, upper, count: bin[0], spread, skill }
        })
        .collect()
    }
}

impl Default for SpreadSkill {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for SpreadSkill {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let (head, bins) = self.statistics.split_at(HEAD);
        let [rows, spread, error, spreads, errors, product] = std::array::from_fn(|i| head[i]);
        let cells: f64 = bins.iter().step_by(PER_BIN).sum();
        let root = |sum: f64, squares: f64| {
            let error = standard_error(rows, sum, squares) * rows / cells;
            Estimate { value: sum / cells, error }.sqrt()
        };
        // With w and q in units of their means, half the deviation of w − q is the relative error.
        let (w, q) = (spread / rows, error / rows);
        let squares = spreads / (w * w) - 2.0 * product / (w * q) + errors / (q * q);
        let value = (spread / error).sqrt();
        let ratio = Estimate { value, error: 0.5 * value * standard_error(rows, 0.0, squares) };
        vec![
            root(spread, spreads).named("spread"),
            root(error, errors).named("skill"),
            ratio.named("spread_skill_ratio"),
        ]
    }
}

impl RegressionMetric for SpreadSkill {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        let correction = 1.0 + 1.0 / batch.draws() as f64;
        for row in batch.rows() {
            let (mut w, mut q) = (0.0, 0.0);
            for cell in row {
                let spread = correction * cell.epistemic + cell.noise;
                let error = cell.error * cell.error;
                let bin = self.edges.partition_point(|edge| *edge <= cell.std());
                let bin = &mut self.statistics[HEAD + PER_BIN * bin..][..PER_BIN];
                bin[0] += 1.0;
                bin[1] += spread;
                bin[2] += error;
                w += spread;
                q += error;
            }
            let terms = [1.0, w, q, w * w, q * q, w * q];
            self.statistics.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::MixtureBatch;
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    /// Two draws, centre ± 1/√2 times a deviation, which is thus the unbiased one.
    fn pair(std: &[f32]) -> Vec<f32> {
        let half = std.iter().map(|std| std * 0.5f32.sqrt());
        half.clone().chain(half.map(|x| -x)).collect()
    }

    #[test]
    fn hand_computed_values() {
        let mut metric = SpreadSkill::with_edges(&[1.0, 2.0]).unwrap();
        let draws = pair(&[0.5, 1.125, 1.125, 2.5]);
        metric.add(&MixtureBatch::new(&draws, &[], &[1.0, -1.0, 2.0, 0.0], 2, 1).unwrap());
        // Σ std² = 9.03125, Σ e² = 6.
        let squares = 1.5 * 9.03125f64;
        assert_close(score(&metric, "spread"), (squares / 4.0).sqrt(), 1e-6);
        assert_close(score(&metric, "skill"), 1.5f64.sqrt(), 1e-15);
        assert_close(score(&metric, "spread_skill_ratio"), (squares / 6.0).sqrt(), 1e-6);
        let curve = metric.curve();
        let counts: Vec<f64> = curve.iter().map(|row| row.count).collect();
        assert_eq!(counts, [1.0, 2.0, 1.0]);
        assert_eq!((curve[0].lower, curve[2].upper), (0.0, f64::INFINITY));
        assert_close(curve[1].spread, (1.5f64 * 1.125 * 1.125).sqrt(), 1e-6);
        assert_close(curve[1].skill, 2.5f64.sqrt(), 1e-15);

        // Noise is known, and has no factor.
        let mut exact = SpreadSkill::new();
        exact.add(&MixtureBatch::new(&[0.0], &[0.25], &[0.5], 1, 1).unwrap());
        assert_eq!(score(&exact, "spread_skill_ratio"), 1.0);
        assert!(exact.curve()[0].spread.is_nan());
    }

    /// Three draws of the truth, with and without noise.
    #[test]
    fn few_draws_of_the_truth_have_ratio_one() {
        for noise in [0.0, 0.5] {
            let (n, mut lcg) = (50_000, Lcg(13));
            let draws: Vec<f32> = (0..3 * n).map(|_| lcg.normal() as f32).collect();
            let deviation = (1.0f64 + noise).sqrt();
            let target: Vec<f32> = (0..n).map(|_| (deviation * lcg.normal()) as f32).collect();
            let variances = if noise == 0.0 { vec![] } else { vec![noise as f32; 3 * n] };
            let mut metric = SpreadSkill::new();
            metric.add(&MixtureBatch::new(&draws, &variances, &target, 3, 1).unwrap());
            // Both mean squares have a relative standard error of at most √(2/n) = 0.0063; so the
            // ratio of their roots one of 0.0045.
            assert_close(score(&metric, "spread_skill_ratio"), 1.0, 4.0 * 0.0045);
            let error = metric.scores()[2].se_examples;
            assert!((0.002..0.0046).contains(&error), "{error}");
        }
    }

    #[test]
    fn impossible_edges_are_refused() {
        for edges in [&[0.0, 1.0][..], &[1.0, 1.0], &[2.0, 1.0], &[1.0, f64::INFINITY]] {
            assert!(SpreadSkill::with_edges(edges).is_err(), "{edges:?}");
        }
        let mut other = SpreadSkill::with_edges(&[]).unwrap();
        assert!(other.merge(&SpreadSkill::new()).is_err());
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(14).regression(100);
        assert_merges(100, SpreadSkill::new, |metric, rows| {
            let (mean, noise) = (&mean[rows.clone()], &std[rows.clone()]);
            metric.add(&MixtureBatch::new(mean, noise, &target[rows], 1, 1).unwrap());
        });
    }
}
