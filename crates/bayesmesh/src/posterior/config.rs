//! Any posterior that a recipe can name.

use bayesmesh_schema::Kinds;
use serde::Deserialize;

use super::{Ensemble, FunctionalNoise, McDropout, MeanFieldConfig, Point, Posterior};
use crate::error::Result;
use crate::network::Network;

/// What the weights are believed to be, and so what differs from draw to draw.
#[derive(Clone, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[section(example = "kind = \"mc-dropout\"")]
pub enum PosteriorConfig {
    /// as many ordinary networks as `train.samples` says, each from first weights of its own; a
    /// prediction has at most as many draws; dropout in training only
    Ensemble,
    /// random numbers that the network takes, a vector or fields of them, differ from draw to draw
    FunctionalNoise,
    /// dropout stays on in prediction; its masks differ from draw to draw
    McDropout,
    /// variational inference with an independent Gaussian for every weight
    MeanField(MeanFieldConfig),
    /// the ordinary network, for comparison; dropout in training only
    Point,
}

impl PosteriorConfig {
    /// The posterior around a network.
    pub fn init<N: Network + 'static>(self, network: N) -> Result<Box<dyn Posterior<Network = N>>> {
        Ok(match self {
            Self::Ensemble => Box::new(Ensemble::new(network)),
            Self::FunctionalNoise => Box::new(FunctionalNoise::new(network)),
            Self::McDropout => Box::new(McDropout::new(network)),
            Self::MeanField(config) => Box::new(config.init(network)?),
            Self::Point => Box::new(Point::new(network)),
        })
    }

    /// How many trainable numbers it has for a weight.
    pub fn numbers_per_weight(&self) -> u64 {
        match self {
            Self::MeanField(_) => 2,
            Self::Ensemble | Self::FunctionalNoise | Self::McDropout | Self::Point => 1,
        }
    }
}
