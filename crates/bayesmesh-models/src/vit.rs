//! The vision transformer of the image classification.

use bayesmesh::{Draw, Network};
use bayesmesh_kernels::ops::{self, Activation, Epilogue};
use bayesmesh_schema::Keys;
use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

use crate::block::{Block, BlockConfig, linear, norm, norm_linear, product, sum};

/// A vision transformer: patches with fixed positions, blocks of attention and perceptron, the mean
/// over patches; the defaults are the paper's.
///
/// Sizes of a [`Vit`].
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct VitConfig {
    /// The height and the width of an image.
    #[serde(skip)]
    pub image: usize,
    /// The channels of an image.
    #[serde(skip)]
    pub channels: usize,
    /// Height and width of a patch in pixels; divides the 32 of an image. (32/patch)² patches are
    /// the tokens.
    #[key(default = 4, at_least = 1, at_most = 32, also("patch_size"))]
    pub patch: usize,
    /// Numbers in a token; divisible by `heads` and by 4.
    #[key(default = 192, at_least = 4, also("dim", "hidden", "embed_dim", "d_model"))]
    pub width: usize,
    /// Blocks of attention and perceptron.
    #[key(default = 6, at_least = 1, also("layers", "blocks"))]
    pub depth: usize,
    /// Heads of the attention, each of width/heads numbers.
    #[key(default = 3, at_least = 1, also("num_heads"))]
    pub heads: usize,
    /// Hidden units of the perceptron of a block.
    #[key(default = 768, at_least = 1, also("mlp_dim", "feedforward"))]
    pub mlp: usize,
    /// Classes that are told apart.
    #[serde(skip)]
    pub classes: usize,
}

impl VitConfig {
    /// The network of the paper: 2,676,778 weights.
    pub fn cifar10() -> Self {
        let (image, channels, patch, classes) = (32, 3, 4, 10);
        Self { image, channels, patch, width: 192, depth: 6, heads: 3, mlp: 768, classes }
    }

    /// A network of the same form that is trained in seconds.
    pub fn tiny() -> Self {
        let (image, channels, patch, classes) = (32, 3, 8, 10);
        Self { image, channels, patch, width: 32, depth: 2, heads: 2, mlp: 64, classes }
    }

    /// How many weights the network has; the largest number where it has more.
    pub fn weights(&self) -> u64 {
        let Self { channels, patch, width, depth, classes, .. } = *self;
        let pixels = product(&[patch, patch, channels]);
        let embedding =
            sum(&[product(&[2, pixels]), product(&[pixels, width]), product(&[3, width])]);
        let block = self.block().weights();
        let head = sum(&[product(&[2, width]), product(&[width, classes]), classes]);
        sum(&[product(&[depth, block]), embedding, head]) as u64
    }

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass: those of its blocks, and of the embedding patches and tokens.
    pub fn activations(&self) -> u64 {
        let Self { image, channels, patch, width, depth, .. } = *self;
        let side = image / patch.max(1);
        let block = self.block().activations();
        let embedding = sum(&[product(&[2, patch, patch, channels]), product(&[3, width])]);
        product(&[side, side, sum(&[product(&[depth, block]), embedding])]) as u64
    }

    fn block(&self) -> BlockConfig {
        let Self { width, heads, mlp, .. } = *self;
        BlockConfig { width, heads, mlp, dropout: 0.0 }
    }

    /// The network, with Burn's initial weights.
    ///
    /// # Panics
    ///
    /// If the patch does not divide the image, or the heads or 4 do not divide the width.
    pub fn init(&self, device: &Device) -> Vit {
        assert!(
            self.patch > 0 && self.image.is_multiple_of(self.patch),
            "patches of {} do not divide an image of {}",
            self.patch,
            self.image
        );
        assert!(
            self.heads > 0 && self.width.is_multiple_of(self.heads) && self.width.is_multiple_of(4),
            "a width of {} is not divisible by {} heads and by 4",
            self.width,
            self.heads
        );
        let pixels = self.patch * self.patch * self.channels;
        let norm = |width| LayerNormConfig::new(width).init(device);
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        Vit {
            patch_norm: norm(pixels),
            embed: linear(pixels, self.width),
            embed_norm: norm(self.width),
            blocks: (0..self.depth).map(|_| self.block().init(device)).collect(),
            norm: norm(self.width),
            head: linear(self.width, self.classes),
            positions: positions(self.image / self.patch, self.width),
            patch: self.patch,
        }
    }
}

/// A vision transformer: patches, normalised and embedded, with fixed positions added; blocks of
/// attention and a perceptron, each normalised before and added to what came in; the mean over
/// tokens; a linear layer to the classes. No class token and no dropout.
#[derive(Module, Debug)]
pub struct Vit {
    pub(crate) patch_norm: LayerNorm,
    pub(crate) embed: Linear,
    pub(crate) embed_norm: LayerNorm,
    pub(crate) blocks: Vec<Block>,
    pub(crate) norm: LayerNorm,
    pub(crate) head: Linear,
    #[module(skip)]
    positions: Vec<f32>,
    patch: usize,
}

impl Network for Vit {
    type Input = Tensor<4>;

    /// # Shapes
    ///
    /// - input: `[rows, channels, image, image]`
    /// - output: `[rows, classes]`
    fn forward(&self, images: Tensor<4>, draw: &Draw) -> Tensor<2> {
        let patches = ops::patches(images, self.patch);
        let embedded = norm_linear(&self.patch_norm, &self.embed, patches, Epilogue::default());
        let tokens = norm(&self.embed_norm, embedded);
        let [_, count, width] = tokens.dims();
        let positions = TensorData::new(self.positions.clone(), [1, count, width]);
        let device = tokens.device();
        let mut x = tokens + Tensor::from_data(positions, &device);
        for block in &self.blocks {
            x = block.forward(x, draw);
        }
        let pooled: Tensor<2> = norm(&self.norm, x).mean_dim(1).squeeze_dim(1);
        linear(&self.head, pooled, Activation::Identity)
    }
}

/// Where a token is: `[sin xω, cos xω, sin yω, cos yω]` with `ω_k = 10000^(−k/(n−1))` for the n
/// frequencies that four times make up the width, and x, y the column and the row of the patch.
/// Token after token, for an image of `side` patches in height and width.
fn positions(side: usize, width: usize) -> Vec<f32> {
    let count = width / 4;
    let frequency = |k: usize| 10_000f64.powf(-(k as f64) / (count.max(2) - 1) as f64);
    let mut values = Vec::with_capacity(side * side * width);
    for row in 0..side {
        for column in 0..side {
            for place in [column, row] {
                let angle = |k| place as f64 * frequency(k);
                values.extend((0..count).map(|k| angle(k).sin() as f32));
                values.extend((0..count).map(|k| angle(k).cos() as f32));
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count agrees with the network that is made, and absurd sizes are very many.
    #[test]
    fn weights_are_counted_before_they_are_made() {
        for config in [VitConfig::cifar10(), VitConfig::tiny()] {
            let network = config.init(&Device::default());
            assert_eq!(config.weights(), network.num_params() as u64);
        }
        let absurd = VitConfig { width: usize::MAX - 3, depth: usize::MAX, ..VitConfig::tiny() };
        assert_eq!((absurd.weights(), absurd.activations()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn positions_are_pytorchs() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../tests/golden/vit.json")).unwrap();
        let golden = &golden["full"]["positions"];
        let list = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect()
        };
        let values = positions(8, 192);
        assert_eq!(values.len(), 64 * 192);
        let expected = list(&golden["values_f64"]["data"]);
        let tokens = list(&golden["tokens"]);
        assert_eq!((tokens.len(), expected.len()), (3, 3 * 192));
        for (token, expected) in tokens.iter().zip(expected.chunks(192)) {
            for (k, expected) in expected.iter().enumerate() {
                let value = f64::from(values[*token as usize * 192 + k]);
                assert!((value - expected).abs() < 1e-7, "token {token}, {k}: {value} {expected}");
            }
        }
    }
}
