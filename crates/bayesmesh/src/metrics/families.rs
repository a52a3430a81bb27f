//! The metrics of a family together, as an evaluation loop uses them.

use super::batch::check_count;
use super::{
    Accuracy, BandCoverage, Brier, ByOutput, CalibrationBins, ClassificationBatch,
    ClassificationMetric, ClasswiseCalibration, Coverage, Crps, EntropyByOutcome, Metric,
    MetricError, MetricSet, MixtureBatch, MixtureNll, Nll, PitHistogram, PointError, RankHistogram,
    RegressionBatch, RegressionCalibration, RegressionMetric, SetCoverage, Sharpness, SpreadSkill,
    Strata,
};
use crate::calibrate::{ClassCalibration, MOST_OUTPUTS};

/// All metrics of class predictions.
#[derive(Clone, Debug)]
pub struct ClassificationScores {
    classes: usize,
    /// Share of right predictions.
    pub accuracy: Accuracy,
    /// Negative log-likelihood.
    pub nll: Nll,
    /// Brier score.
    pub brier: Brier,
    /// Calibration of the top class, with the reliability diagram.
    pub calibration: CalibrationBins,
    /// Calibration of every class.
    pub classwise: ClasswiseCalibration,
    /// Entropy of right and of wrong predictions.
    pub entropy: EntropyByOutcome,
    /// Coverage and size of sets, where predictions are calibrated.
    pub sets: Option<SetCoverage>,
}

impl ClassificationScores {
    /// For that many classes; no examples yet.
    pub fn new(classes: usize) -> Self {
        Self {
            classes,
            accuracy: Accuracy::new(),
            nll: Nll::new(),
            brier: Brier::new(),
            calibration: CalibrationBins::new(),
            classwise: ClasswiseCalibration::new(classes),
            entropy: EntropyByOutcome::new(),
            sets: None,
        }
    }

    /// With sets of classes at these levels.
    #[must_use]
    pub fn with_sets(self, sets: &ClassCalibration, levels: &[f64]) -> Self {
        Self { sets: Some(SetCoverage::new(sets, levels)), ..self }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Adds examples to every metric; changes none if they are invalid.
    ///
    /// # Shapes
    ///
    /// - `probabilities`: `[rows, classes]`, row-major, the mean over all draws
    /// - `labels`: `[rows]`
    pub fn add(&mut self, probabilities: &[f32], labels: &[usize]) -> Result<(), MetricError> {
        self.add_batch(&ClassificationBatch::new(probabilities, labels)?)
    }

    /// Adds a checked batch to every metric; changes none if it has other classes.
    pub fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        self.expect_classes(batch)?;
        self.accuracy.add_batch(batch)?;
        self.nll.add_batch(batch)?;
        self.brier.add_batch(batch)?;
        self.calibration.add_batch(batch)?;
        self.classwise.add_batch(batch)?;
        self.entropy.add_batch(batch)?;
        self.sets.as_mut().map_or(Ok(()), |sets| sets.add_batch(batch))
    }

    pub(super) fn expect_classes(&self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        batch.expect_classes(self.classes)
    }
}

impl MetricSet for ClassificationScores {
    fn metrics(&self) -> Vec<&dyn Metric> {
        let mut metrics: Vec<&dyn Metric> = vec![
            &self.accuracy,
            &self.nll,
            &self.brier,
            &self.calibration,
            &self.classwise,
            &self.entropy,
        ];
        metrics.extend(self.sets.as_ref().map(|sets| sets as &dyn Metric));
        metrics
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        let mut metrics: Vec<&mut dyn Metric> = vec![
            &mut self.accuracy,
            &mut self.nll,
            &mut self.brier,
            &mut self.calibration,
            &mut self.classwise,
            &mut self.entropy,
        ];
        metrics.extend(self.sets.as_mut().map(|sets| sets as &mut dyn Metric));
        metrics
    }
}

/// All metrics of predictions of numbers.
#[derive(Clone, Debug)]
pub struct RegressionScores {
    outputs: usize,
    /// Errors of the mean.
    pub error: PointError,
    /// Negative log-density.
    pub nll: MixtureNll,
    /// Continuous ranked probability score.
    pub crps: Crps,
    /// Coverage of central intervals.
    pub coverage: Coverage,
    /// Regression calibration error, with the calibration curve.
    pub calibration: RegressionCalibration,
    /// Width of the predictions.
    pub sharpness: Sharpness,
    /// Histogram of the probability integral transform.
    pub pit: PitHistogram,
    /// Spread against error, with the spread–skill curve.
    pub spread_skill: SpreadSkill,
    /// Histogram of the ranks among the draws, where these have no noise.
    pub ranks: RankHistogram,
    /// Error and width of each output.
    pub by_output: ByOutput,
    /// Coverage of whole vectors, where predictions have bands.
    pub bands: BandCoverage,
    /// Coverage of each output; empty where there are very many.
    pub coverage_by_output: Strata,
    /// Coverage of predictions from narrow to wide, as they were before calibration.
    pub coverage_by_spread: Strata,
    /// Coverage of groups of examples.
    pub coverage_by_group: Strata,
    /// Deviations at which predictions become wide.
    spreads: Vec<f64>,
}

impl RegressionScores {
    /// For examples of so many outputs, predicted with so many draws.
    pub fn new(outputs: usize, draws: usize) -> Self {
        Self {
            outputs,
            error: PointError::new(),
            nll: MixtureNll::new(),
            crps: Crps::new(),
            coverage: Coverage::new(),
            calibration: RegressionCalibration::new(),
            sharpness: Sharpness::new(),
            pit: PitHistogram::new(),
            spread_skill: SpreadSkill::new(),
            ranks: RankHistogram::new(draws),
            by_output: ByOutput::new(outputs),
            bands: BandCoverage::default(),
            coverage_by_output: Strata::new(Self::strata(outputs), &Coverage::LEVELS),
            coverage_by_spread: Strata::new(0, &Coverage::LEVELS),
            coverage_by_group: Strata::new(0, &Coverage::LEVELS),
            spreads: Vec::new(),
        }
    }

    /// Outputs whose coverage is counted one by one: all, unless they are very many.
    fn strata(outputs: usize) -> usize {
        if outputs > MOST_OUTPUTS { 0 } else { outputs }
    }

    /// With coverage in so many groups of examples, and in strata of the predicted deviation, which
    /// end at these.
    #[must_use]
    pub fn with_strata(mut self, groups: usize, spreads: &[f64]) -> Self {
        let levels = self.coverage_by_output.levels().to_vec();
        let strata = if spreads.is_empty() { 0 } else { spreads.len() + 1 };
        self.coverage_by_spread = Strata::new(strata, &levels);
        self.coverage_by_group = Strata::new(groups, &levels);
        self.spreads = spreads.to_vec();
        self
    }

    /// Outputs of an example.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// With intervals at other levels than [`Coverage::LEVELS`].
    pub fn with_levels(mut self, levels: &[f64]) -> Result<Self, MetricError> {
        self.coverage = Coverage::at_levels(levels)?;
        let levels: Vec<f64> = self.coverage.rows().iter().map(|row| row.nominal).collect();
        self.bands = BandCoverage::at_levels(&levels);
        self.coverage_by_output = Strata::new(Self::strata(self.outputs), &levels);
        Ok(self)
    }

    /// Adds examples to every metric; changes none if they have another number of outputs.
    pub fn add(&mut self, mixtures: &MixtureBatch) -> Result<(), MetricError> {
        self.expect_outputs(mixtures.outputs())?;
        self.add_batch(&mixtures.scored(0..mixtures.rows()));
        Ok(())
    }

    /// Adds examples whose outputs have been counted.
    pub(super) fn add_batch(&mut self, batch: &RegressionBatch) {
        self.error.add_batch(batch);
        self.nll.add_batch(batch);
        self.crps.add_batch(batch);
        self.coverage.add_batch(batch);
        self.calibration.add_batch(batch);
        self.sharpness.add_batch(batch);
        self.pit.add_batch(batch);
        self.spread_skill.add_batch(batch);
        self.ranks.add_batch(batch);
        self.by_output.add_batch(batch);
        self.bands.add_batch(batch);
        self.coverage_by_output.add_cells(batch, |_, output, _| output);
        let spreads = &self.spreads;
        let stratum = |std: f64| spreads.partition_point(|end| *end <= std);
        self.coverage_by_spread.add_cells(batch, |_, _, std| stratum(std));
        // Rows that belong to no group have one that does not exist.
        let group = |row: usize| batch.groups().get(row).copied().unwrap_or(usize::MAX);
        self.coverage_by_group.add_cells(batch, |row, _, _| group(row));
    }

    pub(super) fn expect_outputs(&self, outputs: usize) -> Result<(), MetricError> {
        check_count("outputs of an example", outputs, self.outputs)
    }
}

impl MetricSet for RegressionScores {
    fn metrics(&self) -> Vec<&dyn Metric> {
        vec![
            &self.error,
            &self.nll,
            &self.crps,
            &self.coverage,
            &self.calibration,
            &self.sharpness,
            &self.pit,
            &self.spread_skill,
            &self.ranks,
            &self.by_output,
            &self.bands,
            &self.coverage_by_output,
            &self.coverage_by_spread,
            &self.coverage_by_group,
        ]
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        vec![
            &mut self.error,
            &mut self.nll,
            &mut self.crps,
            &mut self.coverage,
            &mut self.calibration,
            &mut self.sharpness,
            &mut self.pit,
            &mut self.spread_skill,
            &mut self.ranks,
            &mut self.by_output,
            &mut self.bands,
            &mut self.coverage_by_output,
            &mut self.coverage_by_spread,
            &mut self.coverage_by_group,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close};
    use super::*;
    use crate::metrics::Score;

    fn assert_same(left: &[Score], right: &[Score]) {
        assert_eq!(left.len(), right.len());
        for (a, b) in left.iter().zip(right) {
            assert_eq!(a.name, b.name);
            // With noise there are no ranks.
            if b.name == "rank_deviation" {
                assert!(a.value.is_nan() && b.value.is_nan());
                continue;
            }
            assert!(b.value.is_finite(), "{b:?}");
            assert_close(a.value, b.value, 1e-12 * b.value.abs().max(1.0));
        }
    }

    fn names(set: &impl MetricSet) -> Vec<String> {
        set.scores().into_iter().map(|score| score.name).collect()
    }

    #[test]
    fn names_are_unique_and_known() {
        let classification = names(&ClassificationScores::new(3));
        assert_eq!(
            classification.join(" "),
            "accuracy nll brier ece unweighted_calibration_error maximum_calibration_error \
             classwise_calibration_error entropy_right entropy_wrong"
        );
        let regression = names(&RegressionScores::new(2, 4));
        assert_eq!(
            regression.join(" "),
            "mse rmse mae bias nll crps crps_fair coverage_50 coverage_80 coverage_90 coverage_95 \
             mace mean_std pit_deviation spread skill spread_skill_ratio rank_deviation"
        );
        let unique: std::collections::HashSet<&String> = regression.iter().collect();
        assert_eq!(unique.len(), regression.len());
        let other = RegressionScores::new(2, 4).with_levels(&[0.995]).unwrap();
        assert!(names(&other).contains(&"coverage_99.5".to_owned()));
        assert!(RegressionScores::new(2, 4).with_levels(&[1.0]).is_err());
    }

    #[test]
    fn ranks_add_their_statistics() {
        let (p, y) = Lcg(17).classification(120, 3);
        let mut whole = ClassificationScores::new(3);
        let mut parts = [ClassificationScores::new(3), ClassificationScores::new(3)];
        whole.add(&p, &y).unwrap();
        parts[0].add(&p[..150], &y[..50]).unwrap();
        parts[1].add(&p[150..], &y[50..]).unwrap();
        let [mut left, right] = parts;
        left.merge(&right).unwrap();
        assert_same(&left.scores(), &whole.scores());
        left.reset();
        assert!(left.scores().iter().all(|score| score.value.is_nan()));

        let [mean, std, target] = Lcg(18).regression(90);
        let add = |rows: std::ops::Range<usize>| {
            let mut set = RegressionScores::new(2, 2);
            let (mean, std) = (&mean[rows.clone()], &std[rows.clone()]);
            let (draws, noise) = ([mean, std].concat(), [std, std].concat());
            set.add(&MixtureBatch::new(&draws, &noise, &target[rows], 2, 2).unwrap()).unwrap();
            set
        };
        let mut left = add(0..20);
        left.merge(&add(20..90)).unwrap();
        assert_same(&left.scores(), &add(0..90).scores());
        assert!(left.merge(&RegressionScores::new(2, 3)).is_err());
        assert!(left.set_statistics(&[0.0]).is_err());
        assert_same(&left.scores(), &add(0..90).scores());
    }

    #[test]
    fn invalid_batches_change_nothing() {
        let mut set = ClassificationScores::new(2);
        set.add(&[0.5, 0.5], &[0]).unwrap();
        let before = set.statistics();
        assert!(set.add(&[0.2, 0.3, 0.5], &[0]).is_err());
        assert!(set.add(&[0.5, 0.5, 0.5, 0.5], &[0, 2]).is_err());
        assert_eq!(set.statistics(), before);

        let mut set = RegressionScores::new(1, 2);
        set.add(&MixtureBatch::new(&[0.0, 1.0], &[1.0; 2], &[0.5], 2, 1).unwrap()).unwrap();
        let before = set.statistics();
        let other = MixtureBatch::new(&[0.0; 4], &[], &[0.5; 2], 2, 2).unwrap();
        assert!(set.add(&other).is_err());
        assert_eq!(set.statistics(), before);
    }

    #[test]
    fn a_mixture_names_what_is_wrong() {
        let error = |m: &[f32], v: &[f32], y: &[f32], draws, outputs| {
            MixtureBatch::new(m, v, y, draws, outputs).unwrap_err()
        };
        assert_eq!(
            error(&[0.0], &[], &[0.0, 1.0], 1, 1),
            MetricError::Count { what: "predicted values", expected: 2, actual: 1 }
        );
        assert_eq!(
            error(&[0.0, 1.0], &[1.0], &[0.0, 1.0], 1, 1),
            MetricError::Count { what: "noise variances", expected: 2, actual: 1 }
        );
        assert!(matches!(
            error(&[0.0; 3], &[], &[0.0; 3], 1, 2),
            MetricError::Count { what: "true values of whole rows", .. }
        ));
        assert_eq!(
            error(&[0.0], &[-1.0], &[0.0], 1, 1),
            MetricError::Variance { index: 0, value: -1.0 }
        );
        assert!(matches!(
            error(&[f32::NAN], &[], &[0.0], 1, 1),
            MetricError::NotFinite { what: "prediction", index: 0, .. }
        ));
        assert!(matches!(
            error(&[0.0], &[], &[f32::INFINITY], 1, 1),
            MetricError::NotFinite { what: "true value", .. }
        ));
        assert!(matches!(
            error(&[], &[], &[], 0, 1),
            MetricError::Setting { setting: "draws", .. }
        ));
    }

    /// Compares standard errors over examples with the deviation of scores over sets of examples.
    fn assert_errors(names: &[&str], sets: &[Vec<Score>]) {
        let count = sets.len() as f64;
        for name in names {
            let of = |scores: &[Score]| {
                scores.iter().find(|score| score.name == *name).expect(name).clone()
            };
            let values: Vec<f64> = sets.iter().map(|scores| of(scores).value).collect();
            let mean = values.iter().sum::<f64>() / count;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
            let squares: f64 = sets.iter().map(|scores| of(scores).se_examples.powi(2)).sum();
            // The deviation of 300 sets is known to a twenty-fifth.
            let ratio = (squares / count / variance).sqrt();
            assert!((0.85..1.15).contains(&ratio), "{name}: {ratio}");
        }
    }

    /// Rows of three outputs that have most of their error in common, with draws that are too
    /// narrow.
    #[test]
    fn errors_over_examples_are_the_spread_over_sets_of_examples() {
        let (rows, draws, outputs) = (200, 4, 3);
        let mut lcg = Lcg(41);
        let mut sets = Vec::new();
        for _ in 0..300 {
            let truth: Vec<f32> = (0..rows)
                .flat_map(|_| {
                    let common = lcg.normal();
                    [0; 3].map(|_| (1.5 * common + 0.5 * lcg.normal()) as f32)
                })
                .collect();
            let cells = draws * rows * outputs;
            let means: Vec<f32> = (0..cells).map(|_| (0.5 * lcg.normal()) as f32).collect();
            let noise: Vec<f32> = (0..cells).map(|_| (0.5 + lcg.uniform()) as f32).collect();
            let mut set = RegressionScores::new(outputs, draws);
            set.add(&MixtureBatch::new(&means, &noise, &truth, draws, outputs).unwrap()).unwrap();
            sets.push(set.scores());
        }
        let names = [
            "mse",
            "rmse",
            "mae",
            "bias",
            "nll",
            "crps",
            "crps_fair",
            "coverage_50",
            "coverage_90",
            "mace",
            "mean_std",
            "spread",
            "skill",
            "spread_skill_ratio",
        ];
        assert_errors(&names, &sets);
    }

    /// Probabilities that are too certain, so that bins are off by more than chance.
    #[test]
    fn errors_over_examples_of_classes_are_the_spread_over_sets_of_examples() {
        let mut lcg = Lcg(42);
        let mut sets = Vec::new();
        for _ in 0..300 {
            let (p, y) = lcg.classification(1000, 3);
            let sharp: Vec<f32> = p
                .chunks(3)
                .flat_map(|row| {
                    let sum: f32 = row.iter().map(|p| p * p).sum();
                    row.iter().map(move |p| p * p / sum)
                })
                .collect();
            let mut set = ClassificationScores::new(3);
            set.add(&sharp, &y).unwrap();
            sets.push(set.scores());
        }
        let names = ["accuracy", "nll", "brier", "ece", "entropy_right", "entropy_wrong"];
        assert_errors(&names, &sets);
    }
}
