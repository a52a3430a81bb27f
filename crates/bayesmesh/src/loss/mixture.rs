//! Negative log-likelihood of the mixture over draws.

use burn::tensor::Tensor;

use super::{Combine, Likelihood, Loss, Reading};
use crate::error::{Error, Result};

/// `L = −ln( 1/S Σ_s p(y∣ŷ_s) + ε )`: the negative log-likelihood of the predictive distribution.
///
/// `Mixture::new(Categorical)` is the cross entropy of the mean probabilities; with ε = 1e-5 it is
/// torch_blue's `Categorical`. The summary is `ln p(y∣ŷ_s)`, combined by log-sum-exp.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixture<L> {
    likelihood: L,
    floor: f32,
}

impl<L: Likelihood> Mixture<L> {
    /// Without a floor: ε = 0.
    pub fn new(likelihood: L) -> Self {
        Self { likelihood, floor: 0.0 }
    }

    /// Adds ε to the mean density, which bounds the loss of an example by −ln ε.
    pub fn with_floor(mut self, floor: f32) -> Result<Self> {
        if !(floor.is_finite() && floor >= 0.0) {
            return Err(Error::Setting(format!(
                "a floor of {floor} under a density is not possible; choose zero or a positive \
                 number"
            )));
        }
        self.floor = floor;
        Ok(self)
    }
}

impl<L: Likelihood> Loss for Mixture<L> {
    type Target = L::Target;
    fn combine(&self) -> Combine {
        Combine::LogSumExp
    }

    fn summary(&self, output: Tensor<2>, target: &L::Target) -> Tensor<2> {
        self.likelihood.log_density(output, target)
    }

    fn value(&self, combined: Tensor<2>, draws: usize, _target: &L::Target) -> Tensor<1> {
        let log_mean = combined - (draws as f32).ln();
        let loss = match self.floor {
            0.0 => -log_mean,
            floor => -(log_mean.exp() + floor).log(),
        };
        loss.squeeze_dim(1)
    }

    fn reading(&self) -> Reading {
        self.likelihood.reading()
    }
}
