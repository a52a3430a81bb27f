//! Expected negative log-likelihood.

use burn::tensor::Tensor;

use super::{Combine, Likelihood, Loss, Reading};
use crate::error::Result;

/// `L = mean over draws of −ln p(y∣ŷ_s)`: the data term of the evidence lower bound.
///
/// `Expected(Categorical)` is the mean over draws of the cross entropy. Linear in the draws:
/// averaging gradients is exact and draws stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected<L>(pub L);

impl<L: Likelihood> Loss for Expected<L> {
    type Target = L::Target;
    fn combine(&self) -> Combine {
        Combine::Mean
    }

    fn summary(&self, output: Tensor<2>, target: &L::Target) -> Tensor<2> {
        -self.0.log_density(output, target).sum_dim(1)
    }

    fn reading(&self) -> Reading {
        self.0.reading()
    }

    fn check(&self, outputs: usize, target: &L::Target) -> Result<()> {
        self.0.check(outputs, target)
    }
}
