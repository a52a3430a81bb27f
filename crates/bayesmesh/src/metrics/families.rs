//! The metrics of a family together, as an evaluation loop uses them.

use super::{
    Accuracy, Brier, CalibrationBins, ClassificationBatch, ClassificationMetric,
    ClasswiseCalibration, Coverage, CrpsEnsemble, CrpsGaussian, EnsembleBatch, EnsembleMetric,
    EntropyByOutcome, GaussianNll, Metric, MetricError, MetricSet, Nll, PitHistogram, PointError,
    RankHistogram, RegressionBatch, RegressionCalibration, RegressionMetric, Sharpness,
    SpreadSkill,
};

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
        }
    }

    /// Adds examples to every metric; changes none if they are invalid.
    ///
    /// # Shapes
    ///
    /// - `probabilities`: `[rows, classes]`, row-major, the mean over all draws
    /// - `labels`: `[rows]`
    pub fn add(&mut self, probabilities: &[f32], labels: &[usize]) -> Result<(), MetricError> {
        let batch = ClassificationBatch::new(probabilities, labels)?;
        batch.expect_classes(self.classes)?;
        self.accuracy.add_batch(&batch)?;
        self.nll.add_batch(&batch)?;
        self.brier.add_batch(&batch)?;
        self.calibration.add_batch(&batch)?;
        self.classwise.add_batch(&batch)?;
        self.entropy.add_batch(&batch)
    }
}

impl MetricSet for ClassificationScores {
    fn metrics(&self) -> Vec<&dyn Metric> {
        vec![
            &self.accuracy,
            &self.nll,
            &self.brier,
            &self.calibration,
            &self.classwise,
            &self.entropy,
        ]
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        vec![
            &mut self.accuracy,
            &mut self.nll,
            &mut self.brier,
            &mut self.calibration,
            &mut self.classwise,
            &mut self.entropy,
        ]
    }
}

/// All metrics of predictions of numbers: of their mean and std and, if there are draws, of these.
#[derive(Clone, Debug)]
pub struct RegressionScores {
    draws: usize,
    /// Errors of the mean.
    pub error: PointError,
    /// Gaussian negative log-likelihood.
    pub nll: GaussianNll,
    /// Coverage of the Gaussian intervals.
    pub coverage: Coverage,
    /// Regression calibration error, with the calibration curve.
    pub calibration: RegressionCalibration,
    /// Width of the predictions.
    pub sharpness: Sharpness,
    /// Gaussian continuous ranked probability score.
    pub crps_gaussian: CrpsGaussian,
    /// Histogram of the probability integral transform.
    pub pit: PitHistogram,
    /// Spread against error, with the spread–skill curve.
    pub spread_skill: SpreadSkill,
    /// Continuous ranked probability score of the draws.
    pub crps_ensemble: CrpsEnsemble,
    /// Histogram of the ranks among the draws.
    pub ranks: RankHistogram,
}

impl RegressionScores {
    /// For predictions of that many draws; 0 for a mean and std that do not come from draws, or
    /// whose draws are not at hand: the metrics of draws are then left out.
    pub fn new(draws: usize) -> Self {
        Self {
            draws,
            error: PointError::new(),
            nll: GaussianNll::new(),
            coverage: Coverage::new(),
            calibration: RegressionCalibration::new(),
            sharpness: Sharpness::new(),
            crps_gaussian: CrpsGaussian::new(),
            pit: PitHistogram::new(),
            spread_skill: SpreadSkill::new(draws),
            crps_ensemble: CrpsEnsemble::new(),
            ranks: RankHistogram::new(draws),
        }
    }

    /// Adds examples to every metric; changes none if they are invalid.
    ///
    /// # Shapes
    ///
    /// - `mean`, `std` (total predictive), `target`: `[n]`
    /// - `draws`: `[S, n]`, row-major, with S as given to [`new`](RegressionScores::new)
    pub fn add(
        &mut self,
        mean: &[f32],
        std: &[f32],
        target: &[f32],
        draws: &[f32],
    ) -> Result<(), MetricError> {
        let batch = RegressionBatch::new(mean, std, target)?;
        if self.draws == 0 {
            super::batch::check_count("draws", draws.len(), 0)?;
        } else {
            let ensemble = EnsembleBatch::new(draws, target)?;
            ensemble.expect_draws(self.draws)?;
            self.crps_ensemble.add_batch(&ensemble)?;
            self.ranks.add_batch(&ensemble)?;
        }
        self.error.add_batch(&batch);
        self.nll.add_batch(&batch);
        self.coverage.add_batch(&batch);
        self.calibration.add_batch(&batch);
        self.sharpness.add_batch(&batch);
        self.crps_gaussian.add_batch(&batch);
        self.pit.add_batch(&batch);
        self.spread_skill.add_batch(&batch);
        Ok(())
    }
}

impl MetricSet for RegressionScores {
    fn metrics(&self) -> Vec<&dyn Metric> {
        let mut metrics: Vec<&dyn Metric> = vec![
            &self.error,
            &self.nll,
            &self.coverage,
            &self.calibration,
            &self.sharpness,
            &self.crps_gaussian,
            &self.pit,
            &self.spread_skill,
        ];
        if self.draws > 0 {
            metrics.extend([&self.crps_ensemble as &dyn Metric, &self.ranks]);
        }
        metrics
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        let mut metrics: Vec<&mut dyn Metric> = vec![
            &mut self.error,
            &mut self.nll,
            &mut self.coverage,
            &mut self.calibration,
            &mut self.sharpness,
            &mut self.crps_gaussian,
            &mut self.pit,
            &mut self.spread_skill,
        ];
        if self.draws > 0 {
            metrics.extend([&mut self.crps_ensemble as &mut dyn Metric, &mut self.ranks]);
        }
        metrics
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
        let regression = names(&RegressionScores::new(4));
        assert_eq!(
            regression.join(" "),
            "mse rmse mae bias gaussian_nll coverage_50 coverage_80 coverage_90 coverage_95 mace \
             mean_std interval_width_90 crps_gaussian pit_deviation spread skill \
             spread_skill_ratio crps_ensemble crps_ensemble_fair rank_deviation"
        );
        let unique: std::collections::HashSet<&String> = regression.iter().collect();
        assert_eq!(unique.len(), regression.len());
        assert_eq!(names(&RegressionScores::new(0)), regression[..17]);
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
            let mut set = RegressionScores::new(2);
            let (mean, std) = (&mean[rows.clone()], &std[rows.clone()]);
            set.add(mean, std, &target[rows], &[mean, std].concat()).unwrap();
            set
        };
        let mut left = add(0..20);
        left.merge(&add(20..90)).unwrap();
        assert_same(&left.scores(), &add(0..90).scores());
        assert!(left.merge(&RegressionScores::new(3)).is_err());
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

        let mut set = RegressionScores::new(2);
        set.add(&[0.5], &[0.5], &[0.0], &[0.0, 1.0]).unwrap();
        let before = set.statistics();
        assert!(set.add(&[0.5], &[0.5], &[0.0], &[0.0, 1.0, 2.0]).is_err());
        assert!(set.add(&[0.5], &[0.5], &[0.0], &[0.0, f32::NAN]).is_err());
        assert!(set.add(&[0.5], &[-0.5], &[0.0], &[0.0, 1.0]).is_err());
        assert!(set.add(&[0.5], &[0.5], &[0.0], &[]).is_err());
        assert_eq!(set.statistics(), before);

        let mut set = RegressionScores::new(0);
        assert!(set.add(&[0.5], &[0.5], &[0.0], &[1.0]).is_err());
        set.add(&[0.5], &[0.5], &[0.0], &[]).unwrap();
    }
}
