//! `[loss]`: what is minimised.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, Key, Kind, Range, Section, Values};

/// What is minimised, besides the distance to the prior.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Loss {
    /// The squared error of the mean prediction.
    SquaredErrorOfMean,
    /// The mean over draws of the squared error.
    ExpectedSquaredError,
    /// The Gaussian with the mean and the standard deviation of the draws.
    GaussianOfDraws {
        /// Added to the variance.
        floor: f64,
    },
    /// The mean over draws of a Gaussian whose variance the network predicts.
    ExpectedGaussian,
    /// The mixture over draws of such Gaussians.
    GaussianMixture,
    /// The mixture over draws of Student's t whose scale the network predicts.
    StudentTMixture {
        /// Degrees of freedom.
        freedom: f64,
    },
    /// The mixture over draws of the pinball loss of one quantile.
    QuantileMixture {
        /// The level of the quantile.
        level: f64,
    },
    /// The continuous ranked probability score of the draws.
    Crps {
        /// Whether small ensembles are kept from gaining by being narrow.
        fair: bool,
    },
    /// The mean over draws of the cross entropy.
    ExpectedCrossEntropy,
    /// The cross entropy of the mean probabilities.
    CrossEntropyOfMean {
        /// Added to the probability.
        floor: f64,
    },
}

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Numbers.
    Regression,
    /// Classes.
    Classification,
}

impl Loss {
    /// What the loss is for.
    pub fn task(&self) -> Task {
        match self {
            Self::ExpectedCrossEntropy | Self::CrossEntropyOfMean { .. } => Task::Classification,
            Self::SquaredErrorOfMean
            | Self::ExpectedSquaredError
            | Self::GaussianOfDraws { .. }
            | Self::ExpectedGaussian
            | Self::GaussianMixture
            | Self::StudentTMixture { .. }
            | Self::QuantileMixture { .. }
            | Self::Crps { .. } => Task::Regression,
        }
    }

    /// The smallest number of draws for which the loss is defined.
    pub fn least_draws(&self) -> usize {
        match self {
            Self::GaussianOfDraws { .. } | Self::Crps { fair: true } => 2,
            _ => 1,
        }
    }
}

pub(super) static SECTION: Section = Section {
    name: "loss",
    meaning: "What is minimised, besides the distance to the prior.",
    kinds: &[
        Kind::new(
            "squared-error-of-mean",
            "regression: (mean of ŷ_s − y)²; the paper's load forecast",
        ),
        Kind::new("expected-squared-error", "regression: mean over draws of (ŷ_s − y)²"),
        Kind::new(
            "gaussian-of-draws",
            "regression: negative log-likelihood of a Gaussian with the mean and the standard \
             deviation of the draws",
        ),
        Kind::new(
            "expected-gaussian",
            "regression: the network predicts a mean and a noise variance; mean over draws of the \
             negative log-likelihood",
        ),
        Kind::new(
            "gaussian-mixture",
            "regression: the same network; negative log-likelihood of the mixture of the draws",
        ),
        Kind::new(
            "student-t-mixture",
            "regression: like `gaussian-mixture` with Student's t, which forgives outliers",
        ),
        Kind::new("quantile-mixture", "regression: one quantile, by the pinball loss"),
        Kind::new(
            "crps",
            "regression: continuous ranked probability score of the ensemble of draws",
        ),
        Kind::new("expected-cross-entropy", "classification: mean over draws of the cross entropy"),
        Kind::new(
            "cross-entropy-of-mean",
            "classification: cross entropy of the mean probabilities",
        ),
    ],
    default_kind: None,
    keys: &[
        Key::new(
            "floor",
            Values::Number(Range::NOT_NEGATIVE),
            Absent::Value("1e-10"),
            "Added to the variance of the draws.",
        )
        .of(&["gaussian-of-draws"])
        .also(&["eps", "epsilon"]),
        Key::new(
            "floor",
            Values::Number(Range::NOT_NEGATIVE),
            Absent::Value("0.0"),
            "Added to the mean probability, which bounds the loss of an example.",
        )
        .of(&["cross-entropy-of-mean"])
        .also(&["eps", "epsilon"]),
        Key::new(
            "freedom",
            Values::Number(Range::above(2.0)),
            Absent::Value("4.0"),
            "Degrees of freedom; more are closer to a Gaussian.",
        )
        .of(&["student-t-mixture"])
        .also(&["df", "nu", "degrees_of_freedom"]),
        Key::new(
            "level",
            Values::Number(Range::INSIDE_ONE),
            Absent::Value("0.5"),
            "The level of the quantile; 0.5 is the median.",
        )
        .of(&["quantile-mixture"])
        .also(&["quantile", "tau"]),
        Key::new(
            "fair",
            Values::Flag,
            Absent::Value("false"),
            "Divides by S(S − 1) pairs instead of S², so that few draws gain nothing by being \
             close together.",
        )
        .of(&["crps"]),
    ],
    example: "[loss]\nkind = \"squared-error-of-mean\"",
};
