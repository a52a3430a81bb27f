//! The shifted-window transformer on the globe.

use bayesmesh_models::{Swin, SwinConfig};
use burn::tensor::Device;

use super::{Model, Shape};
use crate::recipe::{Conflict, Recipe};

impl Model for SwinConfig {
    const KIND: &'static str = "swin";
    const NOUN: &'static str = "a shifted-window transformer";
    type Network = Swin;

    fn shaped(self, shape: &Shape) -> Self {
        let [channels, latitudes, longitudes] = shape.inputs[..] else {
            panic!("weather has channels, latitudes and longitudes, not {:?}", shape.inputs);
        };
        let variables = shape.outputs / (latitudes * longitudes);
        Self { channels, variables, latitudes, longitudes, ..self }
    }

    fn init(&self, device: &Device) -> Swin {
        self.init(device)
    }

    fn weights(&self) -> u64 {
        self.weights()
    }

    fn activations(&self) -> u64 {
        self.activations()
    }

    fn checkpointed_activations(&self) -> Option<u64> {
        let checkpointed = Self { checkpoint_blocks: true, ..self.clone() };
        (!self.checkpoint_blocks).then(|| checkpointed.activations())
    }

    fn conflicts(&self, recipe: &Recipe) -> Vec<Conflict> {
        let known = self.longitudes > 0;
        let sizes = self.check().err().filter(|_| known).map(|message| {
            let help = "change the key that is named, or the grid of `[data]`";
            Conflict::new("model.window", message, help)
        });
        sizes
            .into_iter()
            .chain(randomness(self.dropout, self.noise + self.noise_fields, recipe))
            .collect()
    }
}

/// Draws that differ by something need it in the network.
pub(super) fn randomness(dropout: f64, noise: usize, recipe: &Recipe) -> Option<Conflict> {
    match recipe.kind("posterior") {
        "mc-dropout" if dropout == 0.0 => Some(Conflict::new(
            "model.dropout",
            "`mc-dropout` without dropout has no randomness: all draws would be the same",
            "set for example `model.dropout = 0.1`, or use another posterior",
        )),
        "functional-noise" if noise == 0 => Some(Conflict::new(
            "model.noise",
            "`functional-noise` needs a network that takes it: all draws would be the same",
            "set for example `model.noise_fields = 4`, or use another posterior",
        )),
        _ => None,
    }
}
