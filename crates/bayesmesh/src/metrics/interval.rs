//! Calibration of intervals that are given by their ends.

use super::batch::{check_count, check_finite};
use super::coverage::{CoverageRow, check_levels, mean_absolute_gap, percent};
use super::{Metric, MetricError, Score, statistics_field};

/// Coverage of intervals `[lower, upper]` that are given rather than Gaussian, such as those of
/// [`quantile::central_intervals`](super::quantile::central_intervals).
///
/// For each level `interval_coverage_90` and the mean width `interval_mean_width_90`, and
/// `interval_mace`, the mean over the levels of |nominal − observed coverage|.
#[derive(Clone, Debug)]
pub struct IntervalCoverage {
    levels: Vec<f64>,
    /// Examples, then for each level the examples inside and the sum of the widths.
    statistics: Vec<f64>,
}

impl IntervalCoverage {
    /// Intervals at those nominal levels, strictly ascending in (0, 1).
    pub fn new(levels: &[f64]) -> Result<Self, MetricError> {
        check_levels(levels)?;
        let statistics = vec![0.0; 1 + 2 * levels.len()];
        Ok(Self { levels: levels.to_vec(), statistics })
    }

    /// Adds examples; changes nothing if they are invalid.
    ///
    /// # Shapes
    ///
    /// - `lower`, `upper`: `[levels, n]`, row-major
    /// - `target`: `[n]`
    pub fn add(&mut self, lower: &[f32], upper: &[f32], target: &[f32]) -> Result<(), MetricError> {
        let expected = self.levels.len() * target.len();
        check_count("lower ends", lower.len(), expected)?;
        check_count("upper ends", upper.len(), expected)?;
        check_finite("lower end", lower)?;
        check_finite("upper end", upper)?;
        check_finite("target", target)?;
        if let Some(index) = lower.iter().zip(upper).position(|(l, u)| l > u) {
            let (lower, upper) = (lower[index], upper[index]);
            return Err(MetricError::Interval { index, lower, upper });
        }
        self.statistics[0] += target.len() as f64;
        for (i, (lower, upper)) in lower.iter().zip(upper).enumerate() {
            let (level, y) = (i / target.len(), target[i % target.len()]);
            let inside = (*lower..=*upper).contains(&y);
            self.statistics[1 + 2 * level] += f64::from(u8::from(inside));
            self.statistics[2 + 2 * level] += f64::from(*upper) - f64::from(*lower);
        }
        Ok(())
    }

    /// The calibration curve: one row per level.
    pub fn curve(&self) -> Vec<CoverageRow> {
        let inside = self.statistics[1..].iter().step_by(2);
        let levels = self.levels.iter().zip(inside);
        levels
            .map(|(&nominal, n)| CoverageRow { nominal, observed: n / self.statistics[0] })
            .collect()
    }
}

impl Metric for IntervalCoverage {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let curve = self.curve();
        let mut scores = Vec::new();
        for (i, row) in curve.iter().enumerate() {
            let level = percent(row.nominal);
            let width = self.statistics[2 + 2 * i] / self.statistics[0];
            scores.push(Score::new(format!("interval_coverage_{level}"), row.observed));
            scores.push(Score::new(format!("interval_mean_width_{level}"), width));
        }
        scores.push(Score::new("interval_mace", mean_absolute_gap(&curve)));
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    #[test]
    fn hand_computed_intervals() {
        let mut intervals = IntervalCoverage::new(&[0.5, 0.9]).unwrap();
        let lower = [0.0, 0.0, -1.0, -1.0];
        let upper = [1.0, 2.0, 3.0, 4.0];
        intervals.add(&lower, &upper, &[1.0, 2.5]).unwrap();
        assert_eq!(score(&intervals, "interval_coverage_50"), 0.5);
        assert_eq!(score(&intervals, "interval_coverage_90"), 1.0);
        assert_eq!(score(&intervals, "interval_mean_width_50"), 1.5);
        assert_eq!(score(&intervals, "interval_mean_width_90"), 4.5);
        assert_close(score(&intervals, "interval_mace"), 0.05, 1e-15);
    }

    #[test]
    fn invalid_input_changes_nothing() {
        let mut intervals = IntervalCoverage::new(&[0.5]).unwrap();
        intervals.add(&[0.0], &[1.0], &[0.5]).unwrap();
        let before = intervals.statistics().to_vec();
        assert_eq!(
            intervals.add(&[0.0, 2.0], &[1.0, 1.0], &[0.5, 0.5]),
            Err(MetricError::Interval { index: 1, lower: 2.0, upper: 1.0 })
        );
        assert!(intervals.add(&[0.0], &[1.0], &[0.5, 0.5]).is_err());
        assert!(intervals.add(&[0.0], &[f32::NAN], &[0.5]).is_err());
        assert_eq!(intervals.statistics(), before);
        for levels in [&[][..], &[0.0], &[1.0], &[0.9, 0.5], &[f64::NAN]] {
            assert!(IntervalCoverage::new(levels).is_err());
        }
    }

    #[test]
    fn parts_merge() {
        let [mean, std, target] = Lcg(19).regression(100);
        let upper: Vec<f32> = mean.iter().zip(&std).map(|(m, s)| m + s).collect();
        assert_merges(
            100,
            || IntervalCoverage::new(&[0.4]).unwrap(),
            |metric, rows| {
                metric.add(&mean[rows.clone()], &upper[rows.clone()], &target[rows]).unwrap();
            },
        );
    }
}
