//! Bands of whole vectors, and sets of classes: do they hold what they say they do?

use super::row_mean::{Estimate, standard_error};
use super::{
    ClassificationBatch, ClassificationMetric, Coverage, Metric, MetricError, RegressionBatch,
    RegressionMetric, Score, percent, statistics_field,
};
use crate::calibrate::ClassCalibration;

/// `band_coverage_50`, `band_coverage_80`, …: the share of the examples that are in the band of
/// that level with **all** their outputs. No scores where predictions have no bands.
#[derive(Clone, Debug)]
pub struct BandCoverage {
    levels: Vec<f64>,
    /// Examples, then those inside at each level.
    statistics: Vec<f64>,
}

impl BandCoverage {
    /// At these levels.
    pub fn at_levels(levels: &[f64]) -> Self {
        Self { levels: levels.to_vec(), statistics: vec![0.0; 1 + levels.len()] }
    }
}

impl Default for BandCoverage {
    fn default() -> Self {
        Self::at_levels(&Coverage::LEVELS)
    }
}

impl Metric for BandCoverage {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let (count, inside) = self.statistics.split_first().expect("a count");
        let scores = self.levels.iter().zip(inside).map(|(level, inside)| {
            let estimate =
                Estimate { value: inside / count, error: standard_error(*count, *inside, *inside) };
            estimate.named(format!("band_coverage_{}", percent(*level)))
        });
        if *count > 0.0 { scores.collect() } else { Vec::new() }
    }
}

impl RegressionMetric for BandCoverage {
    fn add_batch(&mut self, batch: &RegressionBatch) {
        for level in batch.band_levels() {
            self.statistics[0] += 1.0;
            for (inside, wanted) in self.statistics[1..].iter_mut().zip(&self.levels) {
                *inside += f64::from(u8::from(*level <= *wanted + 1e-12));
            }
        }
    }
}

/// `set_coverage_90` and `set_size_90` for each level: how often the set of classes holds the right
/// one, and how many classes it has.
#[derive(Clone, Debug)]
pub struct SetCoverage {
    levels: Vec<f64>,
    sets: ClassCalibration,
    /// Examples, then for each level those inside, the sum of sizes and of their squares.
    statistics: Vec<f64>,
}

impl SetCoverage {
    /// Of sets at these levels.
    pub fn new(sets: &ClassCalibration, levels: &[f64]) -> Self {
        let statistics = vec![0.0; 1 + 3 * levels.len()];
        Self { levels: levels.to_vec(), sets: sets.clone(), statistics }
    }
}

impl Metric for SetCoverage {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let (&count, sums) = self.statistics.split_first().expect("a count");
        let levels = self.levels.iter().zip(sums.chunks_exact(3));
        let scores = levels.flat_map(|(level, sums)| {
            let level = percent(*level);
            let mean = |sum: f64, squares: f64| Estimate {
                value: sum / count,
                error: standard_error(count, sum, squares),
            };
            [
                mean(sums[0], sums[0]).named(format!("set_coverage_{level}")),
                mean(sums[1], sums[2]).named(format!("set_size_{level}")),
            ]
        });
        scores.collect()
    }
}

impl ClassificationMetric for SetCoverage {
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        for (index, (row, label)) in batch.rows().enumerate() {
            self.statistics[0] += 1.0;
            let scores = self.sets.scores(row, batch.number(index) as u64);
            let sums = self.statistics[1..].chunks_exact_mut(3);
            for (level, sums) in self.levels.iter().zip(sums) {
                let threshold = self.sets.threshold(*level).unwrap_or(f64::INFINITY);
                let size = scores.iter().filter(|score| **score <= threshold).count() as f64;
                sums[0] += f64::from(u8::from(scores[label] <= threshold));
                sums[1] += size;
                sums[2] += size * size;
            }
        }
        Ok(())
    }
}
