//! The block that transformers are made of, and how layers are called.

use bayesmesh::Draw;
use bayesmesh_kernels::ops::{self, Activation, Epilogue};
use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};

/// Sizes of a [`Block`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockConfig {
    /// Numbers in a token.
    pub width: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Hidden units of the perceptron.
    pub mlp: usize,
    /// The probability that one of them is dropped.
    pub dropout: f64,
}

impl BlockConfig {
    /// With Burn's initial weights.
    pub fn init(&self, device: &Device) -> Block {
        let &Self { width, heads, mlp, dropout } = self;
        let norm = || LayerNormConfig::new(width).init(device);
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        let plain = |from, to| LinearConfig::new(from, to).with_bias(false).init(device);
        Block {
            attention_norm: norm(),
            qkv: plain(width, 3 * width),
            out: plain(width, width),
            mlp_norm: norm(),
            up: linear(width, mlp),
            down: linear(mlp, width),
            heads,
            dropout,
        }
    }

    /// How many weights it has; the largest number where it has more.
    pub fn weights(&self) -> usize {
        let &Self { width, mlp, .. } = self;
        let products = sum(&[product(&[4, width, width]), product(&[2, width, mlp])]);
        sum(&[products, mlp, product(&[5, width])])
    }

    /// How many numbers it holds for a token between its forward and its backward pass: query, key
    /// and value, attention, two sums, and the perceptron before and after its activation.
    pub fn activations(&self) -> usize {
        let hidden = if self.dropout > 0.0 { 3 } else { 2 };
        sum(&[product(&[6, self.width]), product(&[hidden, self.mlp])])
    }
}

/// `x ← x + attention(norm x)`, `x ← x + mlp(norm x)`.
#[derive(Module, Debug)]
pub(crate) struct Block {
    pub(crate) attention_norm: LayerNorm,
    pub(crate) qkv: Linear,
    pub(crate) out: Linear,
    pub(crate) mlp_norm: LayerNorm,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
    heads: usize,
    dropout: f64,
}

impl Block {
    pub fn forward(&self, x: Tensor<3>, draw: &Draw) -> Tensor<3> {
        let to_next = Epilogue { narrow: true, ..Epilogue::default() };
        let qkv = norm_linear(&self.attention_norm, &self.qkv, x.clone(), to_next);
        let x = linear_residual(&self.out, ops::attention(qkv, self.heads, None), x);
        let gelu = Epilogue { activation: Activation::Gelu, ..to_next };
        let hidden = match self.dropout {
            0.0 => norm_linear(&self.mlp_norm, &self.up, x.clone(), gelu),
            dropout => {
                let wide = Epilogue { narrow: false, ..gelu };
                draw.dropout(norm_linear(&self.mlp_norm, &self.up, x.clone(), wide), dropout)
            }
        };
        linear_residual(&self.down, hidden, x)
    }
}

/// Burn's default and PyTorch's.
const EPSILON: f32 = 1e-5;

/// γ and β of a normalisation.
fn scales(layer: &LayerNorm) -> (Tensor<1>, Tensor<1>) {
    let gamma = layer.gamma.val();
    let beta = layer.beta.as_ref().map_or_else(|| gamma.zeros_like(), Param::val);
    (gamma, beta)
}

pub(crate) fn norm<const D: usize>(layer: &LayerNorm, x: Tensor<D>) -> Tensor<D> {
    let (gamma, beta) = scales(layer);
    ops::layer_norm(x, gamma, beta, EPSILON)
}

/// A linear layer after a normalisation.
pub(crate) fn norm_linear<const D: usize>(
    norm: &LayerNorm,
    layer: &Linear,
    x: Tensor<D>,
    epilogue: Epilogue,
) -> Tensor<D> {
    let (gamma, beta) = scales(norm);
    let bias = layer.bias.as_ref().map(Param::val);
    ops::norm_linear(x, (gamma, beta, EPSILON), layer.weight.val(), bias, epilogue)
}

pub(crate) fn linear<const D: usize>(
    layer: &Linear,
    x: Tensor<D>,
    activation: Activation,
) -> Tensor<D> {
    let epilogue = Epilogue { activation, ..Epilogue::default() };
    ops::linear(x, layer.weight.val(), layer.bias.as_ref().map(Param::val), epilogue)
}

fn linear_residual(layer: &Linear, x: Tensor<3>, residual: Tensor<3>) -> Tensor<3> {
    ops::linear_residual(x, layer.weight.val(), layer.bias.as_ref().map(Param::val), residual)
}

/// The product of sizes; the largest number where it is more.
pub(crate) fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |product: usize, &size| product.saturating_mul(size))
}

/// The sum of sizes; the largest number where it is more.
pub(crate) fn sum(sizes: &[usize]) -> usize {
    sizes.iter().fold(0, |sum: usize, &size| sum.saturating_add(size))
}
