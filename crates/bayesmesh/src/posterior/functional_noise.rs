//! Functional noise: a random vector that the network's function depends on.

use super::{Parameters, Posterior};
use crate::draw::Draw;
use crate::network::Network;

/// Functional noise (Alet et al. 2025, "Skillful joint probabilistic weather forecasting from
/// marginals"): the weights are points, and what differs from draw to draw is one vector
/// `z ~ N(0, I)` that changes the function everywhere at once. The network asks for it by
/// [`Draw::latent`] and makes scale and shift of its normalisations depend on it, e.g. by a
/// [`NoiseMap`](crate::NoiseMap). Dropout, if the network has any, stays on in prediction.
///
/// Train it with a loss of all draws, such as the CRPS, that rewards spread where it is due.
#[derive(Clone, Debug)]
pub struct FunctionalNoise<N> {
    parameters: Parameters<N>,
}

impl<N: Network> FunctionalNoise<N> {
    /// Wraps a network.
    pub fn new(network: N) -> Self {
        Self { parameters: Parameters::new(network) }
    }
}

impl<N: Network> Posterior for FunctionalNoise<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.parameters
    }

    fn adapt(&self, draw: Draw) -> Draw {
        draw.with_latent()
    }

    fn relies_on_latent(&self) -> bool {
        true
    }
}
