//! Scores of paths: whether outputs are predicted rightly together, not only one by one.
//!
//! A path is a joint sample of all K outputs of an example. The other scores of numbers see each
//! output on its own, so that paths which go up and down independently from one output to the next
//! score as well as those that hang together like the truth. [`shuffled`] makes the former of the
//! latter: what a score of these two differs by is what the dependence is worth.

use bayesmesh_kernels::stream::Stream;

use super::batch::{check_count, check_finite};
use super::row_mean::{count_row, mean_over_rows};
use super::{Metric, MetricError, Score, statistics_field};

/// Statistics of a score: see [`count_row`].
const PER_SCORE: usize = 4;

/// Two proper scores of N paths x_i against the truth y, each the mean over examples; smaller is
/// better.
///
/// - `energy_score`: `1/N Σ_i ‖x_i − y‖ − 1/(2N(N−1)) Σ_(i≠j) ‖x_i − x_j‖`, the CRPS of many
///   outputs at once, in their unit. Pairs of a path with itself are left out, so it does not
///   depend on N but for chance. It says little of the dependence.
/// - `variogram_score`: mean over pairs of outputs h < k of
///   `(|y_h − y_k|^½ − 1/N Σ_i |x_ih − x_ik|^½)²`, in the unit of the outputs. It tells right
///   dependence from wrong, and does not see an error that all outputs share. Of few paths it is
///   larger by the variance of the mean over them: compare it for the same N. NaN where there is
///   one output.
///
/// An example is one observation, whatever its number of outputs.
#[derive(Clone, Debug, Default)]
pub struct JointScores {
    /// Of the energy score, then of the variogram score, which has the examples with pairs only.
    statistics: [f64; 2 * PER_SCORE],
}

impl JointScores {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an example; changes nothing if it is invalid. Takes `O(N² K + N K²)`.
    ///
    /// # Shapes
    ///
    /// - `paths`: `[paths, outputs]`, row-major, at least two paths
    /// - `truth`: `[outputs]`
    pub fn add(&mut self, paths: &[f32], truth: &[f32]) -> Result<(), MetricError> {
        let outputs = truth.len();
        at_least("outputs", outputs, 1)?;
        let count = paths.len() / outputs;
        check_count("values of whole paths", paths.len(), count * outputs)?;
        at_least("paths", count, 2)?;
        check_finite("path value", paths)?;
        check_finite("true value", truth)?;
        let example = Example::new(paths, truth);
        let (energy, variogram) = self.statistics.split_at_mut(PER_SCORE);
        count_row(energy, 1, &[example.energy_score()]);
        if let Some(score) = example.variogram_score() {
            count_row(variogram, 1, &[score]);
        }
        Ok(())
    }
}

impl Metric for JointScores {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let (energy, variogram) = self.statistics.split_at(PER_SCORE);
        vec![
            mean_over_rows(energy, 0).named("energy_score"),
            mean_over_rows(variogram, 0).named("variogram_score"),
        ]
    }
}

/// Permutes the paths of an example at each output on its own: every output keeps its values, and
/// what they have to do with those of other outputs is lost.
///
/// The permutation of output k is that of the stream at tensor k, so a stream must differ between
/// examples by its step or draw.
///
/// # Shapes
///
/// - `paths`: `[count, outputs]`, row-major
pub fn shuffled(
    paths: &mut [f32],
    count: usize,
    outputs: usize,
    stream: &Stream,
) -> Result<(), MetricError> {
    // A product that overflows fits no slice either.
    check_count("path values", paths.len(), count.saturating_mul(outputs))?;
    if outputs > Stream::TENSORS as usize {
        let (expected, actual) = ("at most 2^24", outputs.to_string());
        return Err(MetricError::Setting { setting: "outputs", expected, actual });
    }
    for output in 0..outputs {
        let order = stream.at_tensor(output as u32).permutation(count);
        let column: Vec<f32> = paths.iter().skip(output).step_by(outputs).copied().collect();
        for (path, from) in paths.chunks_exact_mut(outputs).zip(order) {
            path[output] = column[from];
        }
    }
    Ok(())
}

fn at_least(setting: &'static str, actual: usize, least: usize) -> Result<(), MetricError> {
    if actual >= least {
        return Ok(());
    }
    let expected = if least == 1 { "at least 1" } else { "at least 2" };
    Err(MetricError::Setting { setting, expected, actual: actual.to_string() })
}

/// The paths of a valid example by output, so that sums over paths run over neighbours.
struct Example<'a> {
    /// `[outputs, paths]`
    columns: Vec<f64>,
    truth: &'a [f32],
    paths: usize,
}

impl<'a> Example<'a> {
    fn new(paths: &[f32], truth: &'a [f32]) -> Self {
        let outputs = truth.len();
        let column = |k| paths.iter().skip(k).step_by(outputs).map(|&x| f64::from(x));
        let columns = (0..outputs).flat_map(column).collect();
        Self { columns, truth, paths: paths.len() / outputs }
    }

    fn column(&self, output: usize) -> &[f64] {
        &self.columns[output * self.paths..][..self.paths]
    }

    fn energy_score(&self) -> f64 {
        let n = self.paths as f64;
        let mut room = vec![0.0; self.paths];
        let to_truth = self.distances(0, |k| f64::from(self.truth[k]), &mut room);
        let pair = |i: usize| self.distances(i + 1, |k| self.column(k)[i], &mut room);
        let pairs: f64 = (0..self.paths).map(pair).sum();
        // Each pair once: half of the sum over both orders.
        to_truth / n - pairs / (n * (n - 1.0))
    }

    /// The sum of `‖x_j − point‖` over the paths j from `first` on; `room` is overwritten.
    fn distances(&self, first: usize, point: impl Fn(usize) -> f64, room: &mut [f64]) -> f64 {
        let squares = &mut room[first..];
        squares.fill(0.0);
        for k in 0..self.truth.len() {
            let at = point(k);
            for (square, x) in squares.iter_mut().zip(&self.column(k)[first..]) {
                *square += (x - at) * (x - at);
            }
        }
        squares.iter().map(|square| square.sqrt()).sum()
    }

    /// `None` if there is one output.
    fn variogram_score(&self) -> Option<f64> {
        let outputs = self.truth.len();
        let mut sum = 0.0;
        for h in 0..outputs {
            for k in h + 1..outputs {
                let columns = self.column(h).iter().zip(self.column(k));
                let predicted: f64 = columns.map(|(a, b)| (a - b).abs().sqrt()).sum();
                let [a, b] = [h, k].map(|output| f64::from(self.truth[output]));
                let miss = (a - b).abs().sqrt() - predicted / self.paths as f64;
                sum += miss * miss;
            }
        }
        let pairs = outputs * (outputs - 1) / 2;
        (pairs > 0).then(|| sum / pairs as f64)
    }
}

#[cfg(test)]
mod tests {
    use bayesmesh_kernels::stream::Purpose;

    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::super::{Crps, MixtureBatch, RegressionMetric as _};
    use super::*;

    fn of(paths: &[f32], truth: &[f32]) -> JointScores {
        let mut metric = JointScores::new();
        metric.add(paths, truth).unwrap();
        metric
    }

    #[test]
    fn hand_computed_scores() {
        // Distances to the truth 5, 5 and 0; between the paths 10, 5 and 5, over 3 · 2.
        let metric = of(&[3.0, 4.0, -3.0, -4.0, 0.0, 0.0], &[0.0, 0.0]);
        assert_close(score(&metric, "energy_score"), 10.0 / 3.0 - 20.0 / 6.0, 1e-15);
        // √|y_0 − y_1| = 0 and (1 + 1 + 0) / 3.
        assert_close(score(&metric, "variogram_score"), 4.0 / 9.0, 1e-15);
        // Pairs (0, 1), (0, 2), (1, 2): roots of the truth 1, 3, √8; of the paths 2, 2, 0 and 0.
        let metric = of(&[4.0, 0.0, 0.0, 7.0, 7.0, 7.0], &[0.0, 1.0, 9.0]);
        let misses = [1.0 - 1.0, 3.0 - 1.0, 8f64.sqrt()];
        let squares: f64 = misses.iter().map(|miss| miss * miss).sum();
        assert_close(score(&metric, "variogram_score"), squares / 3.0, 1e-14);
        let (to_truth, pair) = (98f64.sqrt() + 89f64.sqrt(), (9.0 + 49.0 + 49f64).sqrt());
        assert_close(score(&metric, "energy_score"), to_truth / 2.0 - pair / 2.0, 1e-14);
        // Paths that are the truth miss nothing.
        let metric = of(&[1.0, 2.0, 1.0, 2.0], &[1.0, 2.0]);
        assert!(metric.scores().iter().all(|score| score.value == 0.0), "{:?}", metric.scores());
    }

    #[test]
    fn errors_over_examples_are_those_of_the_mean() {
        let mut metric = of(&[0.0, 0.0, 0.0, 0.0], &[3.0, 4.0]);
        assert!(metric.scores().iter().all(|score| score.se_examples.is_nan()));
        metric.add(&[0.0; 4], &[0.0, 1.0]).unwrap();
        let [energy, variogram] = metric.scores().try_into().unwrap();
        // 5 and 1: deviation √8 over √2. Both truths differ by 1 between their outputs.
        assert_close(energy.value, 3.0, 1e-15);
        assert_close(energy.se_examples, 2.0, 1e-15);
        assert_eq!((variogram.value, variogram.se_examples), (1.0, 0.0));
    }

    /// Of one output the energy score is the fair CRPS, and there is no variogram.
    #[test]
    fn one_output_has_its_fair_crps() {
        let mut lcg = Lcg(41);
        let draws: Vec<f32> = (0..31).map(|_| lcg.normal() as f32).collect();
        let mut crps = Crps::new();
        crps.add(&MixtureBatch::new(&draws, &[], &[0.25], draws.len(), 1).unwrap());
        let mut metric = of(&draws, &[0.25]);
        assert_close(score(&metric, "energy_score"), score(&crps, "crps_fair"), 1e-12);
        assert!(score(&metric, "variogram_score").is_nan());
        // Examples of more outputs have one, and those of one do not count.
        metric.add(&[0.0; 4], &[0.0, 4.0]).unwrap();
        assert_eq!(score(&metric, "variogram_score"), 4.0);
    }

    #[test]
    fn what_is_wrong_is_named_and_changes_nothing() {
        let mut metric = JointScores::new();
        let mut error = |paths: &[f32], truth: &[f32]| metric.add(paths, truth).unwrap_err();
        let setting = |setting, expected, actual: &str| MetricError::Setting {
            setting,
            expected,
            actual: actual.to_owned(),
        };
        assert_eq!(error(&[1.0], &[]), setting("outputs", "at least 1", "0"));
        assert_eq!(error(&[], &[1.0]), setting("paths", "at least 2", "0"));
        assert_eq!(error(&[1.0, 2.0], &[1.0, 2.0]), setting("paths", "at least 2", "1"));
        assert_eq!(
            error(&[0.0; 5], &[0.0; 2]),
            MetricError::Count { what: "values of whole paths", expected: 4, actual: 5 }
        );
        assert_eq!(
            error(&[0.0, f32::INFINITY], &[0.0]).to_string(),
            "path value inf at index 1 is not finite"
        );
        assert_eq!(
            error(&[0.0; 4], &[0.0, f32::NAN]).to_string(),
            "true value NaN at index 1 is not finite"
        );
        assert_eq!(metric.statistics(), [0.0; 8]);
    }

    /// Large numbers do not overflow: squares of single precision fit into double.
    #[test]
    fn the_largest_numbers_have_a_score() {
        let metric = of(&[f32::MAX, -f32::MAX, f32::MAX, f32::MAX], &[-f32::MAX, f32::MAX]);
        assert!(metric.scores().iter().all(|score| score.value.is_finite()));
    }

    /// Paths `[paths, outputs]` of a Gaussian with unit variances and correlation ρ between
    /// neighbours, falling off with the distance.
    fn gaussian_paths(lcg: &mut Lcg, paths: usize, outputs: usize, rho: f64) -> Vec<f32> {
        let mut values = Vec::new();
        for _ in 0..paths {
            let mut at = lcg.normal();
            for _ in 0..outputs {
                values.push(at as f32);
                at = rho * at + (1.0 - rho * rho).sqrt() * lcg.normal();
            }
        }
        values
    }

    #[test]
    fn parts_merge() {
        let mut lcg = Lcg(42);
        let paths = gaussian_paths(&mut lcg, 60 * 5, 3, 0.5);
        let truth = gaussian_paths(&mut lcg, 60, 3, 0.5);
        assert_merges(60, JointScores::new, |metric, rows| {
            for row in rows {
                metric.add(&paths[15 * row..][..15], &truth[3 * row..][..3]).unwrap();
            }
        });
    }

    #[test]
    fn shuffling_keeps_every_output_and_no_path() {
        let (count, outputs) = (200, 4);
        let mut lcg = Lcg(43);
        let before = gaussian_paths(&mut lcg, count, outputs, 0.9);
        let stream = Stream::new(7, Purpose::Shuffle).at_step(3);
        let run = |stream: &Stream| {
            let mut paths = before.clone();
            shuffled(&mut paths, count, outputs, stream).unwrap();
            paths
        };
        let after = run(&stream);
        assert_eq!(after, run(&stream));
        assert_ne!(after, run(&stream.at_step(4)));
        let column = |paths: &[f32], output: usize| -> Vec<f32> {
            paths[output..].iter().step_by(outputs).copied().collect()
        };
        let sorted = |mut values: Vec<f32>| {
            values.sort_unstable_by(f32::total_cmp);
            values
        };
        for k in 0..outputs {
            assert_ne!(column(&before, k), column(&after, k));
            assert_eq!(sorted(column(&before, k)), sorted(column(&after, k)));
        }
        // Correlation of neighbouring outputs: 0.9 before; after, 0 but for 1/√200.
        let correlation = |paths: &[f32]| {
            let [a, b] = [0, 1].map(|k| column(paths, k));
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum()
            };
            dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
        };
        assert!(correlation(&before) > 0.8);
        assert_close(correlation(&after), 0.0, 4.0 / 200f64.sqrt());
    }

    #[test]
    fn paths_that_cannot_be_shuffled_are_refused() {
        let stream = Stream::new(1, Purpose::Shuffle);
        let mut paths = [0.0; 6];
        assert_eq!(
            shuffled(&mut paths, 2, 2, &stream),
            Err(MetricError::Count { what: "path values", expected: 4, actual: 6 })
        );
        assert!(shuffled(&mut paths, usize::MAX, 2, &stream).is_err());
        assert_eq!(shuffled(&mut [], 0, 3, &stream), Ok(()));
        assert_eq!(shuffled(&mut [], 3, 0, &stream), Ok(()));
        let error = shuffled(&mut [], 0, (1 << 24) + 1, &stream).unwrap_err();
        assert_eq!(error.to_string(), "outputs must be at most 2^24, not 16777217");
    }

    /// Paths that hang together like the truth score better than the same ones shuffled, by more
    /// than chance explains; independent ones do not.
    #[test]
    fn right_dependence_scores_better_than_none() {
        let (examples, count, outputs) = (400, 50, 8);
        let compare = |rho: f64| {
            let mut lcg = Lcg(44);
            let [mut joint, mut apart] = [JointScores::new(), JointScores::new()];
            // Of each score, by example: shuffled minus as it was.
            let mut gains = [const { Vec::new() }; 2];
            for example in 0..examples {
                let truth = gaussian_paths(&mut lcg, 1, outputs, rho);
                let mut paths = gaussian_paths(&mut lcg, count, outputs, rho);
                let [before, after] = [&mut joint, &mut apart].map(|metric| {
                    let one = of(&paths, &truth);
                    metric.merge(&one).unwrap();
                    let stream = Stream::new(5, Purpose::Shuffle).at_step(example);
                    shuffled(&mut paths, count, outputs, &stream).unwrap();
                    one.scores()
                });
                for (gains, (before, after)) in gains.iter_mut().zip(before.iter().zip(&after)) {
                    gains.push(after.value - before.value);
                }
            }
            let [joint, apart] = [joint, apart].map(|metric| metric.scores());
            let n = f64::from(examples);
            let standardised = |(gains, (joint, apart)): (&Vec<f64>, (&Score, &Score))| {
                let mean = gains.iter().sum::<f64>() / n;
                assert_close(mean, apart.value - joint.value, 1e-12);
                let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / n;
                mean / (variance / n).sqrt()
            };
            let scores = joint.iter().zip(&apart);
            gains.iter().zip(scores).map(standardised).collect::<Vec<f64>>()
        };
        let dependent = compare(0.9);
        assert!(dependent.iter().all(|z| *z > 5.0), "{dependent:?}");
        let independent = compare(0.0);
        assert!(independent.iter().all(|z| z.abs() < 4.0), "{independent:?}");
    }
}
