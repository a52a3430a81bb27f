//! A deep ensemble.

use super::{Ownership, Parameters, Posterior};
use crate::draw::Draw;
use crate::network::Network;

/// A deep ensemble (Lakshminarayanan et al. 2017): M ordinary networks that differ in how they
/// begin, together `p(y∣x) = 1/M Σ_m p(y∣x, θ_m)`.
///
/// Each draw is a member with weights, gradients and an optimiser's state of its own, on the sample
/// rank of that draw only; M is the [number of draws](crate::Settings::samples) of a step. Under a
/// mean over draws ([`Expected`](crate::loss::Expected)) each member is trained for itself, as it
/// would be alone, and nothing is sent along the sample axis. Under the likelihood of the mixture
/// ([`Mixture`](crate::loss::Mixture)) all are trained together.
///
/// A prediction has at most M draws, which are the first members. Dropout, if the network has any,
/// is on in training and off in prediction: members differ by their weights.
#[derive(Clone, Debug)]
pub struct Ensemble<N> {
    parameters: Parameters<N>,
}

impl<N: Network> Ensemble<N> {
    /// An ensemble of networks like this one. The trainer makes the members, each from random
    /// numbers of its own.
    pub fn new(network: N) -> Self {
        Self { parameters: Parameters::new(network) }
    }
}

impl<N: Network> Posterior for Ensemble<N> {
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

    fn adapt(&self, draw: Draw) -> Draw {
        if draw.is_for_prediction() { draw.without_dropout() } else { draw }
    }
}
