//! Scores of predictions: how right they are, and whether they know how right they are.
//!
//! Every metric accumulates *sufficient statistics*, a flat vector of `f64` that adds over
//! examples. So parts computed anywhere are merged by adding vectors: two batches, two runs, or all
//! ranks with one all-reduce (sum). Predictions are averaged over **all** draws, across ranks,
//! before they are scored: a metric never sees the draws of one rank alone.
//!
//! Inputs are plain slices, checked once:
//!
//! - [`ClassificationMetric`]: mean probabilities `[rows, classes]` and labels `[rows]`;
//! - [`RegressionMetric`]: draws of values `[draws, rows, outputs]` with the variance of their
//!   noise, if they have any, and the truth `[rows, outputs]`, a [`MixtureBatch`]. What is scored
//!   is the mixture of the draws, each with its noise, never a Gaussian in its place.
//!
//! [`JointScores`] are those of paths, joint samples of all outputs of an example, and
//! [`FieldScores`] those of maps.
//!
//! [`ClassificationScores`] and [`RegressionScores`] hold the metrics of a family for an evaluation
//! loop, [`Jackknife`] adds how much they depend on the draws, and [`Evaluation`] is what comes
//! out. The rest of the module are the numbers behind them: [`normal`], [`quantile`],
//! [`uncertainty`] and [`auroc`].
//!
//! ```
//! use bayesmesh::metrics::{ClassificationScores, MetricSet};
//!
//! // Two ranks see different examples.
//! let mut here = ClassificationScores::new(2);
//! here.add(&[0.9, 0.1, 0.2, 0.8], &[0, 1])?;
//! let mut there = ClassificationScores::new(2);
//! there.add(&[0.6, 0.4], &[1])?;
//!
//! // What an all-reduce of sums does.
//! let mut sums = here.statistics();
//! for (sum, more) in sums.iter_mut().zip(there.statistics()) {
//!     *sum += more;
//! }
//! here.set_statistics(&sums)?;
//!
//! let scores = here.scores();
//! assert_eq!(scores[0].name, "accuracy");
//! assert!((scores[0].value - 2.0 / 3.0).abs() < 1e-12);
//! # Ok::<(), bayesmesh::metrics::MetricError>(())
//! ```

mod auroc;
mod bands;
mod batch;
mod calibration;
mod classification;
mod counts;
mod coverage;
mod crps;
mod error;
mod evaluation;
mod families;
mod fields;
mod histogram;
mod jackknife;
mod joint;
mod mixture;
pub mod normal;
mod normal_table;
mod quadrature;
pub mod quantile;
mod regression;
mod row_mean;
mod spread_skill;
mod strata;
pub mod uncertainty;

#[cfg(test)]
pub(crate) mod testing;

pub use auroc::auroc;
pub use bands::{BandCoverage, SetCoverage};
pub use batch::ClassificationBatch;
pub use calibration::{CalibrationBins, ClasswiseCalibration, ReliabilityRow};
pub(crate) use classification::log_probability;
pub use classification::{Accuracy, Brier, EntropyByOutcome, Nll};
pub(crate) use counts::Stairs;
pub use coverage::{Coverage, CoverageRow, RegressionCalibration, percent};
pub use crps::Crps;
pub use error::MetricError;
pub use evaluation::{ClassificationEvaluation, Evaluation, RegressionEvaluation};
pub use families::{ClassificationScores, RegressionScores};
pub use fields::{FieldError, FieldErrors, FieldLayout, FieldScore, FieldScores};
pub use histogram::{PitHistogram, RankHistogram};
pub use jackknife::{DRAW_GROUPS, Jackknife, jackknife_error};
pub use joint::{JointScores, shuffled};
pub use mixture::{Cell, MixtureBatch, RegressionBatch};
pub(crate) use normal_table::NormalTable;
pub(crate) use quadrature::integrals;
pub use regression::{ByOutput, MixtureNll, OutputRow, PointError, Sharpness};
pub use spread_skill::{SpreadSkill, SpreadSkillRow};
pub use strata::{Strata, Stratum};

/// One named number, and how far it may be off by chance.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Name, in snake case.
    pub name: String,
    /// Value; NaN if no example has defined it.
    pub value: f64,
    /// Monte Carlo standard error: how much the value varies from one set of as many draws to
    /// another ([`Jackknife`]). NaN where it is not known, e.g. for one draw.
    pub se_draws: f64,
    /// Standard error over examples: how much the value varies from one set of as many independent
    /// rows to another. NaN where it is not known, e.g. for one example.
    pub se_examples: f64,
}

impl Score {
    /// A score of that name and value, of unknown standard errors.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value, se_draws: f64::NAN, se_examples: f64::NAN }
    }

    /// The same score under another name and in another unit, which is so many of the old one.
    #[must_use]
    pub fn in_unit(&self, name: impl Into<String>, factor: f64) -> Self {
        Self {
            name: name.into(),
            value: factor * self.value,
            se_draws: factor.abs() * self.se_draws,
            se_examples: factor.abs() * self.se_examples,
        }
    }
}

/// An accumulator of additive statistics that turns them into scores.
pub trait Metric: Send {
    /// Sufficient statistics, additive over examples: merging two parts is adding these vectors.
    fn statistics(&self) -> &[f64];

    /// The same, to overwrite with a merged sum.
    fn statistics_mut(&mut self) -> &mut [f64];

    /// Named scores of the examples so far; NaN where there are none.
    fn scores(&self) -> Vec<Score>;

    /// Forgets all examples.
    fn reset(&mut self) {
        self.statistics_mut().fill(0.0);
    }

    /// Adds the examples of a metric built with the same settings. Fails if the settings differ so
    /// much that the statistics differ in length.
    fn merge(&mut self, other: &Self) -> Result<(), MetricError>
    where
        Self: Sized,
    {
        let (mine, theirs) = (self.statistics_mut(), other.statistics());
        batch::check_count("statistics", theirs.len(), mine.len())?;
        for (sum, more) in mine.iter_mut().zip(theirs) {
            *sum += more;
        }
        Ok(())
    }
}

/// A metric of predictive probabilities.
pub trait ClassificationMetric: Metric {
    /// Adds a checked batch; changes nothing if it does not fit the metric.
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError>;

    /// Adds `probabilities` `[rows, classes]`, the mean over all draws, and `labels` `[rows]`;
    /// changes nothing if they are invalid.
    fn add(&mut self, probabilities: &[f32], labels: &[usize]) -> Result<(), MetricError> {
        self.add_batch(&ClassificationBatch::new(probabilities, labels)?)
    }
}

/// A metric of predicted numbers, from what the mixture of the draws says of the truth.
pub trait RegressionMetric: Metric {
    /// Adds examples.
    fn add_batch(&mut self, batch: &RegressionBatch);

    /// Adds draws and the truth.
    fn add(&mut self, mixtures: &MixtureBatch) {
        self.add_batch(&mixtures.scored(0..mixtures.rows()));
    }
}

/// Several metrics that travel together.
pub trait MetricSet {
    /// The metrics, in the order of their scores.
    fn metrics(&self) -> Vec<&dyn Metric>;

    /// The same, to change.
    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric>;

    /// The statistics of all metrics, one after the other: the one vector to all-reduce (sum).
    fn statistics(&self) -> Vec<f64> {
        self.metrics().iter().flat_map(|m| m.statistics()).copied().collect()
    }

    /// Puts back merged [`statistics`](MetricSet::statistics); changes nothing if their number is
    /// not that of this set.
    fn set_statistics(&mut self, statistics: &[f64]) -> Result<(), MetricError> {
        let expected = self.metrics().iter().map(|m| m.statistics().len()).sum();
        batch::check_count("statistics", statistics.len(), expected)?;
        let mut rest = statistics;
        for metric in self.metrics_mut() {
            let own = metric.statistics_mut();
            let (head, tail) = rest.split_at(own.len());
            own.copy_from_slice(head);
            rest = tail;
        }
        Ok(())
    }

    /// The scores of all metrics.
    fn scores(&self) -> Vec<Score> {
        self.metrics().iter().flat_map(|m| m.scores()).collect()
    }

    /// Forgets all examples.
    fn reset(&mut self) {
        self.metrics_mut().into_iter().for_each(|m| m.reset());
    }

    /// Adds the examples of a set built with the same settings; fails if their numbers of
    /// statistics differ.
    fn merge(&mut self, other: &Self) -> Result<(), MetricError>
    where
        Self: Sized,
    {
        let (mut sums, more) = (self.statistics(), other.statistics());
        batch::check_count("statistics", more.len(), sums.len())?;
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        self.set_statistics(&sums)
    }
}

/// The two accessors of a metric whose statistics are the field `statistics`.
macro_rules! statistics_field {
    () => {
        fn statistics(&self) -> &[f64] {
            &self.statistics
        }

        fn statistics_mut(&mut self) -> &mut [f64] {
            &mut self.statistics
        }
    };
}
use statistics_field;

/// Makes sums over examples, the field `statistics` of a type, travel over ranks as a set of
/// metrics does; they have no scores.
macro_rules! sums_over_examples {
    ($type:ty) => {
        impl $crate::metrics::Metric for $type {
            fn statistics(&self) -> &[f64] {
                &self.statistics
            }

            fn statistics_mut(&mut self) -> &mut [f64] {
                &mut self.statistics
            }

            fn scores(&self) -> Vec<$crate::metrics::Score> {
                Vec::new()
            }
        }

        impl $crate::metrics::MetricSet for $type {
            fn metrics(&self) -> Vec<&dyn $crate::metrics::Metric> {
                vec![self]
            }

            fn metrics_mut(&mut self) -> Vec<&mut dyn $crate::metrics::Metric> {
                vec![self]
            }
        }
    };
}
pub(crate) use sums_over_examples;
