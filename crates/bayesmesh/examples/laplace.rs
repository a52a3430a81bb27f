//! Mean-field variational inference with the Laplace (double exponential) distribution, as a
//! posterior of one's own:
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

/// ζ of each weight.
fn noise(stream: &Stream, weights: usize) -> impl Iterator<Item = f32> {
    let mut uniform = vec![0.0; weights];
    stream.fill_uniform(0, &mut uniform);
    // The numbers are multiples of 2⁻²⁴; half of that more keeps them from the ends.
    uniform
        .into_iter()
        .map(|u| u + 2f32.powi(-25) - 0.5)
        .map(|u| -u.signum() * (-2.0 * u.abs()).ln_1p())
}

impl Family for Laplace {
    fn names(&self) -> &[&str] {
        &["mean", "rho"]
    }

    fn sample(&self, stream: &Stream, numbers: &[f32], weights: &mut [f32]) {
        let (mean, rho) = numbers.split_at(weights.len());
        let draws = noise(stream, weights.len()).zip(mean.iter().zip(rho));
        weights.iter_mut().zip(draws).for_each(|(w, (zeta, (m, r)))| *w = m + r.exp() * zeta);
    }

    fn pull_back(&self, stream: &Stream, numbers: &[f32], gradient: &[f32], into: &mut [f32]) {
        let rho = &numbers[gradient.len()..];
        let (by_mean, by_rho) = into.split_at_mut(gradient.len());
        by_mean.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
        let terms = noise(stream, gradient.len()).zip(rho.iter().zip(gradient));
        by_rho.iter_mut().zip(terms).for_each(|(sum, (zeta, (r, g)))| *sum += g * r.exp() * zeta);
    }

    fn deviations(&self, numbers: &[f32]) -> Vec<f32> {
        numbers[numbers.len() / 2..].iter().map(|rho| 2f32.sqrt() * rho.exp()).collect()
    }

    fn id(&self) -> String {
        "laplace".to_owned()
    }
}

/// The posterior, with the scale s of its prior.
#[derive(Clone, Debug)]
pub struct MeanFieldLaplace<N> {
    parameters: Parameters<N>,
    prior: f32,
}

impl<N: Network> MeanFieldLaplace<N> {
    pub fn new(network: N, prior: f32) -> Self {
        let laplace = || Some((Arc::new(Laplace) as Arc<dyn Family>, vec![0.02f32.ln()]));
        let choose = |slot: &_| bayesmesh::posterior::Slot::is_point_by_default(slot);
        let parameters = Parameters::new(network);
        Self {
            parameters: parameters
                .with_families(|slot| if choose(slot) { None } else { laplace() }),
            prior,
        }
    }
}

impl<N: Network> Posterior for MeanFieldLaplace<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.parameters
    }

    fn penalty(&self, weight: f32, range: Range<usize>, gradient: &mut [f32]) -> f64 {
        self.parameters.penalty(weight, range, gradient, |_, numbers, derivatives| {
            let (mean, b, s) = (numbers[0], numbers[1].exp(), self.prior);
            let tail = (-mean.abs() / b).exp();
            derivatives[0] = mean.signum() / s * (1.0 - tail);
            derivatives[1] = (b + mean.abs()) / s * tail - 1.0;
            f64::from((s / b).ln() + mean.abs() / s + b / s * tail - 1.0)
        })
    }
}
