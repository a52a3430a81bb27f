//! A deep ensemble (Lakshminarayanan et al. 2017), as a posterior of one's own: M networks that
//! differ in how they begin,
//!
//!     p(y∣x) = 1/M Σ_m p(y∣x, θ_m),   θ_m ← θ_m − η·∇L(θ_m).
//!
//! Each draw is a member with numbers of its own, on the sample rank of that draw only. With a mean
//! over draws as the loss (`Expected`) each is trained for itself, with the likelihood of the
//! mixture (`Mixture`) all are trained together.

use bayesmesh::posterior::{Ownership, Parameters};
use bayesmesh::{Draw, Network, Posterior};

/// One member; the trainer makes the others.
#[derive(Clone, Debug)]
pub struct DeepEnsemble<N> {
    parameters: Parameters<N>,
}

impl<N: Network> DeepEnsemble<N> {
    pub fn new(network: N) -> Self {
        Self { parameters: Parameters::new(network) }
    }
}

impl<N: Network> Posterior for DeepEnsemble<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.parameters
    }

    fn ownership(&self) -> Ownership {
        Ownership::PerDraw
    }

    /// Dropout in training only: members differ by their weights.
    fn adapt(&self, draw: Draw) -> Draw {
        if draw.is_for_prediction() { draw.without_dropout() } else { draw }
    }
}
