//! How much scores depend on the draws that a prediction happens to have.

use std::ops::Range;

use bayesmesh_comm::share;

use super::{
    ClassificationBatch, ClassificationScores, Metric, MetricError, MetricSet, MixtureBatch,
    RegressionScores, Score,
};

/// Groups of draws that are left out in turn, where there are so many draws.
pub const DRAW_GROUPS: usize = 8;

/// Numbers that are scored at a time.
const BLOCK: usize = 16_384;

/// The draws of each group: consecutive, groups differing by one draw at most.
pub(super) fn draw_groups(draws: usize, groups: usize) -> Vec<Range<usize>> {
    (0..groups).map(|group| share(draws, groups, group)).collect()
}

/// The standard error of a number from what it is without each of some equal groups; NaN for none.
pub fn jackknife_error(without: &[f64]) -> f64 {
    let groups = without.len() as f64;
    let mean = without.iter().sum::<f64>() / groups;
    let squares: f64 = without.iter().map(|value| (value - mean).powi(2)).sum();
    ((groups - 1.0) / groups * squares).sqrt()
}

/// Metrics of a prediction with all its draws, and the same without each of G groups of draws in
/// turn, from which every score has its Monte Carlo standard error, the delete-a-group jackknife:
///
/// `se² = (G − 1)/G Σ_g (θ_g − mean θ)²`, θ_g being the score without group g.
///
/// It needs no more predictions, and holds for any score that changes smoothly with the
/// distribution of the draws, as those that are means over many examples do. G is [`DRAW_GROUPS`]
/// or, for fewer draws, their number; with less than three draws there are no groups and no errors.
/// The estimate itself is off by about `1/√(2(G − 1))`, a quarter. Groups of sizes that differ by
/// one are taken as equal.
#[derive(Clone, Debug)]
pub struct Jackknife<M> {
    draws: usize,
    whole: M,
    without: Vec<M>,
}

impl<M: MetricSet> Jackknife<M> {
    /// For predictions of so many draws, with metrics made by `new`.
    pub fn new(draws: usize, new: impl Fn() -> M) -> Self {
        let groups = if draws < 3 { 0 } else { draws.min(DRAW_GROUPS) };
        Self { draws, whole: new(), without: (0..groups).map(|_| new()).collect() }
    }

    /// Without standard errors over draws, which is quicker.
    pub fn without_groups(draws: usize, metrics: M) -> Self {
        Self { draws, whole: metrics, without: Vec::new() }
    }

    /// The metrics of all draws.
    pub fn whole(&self) -> &M {
        &self.whole
    }

    /// The standard error over draws of the score of that name.
    fn error(&self, name: &str, without: &[Vec<Score>]) -> f64 {
        let values = without.iter().map(|scores| {
            scores.iter().find(|score| score.name == name).map_or(f64::NAN, |score| score.value)
        });
        jackknife_error(&values.collect::<Vec<f64>>())
    }
}

impl<M: MetricSet> MetricSet for Jackknife<M> {
    fn metrics(&self) -> Vec<&dyn Metric> {
        std::iter::once(&self.whole).chain(&self.without).flat_map(|set| set.metrics()).collect()
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        let sets = std::iter::once(&mut self.whole).chain(&mut self.without);
        sets.flat_map(|set| set.metrics_mut()).collect()
    }

    /// The scores of all draws, with their standard errors over draws.
    fn scores(&self) -> Vec<Score> {
        let without: Vec<Vec<Score>> = self.without.iter().map(|set| set.scores()).collect();
        let mut scores = self.whole.scores();
        for score in &mut scores {
            score.se_draws = self.error(&score.name, &without);
        }
        scores
    }
}

impl Jackknife<RegressionScores> {
    /// Adds examples; changes nothing if they have another number of draws or outputs.
    pub fn add(&mut self, mixtures: &MixtureBatch) -> Result<(), MetricError> {
        super::batch::check_count("draws", mixtures.draws(), self.draws)?;
        self.whole.expect_outputs(mixtures.outputs())?;
        let (rows, groups) = (mixtures.rows(), self.without.len());
        // Rows at a time, so that memory does not grow with the batch.
        let step = (BLOCK / mixtures.outputs().max(1)).max(1);
        for first in (0..rows).step_by(step) {
            let batches = mixtures.scored_without(first..rows.min(first + step), groups);
            let sets = std::iter::once(&mut self.whole).chain(&mut self.without);
            sets.zip(&batches).for_each(|(set, batch)| set.add_batch(batch));
        }
        Ok(())
    }
}

impl Jackknife<ClassificationScores> {
    /// Adds examples; changes nothing if they are invalid.
    ///
    /// # Shapes
    ///
    /// - `probabilities`: `[draws, rows, classes]`, row-major
    /// - `labels`: `[rows]`
    /// - `numbers`: `[rows]`, those of the examples in their data set, or nothing
    pub fn add(
        &mut self,
        probabilities: &[f32],
        labels: &[usize],
        numbers: &[usize],
    ) -> Result<(), MetricError> {
        let cells = probabilities.len() / self.draws.max(1);
        super::batch::check_count("probabilities", probabilities.len(), self.draws * cells)?;
        let sum = |draws: Range<usize>| {
            let mut sum = vec![0.0f64; cells];
            for draw in probabilities[draws.start * cells..draws.end * cells].chunks(cells.max(1)) {
                sum.iter_mut().zip(draw).for_each(|(sum, &p)| *sum += f64::from(p));
            }
            sum
        };
        let mean = |sum: &[f64], draws: usize| -> Vec<f32> {
            sum.iter().map(|sum| (sum / draws as f64) as f32).collect()
        };
        let total = sum(0..self.draws);
        let mut means = vec![mean(&total, self.draws)];
        for group in draw_groups(self.draws, self.without.len()) {
            let left = self.draws - group.len();
            let rest: Vec<f64> = total.iter().zip(sum(group)).map(|(all, own)| all - own).collect();
            means.push(mean(&rest, left));
        }
        let batches: Result<Vec<_>, _> =
            means.iter().map(|mean| ClassificationBatch::new(mean, labels)).collect();
        let batches = batches?.into_iter().map(|batch| batch.numbered(numbers));
        let batches: Vec<_> = batches.collect();
        batches.iter().try_for_each(|batch| self.whole.expect_classes(batch))?;
        let sets = std::iter::once(&mut self.whole).chain(&mut self.without);
        sets.zip(&batches).try_for_each(|(set, batch)| set.add_batch(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close};
    use super::*;

    const ROWS: usize = 300;
    const OUTPUTS: usize = 2;

    /// A problem in which the draws are spread as widely as the truth: `[draws, rows, outputs]`
    /// values, noise and the truth, which is the same for every seed.
    fn regression(seed: u64, draws: usize) -> [Vec<f32>; 3] {
        let mut lcg = Lcg(99);
        let cells = ROWS * OUTPUTS;
        let centre: Vec<f64> = (0..cells).map(|_| lcg.normal()).collect();
        let truth = centre.iter().map(|c| (c + 0.8 * lcg.normal()) as f32).collect();
        let mut lcg = Lcg(seed);
        let (mut values, mut noise) = (Vec::new(), Vec::new());
        for _ in 0..draws {
            // What a draw has in common over all examples is what matters most.
            let shift = 0.3 * lcg.normal();
            for centre in &centre {
                values.push((centre + shift + 0.4 * lcg.normal()) as f32);
                noise.push((0.3 * (0.2 * lcg.normal()).exp()) as f32);
            }
        }
        [values, noise, truth]
    }

    fn scores_of(seed: u64, draws: usize, noise: bool) -> Vec<Score> {
        let [values, variances, truth] = regression(seed, draws);
        let variances = if noise { &variances[..] } else { &[] };
        let mut set = Jackknife::new(draws, || RegressionScores::new(OUTPUTS, draws));
        set.add(&MixtureBatch::new(&values, variances, &truth, draws, OUTPUTS).unwrap()).unwrap();
        set.scores()
    }

    /// Without a group the scores are those of the other draws, computed by themselves.
    #[test]
    fn leaving_a_group_out_is_scoring_the_others() {
        for (draws, noise) in [(3, true), (11, true), (11, false), (19, true), (19, false)] {
            let [values, variances, truth] = regression(5, draws);
            let variances = if noise { variances } else { Vec::new() };
            let mut set = Jackknife::new(draws, || RegressionScores::new(OUTPUTS, draws));
            let batch = MixtureBatch::new(&values, &variances, &truth, draws, OUTPUTS).unwrap();
            set.add(&batch).unwrap();
            let groups = set.without.len();
            assert_eq!(groups, draws.min(8));
            for (g, without) in set.without.iter().enumerate() {
                let group = &draw_groups(draws, groups)[g];
                let left = draws - group.len();
                let rest = |all: &[f32]| -> Vec<f32> {
                    let cells = truth.len();
                    let draws = all.chunks_exact(cells).enumerate();
                    draws
                        .filter(|(s, _)| !group.contains(s))
                        .flat_map(|(_, d)| d)
                        .copied()
                        .collect()
                };
                let (values, variances) = (rest(&values), rest(&variances));
                let mut alone =
                    Jackknife::without_groups(left, RegressionScores::new(OUTPUTS, left));
                let batch = MixtureBatch::new(&values, &variances, &truth, left, OUTPUTS).unwrap();
                alone.add(&batch).unwrap();
                for (found, expected) in without.scores().iter().zip(alone.scores()) {
                    assert_eq!(found.name, expected.name);
                    // Ranks are those among all draws.
                    if found.name == "rank_deviation" || expected.value.is_nan() {
                        assert!(found.value.is_nan(), "{found:?}");
                        continue;
                    }
                    assert_close(found.value, expected.value, 1e-10);
                }
            }
        }
    }

    /// A draw that explains the truth alone: without it the density is that of the others, however
    /// small.
    #[test]
    fn the_density_without_its_best_draws_is_that_of_the_others() {
        let values = [0.0f32, 100.0, 101.0];
        let batch = MixtureBatch::new(&values, &[1.0; 3], &[0.0], 3, 1).unwrap();
        let without = batch.scored_without(0..1, 3);
        let alone = MixtureBatch::new(&values[1..], &[1.0; 2], &[0.0], 2, 1).unwrap();
        let found = without[1].rows().next().unwrap()[0].log_density;
        assert_close(found, alone.log_density()[0], 1e-9);
        assert!(found < -4900.0);
    }

    /// The standard error is the deviation of the score over independent sets of draws.
    #[test]
    fn the_jackknife_finds_the_spread_over_sets_of_draws() {
        const SETS: u64 = 200;
        const DRAWS: usize = 24;
        for noise in [true, false] {
            let all: Vec<Vec<Score>> =
                (0..SETS).map(|set| scores_of(1000 + set, DRAWS, noise)).collect();
            let mut names =
                vec!["rmse", "mae", "bias", "crps", "coverage_50", "mean_std", "mace", "spread"];
            names.extend(noise.then_some("nll"));
            for name in names {
                let of = |scores: &[Score]| {
                    scores.iter().find(|score| score.name == name).unwrap().clone()
                };
                let values: Vec<f64> = all.iter().map(|scores| of(scores).value).collect();
                let mean = values.iter().sum::<f64>() / SETS as f64;
                let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
                let deviation = (variance / (SETS - 1) as f64).sqrt();
                let squares: f64 = all.iter().map(|scores| of(scores).se_draws.powi(2)).sum();
                let found = (squares / SETS as f64).sqrt();
                // The deviation is known to a twentieth; the jackknife errs on the safe side where
                // a score is not linear in the distribution of the draws.
                let ratio = found / deviation;
                assert!((0.8..1.5).contains(&ratio), "{name}: {found} is not {deviation}");
            }
        }
    }

    #[test]
    fn few_draws_have_no_error_and_one_more_has() {
        for draws in [1, 2] {
            assert!(scores_of(1, draws, true).iter().all(|score| score.se_draws.is_nan()));
        }
        let crps = scores_of(1, 3, true).into_iter().find(|score| score.name == "crps");
        assert!(crps.unwrap().se_draws > 0.0);
    }

    /// A score has the same bits with and without its standard error.
    #[test]
    fn quick_scores_are_the_same() {
        for (draws, noise) in [(3, true), (21, true), (21, false)] {
            let [values, variances, truth] = regression(1, draws);
            let variances = if noise { variances } else { Vec::new() };
            let mut quick = Jackknife::without_groups(draws, RegressionScores::new(OUTPUTS, draws));
            let batch = MixtureBatch::new(&values, &variances, &truth, draws, OUTPUTS).unwrap();
            quick.add(&batch).unwrap();
            for (quick, full) in quick.scores().iter().zip(scores_of(1, draws, noise)) {
                assert!(quick.se_draws.is_nan());
                let same = quick.value == full.value || quick.value.is_nan() && full.value.is_nan();
                assert!(same, "{quick:?} {full:?}");
            }
        }
    }

    /// The same for classes: draws of logits around others.
    #[test]
    fn the_jackknife_finds_the_spread_of_class_scores() {
        const SETS: u64 = 200;
        const DRAWS: usize = 16;
        let (classes, rows) = (3, 400);
        let mut lcg = Lcg(77);
        let centre: Vec<f64> = (0..rows * classes).map(|_| 1.5 * lcg.normal()).collect();
        let labels: Vec<usize> = centre
            .chunks(classes)
            .map(|row| {
                let noisy: Vec<f64> = row.iter().map(|x| x + lcg.normal()).collect();
                (0..classes).max_by(|a, b| noisy[*a].total_cmp(&noisy[*b])).unwrap()
            })
            .collect();
        let scores = |seed: u64| {
            let mut lcg = Lcg(seed);
            let mut draws = Vec::new();
            for _ in 0..DRAWS {
                let shift: Vec<f64> = (0..classes).map(|_| 0.5 * lcg.normal()).collect();
                for row in centre.chunks(classes) {
                    let e: Vec<f64> = row
                        .iter()
                        .zip(&shift)
                        .map(|(x, s)| (x + s + 0.7 * lcg.normal()).exp())
                        .collect();
                    let sum: f64 = e.iter().sum();
                    draws.extend(e.iter().map(|e| (e / sum) as f32));
                }
            }
            let mut set = Jackknife::new(DRAWS, || ClassificationScores::new(classes));
            set.add(&draws, &labels, &[]).unwrap();
            set.scores()
        };
        let all: Vec<Vec<Score>> = (0..SETS).map(|set| scores(500 + set)).collect();
        for name in ["accuracy", "nll", "brier", "entropy_right"] {
            let of = |scores: &[Score]| {
                let score = scores.iter().find(|score| score.name == name).unwrap();
                (score.value, score.se_draws)
            };
            let values: Vec<f64> = all.iter().map(|scores| of(scores).0).collect();
            let mean = values.iter().sum::<f64>() / SETS as f64;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            let deviation = (variance / (SETS - 1) as f64).sqrt();
            let squares: f64 = all.iter().map(|scores| of(scores).1.powi(2)).sum();
            let found = (squares / SETS as f64).sqrt();
            let ratio = found / deviation;
            // An accuracy jumps where a class overtakes another, which costs some precision.
            assert!((0.75..1.6).contains(&ratio), "{name}: {found} is not {deviation}");
        }
    }

    #[test]
    fn other_numbers_of_draws_are_refused() {
        let mut set = Jackknife::new(4, || RegressionScores::new(1, 4));
        let before = set.statistics();
        let batch = MixtureBatch::new(&[0.0; 3], &[], &[0.0], 3, 1).unwrap();
        assert!(set.add(&batch).is_err());
        let batch = MixtureBatch::new(&[0.0; 8], &[], &[0.0; 2], 4, 2).unwrap();
        assert!(set.add(&batch).is_err());
        assert_eq!(set.statistics(), before);
        let mut set = Jackknife::new(4, || ClassificationScores::new(2));
        assert!(set.add(&[0.5; 7], &[0], &[]).is_err());
        assert!(set.add(&[0.5; 12], &[0], &[]).is_err());
        assert!(set.add(&[0.5; 8], &[2], &[]).is_err());
        assert!(set.statistics().iter().all(|sum| *sum == 0.0));
    }
}
