//! Losses that know how they parallelise.
//!
//! A loss says what one draw contributes, [`Loss::summary`], how contributions combine over draws,
//! [`Loss::combine`], and what the combination is worth, [`Loss::value`]. From these three the
//! trainer derives everything else: the exact gradient on any number of ranks, the local
//! approximation, and the forms that stream, retain or recompute draws. `docs/exactness.md` has the
//! derivations.
//!
//! | loss | summary φ(ŷ_s) | combine | class |
//! |---|---|---|---|
//! | [`Expected`] negative log-likelihood, [`ExpectedSquaredError`], [`Quantiles`] | the draw's loss | mean | linear |
//! | [`Mixture`] of any likelihood; of [`Categorical`]: cross entropy of the mean probabilities | ln p(y∣ŷ_s) | log-sum-exp | summary |
//! | [`SquaredErrorOfMean`] | ŷ_s | sum | summary |
//! | [`GaussianOfDraws`] | ŷ_s | moments | summary |
//! | [`EnsembleCrps`] | ŷ_s | transpose | transpose |
//!
//! The last four can be [`Weighted`] by output.

mod combine;
mod config;
mod counts;
mod crps;
mod expected;
mod gaussian_of_draws;
mod likelihood;
mod mixture;
mod quantiles;
mod squared_error;
#[cfg(test)]
mod testing;
mod together;
mod transpose;
mod weighted;

pub use combine::{Combine, Exactness};
pub use config::{ClassLoss, ValueLoss};
pub use counts::{NegativeBinomial, Poisson};
pub use crps::EnsembleCrps;
pub use expected::Expected;
pub use gaussian_of_draws::GaussianOfDraws;
pub(crate) use likelihood::ln_gamma;
pub use likelihood::{Categorical, FixedGaussian, Gaussian, Likelihood, Quantile, StudentT};
pub use mixture::Mixture;
pub use quantiles::Quantiles;
pub use squared_error::{ExpectedSquaredError, SquaredErrorOfMean};
pub(crate) use together::{Scope, Together};
pub use transpose::Cells;
pub use weighted::{ByOutput, OutputWeights, Weighted};

use auto_impl::auto_impl;
use burn::tensor::Tensor;

use crate::data::Target;
use crate::error::{Error, Result};

/// How the raw outputs of a network are read as a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// `[rows, classes]`: unnormalised log-probabilities.
    Logits,
    /// `[rows, outputs]`: predictions; the spread over draws is the uncertainty.
    Values,
    /// `[rows, outputs]`: predictions, each with Gaussian noise of this deviation.
    ValuesWithNoise {
        /// Deviation of the noise.
        std: f32,
    },
    /// `[rows, 2·outputs]`: means, then logarithms of the noise variance.
    MeanAndLogVariance,
    /// `[rows, outputs]`: logarithms of the rates of counts ([`Poisson`]).
    LogRate,
    /// `[rows, 2·outputs]`: logarithms of the means of counts, then of their dispersions
    /// ([`NegativeBinomial`]).
    LogMeanAndLogDispersion,
    /// `[rows, count·outputs]`: means of the quantiles, then their gaps one after the other
    /// ([`Quantiles`]).
    Quantiles {
        /// How many quantiles a value has.
        count: usize,
    },
}

impl Reading {
    /// How many outputs the network has for each value or class that is predicted.
    pub fn outputs_per_target(&self) -> usize {
        match self {
            Self::MeanAndLogVariance | Self::LogMeanAndLogDispersion => 2,
            Self::Quantiles { count } => *count,
            Self::Logits | Self::Values | Self::ValuesWithNoise { .. } | Self::LogRate => 1,
        }
    }

    /// Whether counts are predicted.
    pub fn predicts_counts(&self) -> bool {
        matches!(self, Self::LogRate | Self::LogMeanAndLogDispersion)
    }

    /// How many equally likely values, without a density, a draw predicts for a value.
    pub(crate) fn values_per_draw(&self) -> usize {
        match self {
            Self::Quantiles { count } => *count,
            _ => 1,
        }
    }

    /// Whether predictions are values without a density.
    pub(crate) fn is_of_values_alone(&self) -> bool {
        matches!(self, Self::Values | Self::Quantiles { .. })
    }
}

/// A loss `L = mean over rows of f(⊕_s φ(ŷ_s))`, where ⊕ is [`Combine`].
///
/// A loss of your own is two functions. The logarithm of the mean of `cosh(ŷ − y)`:
///
/// ```
/// use bayesmesh::loss::{Combine, Loss, Reading};
/// use burn::tensor::Tensor;
///
/// struct LogCosh;
///
/// impl Loss for LogCosh {
///     type Target = Tensor<2>;
///     fn combine(&self) -> Combine {
///         Combine::Sum
///     }
///     fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
///         (output - target.clone()).cosh()
///     }
///     fn value(&self, sum: Tensor<2>, draws: usize, _target: &Tensor<2>) -> Tensor<1> {
///         (sum / draws as f32).log().sum_dim(1).squeeze_dim(1)
///     }
/// }
/// ```
///
/// An `Arc<dyn Loss<Target = T>>` is a loss too, for programs that choose one when they run.
#[auto_impl(Arc)]
pub trait Loss: Send + Sync {
    /// Targets of a batch.
    type Target: Target;

    /// How summaries of draws combine, which decides how the loss parallelises.
    fn combine(&self) -> Combine;

    /// What one draw contributes, φ. Row by row: a row of the result depends on that row only.
    ///
    /// # Shapes
    ///
    /// - `output`: `[rows, outputs]`
    /// - result: `[rows, columns]`
    fn summary(&self, output: Tensor<2>, target: &Self::Target) -> Tensor<2>;

    /// The loss of each row, f, from the combination of `draws` summaries; see [`Combine`] for what
    /// it holds. By default the sum over the columns.
    ///
    /// # Shapes
    ///
    /// - `combined`: as [`Combine`] says
    /// - result: `[rows]`
    fn value(&self, combined: Tensor<2>, draws: usize, target: &Self::Target) -> Tensor<1> {
        let _ = (draws, target);
        combined.sum_dim(1).squeeze_dim(1)
    }

    /// For losses that combine by [`Combine::Transpose`], in place of `value`: the loss of each
    /// cell, of which that of a row is the sum, and its gradient.
    ///
    /// Called for some cells at a time, from several threads. Every cell by itself: what it gets
    /// must not depend on which others come with it.
    ///
    /// # Shapes
    ///
    /// - `values`: `[cells]`, zeros
    /// - `gradient`: `[draws, cells]`, zeros: `∂ values[c] / ∂ members[s, c]`
    fn cells(&self, cells: &Cells<'_>, values: &mut [f32], gradient: &mut [f32]) -> Result<()> {
        let _ = (cells, values, gradient);
        Err(Error::Setting(
            "a loss that combines by `Combine::Transpose` must say what cells are worth; implement \
             `Loss::cells`, or combine by `Combine::Gather`"
                .to_owned(),
        ))
    }

    /// How the network's outputs are read in prediction.
    fn reading(&self) -> Reading {
        Reading::Values
    }

    /// The smallest number of draws for which the loss is defined.
    fn least_draws(&self) -> usize {
        1
    }

    /// Whether it says nothing of the noise in the data, so that predictions need an estimate of it
    /// ([`Predictor::estimate_noise`](crate::Predictor::estimate_noise)).
    fn leaves_noise_open(&self) -> bool {
        false
    }

    /// Refuses targets that a network with so many `outputs` for an example cannot be held against:
    /// another number of columns, labels that are not classes. By default anything goes.
    ///
    /// For what a user can do wrong: an error before training instead of a panic within it.
    fn check(&self, outputs: usize, target: &Self::Target) -> Result<()> {
        let _ = (outputs, target);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, Int, TensorData};

    /// What a loss says to so many outputs for these targets; nothing if it is content.
    fn told<L: Loss>(loss: L, outputs: usize, target: &L::Target) -> String {
        loss.check(outputs, target).err().map_or(String::new(), |error| error.to_string())
    }

    #[test]
    fn another_number_of_outputs_than_the_targets_ask_for_is_refused() {
        let target = Tensor::<2>::zeros([4, 3], &Device::default());
        let text = |outputs: usize, expected: usize, what: &str| {
            format!(
                "the network has {outputs} outputs for an example, but the loss and the targets \
                 ask for {expected} ({what}); change the last layer or the targets"
            )
        };
        assert_eq!(told(ExpectedSquaredError, 4, &target), text(4, 3, "values"));
        assert_eq!(told(SquaredErrorOfMean, 1, &target), text(1, 3, "values"));
        assert_eq!(told(GaussianOfDraws::default(), 6, &target), text(6, 3, "values"));
        assert_eq!(told(EnsembleCrps::fair(), 2, &target), text(2, 3, "values"));
        let both = "means and log-variances";
        assert_eq!(told(Expected(Gaussian), 3, &target), text(3, 6, both));
        assert_eq!(told(Mixture::new(Gaussian), 7, &target), text(7, 6, both));
        let student = StudentT::new(4.0).unwrap();
        assert_eq!(told(Mixture::new(student).by_output(), 3, &target), text(3, 6, both));
        let median = Quantile::new(0.5).unwrap();
        assert_eq!(told(Expected(median), 6, &target), text(6, 3, "quantiles"));

        assert_eq!(told(ExpectedSquaredError, 3, &target), "");
        assert_eq!(told(SquaredErrorOfMean, 3, &target), "");
        assert_eq!(told(GaussianOfDraws::default(), 3, &target), "");
        assert_eq!(told(EnsembleCrps::default(), 3, &target), "");
        assert_eq!(told(Expected(Gaussian), 6, &target), "");
        assert_eq!(told(Mixture::new(student), 6, &target), "");
        assert_eq!(told(Mixture::new(median), 3, &target), "");
    }

    #[test]
    fn labels_that_are_not_classes_are_refused() {
        let target = |labels: Vec<i64>| {
            let rows = labels.len();
            Tensor::<1, Int>::from_data(TensorData::new(labels, [rows]), &Device::default())
        };
        let text = |label: i64, row: usize| {
            format!(
                "data: the label {label} in row {row} of the batch is not a class: the network \
                 has 3 outputs, and labels count from 0 to below that; change the last layer or \
                 the labels"
            )
        };
        assert_eq!(told(Expected(Categorical), 3, &target(vec![0, 2, 3])), text(3, 2));
        assert_eq!(told(Mixture::new(Categorical), 3, &target(vec![0, -1, 5])), text(-1, 1));
        assert_eq!(told(Mixture::new(Categorical), 3, &target(vec![0, 1, 2])), "");
    }
}
