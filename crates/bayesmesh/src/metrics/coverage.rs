//! Calibration of intervals: do 90 % of the targets lie in the 90 % interval?

use super::{Metric, MetricError, RegressionBatch, RegressionMetric, Score, normal};

/// Nominal and observed coverage at one level.
#[derive(Clone, Debug, PartialEq)]
pub struct CoverageRow {
    /// Nominal level.
    pub nominal: f64,
    /// Share of the targets inside the interval; NaN if there are no examples.
    pub observed: f64,
}

/// Mean over rows of `|nominal − observed|`.
pub(super) fn mean_absolute_gap(rows: &[CoverageRow]) -> f64 {
    rows.iter().map(|row| (row.nominal - row.observed).abs()).sum::<f64>() / rows.len() as f64
}

/// A level as a part of a name: 0.9 is `90`, 0.975 is `97.5`.
pub(super) fn percent(level: f64) -> String {
    ((level * 1e6).round() / 1e4).to_string()
}

/// Levels are in (0, 1) and strictly ascending, and there is one.
pub(super) fn check_levels(levels: &[f64]) -> Result<(), MetricError> {
    let inside = levels.iter().all(|level| *level > 0.0 && *level < 1.0);
    if !levels.is_empty() && inside && levels.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let expected = "a strictly ascending list of numbers between 0 and 1";
    Err(MetricError::Setting { setting: "levels", expected, actual: format!("{levels:?}") })
}

/// Counts of the central Gaussian intervals, which are nested: an example in one is in all wider.
#[derive(Clone, Debug)]
struct CentralIntervals {
    levels: Vec<f64>,
    /// Half-widths in units of σ: `Φ⁻¹((1 + level) / 2)`.
    half_widths: Vec<f64>,
    /// Examples by the number of intervals that miss them, 0 to all.
    statistics: Vec<f64>,
}

impl CentralIntervals {
    fn new(levels: Vec<f64>) -> Self {
        let half_widths = levels.iter().map(|level| normal::quantile(0.5 + 0.5 * level)).collect();
        let statistics = vec![0.0; levels.len() + 1];
        Self { levels, half_widths, statistics }
    }

    fn add(&mut self, batch: &RegressionBatch) {
        for (error, std) in batch.errors() {
            let missed = self.half_widths.partition_point(|width| error.abs() > width * std);
            self.statistics[missed] += 1.0;
        }
    }

    fn rows(&self) -> Vec<CoverageRow> {
        let count: f64 = self.statistics.iter().sum();
        let mut inside = 0.0;
        let levels = self.levels.iter().zip(&self.statistics);
        levels
            .map(|(&nominal, new)| {
                inside += new;
                CoverageRow { nominal, observed: inside / count }
            })
            .collect()
    }
}

/// `coverage_50`, `coverage_80`, …: the share of the targets with
/// `|target − mean| ≤ Φ⁻¹((1 + level)/2) · std`, the central Gaussian interval of that level.
#[derive(Clone, Debug)]
pub struct Coverage {
    intervals: CentralIntervals,
}

impl Coverage {
    /// Levels 0.5, 0.8, 0.9 and 0.95.
    pub fn new() -> Self {
        Self { intervals: CentralIntervals::new(vec![0.5, 0.8, 0.9, 0.95]) }
    }

    /// Those levels, strictly ascending in (0, 1).
    pub fn at_levels(levels: &[f64]) -> Result<Self, MetricError> {
        check_levels(levels)?;
        Ok(Self { intervals: CentralIntervals::new(levels.to_vec()) })
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
        let rows = self.intervals.rows().into_iter();
        rows.map(|row| Score::new(format!("coverage_{}", percent(row.nominal)), row.observed))
            .collect()
    }
}

impl RegressionMetric for Coverage {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        self.intervals.add(batch);
    }
}

/// `mace`, the regression calibration error: the mean over a grid of nominal levels (0.05, 0.1, …,
/// 0.95) of |nominal − observed coverage| of the central Gaussian intervals.
#[derive(Clone, Debug)]
pub struct RegressionCalibration {
    intervals: CentralIntervals,
}

impl RegressionCalibration {
    /// Levels 0.05, 0.1, …, 0.95.
    pub fn new() -> Self {
        Self { intervals: CentralIntervals::new((1..20).map(|i| f64::from(i) / 20.0).collect()) }
    }

    /// Those levels, strictly ascending in (0, 1).
    pub fn at_levels(levels: &[f64]) -> Result<Self, MetricError> {
        check_levels(levels)?;
        Ok(Self { intervals: CentralIntervals::new(levels.to_vec()) })
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
        vec![Score::new("mace", mean_absolute_gap(&self.curve()))]
    }
}

impl RegressionMetric for RegressionCalibration {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        self.intervals.add(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    #[test]
    fn names_follow_the_level() {
        let names = [0.5, 0.8, 0.95, 0.975, 0.07, 0.29].map(percent);
        assert_eq!(names, ["50", "80", "95", "97.5", "7", "29"]);
    }

    #[test]
    fn hand_computed_coverage() {
        // z = 0, ±0.6, 1, −1.5, 1.7, 3 against half-widths .674, 1.282, 1.645, 1.960.
        let target = [0.0, 0.6, 1.0, -1.5, 1.7, 3.0];
        let mut coverage = Coverage::new();
        coverage.add(&[0.0; 6], &[1.0; 6], &target).unwrap();
        let values: Vec<f64> = coverage.scores().iter().map(|s| s.value).collect();
        assert_eq!(values, [2.0 / 6.0, 3.0 / 6.0, 4.0 / 6.0, 5.0 / 6.0]);
        let mut calibration = RegressionCalibration::at_levels(&[0.5, 0.8]).unwrap();
        calibration.add(&[0.0; 6], &[1.0; 6], &target).unwrap();
        assert_close(score(&calibration, "mace"), (1.0 / 6.0 + 0.3) / 2.0, 1e-15);
    }

    #[test]
    fn the_default_grid_is_that_of_twentieths() {
        let curve = RegressionCalibration::new().curve();
        assert_eq!(curve.len(), 19);
        for (row, i) in curve.iter().zip(1..) {
            assert_close(row.nominal, 0.05 * f64::from(i), 1e-15);
        }
    }

    #[test]
    fn a_certain_prediction_covers_only_itself() {
        let mut coverage = Coverage::new();
        coverage.add(&[1.0, 1.0], &[0.0, 0.0], &[1.0, 1.5]).unwrap();
        assert!(coverage.scores().iter().all(|s| s.value == 0.5));
    }

    #[test]
    fn calibrated_predictions_are_covered() {
        let n = 100_000;
        let [mean, std, target] = Lcg(5).regression(n);
        let (mut coverage, mut calibration) = (Coverage::new(), RegressionCalibration::new());
        coverage.add(&mean, &std, &target).unwrap();
        calibration.add(&mean, &std, &target).unwrap();
        for (score, level) in coverage.scores().iter().zip([0.5, 0.8, 0.9, 0.95f64]) {
            let sigma = (level * (1.0 - level) / n as f64).sqrt();
            assert_close(score.value, level, 4.0 * sigma);
        }
        // At no level is the standard error above ½/√n.
        assert!(score(&calibration, "mace") < 2.0 * 0.5 / (n as f64).sqrt());
        let narrow: Vec<f32> = std.iter().map(|s| 0.5 * s).collect();
        calibration.reset();
        calibration.add(&mean, &narrow, &target).unwrap();
        assert!(score(&calibration, "mace") > 0.15);
    }

    #[test]
    fn invalid_input_changes_nothing() {
        let mut coverage = Coverage::new();
        let mut calibration = RegressionCalibration::new();
        coverage.add(&[0.0], &[1.0], &[0.5]).unwrap();
        calibration.add(&[0.0], &[1.0], &[0.5]).unwrap();
        let before = (coverage.statistics().to_vec(), calibration.statistics().to_vec());
        assert!(coverage.add(&[0.0, 0.0], &[1.0, -1.0], &[0.5, 0.5]).is_err());
        assert!(calibration.add(&[0.0, 0.0], &[1.0, f32::NAN], &[0.5, 0.5]).is_err());
        let after = (coverage.statistics().to_vec(), calibration.statistics().to_vec());
        assert_eq!(before, after);

        for levels in [&[][..], &[0.0], &[1.0], &[0.9, 0.5], &[0.5, 0.5], &[f64::NAN]] {
            assert!(Coverage::at_levels(levels).is_err());
            assert!(RegressionCalibration::at_levels(levels).is_err());
        }
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(6).regression(100);
        assert_merges(100, Coverage::new, |metric, rows| {
            metric.add(&mean[rows.clone()], &std[rows.clone()], &target[rows]).unwrap();
        });
        assert_merges(100, RegressionCalibration::new, |metric, rows| {
            metric.add(&mean[rows.clone()], &std[rows.clone()], &target[rows]).unwrap();
        });
    }
}
