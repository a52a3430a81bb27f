//! The Gaussian that the draws themselves form.

use bayesmesh_schema::Keys;
use burn::tensor::Tensor;
use serde::Deserialize;

use super::likelihood::{assert_columns, check_columns};
use super::{ByOutput, Combine, Loss};
use crate::error::{Error, Result};

/// Negative log-likelihood of a Gaussian with the mean and the standard deviation of the draws:
/// `L = ½ Σ_k [ (y_k − μ̂_k)²/v_k + ln v_k ]`, `v = σ̂² + ε`, σ̂² the unbiased variance of ŷ over
/// all draws. The constant ½ ln 2π is left out. torch_blue's `MeanFieldNormal` with ε = 1e-10.
///
/// Needs two draws in all; in local mode, two on every rank.
#[derive(Clone, Copy, Debug, Keys, Deserialize)]
pub struct GaussianOfDraws {
    /// Added to the variance of the draws.
    #[key(default = 1e-10, at_least = 0, also("eps", "epsilon"))]
    floor: f32,
}

impl Default for GaussianOfDraws {
    fn default() -> Self {
        Self { floor: 1e-10 }
    }
}

impl GaussianOfDraws {
    /// With another ε added to the variance.
    pub fn with_floor(floor: f32) -> Result<Self> {
        Self { floor }.checked()
    }

    /// Refuses what is out of range.
    pub(super) fn checked(self) -> Result<Self> {
        let Self { floor } = self;
        if !(floor.is_finite() && floor >= 0.0) {
            return Err(Error::Setting(format!(
                "a floor of {floor} under a variance is not possible; choose zero or a positive \
                 number"
            )));
        }
        Ok(self)
    }
}

impl Loss for GaussianOfDraws {
    type Target = Tensor<2>;
    fn combine(&self) -> Combine {
        Combine::Moments
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        assert_columns(&output, target.dims()[1], "values");
        output
    }

    fn value(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        self.over_outputs(self.terms(combined, draws, target))
    }

    fn least_draws(&self) -> usize {
        2
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], "values")
    }
}

impl ByOutput for GaussianOfDraws {
    fn terms(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<2> {
        let [_, columns] = target.dims();
        let block = |index: usize| combined.clone().narrow(1, index * columns, columns);
        let variance = block(2) / (draws - 1) as f32 + self.floor;
        // Relative to the anchor first, so that a small spread keeps its digits.
        let error = (target.clone() - block(0)) - block(1);
        let terms = error.square() / variance.clone() + variance.log();
        terms * 0.5
    }

    /// A likelihood of independent outputs: their logarithms add.
    fn over_outputs(&self, terms: Tensor<2>) -> Tensor<1> {
        terms.sum_dim(1).squeeze_dim(1)
    }
}
