//! The ordinary network.

use super::{Parameters, Posterior};
use crate::draw::Draw;
use crate::network::Network;

/// A point estimate: every draw is the network itself. Dropout, if the network has any, is on in
/// training and off in prediction. The baseline that a Bayesian network is compared with.
#[derive(Clone, Debug)]
pub struct Point<N> {
    parameters: Parameters<N>,
}

impl<N: Network> Point<N> {
    /// Wraps a network.
    pub fn new(network: N) -> Self {
        Self { parameters: Parameters::new(network) }
    }
}

impl<N: Network> Posterior for Point<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.parameters
    }

    fn adapt(&self, draw: Draw) -> Draw {
        if draw.is_for_prediction() { draw.without_dropout() } else { draw }
    }
}
