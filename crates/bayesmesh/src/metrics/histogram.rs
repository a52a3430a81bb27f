//! Where targets fall in their predictive distributions: flat if the predictions are calibrated,
//! U-shaped if they are too narrow, a dome if too wide, a slope if biased.

use super::{Metric, MetricError, RegressionBatch, RegressionMetric, Score, statistics_field};

/// Distance of a histogram from the flat one, `Σ_b |n_b/n − 1/bins|`, in `[0, 2)`. Calibrated
/// predictions leave about `√(2 bins / (π n))` of noise.
fn deviation(counts: &[f64]) -> f64 {
    let (total, flat) = (counts.iter().sum::<f64>(), 1.0 / counts.len() as f64);
    counts.iter().map(|count| (count / total - flat).abs()).sum()
}

/// Histogram of the probability integral transform `u = F(y)`, the probability that the mixture
/// gives to values below the truth, in equal bins `[i/b, (i+1)/b)`, the last one closed; 20 by
/// default. The draws of a prediction without noise are steps, and ties with them count half.
///
/// `pit_deviation`: `Σ_b |n_b/n − 1/b|`, 0 for a flat histogram. It has no standard error over
/// examples.
#[derive(Clone, Debug)]
pub struct PitHistogram {
    /// Examples in each bin.
    statistics: Vec<f64>,
}

impl PitHistogram {
    /// 20 bins, no examples yet.
    pub fn new() -> Self {
        Self { statistics: vec![0.0; 20] }
    }

    /// That many bins, at least one.
    pub fn with_bins(bins: usize) -> Result<Self, MetricError> {
        if bins == 0 {
            let actual = bins.to_string();
            return Err(MetricError::Setting { setting: "bins", expected: "at least 1", actual });
        }
        Ok(Self { statistics: vec![0.0; bins] })
    }

    /// Number of examples in each bin.
    pub fn counts(&self) -> &[f64] {
        &self.statistics
    }
}

impl Default for PitHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for PitHistogram {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![Score::new("pit_deviation", deviation(&self.statistics))]
    }
}

impl RegressionMetric for PitHistogram {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        let bins = self.statistics.len();
        for cell in batch.rows().flatten() {
            let bin = (cell.pit * bins as f64) as usize;
            self.statistics[bin.min(bins - 1)] += 1.0;
        }
    }
}

/// Histogram of the rank of the target among S draws: `S + 1` ranks, rank r having r draws below.
///
/// Ties are shared: a target equal to k draws adds `1/(k + 1)` to each of the k + 1 ranks it could
/// have. That is the expectation of breaking ties at random, without randomness.
///
/// It is about draws that predict without noise, as the members of an ensemble of forecasts do;
/// with noise the truth is not distributed like the draws, and nothing is counted.
///
/// `rank_deviation`: `Σ_r |n_r/n − 1/(S+1)|`, 0 for a flat histogram. It has no standard error over
/// examples.
#[derive(Clone, Debug)]
pub struct RankHistogram {
    /// Examples of each rank.
    statistics: Vec<f64>,
}

impl RankHistogram {
    /// Ranks among that many draws.
    pub fn new(draws: usize) -> Self {
        Self { statistics: vec![0.0; draws + 1] }
    }

    /// Number of examples of each rank.
    pub fn counts(&self) -> &[f64] {
        &self.statistics
    }
}

impl Metric for RankHistogram {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![Score::new("rank_deviation", deviation(&self.statistics))]
    }
}

impl RegressionMetric for RankHistogram {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        if batch.draws() + 1 != self.statistics.len() {
            return;
        }
        for [below, ties] in batch.rows().flatten().filter_map(|cell| cell.rank) {
            for count in &mut self.statistics[below..=below + ties] {
                *count += 1.0 / (ties + 1) as f64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::MixtureBatch;
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    /// One draw with noise: the mixture is a Gaussian.
    fn gaussians(metric: &mut PitHistogram, mean: &[f32], std: &[f32], target: &[f32]) {
        let noise: Vec<f32> = std.iter().map(|std| std * std).collect();
        metric.add(&MixtureBatch::new(mean, &noise, target, 1, 1).unwrap());
    }

    fn steps(metric: &mut RankHistogram, draws: &[f32], target: &[f32]) {
        let count = draws.len().checked_div(target.len()).unwrap_or(1);
        metric.add(&MixtureBatch::new(draws, &[], target, count, 1).unwrap());
    }

    /// Pearson's χ² of a histogram against the flat one; its mean is `bins − 1`.
    fn chi_square(counts: &[f64]) -> f64 {
        let flat = counts.iter().sum::<f64>() / counts.len() as f64;
        counts.iter().map(|count| (count - flat).powi(2) / flat).sum()
    }

    /// χ² stays below its mean plus five standard deviations.
    fn is_flat(counts: &[f64]) -> bool {
        let freedom = counts.len() as f64 - 1.0;
        chi_square(counts) < freedom + 5.0 * (2.0 * freedom).sqrt()
    }

    #[test]
    fn hand_computed_transform() {
        let mut pit = PitHistogram::with_bins(4).unwrap();
        // u = Φ(−1), Φ(0), Φ(0.5); then certain: 0 (target below), ½ (on it), 1 (above).
        let target = [-1.0, 0.0, 0.5, -1.0, 0.0, 1.0];
        gaussians(&mut pit, &[0.0; 6], &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], &target);
        assert_eq!(pit.counts(), [2.0, 0.0, 3.0, 1.0]);
        // Shares 1/3, 0, 1/2, 1/6 against 1/4.
        let expected = 1.0 / 12.0 + 0.25 + 0.25 + 1.0 / 12.0;
        assert_close(score(&pit, "pit_deviation"), expected, 1e-15);
        assert!(PitHistogram::with_bins(0).is_err());
    }

    #[test]
    fn calibrated_predictions_are_flat() {
        let n = 100_000;
        let [mean, std, target] = Lcg(10).regression(n);
        let mut pit = PitHistogram::new();
        gaussians(&mut pit, &mean, &std, &target);
        assert!(is_flat(pit.counts()), "{:?}", pit.counts());
        let noise = (2.0 * 20.0 / (std::f64::consts::PI * n as f64)).sqrt();
        assert!(score(&pit, "pit_deviation") < 2.0 * noise);

        // Too narrow by a tenth: no longer flat, and high at the ends.
        let narrow: Vec<f32> = std.iter().map(|s| 0.9 * s).collect();
        pit.reset();
        gaussians(&mut pit, &mean, &narrow, &target);
        assert!(!is_flat(pit.counts()));
        assert!(pit.counts()[0] > pit.counts()[10]);
    }

    #[test]
    fn hand_computed_ranks() {
        let mut ranks = RankHistogram::new(3);
        // Draws (columns): 0 1 2 with target 1.5; 5 5 1 with target 5; 4 4 4 with target 0.
        let draws = [0.0, 5.0, 4.0, 1.0, 5.0, 4.0, 2.0, 1.0, 4.0];
        steps(&mut ranks, &draws, &[1.5, 5.0, 0.0]);
        let third = 1.0 / 3.0;
        assert_eq!(ranks.counts(), [1.0, third, 1.0 + third, third]);
        assert_close(ranks.counts().iter().sum(), 3.0, 1e-15);
        let expected = 2.0 * (third - 0.25 + (4.0 * third / 3.0 - 0.25));
        assert_close(score(&ranks, "rank_deviation"), expected, 1e-14);
    }

    #[test]
    fn a_target_like_the_draws_has_flat_ranks() {
        let (n, mut lcg) = (50_000, Lcg(11));
        // Rounded so that ties are common.
        let mut sample = |scale: f64| (lcg.normal() * scale).round() as f32;
        let draws: Vec<f32> = (0..7 * n).map(|_| sample(2.0)).collect();
        let target: Vec<f32> = (0..n).map(|_| sample(2.0)).collect();
        let wide: Vec<f32> = (0..n).map(|_| sample(2.4)).collect();
        let mut ranks = RankHistogram::new(7);
        steps(&mut ranks, &draws, &target);
        // Shared ties lessen the variance, so the bound for untied ranks holds all the more.
        assert!(is_flat(ranks.counts()), "{:?}", ranks.counts());
        ranks.reset();
        steps(&mut ranks, &draws, &wide);
        assert!(!is_flat(ranks.counts()));
    }

    #[test]
    fn draws_with_noise_have_no_ranks() {
        let mut ranks = RankHistogram::new(2);
        ranks.add(&MixtureBatch::new(&[0.0, 1.0], &[0.5, 0.5], &[0.5], 2, 1).unwrap());
        assert_eq!(ranks.counts(), [0.0; 3]);
        assert!(score(&ranks, "rank_deviation").is_nan());
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(12).regression(100);
        assert_merges(100, PitHistogram::new, |metric, rows| {
            gaussians(metric, &mean[rows.clone()], &std[rows.clone()], &target[rows]);
        });
        assert_merges(
            100,
            || RankHistogram::new(2),
            |metric, rows| {
                let draws = [&mean[rows.clone()], &std[rows.clone()]].concat();
                steps(metric, &draws, &target[rows]);
            },
        );
    }
}
