//! Calibration of probabilities: of the examples predicted with 80 %, are 80 % right?

use super::classification::top_class;
use super::row_mean::{Estimate, standard_error};
use super::{
    ClassificationBatch, ClassificationMetric, Metric, MetricError, Score, statistics_field,
};

/// Bins in `[0, 1]` unless told otherwise.
const DEFAULT_BINS: usize = 15;

/// Statistics per bin: examples, Σ probability, Σ hits, Σ (probability − hit)².
const PER_BIN: usize = 4;

/// Equal-width bins `(i/b, (i+1)/b]` of `[0, 1]`; 0 belongs to the first.
///
/// Edges are rounded to `f32`, the precision of the probabilities, so that 0.2 is on the edge 1/5
/// and not beside it.
#[derive(Clone, Debug)]
struct Bins {
    upper: Vec<f32>,
}

impl Bins {
    fn new(bins: usize) -> Self {
        let upper = (1..=bins).map(|i| (i as f64 / bins as f64) as f32).collect();
        Self { upper }
    }

    fn checked(bins: usize) -> Result<Self, MetricError> {
        if bins == 0 {
            let actual = bins.to_string();
            return Err(MetricError::Setting { setting: "bins", expected: "at least 1", actual });
        }
        Ok(Self::new(bins))
    }

    fn len(&self) -> usize {
        self.upper.len()
    }

    /// Adds one example to statistics `[bins, 4]`.
    fn add(&self, statistics: &mut [f64], probability: f32, hit: bool) {
        let p = probability.clamp(0.0, 1.0);
        let bin = self.upper.partition_point(|edge| *edge < p);
        let (p, hit) = (f64::from(p), f64::from(u8::from(hit)));
        let terms = [1.0, p, hit, (p - hit).powi(2)];
        let bin = &mut statistics[PER_BIN * bin..][..PER_BIN];
        bin.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
}

/// `Σ_b (n_b / n) · |hits_b/n_b − p̄_b|` of statistics `[bins, 4]`.
fn weighted_error(statistics: &[f64]) -> f64 {
    let (mut count, mut sum) = (0.0, 0.0);
    for bin in statistics.chunks_exact(PER_BIN) {
        count += bin[0];
        sum += (bin[1] - bin[2]).abs();
    }
    sum / count
}

/// One bin of a reliability diagram.
#[derive(Clone, Debug, PartialEq)]
pub struct ReliabilityRow {
    /// Lower edge, outside the bin (0 is inside the first).
    pub lower: f64,
    /// Upper edge, inside the bin.
    pub upper: f64,
    /// Number of examples.
    pub count: f64,
    /// Mean confidence of the examples; NaN if there are none.
    pub confidence: f64,
    /// Share of them that are right; NaN if there are none.
    pub accuracy: f64,
}

/// Calibration of the top class, in equal-width right-closed bins of its probability (the
/// confidence); 15 bins by default.
///
/// With `n_b` examples, mean confidence `c_b` and accuracy `a_b` in bin b:
///
/// - `ece`, the expected calibration error: `Σ_b (n_b / n) · |a_b − c_b|`
/// - `unweighted_calibration_error`: the mean of `|a_b − c_b|` over the bins that are not empty
/// - `maximum_calibration_error`: the largest `|a_b − c_b|`
///
/// Their standard errors over examples take as given on which side of the confidence the accuracy
/// of a bin is, and which bin is the largest. Then the `ece` is a mean of `±(p − hit)`, and the
/// others are made of such means within bins. Where gaps are no larger than chance they are too
/// small.
#[derive(Clone, Debug)]
pub struct CalibrationBins {
    bins: Bins,
    statistics: Vec<f64>,
}

impl CalibrationBins {
    /// 15 bins, no examples yet.
    pub fn new() -> Self {
        Self::of(Bins::new(DEFAULT_BINS))
    }

    /// That many bins, at least one.
    pub fn with_bins(bins: usize) -> Result<Self, MetricError> {
        Ok(Self::of(Bins::checked(bins)?))
    }

    fn of(bins: Bins) -> Self {
        let statistics = vec![0.0; PER_BIN * bins.len()];
        Self { bins, statistics }
    }

    /// The reliability diagram: one row per bin, empty ones included.
    pub fn reliability(&self) -> Vec<ReliabilityRow> {
        let bins = self.bins.len() as f64;
        let rows = self.statistics.chunks_exact(PER_BIN).enumerate();
        rows.map(|(i, bin)| ReliabilityRow {
            lower: i as f64 / bins,
            upper: (i + 1) as f64 / bins,
            count: bin[0],
            confidence: bin[1] / bin[0],
            accuracy: bin[2] / bin[0],
        })
        .collect()
    }
}

impl Default for CalibrationBins {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for CalibrationBins {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let bins = || self.statistics.chunks_exact(PER_BIN).filter(|bin| bin[0] > 0.0);
        let sum = |column: usize| bins().map(|bin| bin[column]).sum::<f64>();
        let value = weighted_error(&self.statistics);
        let ece = Estimate { value, error: standard_error(sum(0), value * sum(0), sum(3)) };
        let gaps: Vec<Estimate> = bins()
            .map(|bin| {
                let gap = bin[1] - bin[2];
                let error = standard_error(bin[0], gap, bin[3]);
                Estimate { value: gap.abs() / bin[0], error }
            })
            .collect();
        let filled = gaps.len() as f64;
        let unweighted = Estimate {
            value: gaps.iter().map(|gap| gap.value).sum::<f64>() / filled,
            error: gaps.iter().map(|gap| gap.error.powi(2)).sum::<f64>().sqrt() / filled,
        };
        let none = Estimate { value: f64::NAN, error: f64::NAN };
        let larger = |a: Estimate, b: &Estimate| if a.value >= b.value { a } else { *b };
        vec![
            ece.named("ece"),
            unweighted.named("unweighted_calibration_error"),
            gaps.iter().fold(none, larger).named("maximum_calibration_error"),
        ]
    }
}

impl ClassificationMetric for CalibrationBins {
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        for (row, label) in batch.rows() {
            let top = top_class(row);
            self.bins.add(&mut self.statistics, row[top], top == label);
        }
        Ok(())
    }
}

/// `classwise_calibration_error`: the mean over classes c of the expected calibration error of
/// `p_c` as the probability of "the label is c", every example counting in every class. Bins as in
/// [`CalibrationBins`]. The classes of an example depend on each other, so there is no standard
/// error over examples.
#[derive(Clone, Debug)]
pub struct ClasswiseCalibration {
    classes: usize,
    bins: Bins,
    /// `[classes, bins, 4]`
    statistics: Vec<f64>,
}

impl ClasswiseCalibration {
    /// 15 bins for each class.
    pub fn new(classes: usize) -> Self {
        Self::of(classes, Bins::new(DEFAULT_BINS))
    }

    /// That many bins for each class, at least one.
    pub fn with_bins(classes: usize, bins: usize) -> Result<Self, MetricError> {
        Ok(Self::of(classes, Bins::checked(bins)?))
    }

    fn of(classes: usize, bins: Bins) -> Self {
        let statistics = vec![0.0; classes * PER_BIN * bins.len()];
        Self { classes, bins, statistics }
    }
}

impl Metric for ClasswiseCalibration {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let per_class = self.statistics.chunks_exact(PER_BIN * self.bins.len());
        let sum: f64 = per_class.map(weighted_error).sum();
        vec![Score::new("classwise_calibration_error", sum / self.classes as f64)]
    }
}

impl ClassificationMetric for ClasswiseCalibration {
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        batch.expect_classes(self.classes)?;
        let per_class = PER_BIN * self.bins.len();
        for (row, label) in batch.rows() {
            let statistics = self.statistics.chunks_exact_mut(per_class);
            for (class, (&p, own)) in row.iter().zip(statistics).enumerate() {
                self.bins.add(own, p, class == label);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    #[test]
    fn hand_computed_bins() {
        let mut calibration = CalibrationBins::with_bins(4).unwrap();
        // Confidences 0.5 (wrong), 0.625 (right), 0.75 (right), 1 (right).
        let p = [0.5, 0.5, 0.375, 0.625, 0.75, 0.25, 0.0, 1.0];
        calibration.add(&p, &[1, 1, 0, 1]).unwrap();
        // Bins: (.25,.5] one, gap .5; (.5,.75] two, gap .3125; (.75,1] one, gap 0.
        assert_close(score(&calibration, "ece"), (0.5 + 2.0 * 0.3125) / 4.0, 1e-15);
        let unweighted = score(&calibration, "unweighted_calibration_error");
        assert_close(unweighted, (0.5 + 0.3125) / 3.0, 1e-15);
        assert_eq!(score(&calibration, "maximum_calibration_error"), 0.5);
        let rows = calibration.reliability();
        assert_eq!((rows.len(), rows[0].count), (4, 0.0));
        assert!(rows[0].confidence.is_nan() && rows[0].accuracy.is_nan());
        let expected = ReliabilityRow {
            lower: 0.5,
            upper: 0.75,
            count: 2.0,
            confidence: 0.6875,
            accuracy: 1.0,
        };
        assert_eq!(rows[2], expected);
    }

    /// With all gaps on one side, the error is that of the mean of `p − hit`.
    #[test]
    fn standard_errors_are_those_of_means() {
        let mut calibration = CalibrationBins::with_bins(2).unwrap();
        let confidences = [0.75f32, 0.875, 1.0, 0.625];
        let p: Vec<f32> = confidences.iter().flat_map(|p| [*p, 1.0 - p]).collect();
        calibration.add(&p, &[1, 0, 0, 1]).unwrap();
        // p − hit: 0.75, −0.125, 0, 0.625, all in one bin.
        let terms = [0.75, -0.125, 0.0, 0.625f64];
        let mean = terms.iter().sum::<f64>() / 4.0;
        let variance = terms.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / 3.0;
        for score in calibration.scores() {
            assert_close(score.value, mean, 1e-15);
            assert_close(score.se_examples, (variance / 4.0).sqrt(), 1e-15);
        }
    }

    #[test]
    fn the_default_is_fifteen_bins() {
        assert_eq!(CalibrationBins::new().reliability().len(), 15);
        assert_eq!(ClasswiseCalibration::new(2).statistics().len(), 2 * 15 * PER_BIN);
    }

    #[test]
    fn every_edge_belongs_to_the_bin_below_it() {
        for bins in [1, 3, 5, 10, 15] {
            let edges = Bins::new(bins);
            for i in 0..=bins {
                let mut statistics = vec![0.0; PER_BIN * bins];
                edges.add(&mut statistics, i as f32 / bins as f32, true);
                let bin = statistics.chunks(PER_BIN).position(|b| b[0] == 1.0);
                assert_eq!(bin, Some(i.saturating_sub(1)), "edge {i} of {bins}");
            }
        }
    }

    #[test]
    fn hand_computed_classes() {
        let mut classwise = ClasswiseCalibration::with_bins(2, 2).unwrap();
        classwise.add(&[0.75, 0.25, 1.0, 0.0], &[0, 1]).unwrap();
        // Class 0: both in (.5, 1], mean .875 against .5; class 1: in [0, .5], .125 against .5.
        assert_close(score(&classwise, "classwise_calibration_error"), 0.375, 1e-15);
    }

    #[test]
    fn invalid_batches_change_nothing() {
        fn check<M: ClassificationMetric>(mut metric: M) {
            metric.add(&[0.75, 0.25], &[1]).unwrap();
            let before = metric.statistics().to_vec();
            assert!(metric.add(&[0.5, 0.5, 0.5, 1.5], &[0, 1]).is_err());
            assert!(metric.add(&[0.5, 0.5, 0.5, 0.5], &[0, 7]).is_err());
            assert_eq!(metric.statistics(), before);
        }
        check(CalibrationBins::new());
        check(ClasswiseCalibration::new(2));
        assert_eq!(
            ClasswiseCalibration::new(3).add(&[0.5, 0.5], &[0]),
            Err(MetricError::Count { what: "classes", expected: 3, actual: 2 })
        );
        assert!(CalibrationBins::with_bins(0).is_err());
        assert!(ClasswiseCalibration::with_bins(3, 0).is_err());
        let mut coarse = CalibrationBins::with_bins(4).unwrap();
        assert!(coarse.merge(&CalibrationBins::new()).is_err());
    }

    #[test]
    fn calibrated_predictions_have_a_vanishing_error() {
        let n = 200_000;
        let (p, y) = Lcg(2).classification(n, 4);
        let mut calibration = CalibrationBins::new();
        let mut classwise = ClasswiseCalibration::new(4);
        calibration.add(&p, &y).unwrap();
        classwise.add(&p, &y).unwrap();
        // E|gap_b| ≤ ½/√n_b, and Σ (n_b/n)·½/√n_b ≤ ½·√(bins/n) = 0.0043; no gap above 5 sigma.
        let bound = 0.5 * (15.0 / n as f64).sqrt();
        assert!(score(&calibration, "ece") < bound);
        assert!(score(&classwise, "classwise_calibration_error") < bound);
        for row in calibration.reliability().iter().filter(|row| row.count > 0.0) {
            let sigma = 0.5 / row.count.sqrt();
            assert_close(row.accuracy, row.confidence, 5.0 * sigma);
        }
        // The same predictions against shifted labels are badly wrong.
        let shifted: Vec<usize> = y.iter().map(|label| (label + 1) % 4).collect();
        calibration.reset();
        calibration.add(&p, &shifted).unwrap();
        assert!(score(&calibration, "ece") > 0.3);
    }

    #[test]
    fn parts_merge() {
        let (p, y) = Lcg(3).classification(300, 3);
        assert_merges(300, CalibrationBins::new, |metric, rows| {
            metric.add(&p[3 * rows.start..3 * rows.end], &y[rows]).unwrap();
        });
        assert_merges(
            300,
            || ClasswiseCalibration::new(3),
            |metric, rows| {
                metric.add(&p[3 * rows.start..3 * rows.end], &y[rows]).unwrap();
            },
        );
    }
}
