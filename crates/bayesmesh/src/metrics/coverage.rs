//! Calibration of intervals: do 90 % of the targets lie in the 90 % interval?

use super::row_mean::{Estimate, standard_error};
use super::{Metric, MetricError, RegressionBatch, RegressionMetric, Score};

/// Nominal and observed coverage at one level.
#[derive(Clone, Debug, PartialEq)]
pub struct CoverageRow {
    /// Nominal level.
    pub nominal: f64,
    /// Share of the targets inside the interval; NaN if there are no examples.
    pub observed: f64,
}

/// Mean over rows of `|nominal − observed|`.
fn mean_absolute_gap(rows: &[CoverageRow]) -> f64 {
    rows.iter().map(|row| (row.nominal - row.observed).abs()).sum::<f64>() / rows.len() as f64
}

/// A level as a part of a name, exactly: 0.9 is `90`, 0.975 is `97.5`, 0.9999 is `99.99`. The
/// decimal point of the shortest text of the level moves by two places.
pub fn percent(level: f64) -> String {
    let text = level.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let decimals = format!("{decimals:0<2}");
    let (first, rest) = decimals.split_at(2);
    let digits = format!("{whole}{first}");
    let whole = match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    if rest.is_empty() { whole.to_owned() } else { format!("{whole}.{rest}") }
}

/// Levels in ascending order, each once; fails unless all are in (0, 1) and there is one.
pub(super) fn sorted_levels(levels: &[f64]) -> Result<Vec<f64>, MetricError> {
    let mut levels = levels.to_vec();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    check_levels(&levels)?;
    Ok(levels)
}

/// Levels are in (0, 1) and strictly ascending, and there is one.
fn check_levels(levels: &[f64]) -> Result<(), MetricError> {
    let inside = levels.iter().all(|level| *level > 0.0 && *level < 1.0);
    if !levels.is_empty() && inside && levels.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let expected = "a strictly ascending list of numbers between 0 and 1";
    Err(MetricError::Setting { setting: "levels", expected, actual: format!("{levels:?}") })
}

/// How far the distribution function at the truth may lie beyond the end of an interval by
/// rounding.
const SLACK: f64 = 1e-12;

/// Counts of the central intervals of a mixture, which are nested: a truth in one is in all wider.
///
/// The truth y is in the central interval of level L if `F(y)` is within `(1 ± L)/2`.
#[derive(Clone, Debug)]
struct CentralIntervals {
    levels: Vec<f64>,
    /// Rows, cells, then for each level l the sum over rows of the count `c_l` of cells inside,
    /// then the sums of the products `c_l c_m` of all pairs `l ≤ m`, from which come standard
    /// errors.
    statistics: Vec<f64>,
}

impl CentralIntervals {
    fn new(levels: Vec<f64>) -> Self {
        let count = levels.len();
        Self { levels, statistics: vec![0.0; 2 + count + count * (count + 1) / 2] }
    }

    fn add(&mut self, batch: &RegressionBatch) {
        let mut inside = vec![0.0; self.levels.len()];
        for row in batch.rows() {
            inside.fill(0.0);
            for cell in row {
                let level = 2.0 * (cell.central - 0.5).abs() - SLACK;
                let first = self.levels.partition_point(|width| *width < level);
                inside.iter_mut().skip(first).take(1).for_each(|count| *count += 1.0);
            }
            // Whatever is inside an interval is inside the wider ones.
            for level in 1..inside.len() {
                inside[level] += inside[level - 1];
            }
            self.statistics[0] += 1.0;
            self.statistics[1] += row.len() as f64;
            let (sums, products) = self.statistics[2..].split_at_mut(inside.len());
            sums.iter_mut().zip(&inside).for_each(|(sum, count)| *sum += count);
            let mut products = products.iter_mut();
            for (l, a) in inside.iter().enumerate() {
                inside[l..].iter().zip(&mut products).for_each(|(b, sum)| *sum += a * b);
            }
        }
    }

    /// The sum over rows of `c_l`.
    fn sum(&self, level: usize) -> f64 {
        self.statistics[2 + level]
    }

    /// The sum over rows of `c_l c_m`.
    fn product(&self, l: usize, m: usize) -> f64 {
        let (l, m, count) = (l.min(m), l.max(m), self.levels.len());
        // Before row l of the upper triangle are those of count, count − 1, … elements.
        let before = l * count - l * l.saturating_sub(1) / 2;
        self.statistics[2 + count + before + m - l]
    }

    fn rows(&self) -> Vec<CoverageRow> {
        let cells = self.statistics[1];
        let levels = self.levels.iter().enumerate();
        levels
            .map(|(level, &nominal)| CoverageRow { nominal, observed: self.sum(level) / cells })
            .collect()
    }

    /// A sum over levels of weights times observed coverages. For each row it is one number, a
    /// weighted sum of its counts; its mean square is a sum over pairs of levels.
    fn weighted(&self, weights: &[f64]) -> Estimate {
        let [rows, cells] = [self.statistics[0], self.statistics[1]];
        let levels = || weights.iter().enumerate();
        let sum: f64 = levels().map(|(level, weight)| weight * self.sum(level)).sum();
        let squares =
            levels().map(|(l, a)| levels().map(|(m, b)| a * b * self.product(l, m)).sum::<f64>());
        let error = standard_error(rows, sum, squares.sum()) * rows / cells;
        Estimate { value: sum / cells, error }
    }
}

/// `coverage_50`, `coverage_80`, …: the share of the truth in the central interval of the mixture
/// at that level, `(1 − L)/2 ≤ F(y) ≤ (1 + L)/2`.
#[derive(Clone, Debug)]
pub struct Coverage {
    intervals: CentralIntervals,
}

impl Coverage {
    /// The levels of [`new`](Self::new).
    pub const LEVELS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];

    /// Levels 0.5, 0.8, 0.9 and 0.95.
    pub fn new() -> Self {
        Self { intervals: CentralIntervals::new(Self::LEVELS.to_vec()) }
    }

    /// Those levels, each in (0, 1); in any order, and one that is named twice counts once.
    pub fn at_levels(levels: &[f64]) -> Result<Self, MetricError> {
        Ok(Self { intervals: CentralIntervals::new(sorted_levels(levels)?) })
    }

    /// Nominal and observed coverage at each level, ascending.
    pub fn rows(&self) -> Vec<CoverageRow> {
        self.intervals.rows()
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for Coverage {
    fn statistics(&self) -> &[f64] {
        &self.intervals.statistics
    }

    fn statistics_mut(&mut self) -> &mut [f64] {
        &mut self.intervals.statistics
    }

    fn scores(&self) -> Vec<Score> {
        let levels = &self.intervals.levels;
        let score = |(index, level): (usize, &f64)| {
            let weights: Vec<f64> =
                (0..levels.len()).map(|l| f64::from(u8::from(l == index))).collect();
            self.intervals.weighted(&weights).named(format!("coverage_{}", percent(*level)))
        };
        levels.iter().enumerate().map(score).collect()
    }
}

impl RegressionMetric for Coverage {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        self.intervals.add(batch);
    }
}

/// `mace`, the regression calibration error: the mean over a grid of nominal levels (0.05, 0.1, …,
/// 0.95) of |nominal − observed coverage| of the central intervals of the mixture.
///
/// Its standard error over examples takes the signs of the differences as given, so it is too small
/// where they are no larger than chance.
#[derive(Clone, Debug)]
pub struct RegressionCalibration {
    intervals: CentralIntervals,
}

impl RegressionCalibration {
    /// Levels 0.05, 0.1, …, 0.95.
    pub fn new() -> Self {
        Self { intervals: CentralIntervals::new((1..20).map(|i| f64::from(i) / 20.0).collect()) }
    }

    /// Those levels, each in (0, 1).
    pub fn at_levels(levels: &[f64]) -> Result<Self, MetricError> {
        Ok(Self { intervals: CentralIntervals::new(sorted_levels(levels)?) })
    }

    /// The calibration curve: one row per level.
    pub fn curve(&self) -> Vec<CoverageRow> {
        self.intervals.rows()
    }
}

impl Default for RegressionCalibration {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for RegressionCalibration {
    fn statistics(&self) -> &[f64] {
        &self.intervals.statistics
    }

    fn statistics_mut(&mut self) -> &mut [f64] {
        &mut self.intervals.statistics
    }

    fn scores(&self) -> Vec<Score> {
        let curve = self.curve();
        let share = 1.0 / curve.len() as f64;
        let signs = curve.iter().map(|row| share * (row.observed - row.nominal).signum());
        let error = self.intervals.weighted(&signs.collect::<Vec<f64>>()).error;
        vec![Estimate { value: mean_absolute_gap(&curve), error }.named("mace")]
    }
}

impl RegressionMetric for RegressionCalibration {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        self.intervals.add(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::super::MixtureBatch;
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    /// One draw with noise: the mixture is a Gaussian.
    fn gaussians<M: RegressionMetric>(metric: &mut M, mean: &[f32], std: &[f32], target: &[f32]) {
        let noise: Vec<f32> = std.iter().map(|std| std * std).collect();
        metric.add(&MixtureBatch::new(mean, &noise, target, 1, 1).unwrap());
    }

    #[test]
    fn names_follow_the_level() {
        let names = [0.5, 0.8, 0.95, 0.975, 0.07, 0.29, 0.995, 0.999, 0.9999, 0.001].map(percent);
        let expected = ["50", "80", "95", "97.5", "7", "29", "99.5", "99.9", "99.99", "0.1"];
        assert_eq!(names, expected);
        let coverage = Coverage::at_levels(&[0.999, 0.995, 0.999]).unwrap();
        let names: Vec<String> = coverage.scores().into_iter().map(|score| score.name).collect();
        assert_eq!(names, ["coverage_99.5", "coverage_99.9"]);
    }

    #[test]
    fn hand_computed_coverage() {
        // z = 0, ±0.6, 1, −1.5, 1.7, 3 against half-widths .674, 1.282, 1.645, 1.960.
        let target = [0.0, 0.6, 1.0, -1.5, 1.7, 3.0];
        let mut coverage = Coverage::new();
        gaussians(&mut coverage, &[0.0; 6], &[1.0; 6], &target);
        let values: Vec<f64> = coverage.scores().iter().map(|s| s.value).collect();
        assert_eq!(values, [2.0 / 6.0, 3.0 / 6.0, 4.0 / 6.0, 5.0 / 6.0]);
        let mut calibration = RegressionCalibration::at_levels(&[0.5, 0.8]).unwrap();
        gaussians(&mut calibration, &[0.0; 6], &[1.0; 6], &target);
        assert_close(score(&calibration, "mace"), (1.0 / 6.0 + 0.3) / 2.0, 1e-15);
        // Of six rows, p are inside: √(p (1 − p) / 5).
        let errors: Vec<f64> = coverage.scores().iter().map(|s| s.se_examples).collect();
        for (error, p) in errors.iter().zip(values) {
            assert_close(*error, (p * (1.0 - p) / 5.0).sqrt(), 1e-15);
        }
        // Rows have 2, 2, 1, 0, 0, 0 halves; their deviation over √6.
        let halves = [1.0, 1.0, 0.5, 0.0, 0.0, 0.0];
        let mean = 2.5 / 6.0;
        let variance = halves.iter().map(|h: &f64| (h - mean).powi(2)).sum::<f64>() / 5.0;
        assert_close(calibration.scores()[0].se_examples, (variance / 6.0).sqrt(), 1e-15);
    }

    /// Levels are counted as they are, not as bins: 0.995 and 0.999 are told apart.
    #[test]
    fn levels_are_exact() {
        let mut coverage = Coverage::at_levels(&[0.995, 0.999]).unwrap();
        // Two-sided p-values of 2.8 and 2.81 are 0.00511 and 0.00495; of 3.28 and 3.3, 0.00104 and
        // 0.00097.
        gaussians(&mut coverage, &[0.0; 4], &[1.0; 4], &[2.8, -2.81, 3.28, -3.3]);
        assert_eq!(score(&coverage, "coverage_99.5"), 0.25);
        assert_eq!(score(&coverage, "coverage_99.9"), 0.75);
    }

    #[test]
    fn the_default_grid_is_that_of_twentieths() {
        let curve = RegressionCalibration::new().curve();
        assert_eq!(curve.len(), 19);
        for (row, i) in curve.iter().zip(1..) {
            assert_close(row.nominal, 0.05 * f64::from(i), 1e-15);
        }
    }

    /// Steps: the interval from the smallest to the largest of 20 draws has a level of 0.9, its
    /// ends included.
    #[test]
    fn intervals_of_draws_have_their_ends() {
        let draws: Vec<f32> = (0..20).flat_map(|i| [i as f32; 5]).collect();
        let mut coverage = Coverage::at_levels(&[0.9]).unwrap();
        // Below all, between the first two, between the last two, above all, on the middle.
        let truth = [-1.0, 0.5, 18.5, 20.0, 10.0];
        coverage.add(&MixtureBatch::new(&draws, &[], &truth, 20, 1).unwrap());
        assert_eq!(score(&coverage, "coverage_90"), 0.6);
    }

    #[test]
    fn a_certain_prediction_covers_only_itself() {
        let mut coverage = Coverage::new();
        gaussians(&mut coverage, &[1.0, 1.0], &[0.0, 0.0], &[1.0, 1.5]);
        assert!(coverage.scores().iter().all(|s| s.value == 0.5));
    }

    #[test]
    fn calibrated_predictions_are_covered() {
        let n = 100_000;
        let [mean, std, target] = Lcg(5).regression(n);
        let (mut coverage, mut calibration) = (Coverage::new(), RegressionCalibration::new());
        gaussians(&mut coverage, &mean, &std, &target);
        gaussians(&mut calibration, &mean, &std, &target);
        for (score, level) in coverage.scores().iter().zip(Coverage::LEVELS) {
            let sigma = (level * (1.0 - level) / n as f64).sqrt();
            assert_close(score.value, level, 4.0 * sigma);
            assert_close(score.se_examples / sigma, 1.0, 0.02);
        }
        // At no level is the standard error above ½/√n.
        assert!(score(&calibration, "mace") < 2.0 * 0.5 / (n as f64).sqrt());
        let narrow: Vec<f32> = std.iter().map(|s| 0.5 * s).collect();
        calibration.reset();
        gaussians(&mut calibration, &mean, &narrow, &target);
        assert!(score(&calibration, "mace") > 0.15);
    }

    #[test]
    fn impossible_levels_are_refused() {
        for levels in [&[][..], &[0.0], &[1.0], &[0.9, 1.5], &[0.5, f64::NAN]] {
            assert!(Coverage::at_levels(levels).is_err());
            assert!(RegressionCalibration::at_levels(levels).is_err());
        }
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(6).regression(100);
        assert_merges(100, Coverage::new, |metric, rows| {
            gaussians(metric, &mean[rows.clone()], &std[rows.clone()], &target[rows]);
        });
        assert_merges(100, RegressionCalibration::new, |metric, rows| {
            gaussians(metric, &mean[rows.clone()], &std[rows.clone()], &target[rows]);
        });
    }
}
