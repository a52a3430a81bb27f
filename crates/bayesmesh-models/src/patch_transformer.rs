//! The transformer of series: attention between pieces of the past.

use bayesmesh::{Draw, Network};
use bayesmesh_kernels::ops::Activation;
use bayesmesh_schema::Keys;
use burn::module::Module;
use burn::nn::{Embedding, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

use crate::block::{Block, BlockConfig, linear, norm, product, sum};
use crate::embed::{embed, embedding_width, embeddings};

/// A transformer of series: pieces of the past are tokens, what is known of the future is one more,
/// and all of them together are mapped to the forecast.
///
/// Sizes of a [`PatchTransformer`].
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct PatchTransformerConfig {
    /// Columns of the past, and steps of each: the first of an example.
    #[serde(skip)]
    pub history: [usize; 2],
    /// Columns of an example: the past, other numbers, then the codes of its categories.
    #[serde(skip)]
    pub inputs: usize,
    /// How many codes each categorical column has, the 0 of an unknown one included.
    #[serde(skip)]
    pub categories: Vec<usize>,
    /// Numbers in a prediction.
    #[serde(skip)]
    pub outputs: usize,
    /// Steps of the past in a token; divides `data.inputs`.
    #[key(unset = "the divisor of `data.inputs` next to a twelfth of it", at_least = 1)]
    #[key(also("patch_size", "patch_len", "patch_length"))]
    pub patch: Option<usize>,
    /// Numbers in a token; even, and divisible by `heads`.
    #[key(default = 64, at_least = 2, also("dim", "hidden", "embed_dim", "d_model"))]
    pub width: usize,
    /// Blocks of attention and perceptron.
    #[key(default = 2, at_least = 1, also("layers", "blocks"))]
    pub depth: usize,
    /// Heads of the attention, each of width/heads numbers.
    #[key(default = 4, at_least = 1, also("num_heads"))]
    pub heads: usize,
    /// Hidden units of the perceptron of a block.
    #[key(default = 128, at_least = 1, also("mlp_dim", "feedforward"))]
    pub mlp: usize,
    /// The probability that a hidden unit, or a number before the last layer, is dropped.
    #[key(default = 0.0, at_least = 0, below = 1, also("dropout_rate", "p"))]
    pub dropout: f64,
}

impl PatchTransformerConfig {
    /// Steps of a token.
    pub fn patch_steps(&self) -> usize {
        let [_, steps] = self.history;
        let wanted = (steps / 12).max(1);
        let divisors = (1..=steps).filter(|patch| steps.is_multiple_of(*patch));
        let found = divisors.min_by_key(|patch| patch.abs_diff(wanted)).unwrap_or(1);
        self.patch.unwrap_or(found).max(1)
    }

    /// What an example has beside its past: numbers, and embeddings of its categories.
    fn context(&self) -> usize {
        let [columns, steps] = self.history;
        let numbers = self.inputs.saturating_sub(columns.saturating_mul(steps));
        let numbers = numbers.saturating_sub(self.categories.len());
        let widths = self.categories.iter().map(|&codes| embedding_width(codes, None));
        widths.fold(numbers, usize::saturating_add)
    }

    fn tokens(&self) -> usize {
        self.history[1] / self.patch_steps() + usize::from(self.context() > 0)
    }

    fn block(&self) -> BlockConfig {
        let Self { width, heads, mlp, dropout, .. } = *self;
        BlockConfig { width, heads, mlp, dropout }
    }

    /// How many weights the network has; the largest number where it has more.
    pub fn weights(&self) -> u64 {
        let Self { width, depth, outputs, .. } = *self;
        let layer = |from: usize, to: usize| sum(&[product(&[from, to]), to]);
        let pieces = product(&[self.history[0], self.patch_steps()]);
        let context = match self.context() {
            0 => 0,
            context => layer(context, width),
        };
        let codes =
            self.categories.iter().map(|&codes| product(&[codes, embedding_width(codes, None)]));
        let codes = codes.fold(0, usize::saturating_add);
        let blocks = product(&[depth, self.block().weights()]);
        let head = layer(product(&[self.tokens(), width]), outputs);
        sum(&[layer(pieces, width), context, codes, blocks, product(&[2, width]), head]) as u64
    }

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass: those of its blocks, and the tokens before and after them.
    pub fn activations(&self) -> u64 {
        let blocks = product(&[self.depth, self.block().activations()]);
        let token = sum(&[blocks, product(&[5, self.width])]);
        sum(&[product(&[2, self.inputs]), product(&[self.tokens(), token])]) as u64
    }

    /// The network, with Burn's initial weights.
    ///
    /// # Panics
    ///
    /// If the patch does not divide the steps, the heads do not divide the width, the width is odd,
    /// or an example is shorter than its past and its categories.
    pub fn init(&self, device: &Device) -> PatchTransformer {
        let ([columns, steps], patch) = (self.history, self.patch_steps());
        assert!(steps > 0 && steps.is_multiple_of(patch), "{patch} does not divide {steps} steps");
        assert!(
            self.heads > 0 && self.width.is_multiple_of(self.heads) && self.width.is_multiple_of(2),
            "a width of {} is odd or not divisible by {} heads",
            self.width,
            self.heads
        );
        assert!(
            self.inputs >= columns * steps + self.categories.len(),
            "examples of {} numbers are shorter than their past",
            self.inputs
        );
        let layer = |from, to| LinearConfig::new(from, to).init(device);
        let context = self.context();
        PatchTransformer {
            embed: layer(columns * patch, self.width),
            context: (context > 0).then(|| layer(context, self.width)),
            embeddings: embeddings(&self.categories, None, device),
            blocks: (0..self.depth).map(|_| self.block().init(device)).collect(),
            norm: LayerNormConfig::new(self.width).init(device),
            head: layer(self.tokens() * self.width, self.outputs),
            positions: positions(steps / patch, self.width),
            columns,
            steps,
            patch,
            dropout: self.dropout,
        }
    }
}

/// A transformer of series. The past `[columns, steps]` is cut into pieces of `patch` steps, each
/// of which, with all columns, is mapped to a token and told its place. What is known beside the
/// past, of the future and of the series itself, is one more token. Blocks of attention and
/// perceptron follow; their tokens, normalised and beside each other, are mapped to the outputs.
#[derive(Module, Debug)]
pub struct PatchTransformer {
    embed: Linear,
    context: Option<Linear>,
    embeddings: Vec<Embedding>,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
    #[module(skip)]
    positions: Vec<f32>,
    columns: usize,
    steps: usize,
    patch: usize,
    dropout: f64,
}

impl Network for PatchTransformer {
    type Input = Tensor<2>;

    /// # Shapes
    ///
    /// - input: `[rows, columns·steps + others]`
    /// - output: `[rows, outputs]`
    fn forward(&self, input: Tensor<2>, draw: &Draw) -> Tensor<2> {
        let Self { columns, steps, patch, .. } = *self;
        let [rows, width] = input.dims();
        let past = columns * steps;
        let pieces = input
            .clone()
            .narrow(1, 0, past)
            .reshape([rows, columns, steps / patch, patch])
            .swap_dims(1, 2)
            .reshape([rows, steps / patch, columns * patch]);
        let tokens = linear(&self.embed, pieces, Activation::Identity);
        let [_, count, token] = tokens.dims();
        let positions = TensorData::new(self.positions.clone(), [1, count, token]);
        let device = tokens.device();
        let mut x = tokens + Tensor::from_data(positions, &device);
        if let Some(layer) = &self.context {
            let context = embed(&self.embeddings, input.narrow(1, past, width - past));
            let context = linear(layer, context, Activation::Identity);
            x = Tensor::cat(vec![x, context.unsqueeze_dim(1)], 1);
        }
        for block in &self.blocks {
            x = block.forward(x, draw);
        }
        let [_, count, token] = x.dims();
        let x = norm(&self.norm, x).reshape([rows, count * token]);
        linear(&self.head, draw.dropout(x, self.dropout), Activation::Identity)
    }
}

/// Where a token is: `[sin kω, cos kω]` with `ω_j = 10000^(−2j/width)`, k the number of the token.
fn positions(tokens: usize, width: usize) -> Vec<f32> {
    let frequency = |j: usize| 10_000f64.powf(-2.0 * j as f64 / width as f64);
    let token = |k: usize| {
        let angle = move |j: usize| k as f64 * frequency(j);
        let sines = (0..width / 2).map(move |j| angle(j).sin() as f32);
        sines.chain((0..width / 2).map(move |j| angle(j).cos() as f32))
    };
    (0..tokens).flat_map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> PatchTransformerConfig {
        PatchTransformerConfig {
            history: [3, 24],
            inputs: 3 * 24 + 5 + 1,
            categories: vec![4],
            outputs: 7,
            patch: None,
            width: 8,
            depth: 2,
            heads: 2,
            mlp: 16,
            dropout: 0.0,
        }
    }

    /// The count agrees with the network that is made, and absurd sizes are very many.
    #[test]
    fn weights_are_counted_before_they_are_made() {
        let plain = PatchTransformerConfig {
            inputs: 3 * 24,
            categories: Vec::new(),
            patch: Some(6),
            ..config()
        };
        for config in [config(), plain] {
            let network = config.init(&Device::default());
            assert_eq!(config.weights(), network.num_params() as u64, "{config:?}");
        }
        let absurd = PatchTransformerConfig { width: usize::MAX - 1, ..config() };
        assert_eq!((absurd.weights(), absurd.activations()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_twelfth_of_the_past_is_a_token() {
        for (steps, patch) in [(96, 8), (168, 14), (28, 2), (30, 2), (13, 1), (7, 1)] {
            let config = PatchTransformerConfig { history: [1, steps], ..config() };
            assert_eq!(config.patch_steps(), patch, "{steps}");
        }
    }
}
