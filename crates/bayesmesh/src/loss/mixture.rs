//! Negative log-likelihood of the mixture over draws.

use bayesmesh_schema::Keys;
use burn::tensor::Tensor;
use serde::Deserialize;

use super::{Combine, Likelihood, Loss, Reading};
use crate::error::{Error, Result};

/// `L = −ln( 1/S Σ_s p(y∣ŷ_s) + ε )`: the negative log-likelihood of the predictive distribution.
///
/// `Mixture::new(Categorical)` is the cross entropy of the mean probabilities; with ε = 1e-5 it is
/// torch_blue's `Categorical`. The summary is `ln p(y∣ŷ_s)`, combined by log-sum-exp.
///
/// Of an example with several outputs it takes the joint density, `p(y∣ŷ_s) = Π_k p(y_k∣ŷ_s)`, or
/// with [`by_output`](Self::by_output) that of every output on its own.
#[derive(Clone, Copy, Debug, Default, Keys, Deserialize)]
pub struct Mixture<L> {
    #[serde(skip)]
    likelihood: L,
    /// Added to the mean probability, which bounds the loss of an example.
    #[key(default = 0.0, at_least = 0, also("eps", "epsilon"))]
    floor: f32,
    #[serde(skip)]
    by_output: bool,
}

impl<L: Likelihood> Mixture<L> {
    /// Without a floor: ε = 0.
    pub fn new(likelihood: L) -> Self {
        Self { likelihood, floor: 0.0, by_output: false }
    }

    /// A mixture for every output: `L = −Σ_k ln( 1/S Σ_s p(y_k∣ŷ_s) + ε )`. What intervals for
    /// single outputs need; the joint mixture is dominated by the draw that fits all of them best.
    #[must_use]
    pub fn by_output(mut self) -> Self {
        self.by_output = true;
        self
    }

    /// Adds ε to the mean density, which bounds the loss of an example by −ln ε.
    pub fn with_floor(self, floor: f32) -> Result<Self> {
        Self { floor, ..self }.checked()
    }

    /// Refuses what is out of range.
    pub(super) fn checked(self) -> Result<Self> {
        let floor = self.floor;
        if !(floor.is_finite() && floor >= 0.0) {
            return Err(Error::Setting(format!(
                "a floor of {floor} under a density is not possible; choose zero or a positive \
                 number"
            )));
        }
        Ok(self)
    }
}

impl<L: Likelihood> Loss for Mixture<L> {
    type Target = L::Target;
    fn combine(&self) -> Combine {
        Combine::LogSumExp
    }

    fn summary(&self, output: Tensor<2>, target: &L::Target) -> Tensor<2> {
        let log_density = self.likelihood.log_density(output, target);
        if self.by_output { log_density } else { log_density.sum_dim(1) }
    }

    fn value(&self, combined: Tensor<2>, draws: usize, _target: &L::Target) -> Tensor<1> {
        let log_mean = combined - (draws as f32).ln();
        let loss = match self.floor {
            0.0 => -log_mean,
            floor => -(log_mean.exp() + floor).log(),
        };
        loss.sum_dim(1).squeeze_dim(1)
    }

    fn reading(&self) -> Reading {
        self.likelihood.reading()
    }

    fn check(&self, outputs: usize, target: &L::Target) -> Result<()> {
        self.likelihood.check(outputs, target)
    }
}
