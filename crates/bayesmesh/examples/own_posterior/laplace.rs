//! Mean-field variational inference with the Laplace (double exponential) distribution:
//!
//!     q(w) = 1/(2b)·exp(−|w − μ|/b),  b = exp(ρ);  a draw is w = μ + b·ζ,
//!     ζ = −sgn(u)·ln(1 − 2|u|), u ~ U(−½, ½);   so ∂w/∂μ = 1, ∂w/∂ρ = b·ζ;
//!     KL(q‖p) = Σ ln(s/b) + |μ|/s + b/s·exp(−|μ|/b) − 1   for the prior p of μ = 0 and b = s.

use std::{ops::Range, sync::Arc};

use bayesmesh::posterior::{Family, Parameters};
use bayesmesh::{Network, Posterior, Stream};

/// A Laplace distribution for every weight: the numbers μ and ρ.
#[derive(Debug)]
struct Laplace;

/// b·ζ of each weight.
fn offsets(stream: &Stream, rho: &[f32]) -> Vec<f32> {
    let mut offsets = vec![0.0; rho.len()];
    stream.fill_uniform(0, &mut offsets);
    for (offset, rho) in offsets.iter_mut().zip(rho) {
        // Uniform numbers are multiples of 2⁻²⁴; half of that more keeps them from the ends.
        let u = *offset + 2f32.powi(-25) - 0.5;
        *offset = -rho.exp() * u.signum() * (-2.0 * u.abs()).ln_1p();
    }
    offsets
}

impl Family for Laplace {
    fn names(&self) -> &[&str] {
        &["mean", "rho"]
    }
    fn sample(&self, stream: &Stream, numbers: &[f32], weights: &mut [f32]) {
        let (mean, rho) = numbers.split_at(weights.len());
        let offsets = offsets(stream, rho);
        weights.iter_mut().zip(mean).zip(offsets).for_each(|((w, m), offset)| *w = m + offset);
    }
    fn pull_back(&self, stream: &Stream, numbers: &[f32], gradient: &[f32], into: &mut [f32]) {
        let offsets = offsets(stream, &numbers[gradient.len()..]);
        for (i, g) in gradient.iter().enumerate() {
            into[i] += g;
            into[gradient.len() + i] += g * offsets[i];
        }
    }
    fn deviations(&self, numbers: &[f32]) -> Vec<f32> {
        numbers[numbers.len() / 2..].iter().map(|rho| 2f32.sqrt() * rho.exp()).collect()
    }
    fn id(&self) -> String {
        "laplace".to_owned()
    }
}

/// The posterior; `prior` is s.
#[derive(Clone, Debug)]
pub struct MeanFieldLaplace<N>(Parameters<N>, f32);

impl<N: Network> MeanFieldLaplace<N> {
    pub fn new(network: N, prior: f32) -> Self {
        let family = |_: &_| Some((Arc::new(Laplace) as Arc<dyn Family>, vec![0.02f32.ln()]));
        Self(Parameters::new(network).with_families(family), prior)
    }
}

impl<N: Network> Posterior for MeanFieldLaplace<N> {
    type Network = N;
    fn parameters(&self) -> &Parameters<N> {
        &self.0
    }
    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.0
    }
    fn penalty(&self, weight: f32, range: Range<usize>, gradient: &mut [f32]) -> f64 {
        self.0.penalty(weight, range, gradient, |_, numbers, derivatives| {
            let (mean, b, s) = (numbers[0], numbers[1].exp(), self.1);
            let tail = (-mean.abs() / b).exp();
            derivatives[0] = mean.signum() / s * (1.0 - tail);
            derivatives[1] = (b + mean.abs()) / s * tail - 1.0;
            f64::from((s / b).ln() + mean.abs() / s + b / s * tail - 1.0)
        })
    }
}
