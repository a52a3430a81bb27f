//! Monte Carlo dropout.

use super::{Parameters, Posterior};
use crate::network::Network;

/// Monte Carlo dropout (Gal & Ghahramani 2016): dropout stays on in prediction, and the masks are
/// what differs from draw to draw. The network calls [`Draw::dropout`](crate::Draw::dropout).
#[derive(Clone, Debug)]
pub struct McDropout<N> {
    parameters: Parameters<N>,
}

impl<N: Network> McDropout<N> {
    /// Wraps a network.
    pub fn new(network: N) -> Self {
        Self { parameters: Parameters::new(network) }
    }
}

impl<N: Network> Posterior for McDropout<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.parameters
    }

    fn relies_on_dropout(&self) -> bool {
        true
    }
}
