//! The shifted-window transformer of the weather forecast.

mod config;

pub use config::{SwinConfig, SwinSize};

use bayesmesh::{Draw, Network, NoiseMap, OutputScale};
use bayesmesh_kernels::ops::{self, Epilogue, Globe, WindowBlock, WindowBlockWeights, Windows};
use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::globe::{turns_of, with_noise};

/// Burn's default and PyTorch's.
const EPSILON: f32 = 1e-5;

/// A shifted-window transformer (Liu et al. 2021) on the globe: patches are embedded; blocks on
/// the fine grid; every 2×2 tokens become one of twice the width; blocks on the coarse grid; back
/// to the fine one; blocks there; and both layers of the fine grid side by side give the fields.
///
/// There is no positional information but what the channels say. Where the number of rows does not
/// divide, zeros are added at the bottom and what they become is left out there.
#[derive(Module, Debug)]
pub struct Swin {
    embed: Linear,
    layer1: Vec<Block>,
    down: Down,
    middle: Vec<Block>,
    up: Up,
    layer4: Vec<Block>,
    recover: Recover,
    change: Option<OutputScale>,
    #[module(skip)]
    config: SwinConfig,
}

/// A normalisation that listens to the latent numbers of a draw, where there are any.
#[derive(Module, Debug)]
struct Norm {
    layer: LayerNorm,
    noise: Option<NoiseMap>,
}

/// `x ← x + norm1(attention x)`, `x ← x + norm2(perceptron x)`.
#[derive(Module, Debug)]
struct Block {
    qkv: Linear,
    proj: Linear,
    norm1: Norm,
    fc1: Linear,
    fc2: Linear,
    norm2: Norm,
}

/// To the coarse grid.
#[derive(Module, Debug)]
struct Down {
    norm: Norm,
    linear: Linear,
}

/// To the fine grid.
#[derive(Module, Debug)]
struct Up {
    expand: Linear,
    norm: Norm,
    linear: Linear,
}

/// From tokens to the patches of fields: a transposed convolution whose steps are its size.
#[derive(Module, Debug)]
struct Recover {
    /// `[2·width, variables·patch²]`, in the order (variable, row, column).
    weight: Param<Tensor<2>>,
    /// `[variables]`
    bias: Param<Tensor<1>>,
}

impl SwinConfig {
    /// The network, with Burn's initial weights.
    ///
    /// # Panics
    ///
    /// If [`check`](Self::check) refuses the sizes.
    pub fn init(&self, device: &Device) -> Swin {
        if let Err(reason) = self.check() {
            panic!("{reason}");
        }
        let Self { variables, patch, width, noise, .. } = *self;
        let area = patch * patch;
        let norm = |width| Norm {
            layer: LayerNormConfig::new(width).init(device),
            noise: (noise > 0).then(|| NoiseMap::new(noise, width, device)),
        };
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        let plain = |from, to| LinearConfig::new(from, to).with_bias(false).init(device);
        let blocks = |count: usize, width: usize| {
            let block = |_| Block {
                qkv: linear(width, 3 * width),
                proj: linear(width, width),
                norm1: norm(width),
                fc1: linear(width, 4 * width),
                fc2: linear(4 * width, width),
                norm2: norm(width),
            };
            (0..count).map(block).collect()
        };
        let start = match self.changes.is_empty() {
            true => vec![0.1; variables],
            false => self.changes.clone(),
        };
        Swin {
            embed: linear(area * self.seen(), width),
            layer1: blocks(self.depths[0], width),
            down: Down { norm: norm(4 * width), linear: plain(4 * width, 2 * width) },
            middle: blocks(self.depths[1], 2 * width),
            up: Up {
                expand: plain(2 * width, 4 * width),
                norm: norm(width),
                linear: plain(width, width),
            },
            layer4: blocks(self.depths[2], width),
            recover: Recover {
                weight: plain(2 * width, variables * area).weight,
                bias: Param::from_tensor(Tensor::zeros([variables], device)),
            },
            change: self.residual.then(|| OutputScale::new(start, device)),
            config: self.clone(),
        }
    }
}

impl Network for Swin {
    type Input = (Tensor<4>, Tensor<1, Int>);

    /// The second part of the input says for each row by how many columns the globe is turned
    /// eastwards before the network sees it; the output is turned back.
    ///
    /// # Shapes
    ///
    /// - input: `[rows, channels, latitudes, longitudes]` and `[rows]`
    /// - output: `[rows, variables·latitudes·longitudes]`
    fn forward(&self, (fields, turns): Self::Input, draw: &Draw) -> Tensor<2> {
        let SwinConfig { variables, latitudes, longitudes, patch, noise, .. } = self.config;
        let globe =
            Globe { grid: [latitudes, longitudes], patch, turns: turns_of(turns, longitudes) };
        let [rows, ..] = fields.dims();
        let seen = with_noise(fields.clone(), self.config.noise_fields, draw);
        let patches = ops::globe_patches(seen, globe.clone());
        let x = linear(&self.embed, patches);
        let latent = match noise {
            0 => None,
            n => draw.latent(n).map(|z| Tensor::from_data(TensorData::new(z, [1, n]), &x.device())),
        };
        let pass = Pass { config: &self.config, draw, latent };

        let [fine, coarse] = self.config.grids();
        let [on_fine, on_coarse] = self.config.heads;
        let first = pass.layer(&self.layer1, x, fine, on_fine);
        let x = pass.norm(&self.down.norm, ops::merge_tokens(first.clone(), fine));
        let x = linear(&self.down.linear, x);
        let x = pass.layer(&self.middle, x, coarse, on_coarse);
        let x = ops::split_tokens(linear(&self.up.expand, x), fine);
        let x = linear(&self.up.linear, pass.norm(&self.up.norm, x));
        let last = pass.layer(&self.layer4, x, fine, on_fine);

        let both = Tensor::cat(vec![first, last], 2);
        let patches = ops::linear(both, self.recover.weight.val(), None, Epilogue::default());
        let mut output = ops::globe_fields(patches, self.recover.bias.val(), globe);
        if let Some(change) = &self.change {
            let scale = change.val().reshape([1, variables, 1, 1]);
            output = fields.narrow(1, 0, variables) + output * scale;
        }
        output.reshape([rows, variables * latitudes * longitudes])
    }
}

/// One forward pass.
struct Pass<'a> {
    config: &'a SwinConfig,
    draw: &'a Draw,
    /// `[1, noise]`
    latent: Option<Tensor<2>>,
}

impl Pass<'_> {
    /// Blocks on a grid, every other with shifted windows.
    fn layer(
        &self,
        blocks: &[Block],
        mut x: Tensor<3>,
        grid: [usize; 2],
        heads: usize,
    ) -> Tensor<3> {
        let SwinConfig { window, dropout, checkpoint_blocks, .. } = *self.config;
        let [_, tokens, width] = x.dims();
        for (index, block) in blocks.iter().enumerate() {
            let shape = WindowBlock {
                windows: Windows { grid, window, shifted: index % 2 == 1 },
                heads,
                epsilon: EPSILON,
                attention_mask: self.draw.mask(tokens * width, dropout),
                hidden_mask: self.draw.mask(4 * tokens * width, dropout),
                recompute: checkpoint_blocks,
            };
            let weights = WindowBlockWeights {
                qkv: weights(&block.qkv),
                proj: weights(&block.proj),
                norm1: self.affine(&block.norm1),
                fc1: weights(&block.fc1),
                fc2: weights(&block.fc2),
                norm2: self.affine(&block.norm2),
            };
            x = ops::window_block(x, weights, shape);
        }
        x
    }

    fn norm(&self, norm: &Norm, x: Tensor<3>) -> Tensor<3> {
        let (gamma, beta) = self.affine(norm);
        ops::layer_norm(x, gamma, beta, EPSILON)
    }

    /// Scale and shift of a normalisation in this draw.
    fn affine(&self, norm: &Norm) -> (Tensor<1>, Tensor<1>) {
        let gamma = norm.layer.gamma.val();
        let beta = norm.layer.beta.as_ref().map_or_else(|| gamma.zeros_like(), Param::val);
        match (&norm.noise, &self.latent) {
            (Some(noise), Some(latent)) => noise.apply(latent.clone(), gamma, beta),
            _ => (gamma, beta),
        }
    }
}

/// The weights of a layer that has a bias.
fn weights(layer: &Linear) -> (Tensor<2>, Tensor<1>) {
    (layer.weight.val(), layer.bias.as_ref().expect("made with a bias").val())
}

fn linear(layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    let bias = layer.bias.as_ref().map(Param::val);
    ops::linear(x, layer.weight.val(), bias, Epilogue::default())
}

/// What PyTorch's layout needs to know.
impl Swin {
    pub(crate) fn config(&self) -> &SwinConfig {
        &self.config
    }
}
