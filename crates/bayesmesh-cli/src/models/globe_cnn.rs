//! The convolutional network on the globe.

use bayesmesh_models::{GlobeCnn, GlobeCnnConfig};
use burn::tensor::Device;

use super::swin::randomness;
use super::{Model, Shape};
use crate::recipe::{Conflict, Recipe};

impl Model for GlobeCnnConfig {
    const KIND: &'static str = "globe-cnn";
    const NOUN: &'static str = "a convolutional network on the globe";
    type Network = GlobeCnn;

    fn shaped(self, shape: &Shape) -> Self {
        let [channels, latitudes, longitudes] = shape.inputs[..] else {
            panic!("weather has channels, latitudes and longitudes, not {:?}", shape.inputs);
        };
        let variables = shape.outputs / (latitudes * longitudes);
        Self { channels, variables, latitudes, longitudes, ..self }
    }

    fn init(&self, device: &Device) -> GlobeCnn {
        self.init(device)
    }

    fn weights(&self) -> u64 {
        self.weights()
    }

    fn activations(&self) -> u64 {
        self.activations()
    }

    fn conflicts(&self, recipe: &Recipe) -> Vec<Conflict> {
        let known = self.longitudes > 0;
        let sizes = self.check().err().filter(|_| known).map(|message| {
            let help = "change the key that is named, or the grid of `[data]`";
            Conflict::new("model.patch", message, help)
        });
        sizes
            .into_iter()
            .chain(randomness(self.dropout, self.noise + self.noise_fields, recipe))
            .collect()
    }
}
