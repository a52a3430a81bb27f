//! The vision transformer.

use bayesmesh_models::{Vit, VitConfig};
use burn::tensor::Device;

use super::{Model, Shape};
use crate::recipe::{Conflict, Recipe};

impl Model for VitConfig {
    const KIND: &'static str = "vit";
    const NOUN: &'static str = "a vision transformer";
    type Network = Vit;

    fn shaped(self, shape: &Shape) -> Self {
        let [channels, image, _] = shape.inputs[..] else {
            panic!("images have channels, height and width, not {:?}", shape.inputs);
        };
        Self { image, channels, classes: shape.outputs, ..self }
    }

    fn init(&self, device: &Device) -> Vit {
        self.init(device)
    }

    fn weights(&self) -> u64 {
        self.weights()
    }

    fn activations(&self) -> u64 {
        self.activations()
    }

    fn conflicts(&self, recipe: &Recipe) -> Vec<Conflict> {
        [width(self), patches(self), dropout(recipe)].into_iter().flatten().collect()
    }
}

/// The heads of the attention and the positions divide a token.
fn width(&VitConfig { width, heads, .. }: &VitConfig) -> Option<Conflict> {
    let (divisor, why) = match (width % heads, width % 4) {
        (0, 0) => return None,
        (0, _) => (4, "sines and cosines of two directions are added to it".to_owned()),
        _ => (heads, format!("its {heads} heads share it")),
    };
    // The least common multiple of both.
    let step = (1..=4).filter_map(|n| heads.checked_mul(n)).find(|n| n % 4 == 0)?;
    let below = width / step * step;
    let near = match below {
        0 => format!("`width = {step}`"),
        _ => format!("`width = {below}` or `width = {}`", below.saturating_add(step)),
    };
    Some(Conflict::new(
        "model.width",
        format!("a width of {width} is not divisible by {divisor}: {why}"),
        format!("use for example {near}"),
    ))
}

fn patches(&VitConfig { patch, image, .. }: &VitConfig) -> Option<Conflict> {
    (!image.is_multiple_of(patch)).then(|| {
        let divisors = (1..=image).filter(|side| image.is_multiple_of(*side));
        let divisors: Vec<String> = divisors.map(|side| side.to_string()).collect();
        let (last, first) = divisors.split_last().expect("a size divides itself");
        Conflict::new(
            "model.patch",
            format!("patches of {patch}×{patch} pixels do not divide images of {image}×{image}"),
            format!("use {} or {last}", first.join(", ")),
        )
    })
}

fn dropout(recipe: &Recipe) -> Option<Conflict> {
    (recipe.kind("posterior") == "mc-dropout").then(|| {
        Conflict::new(
            "posterior.kind",
            "`mc-dropout` drops hidden units, but a vision transformer has no dropout: all draws \
             would be the same",
            "use `kind = \"mean-field\"`, or `kind = \"point\"` for comparison",
        )
    })
}
