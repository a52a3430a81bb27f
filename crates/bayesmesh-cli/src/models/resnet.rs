//! The residual network.

use bayesmesh_models::{ResNet, ResNetConfig};
use burn::tensor::Device;

use super::swin::randomness;
use super::{Model, Shape};
use crate::recipe::{Conflict, Recipe};

impl Model for ResNetConfig {
    const KIND: &'static str = "resnet";
    const NOUN: &'static str = "a residual convolutional network";
    type Network = ResNet;

    fn shaped(self, shape: &Shape) -> Self {
        let [channels, image, _] = shape.inputs[..] else {
            panic!("images have channels, height and width, not {:?}", shape.inputs);
        };
        Self { image, channels, classes: shape.outputs, ..self }
    }

    fn init(&self, device: &Device) -> ResNet {
        self.init(device)
    }

    fn weights(&self) -> u64 {
        self.weights()
    }

    fn activations(&self) -> u64 {
        self.activations()
    }

    fn conflicts(&self, recipe: &Recipe) -> Vec<Conflict> {
        let sizes = self.check().err().map(|message| {
            Conflict::new("model.width", message, "for example `width = 32` and `groups = 8`")
        });
        sizes.into_iter().chain(randomness(self.dropout, 0, recipe)).collect()
    }
}
