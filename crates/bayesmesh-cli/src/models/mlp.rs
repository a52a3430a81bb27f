//! The multi-layer perceptron.

use bayesmesh_models::{Mlp, MlpConfig};
use burn::tensor::Device;

use super::{Model, Shape};
use crate::recipe::{Conflict, Recipe};

impl Model for MlpConfig {
    const KIND: &'static str = "mlp";
    const NOUN: &'static str = "a perceptron";
    type Network = Mlp;

    fn shaped(self, shape: &Shape) -> Self {
        let (inputs, categories) = (shape.inputs.iter().product(), shape.categories.clone());
        Self { inputs, categories, outputs: shape.outputs, ..self }
    }

    fn init(&self, device: &Device) -> Mlp {
        self.init(device)
    }

    fn weights(&self) -> u64 {
        self.weights()
    }

    fn activations(&self) -> u64 {
        self.activations()
    }

    /// Draws that differ by dropout need some.
    fn conflicts(&self, recipe: &Recipe) -> Vec<Conflict> {
        let conflict = match (recipe.kind("posterior"), self.hidden.is_empty()) {
            _ if self.input_dropout > 0.0 => return Vec::new(),
            ("mc-dropout", true) => Conflict::new(
                "model.hidden",
                "`mc-dropout` drops hidden units, but the network has none: all draws would be the \
                 same",
                "add a hidden layer, for example `hidden = [128]`, or use another posterior",
            ),
            ("mc-dropout", false) if self.dropout == 0.0 => Conflict::new(
                "model.dropout",
                "`mc-dropout` without dropout has no randomness: all draws would be the same",
                "set for example `model.dropout = 0.1`, or use `posterior.kind = \"point\"` or \
                 `\"mean-field\"`",
            ),
            _ => return Vec::new(),
        };
        vec![conflict]
    }
}
