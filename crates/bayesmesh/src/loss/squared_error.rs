//! Squared errors.

use burn::tensor::Tensor;

use super::likelihood::{assert_columns, check_columns};
use super::{ByOutput, Combine, Loss};
use crate::error::Result;

/// `L = mean over draws and outputs of (ŷ_s − y)²`. Linear in the draws.
///
/// It is also a likelihood: up to a constant the negative logarithm of a Gaussian of variance ½, so
/// that under [`MeanField`](crate::MeanField) the posterior of a network with one output is that
/// for noise of σ² = ½ (with K outputs, K/2), whatever the noise of the data. Where it is known,
/// say so by `Expected(Gaussian::fixed(σ)?)` ([`Gaussian::fixed`](super::Gaussian::fixed)).
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedSquaredError;

impl Loss for ExpectedSquaredError {
    type Target = Tensor<2>;
    fn combine(&self) -> Combine {
        Combine::Mean
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        assert_columns(&output, target.dims()[1], "values");
        (output - target.clone()).square()
    }

    fn value(&self, squares: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        self.over_outputs(self.terms(squares, draws, target))
    }

    fn leaves_noise_open(&self) -> bool {
        true
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], "values")
    }
}

impl ByOutput for ExpectedSquaredError {
    fn terms(&self, squares: Tensor<2>, _draws: usize, _target: &Tensor<2>) -> Tensor<2> {
        squares
    }
}

/// `L = mean over outputs of (1/S Σ_s ŷ_s − y)²`: the error of the mean prediction.
///
/// Not linear: the mean over ranks of the errors of local means exceeds it by the variance of the
/// local means, which is what the local mode optimises.
#[derive(Clone, Copy, Debug, Default)]
pub struct SquaredErrorOfMean;

impl Loss for SquaredErrorOfMean {
    type Target = Tensor<2>;
    fn combine(&self) -> Combine {
        Combine::Sum
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        assert_columns(&output, target.dims()[1], "values");
        output
    }

    fn value(&self, sum: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        self.over_outputs(self.terms(sum, draws, target))
    }

    fn leaves_noise_open(&self) -> bool {
        true
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], "values")
    }
}

impl ByOutput for SquaredErrorOfMean {
    fn terms(&self, sum: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<2> {
        (sum / draws as f32 - target.clone()).square()
    }
}
