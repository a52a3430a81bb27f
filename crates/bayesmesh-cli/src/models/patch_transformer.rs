//! The transformer of series.

use bayesmesh_models::{PatchTransformer, PatchTransformerConfig};
use burn::tensor::Device;

use super::{Model, Shape};
use crate::recipe::{Conflict, Recipe};

impl Model for PatchTransformerConfig {
    const KIND: &'static str = "patch-transformer";
    const NOUN: &'static str = "a transformer of series";
    type Network = PatchTransformer;

    fn shaped(self, shape: &Shape) -> Self {
        Self {
            // A row whose past is not known yet is all past.
            history: shape.history.unwrap_or([1, shape.inputs[0]]),
            inputs: shape.inputs[0],
            categories: shape.categories.clone(),
            outputs: shape.outputs,
            ..self
        }
    }

    fn init(&self, device: &Device) -> PatchTransformer {
        self.init(device)
    }

    fn weights(&self) -> u64 {
        self.weights()
    }

    fn activations(&self) -> u64 {
        self.activations()
    }

    fn conflicts(&self, recipe: &Recipe) -> Vec<Conflict> {
        [width(self), pieces(self), dropout(self, recipe)].into_iter().flatten().collect()
    }
}

/// The heads of the attention divide a token, whose place is sines and cosines.
fn width(
    &PatchTransformerConfig { width, heads, .. }: &PatchTransformerConfig,
) -> Option<Conflict> {
    let step = if heads.is_multiple_of(2) { heads } else { heads.checked_mul(2)? };
    (!width.is_multiple_of(step)).then(|| {
        let near = (width / step).max(1) * step;
        Conflict::new(
            "model.width",
            format!("a width of {width} is odd, or {heads} heads do not divide it"),
            format!("use for example `width = {near}`"),
        )
    })
}

fn pieces(config: &PatchTransformerConfig) -> Option<Conflict> {
    let (patch, [_, steps]) = (config.patch?, config.history);
    (!steps.is_multiple_of(patch)).then(|| {
        let divisors = (1..=steps).filter(|patch| steps.is_multiple_of(*patch));
        let divisors: Vec<String> = divisors.map(|patch| patch.to_string()).collect();
        Conflict::new(
            "model.patch",
            format!("pieces of {patch} steps do not divide a past of {steps}"),
            format!("use one of {}, or change `data.inputs`", divisors.join(", ")),
        )
    })
}

/// Draws that differ by dropout need some.
fn dropout(config: &PatchTransformerConfig, recipe: &Recipe) -> Option<Conflict> {
    (recipe.kind("posterior") == "mc-dropout" && config.dropout == 0.0).then(|| {
        Conflict::new(
            "model.dropout",
            "`mc-dropout` without dropout has no randomness: all draws would be the same",
            "set for example `model.dropout = 0.1`, or use another posterior",
        )
    })
}
