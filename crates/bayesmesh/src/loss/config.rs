//! Any loss that a recipe can name.

use std::sync::Arc;

use bayesmesh_schema::Kinds;
use burn::tensor::{Int, Tensor};
use serde::Deserialize;

use super::{
    Categorical, EnsembleCrps, Expected, ExpectedSquaredError, Gaussian, GaussianOfDraws, Loss,
    Mixture, NegativeBinomial, OutputWeights, Poisson, Quantile, Quantiles, SquaredErrorOfMean,
    StudentT, Weighted,
};
use crate::error::{Error, Result};

/// Any loss for values.
#[derive(Clone, Copy, Debug, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ValueLoss {
    /// regression: (mean of ŷ_s − y)²; the paper's load forecast
    SquaredErrorOfMean,
    /// regression: mean over draws of (ŷ_s − y)²
    ExpectedSquaredError,
    /// regression: negative log-likelihood of a Gaussian with the mean and the standard deviation
    /// of the draws
    GaussianOfDraws(GaussianOfDraws),
    /// regression: the network predicts a mean and a noise variance; mean over draws of the
    /// negative log-likelihood
    ExpectedGaussian,
    /// regression: the same network; negative log-likelihood of the mixture of the draws
    GaussianMixture,
    /// regression: like `gaussian-mixture` with Student's t, which forgives outliers
    StudentTMixture(StudentT),
    /// regression: one quantile, by the pinball loss
    QuantileMixture(Quantile),
    /// regression: continuous ranked probability score of the ensemble of draws
    Crps(EnsembleCrps),
    /// regression: several quantiles that do not cross, by the pinball loss; mean over draws
    Quantiles(Quantiles),
    /// counts: the network predicts the rate of a Poisson distribution; mean over draws of the
    /// negative log-likelihood
    ExpectedPoisson,
    /// counts: the same network; negative log-likelihood of the mixture of the draws
    PoissonMixture,
    /// counts: the network predicts the mean and the dispersion of a negative binomial
    /// distribution, for counts that vary more than a Poisson; mean over draws of the negative
    /// log-likelihood
    ExpectedNegativeBinomial,
    /// counts: the same network; negative log-likelihood of the mixture of the draws
    NegativeBinomialMixture,
}

impl ValueLoss {
    /// The loss.
    pub fn init(self) -> Result<Arc<dyn Loss<Target = Tensor<2>>>> {
        Ok(match self {
            Self::SquaredErrorOfMean => Arc::new(SquaredErrorOfMean),
            Self::ExpectedSquaredError => Arc::new(ExpectedSquaredError),
            Self::GaussianOfDraws(loss) => Arc::new(loss.checked()?),
            Self::ExpectedGaussian => Arc::new(Expected(Gaussian)),
            Self::GaussianMixture => Arc::new(Mixture::new(Gaussian).by_output()),
            Self::StudentTMixture(student) => {
                Arc::new(Mixture::new(student.checked()?).by_output())
            }
            Self::QuantileMixture(level) => Arc::new(Mixture::new(level.checked()?).by_output()),
            Self::Crps(crps) => Arc::new(crps.checked()?),
            Self::Quantiles(quantiles) => Arc::new(quantiles.checked()?),
            Self::ExpectedPoisson => Arc::new(Expected(Poisson)),
            Self::PoissonMixture => Arc::new(Mixture::new(Poisson).by_output()),
            Self::ExpectedNegativeBinomial => Arc::new(Expected(NegativeBinomial)),
            Self::NegativeBinomialMixture => Arc::new(Mixture::new(NegativeBinomial).by_output()),
        })
    }

    /// The loss with [`Weighted`] outputs; refuses those that are no mean or sum of one term for
    /// each value.
    pub fn init_weighted(
        self,
        weights: OutputWeights,
    ) -> Result<Arc<dyn Loss<Target = Tensor<2>>>> {
        let kind = match self {
            Self::SquaredErrorOfMean => {
                return Ok(Arc::new(Weighted::new(SquaredErrorOfMean, weights)));
            }
            Self::ExpectedSquaredError => {
                return Ok(Arc::new(Weighted::new(ExpectedSquaredError, weights)));
            }
            Self::GaussianOfDraws(loss) => {
                return Ok(Arc::new(Weighted::new(loss.checked()?, weights)));
            }
            Self::Crps(crps) => return Ok(Arc::new(Weighted::new(crps.checked()?, weights))),
            Self::ExpectedGaussian => "expected-gaussian",
            Self::GaussianMixture => "gaussian-mixture",
            Self::StudentTMixture(_) => "student-t-mixture",
            Self::QuantileMixture(_) => "quantile-mixture",
            Self::Quantiles(_) => "quantiles",
            Self::ExpectedPoisson => "expected-poisson",
            Self::PoissonMixture => "poisson-mixture",
            Self::ExpectedNegativeBinomial => "expected-negative-binomial",
            Self::NegativeBinomialMixture => "negative-binomial-mixture",
        };
        Err(Error::Setting(format!(
            "the loss `{kind}` cannot weigh its outputs; use `crps`, `gaussian-of-draws`, \
             `squared-error-of-mean` or `expected-squared-error`"
        )))
    }
}

/// Any loss for classes.
#[derive(Clone, Copy, Debug, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ClassLoss {
    /// classification: mean over draws of the cross entropy
    ExpectedCrossEntropy,
    /// classification: cross entropy of the mean probabilities
    CrossEntropyOfMean(Mixture<Categorical>),
}

impl ClassLoss {
    /// The loss.
    pub fn init(self) -> Result<Arc<dyn Loss<Target = Tensor<1, Int>>>> {
        Ok(match self {
            Self::ExpectedCrossEntropy => Arc::new(Expected(Categorical)),
            Self::CrossEntropyOfMean(mixture) => Arc::new(mixture.checked()?),
        })
    }
}
