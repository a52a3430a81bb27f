//! Gaussian weights.

use bayesmesh_kernels::gaussian::{self, Scale};
use bayesmesh_kernels::stream::Stream;

use super::Family;

/// A Gaussian with the numbers `[μ | ρ]`: `w = μ + σ(ρ)·ε`, `∂L/∂μ = g`, `∂L/∂ρ = g·ε·σ'(ρ)`.
///
/// The noise ε is made again in the backward pass instead of being kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian(
    /// How σ is made from ρ.
    pub Scale,
);

impl Gaussian {
    /// One of each kind.
    pub(super) const ALL: [Self; 2] = [Self(Scale::Exp), Self(Scale::Softplus)];
}

impl Family for Gaussian {
    fn names(&self) -> &[&str] {
        &["mean", "rho"]
    }

    fn sample(&self, noise: &Stream, numbers: &[f32], weights: &mut [f32]) {
        let (mean, rho) = numbers.split_at(weights.len());
        gaussian::sample(noise, 0, self.0, mean, rho, weights);
    }

    fn pull_back(&self, noise: &Stream, numbers: &[f32], gradient: &[f32], into: &mut [f32]) {
        let rho = &numbers[gradient.len()..];
        let (grad_mean, grad_rho) = into.split_at_mut(gradient.len());
        gaussian::add_sample_backward(noise, 0, self.0, rho, gradient, grad_mean, grad_rho);
    }

    fn deviations(&self, numbers: &[f32]) -> Vec<f32> {
        let rho = &numbers[numbers.len() / 2..];
        rho.iter().map(|&rho| self.0.apply(rho)).collect()
    }

    fn id(&self) -> String {
        match self.0 {
            Scale::Exp => "gaussian, exp".to_owned(),
            Scale::Softplus => "gaussian, softplus".to_owned(),
        }
    }
}
