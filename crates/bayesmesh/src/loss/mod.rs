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
//! | [`Expected`] negative log-likelihood, [`ExpectedSquaredError`] | the draw's loss | mean | linear |
//! | [`Mixture`] of any likelihood; of [`Categorical`]: cross entropy of the mean probabilities | ln p(y∣ŷ_s) | log-sum-exp | summary |
//! | [`SquaredErrorOfMean`] | ŷ_s | sum | summary |
//! | [`GaussianOfDraws`] | ŷ_s | moments | summary |
//! | [`EnsembleCrps`] | ŷ_s | gather | gather |

mod combine;
mod crps;
mod expected;
mod gaussian_of_draws;
mod likelihood;
mod mixture;
mod squared_error;

pub use combine::{Combine, Exactness};
pub(crate) use combine::{Fold, pullback};
pub use crps::EnsembleCrps;
pub use expected::Expected;
pub use gaussian_of_draws::GaussianOfDraws;
pub use likelihood::{Categorical, FixedGaussian, Gaussian, Likelihood, Quantile, StudentT};
pub use mixture::Mixture;
pub use squared_error::{ExpectedSquaredError, SquaredErrorOfMean};

use burn::tensor::Tensor;

use crate::data::Target;

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
}

/// A loss `L = mean over rows of f(⊕_s φ(ŷ_s))`, where ⊕ is [`Combine`].
///
/// A loss of your own is two functions. The logarithm of the mean of `cosh(ŷ − y)`:
///
/// ```
/// use bayesmesh::loss::{Combine, Loss, Reading};
/// use burn::tensor::Tensor;
///
/// #[derive(Clone)]
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
pub trait Loss: Clone + Send {
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

    /// How the network's outputs are read in prediction.
    fn reading(&self) -> Reading {
        Reading::Values
    }

    /// The smallest number of draws for which the loss is defined.
    fn least_draws(&self) -> usize {
        1
    }
}
