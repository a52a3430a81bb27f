//! Does the predicted spread say how large the error will be?

use super::{Metric, MetricError, RegressionBatch, RegressionMetric, Score, statistics_field};

/// Statistics per bin: examples, Σ std², Σ error².
const PER_BIN: usize = 3;

/// One bin of the spread–skill curve.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadSkillRow {
    /// Least std of the bin (inside); 0 for the first.
    pub lower: f64,
    /// Upper edge (outside); ∞ for the last.
    pub upper: f64,
    /// Number of examples.
    pub count: f64,
    /// Root mean square spread, corrected for the number of draws; NaN if there are no examples.
    pub spread: f64,
    /// Root mean square error of the mean; NaN if there are no examples.
    pub skill: f64,
}

/// Spread against skill, over all examples and in bins of the std.
///
/// - `spread`: `√(mean std²) · √((S + 1)/S)`
/// - `skill`: `√(mean (mean − target)²)`, the root mean square error
/// - `spread_skill_ratio`: spread / skill; 1 if calibrated, below 1 if too certain
///
/// The factor is that of a mean of S draws: if the target is distributed like the draws, with
/// variance σ², the mean of the draws misses it by `E e² = σ² + σ²/S`. The std has to be the
/// unbiased one over the draws. A distribution known exactly, rather than from draws, has no
/// factor: give 0 draws.
///
/// The bins are fixed beforehand, so that parts add: by default half octaves (factors of √2) from
/// 2⁻¹⁰ to 2¹⁰, with one bin below and one above.
#[derive(Clone, Debug)]
pub struct SpreadSkill {
    draws: usize,
    edges: Vec<f64>,
    statistics: Vec<f64>,
}

impl SpreadSkill {
    /// For a std over that many draws, or 0 for a distribution known exactly; default bins.
    pub fn new(draws: usize) -> Self {
        Self::of(draws, (-20..=20).map(|k| (f64::from(k) / 2.0).exp2()).collect())
    }

    /// Bins `[0, e_0), [e_0, e_1), …, [e_last, ∞)` of strictly ascending, positive, finite edges.
    pub fn with_edges(draws: usize, edges: &[f64]) -> Result<Self, MetricError> {
        let valid = edges.iter().all(|edge| edge.is_finite() && *edge > 0.0);
        if !(valid && edges.is_sorted_by(|a, b| a < b)) {
            let expected = "strictly ascending, positive and finite";
            let actual = format!("{edges:?}");
            return Err(MetricError::Setting { setting: "edges", expected, actual });
        }
        Ok(Self::of(draws, edges.to_vec()))
    }

    fn of(draws: usize, edges: Vec<f64>) -> Self {
        let statistics = vec![0.0; PER_BIN * (edges.len() + 1)];
        Self { draws, edges, statistics }
    }

    /// Spread and skill of summed statistics.
    fn spread_and_skill(&self, [count, spread, error]: [f64; PER_BIN]) -> (f64, f64) {
        let correction = match self.draws {
            0 => 1.0,
            draws => 1.0 + 1.0 / draws as f64,
        };
        ((correction * spread / count).sqrt(), (error / count).sqrt())
    }

    /// The spread–skill curve: one row per bin, empty ones included.
    pub fn curve(&self) -> Vec<SpreadSkillRow> {
        let lower = std::iter::once(0.0).chain(self.edges.iter().copied());
        let upper = self.edges.iter().copied().chain(std::iter::once(f64::INFINITY));
        let bins = self.statistics.chunks_exact(PER_BIN);
        let rows = lower.zip(upper).zip(bins);
        rows.map(|((lower, upper), bin)| {
            let (spread, skill) = self.spread_and_skill([bin[0], bin[1], bin[2]]);
            SpreadSkillRow { lower, upper, count: bin[0], spread, skill }
        })
        .collect()
    }
}

impl Metric for SpreadSkill {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let mut total = [0.0; PER_BIN];
        for (i, value) in self.statistics.iter().enumerate() {
            total[i % PER_BIN] += value;
        }
        let (spread, skill) = self.spread_and_skill(total);
        vec![
            Score::new("spread", spread),
            Score::new("skill", skill),
            Score::new("spread_skill_ratio", spread / skill),
        ]
    }
}

impl RegressionMetric for SpreadSkill {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for (error, std) in batch.errors() {
            let bin = PER_BIN * self.edges.partition_point(|edge| *edge <= std);
            self.statistics[bin] += 1.0;
            self.statistics[bin + 1] += std * std;
            self.statistics[bin + 2] += error * error;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    #[test]
    fn hand_computed_values() {
        let mut metric = SpreadSkill::with_edges(4, &[1.0, 2.0]).unwrap();
        metric.add(&[0.0; 4], &[0.5, 1.0, 1.0, 2.0], &[1.0, -1.0, 2.0, 0.0]).unwrap();
        // Σ std² = 6.25, Σ e² = 6.
        assert_close(score(&metric, "spread"), (1.25 * 6.25 / 4.0f64).sqrt(), 1e-15);
        assert_close(score(&metric, "skill"), 1.5f64.sqrt(), 1e-15);
        let ratio = (1.25 * 6.25 / 6.0f64).sqrt();
        assert_close(score(&metric, "spread_skill_ratio"), ratio, 1e-15);
        let curve = metric.curve();
        let counts: Vec<f64> = curve.iter().map(|row| row.count).collect();
        assert_eq!(counts, [1.0, 2.0, 1.0]);
        assert_eq!((curve[0].lower, curve[2].upper), (0.0, f64::INFINITY));
        assert_close(curve[1].spread, 1.25f64.sqrt(), 1e-15);
        assert_close(curve[1].skill, 2.5f64.sqrt(), 1e-15);

        let mut exact = SpreadSkill::new(0);
        exact.add(&[0.0], &[0.5], &[0.5]).unwrap();
        assert_eq!(score(&exact, "spread_skill_ratio"), 1.0);
        assert!(exact.curve()[0].spread.is_nan());
    }

    #[test]
    fn few_draws_of_the_truth_have_ratio_one() {
        let (n, mut lcg) = (50_000, Lcg(13));
        let (mut mean, mut std, mut target) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n {
            let draws = [lcg.normal(), lcg.normal(), lcg.normal()];
            let centre = draws.iter().sum::<f64>() / 3.0;
            let variance = draws.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / 2.0;
            mean.push(centre as f32);
            std.push(variance.sqrt() as f32);
            target.push(lcg.normal() as f32);
        }
        let mut metric = SpreadSkill::new(3);
        metric.add(&mean, &std, &target).unwrap();
        // Both mean squares have a relative standard error of at most √(2/n) = 0.0063; so the ratio
        // of their roots one of 0.0045.
        assert_close(score(&metric, "spread_skill_ratio"), 1.0, 4.0 * 0.0045);
    }

    #[test]
    fn invalid_input_changes_nothing() {
        let mut metric = SpreadSkill::new(2);
        metric.add(&[0.0], &[1.0], &[0.5]).unwrap();
        let before = metric.statistics().to_vec();
        assert!(metric.add(&[0.0, 0.0], &[1.0, f32::INFINITY], &[0.5, 0.5]).is_err());
        assert_eq!(metric.statistics(), before);
        for edges in [&[0.0, 1.0][..], &[1.0, 1.0], &[2.0, 1.0], &[1.0, f64::INFINITY]] {
            assert!(SpreadSkill::with_edges(2, edges).is_err(), "{edges:?}");
        }
        let mut other = SpreadSkill::with_edges(2, &[]).unwrap();
        assert!(other.merge(&metric).is_err());
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(14).regression(100);
        assert_merges(
            100,
            || SpreadSkill::new(5),
            |metric, rows| {
                metric.add(&mean[rows.clone()], &std[rows.clone()], &target[rows]).unwrap();
            },
        );
    }
}
