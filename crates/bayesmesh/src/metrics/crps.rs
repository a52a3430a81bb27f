//! The continuous ranked probability score: the distance of a predictive distribution function from
//! the step at the target, `∫ (F(x) − [x ≥ y])² dx = E|X − y| − ½ E|X − X'|` with X and X' from F.
//! It is in the units of the target, and for a certain prediction it is the absolute error.

use std::f64::consts::PI;
use std::ops::Range;

use super::normal_table::NormalTable;
use super::row_mean::{count_row, mean_over_rows};
use super::{Metric, RegressionBatch, RegressionMetric, Score, statistics_field};

/// Sums of `E|X_s − X_t|` over pairs of draws, every pair in both orders and each draw also with
/// itself.
pub(super) struct Pairs {
    /// All of them.
    pub sum: f64,
    /// Those of a draw with itself.
    pub same: f64,
    /// The part that each group has.
    pub groups: Vec<GroupPairs>,
}

/// Pairs of the draws of a group.
#[derive(Clone, Copy, Default)]
pub(super) struct GroupPairs {
    /// With all draws.
    pub with_all: f64,
    /// With draws of the same group.
    pub within: f64,
    /// With themselves.
    pub same: f64,
}

/// Sums over pairs of `N(m_s, v_s)`; of steps where there are no variances. The groups are of
/// consecutive draws and hold all of them; `room` is overwritten.
pub(super) fn pairs(
    means: &[f64],
    variances: &[f64],
    groups: &[Range<usize>],
    room: &mut [Vec<f64>; 2],
) -> Pairs {
    let sums = match (variances.is_empty(), Grid::of(means, variances)) {
        (true, _) => pairs_of_steps(means, groups),
        (_, Some(grid)) => pairs_by_integral(means, variances, groups, &grid),
        (_, None) => pairs_of_gaussians(means, variances, groups, room),
    };
    let total = |pick: fn(&GroupPairs) -> f64| sums.iter().map(pick).sum();
    Pairs { sum: total(|g| g.with_all), same: total(|g| g.same), groups: sums }
}

/// Pair by pair: `E|X_s − X_t| = √v g(|m_s − m_t|/√v)` with `v = v_s + v_t` and g as in
/// [`NormalTable`].
fn pairs_of_gaussians(
    means: &[f64],
    variances: &[f64],
    groups: &[Range<usize>],
    [distances, stds]: &mut [Vec<f64>; 2],
) -> Vec<GroupPairs> {
    let table = NormalTable::get();
    let mut sums = vec![GroupPairs::default(); groups.len()];
    let draws = means.len();
    let shared = variances.iter().all(|variance| *variance == variances[0]);
    let (shared_std, inverse) = ((2.0 * variances[0]).sqrt(), 1.0 / (2.0 * variances[0]).sqrt());
    for (own, group) in groups.iter().enumerate() {
        for s in group.clone() {
            let others = s + 1..draws;
            for (distance, mean) in distances[others.clone()].iter_mut().zip(&means[others.clone()])
            {
                *distance = (mean - means[s]).abs();
            }
            if !shared {
                let stds = stds[others.clone()].iter_mut();
                for (std, variance) in stds.zip(&variances[others]) {
                    *std = (variance + variances[s]).sqrt();
                }
            }
            let same = 2.0 * (variances[s] / PI).sqrt();
            sums[own].with_all += same;
            sums[own].within += same;
            sums[own].same += same;
            for (other, range) in groups.iter().enumerate().skip(own) {
                let range = range.start.max(s + 1)..range.end;
                let distances = distances[range.clone()].iter();
                let sum: f64 = match shared {
                    true => distances.map(|&d| table.absolute(d, d * inverse, shared_std)).sum(),
                    false => distances
                        .zip(&stds[range])
                        .map(|(&d, &std)| table.absolute(d, d / std, std))
                        .sum(),
                };
                sums[own].with_all += sum;
                sums[other].with_all += sum;
                if own == other {
                    sums[own].within += 2.0 * sum;
                }
            }
        }
    }
    sums
}

/// Equally spaced points from below all Gaussians to above them.
struct Grid {
    first: f64,
    step: f64,
    points: usize,
}

impl Grid {
    /// How many deviations the ends are away from every mean; what lies beyond is below 1e-16.
    const REACH: f64 = 8.5;
    /// The step in units of the smallest deviation.
    const STEP: f64 = 0.5;

    /// A grid for the mixture, where it has so few points that integrating is less work than all
    /// pairs are: of many draws whose deviations are not too different.
    fn of(means: &[f64], variances: &[f64]) -> Option<Self> {
        let stds = || means.iter().zip(variances).map(|(mean, variance)| (mean, variance.sqrt()));
        let smallest = variances.iter().copied().fold(f64::INFINITY, f64::min).sqrt();
        let first = stds().map(|(m, s)| m - Self::REACH * s).fold(f64::INFINITY, f64::min);
        let last = stds().map(|(m, s)| m + Self::REACH * s).fold(f64::NEG_INFINITY, f64::max);
        let step = Self::STEP * smallest;
        let points = (last - first) / step;
        // Not where a variance is zero, and not for one draw.
        let few = points < 0.5 * means.len() as f64 - 2.0;
        few.then(|| Self { first, step, points: points.ceil() as usize + 1 })
    }
}

/// Of many draws: with `F_g = Σ_(s∈g) Φ((x − m_s)/σ_s)` and F the sum over all S draws, the pairs
/// of a group of n draws with all are `∫ F_g (S − F) + F (n − F_g) dx`, those within it
/// `2 ∫ F_g (n − F_g) dx`.
///
/// The integrand is smooth, and its spectrum falls like that of the narrowest Gaussian. So the sum
/// over points h = σ/2 apart is the integral but for `exp(−π²σ²/h²)`, 1e-17 of it: O(S) for as many
/// points as the spread needs.
fn pairs_by_integral(
    means: &[f64],
    variances: &[f64],
    groups: &[Range<usize>],
    grid: &Grid,
) -> Vec<GroupPairs> {
    let table = NormalTable::get();
    let inverse: Vec<f64> = variances.iter().map(|variance| 1.0 / variance.sqrt()).collect();
    let mut sums = vec![GroupPairs::default(); groups.len()];
    let mut below = vec![0.0; groups.len()];
    for point in 0..grid.points {
        let x = grid.first + grid.step * point as f64;
        for (below, group) in below.iter_mut().zip(groups) {
            let draws = means[group.clone()].iter().zip(&inverse[group.clone()]);
            *below = draws.map(|(mean, inverse)| table.cdf((x - mean) * inverse)).sum();
        }
        let all: f64 = below.iter().sum();
        for ((sums, own), group) in sums.iter_mut().zip(&below).zip(groups) {
            let above = group.len() as f64 - own;
            sums.with_all += grid.step * (own * (means.len() as f64 - all) + all * above);
            sums.within += grid.step * 2.0 * own * above;
        }
    }
    for (sums, group) in sums.iter_mut().zip(groups) {
        sums.same = variances[group.clone()].iter().map(|v| 2.0 * (v / PI).sqrt()).sum();
    }
    sums
}

/// From sorted draws in O(S log S): `Σ_t |x_i − x_t|` of the i-th smallest, counted from 0, is
/// `i x_i − Σ_(t<i) x_t + Σ_(t>i) x_t − (S − 1 − i) x_i`.
fn pairs_of_steps(means: &[f64], groups: &[Range<usize>]) -> Vec<GroupPairs> {
    let mut sums = vec![GroupPairs::default(); groups.len()];
    let labelled = groups.iter().enumerate();
    let mut sorted: Vec<(f64, usize)> =
        labelled.flat_map(|(g, range)| means[range.clone()].iter().map(move |&x| (x, g))).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // Distances do not change by a shift; that to the smallest avoids cancellation.
    let smallest = sorted[0].0;
    sorted.iter_mut().for_each(|(x, _)| *x -= smallest);
    let total: f64 = sorted.iter().map(|(x, _)| x).sum();
    let mut below = 0.0;
    // Of each group, how many draws are below and their sum.
    let mut own_below = vec![(0.0, 0.0); groups.len()];
    for (i, &(x, group)) in sorted.iter().enumerate() {
        let (left, right) = (i as f64, (sorted.len() - 1 - i) as f64);
        sums[group].with_all += left * x - below + (total - below - x) - right * x;
        let (count, sum) = &mut own_below[group];
        sums[group].within += 2.0 * (*count * x - *sum);
        *count += 1.0;
        *sum += x;
        below += x;
    }
    sums
}

/// The CRPS of the mixture of all draws:
///
/// - `crps`: mean over rows and outputs of `∫ (F(x) − [x ≥ y])² dx`, F being the mixture of the
///   draws
/// - `crps_fair`: what it would be with infinitely many draws, without bias: pairs of a draw with
///   itself are left out. NaN for one draw.
#[derive(Clone, Debug, Default)]
pub struct Crps {
    /// Rows, cells, and for each score the sum and the sum of squares of the rows' sums.
    statistics: [f64; 6],
}

impl Crps {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for Crps {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![
            mean_over_rows(&self.statistics, 0).named("crps"),
            mean_over_rows(&self.statistics, 1).named("crps_fair"),
        ]
    }
}

impl RegressionMetric for Crps {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for row in batch.rows() {
            let crps = row.iter().map(|cell| cell.crps).sum();
            let fair = row.iter().map(|cell| cell.crps_fair).sum();
            count_row(&mut self.statistics, row.len(), &[crps, fair]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::super::{MixtureBatch, normal};
    use super::*;

    fn of(means: &[f32], variances: &[f32], truth: f32) -> (f64, f64) {
        let mut metric = Crps::new();
        metric.add(&MixtureBatch::new(means, variances, &[truth], means.len(), 1).unwrap());
        (score(&metric, "crps"), score(&metric, "crps_fair"))
    }

    /// `∫ (F(x) − [x ≥ y])² dx` by the midpoint rule on both sides of the step.
    fn integral(means: &[f32], variances: &[f32], truth: f64) -> f64 {
        let n = 40_000;
        let components = || {
            let pairs = means.iter().zip(variances);
            pairs.map(|(&m, &v)| (f64::from(m), f64::from(v).sqrt()))
        };
        let low = components().map(|(m, s)| m - 9.0 * s).fold(truth, f64::min);
        let high = components().map(|(m, s)| m + 9.0 * s).fold(truth, f64::max);
        let cdf = |x: f64| {
            components().map(|(m, s)| normal::cdf((x - m) / s)).sum::<f64>() / means.len() as f64
        };
        let side = |a: f64, b: f64, step: f64| {
            let h = (b - a) / f64::from(n);
            let at = |i: i32| cdf(a + h * (f64::from(i) + 0.5)) - step;
            (0..n).map(|i| at(i).powi(2)).sum::<f64>() * h
        };
        side(low, truth, 0.0) + side(truth, high, 1.0)
    }

    #[test]
    fn a_mixture_has_the_score_of_its_integral() {
        let mut lcg = Lcg(7);
        for (draws, shared) in [(1, false), (2, false), (5, false), (5, true), (9, true)] {
            let means: Vec<f32> = (0..draws).map(|_| (2.0 * lcg.normal()) as f32).collect();
            let variances: Vec<f32> = match shared {
                true => vec![0.37; draws],
                false => (0..draws).map(|_| (lcg.normal()).exp() as f32).collect(),
            };
            for truth in [-3.0, 0.125, 2.5] {
                let exact = integral(&means, &variances, f64::from(truth));
                assert_close(of(&means, &variances, truth).0, exact, 3e-7);
            }
        }
    }

    /// The closed form of one Gaussian, `σ [z (2Φ(z) − 1) + 2φ(z) − 1/√π]`.
    #[test]
    fn one_draw_has_the_score_of_its_gaussian() {
        for std in [0.25, 1.0, 4.0] {
            for z in [-9.0, -2.0, -0.5, 0.0, 0.0078125, 1.0, 3.0] {
                let bracket = z * (2.0 * normal::cdf(z) - 1.0) + 2.0 * normal::pdf(z);
                let exact = std * (bracket - 1.0 / PI.sqrt());
                let (crps, fair) = of(&[0.0], &[(std * std) as f32], (std * z) as f32);
                assert_close(crps, exact, 1e-12);
                assert!(fair.is_nan());
            }
        }
        // A certain prediction has its absolute error, and so has one that is nearly certain.
        assert_eq!(of(&[1.0], &[0.0], 3.0).0, 2.0);
        assert_eq!(of(&[1.0], &[], 1.0).0, 0.0);
        assert_close(of(&[1e20], &[1e-30], 0.0).0, f64::from(1e20f32), 1e-12);
    }

    /// The definition for steps, O(S²).
    fn pairwise(draws: &[f32], target: f32, fair: bool) -> f64 {
        let s = draws.len() as f64;
        let gap = |a: f32, b: f32| (f64::from(a) - f64::from(b)).abs();
        let distance: f64 = draws.iter().map(|&x| gap(x, target)).sum();
        let pairs: f64 = draws.iter().map(|&x| draws.iter().map(|&y| gap(x, y)).sum::<f64>()).sum();
        distance / s - pairs / (2.0 * s * if fair { s - 1.0 } else { s })
    }

    #[test]
    fn draws_without_noise_have_the_score_of_their_steps() {
        let mut lcg = Lcg(7);
        for draws in [1, 2, 3, 16, 101] {
            let mut x: Vec<f32> = (0..draws).map(|_| 1000.0 + lcg.normal() as f32).collect();
            // Ties, within the draws and with the target.
            x[0] = 1000.5;
            x[draws / 2] = 1000.5;
            for target in [1000.5, 998.25, 1003.0] {
                let exact = (pairwise(&x, target, false), pairwise(&x, target, true));
                // Without noise, with zeros, and with next to none, pair by pair.
                for variances in [vec![], vec![0.0; draws], vec![1e-30; draws]] {
                    let (crps, fair) = of(&x, &variances, target);
                    assert_close(crps, exact.0, 1e-10);
                    assert!(if draws > 1 { (fair - exact.1).abs() < 1e-10 } else { fair.is_nan() });
                }
            }
        }
        // Draws 0, 1, 3 and target 2: F = 1/3 on (0,1), 2/3 on (1,2); 1 − F = 1/3 on (2,3).
        assert_close(of(&[3.0, 0.0, 1.0], &[], 2.0).0, (1.0 + 4.0 + 1.0) / 9.0, 1e-15);
    }

    /// Many draws are integrated, which is the sum over their pairs, for each group.
    #[test]
    fn the_integral_over_many_draws_is_the_sum_over_their_pairs() {
        let mut lcg = Lcg(10);
        let mut integrated = 0;
        for (draws, spread, centre) in [(250, 0.3, 0.0), (400, 2.0, 1e5), (1000, 0.0, -3.0)] {
            let means: Vec<f64> = (0..draws).map(|_| centre + spread * lcg.normal()).collect();
            let variances: Vec<f64> = (0..draws).map(|_| 0.3 + lcg.uniform()).collect();
            let groups = super::super::jackknife::draw_groups(draws, 7);
            let mut room = [vec![0.0; draws], vec![0.0; draws]];
            let exact = pairs_of_gaussians(&means, &variances, &groups, &mut room);
            let Some(grid) = Grid::of(&means, &variances) else { continue };
            integrated += 1;
            let found = pairs_by_integral(&means, &variances, &groups, &grid);
            for (found, exact) in found.iter().zip(exact) {
                assert_close(found.with_all / exact.with_all, 1.0, 1e-11);
                assert_close(found.within / exact.within, 1.0, 1e-11);
                assert_close(found.same / exact.same, 1.0, 1e-13);
            }
        }
        assert_eq!(integrated, 3);
        // Few draws, or one without noise, have no grid.
        assert!(Grid::of(&[0.0; 30], &[1.0; 30]).is_none());
        let mut variances = [1.0; 500];
        assert!(Grid::of(&[0.0; 500], &variances).is_some());
        variances[7] = 0.0;
        assert!(Grid::of(&[0.0; 500], &variances).is_none());
    }

    /// Draws of which some have noise and some have none.
    #[test]
    fn steps_and_gaussians_mix() {
        let (steps, _) = of(&[0.0, 1.0], &[0.0, 1e-12], 0.25);
        assert_close(steps, pairwise(&[0.0, 1.0], 0.25, false), 1e-6);
        let (mixed, _) = of(&[0.0, 1.0], &[0.0, 0.5], 0.25);
        let near = integral(&[0.0, 1.0], &[1e-10, 0.5], 0.25);
        assert_close(mixed, near, 1e-4);
    }

    #[test]
    fn the_fair_score_of_few_draws_is_that_of_many() {
        let (n, mut lcg) = (40_000, Lcg(8));
        let draws: Vec<f32> = (0..4 * n).map(|_| lcg.normal() as f32).collect();
        let mut ensemble = Crps::new();
        ensemble.add(&MixtureBatch::new(&draws, &[], &vec![0.5; n], 4, 1).unwrap());
        // A score's standard deviation is below 0.5, so the mean's standard error is below 0.0025.
        let (exact, _) = of(&[0.0], &[1.0], 0.5);
        assert_close(score(&ensemble, "crps_fair"), exact, 4.0 * 0.0025);
        // The other is larger by E|x − x'| (1/S) / 2 = 1/(S √π).
        let biased = exact + 0.25 / PI.sqrt();
        assert_close(score(&ensemble, "crps"), biased, 4.0 * 0.0025);
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(9).regression(100);
        assert_merges(100, Crps::new, |metric, rows| {
            let draws = [&mean[rows.clone()], &std[rows.clone()]].concat();
            metric.add(&MixtureBatch::new(&draws, &[], &target[rows], 2, 1).unwrap());
        });
    }
}
