//! A convolutional network on the globe.

use bayesmesh::{Draw, Network, NoiseMap, OutputScale};
use bayesmesh_kernels::ops::{self, Epilogue, Globe, Window};
use bayesmesh_schema::Keys;
use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::Deserialize;

use crate::globe::{turns_of, with_noise};

/// Burn's default and PyTorch's.
const EPSILON: f32 = 1e-5;

/// A residual convolutional network on the globe, for short records: it knows that weather comes
/// from next door, which a transformer has to learn.
///
/// Sizes of a [`GlobeCnn`].
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct GlobeCnnConfig {
    /// The channels of the input.
    #[serde(skip)]
    pub channels: usize,
    /// The variables of the output, which are also the first channels.
    #[serde(skip)]
    pub variables: usize,
    /// The rows of the grid.
    #[serde(skip)]
    pub latitudes: usize,
    /// The columns of the grid.
    #[serde(skip)]
    pub longitudes: usize,
    /// Height and width of a patch in grid points: 2, or 1 for a token at every point.
    #[key(default = 2, at_least = 1, at_most = 2, also("patch_size"))]
    pub patch: usize,
    /// Numbers in a token.
    #[key(default = 48, at_least = 1, also("dim", "hidden", "filters"))]
    pub width: usize,
    /// How far apart the neighbours are that each block looks at, in tokens; as many blocks as
    /// there are numbers.
    #[key(default = [1, 2, 4, 8], at_least = 1, items = 1, also("blocks", "dilation"))]
    pub dilations: Vec<usize>,
    /// The probability that a number of a token is dropped within a block. The kept ones are scaled
    /// by 1/(1 − p).
    #[key(default = 0.0, at_least = 0, below = 1, also("dropout_rate", "p"))]
    pub dropout: f64,
    /// Latent numbers of a draw that change scale and shift of every normalisation, e.g. 32 for a
    /// `functional-noise` posterior; 0 is none.
    #[key(default = 0, also("noise_dim", "latent"))]
    pub noise: usize,
    /// Fields of white noise that the network sees beside its input, others in each draw, e.g. 4
    /// for a `functional-noise` posterior; 0 is none. Every point has its own noise, so that a step
    /// shows the network very many draws of it.
    #[key(default = 0, also("noise_channels"))]
    pub noise_fields: usize,
}

impl GlobeCnnConfig {
    /// Rows and columns of tokens.
    fn grid(&self) -> [usize; 2] {
        let patch = self.patch.max(1);
        [self.latitudes.div_ceil(patch), self.longitudes / patch]
    }

    /// The channels that the network sees.
    fn seen(&self) -> usize {
        self.channels.saturating_add(self.noise_fields)
    }

    /// Refuses sizes that do not go together, in a sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        let Self { patch, longitudes, latitudes, variables, channels, .. } = *self;
        Err(match () {
            () if ![1, 2].contains(&patch) => {
                format!("patches of {patch} are not possible; set `patch` to 1 or 2")
            }
            () if latitudes == 0 || longitudes == 0 || !longitudes.is_multiple_of(patch) => {
                format!("patches of {patch} do not divide {longitudes} columns; set `patch` to 1")
            }
            () if variables > channels => {
                format!("a change of {variables} variables cannot be added to {channels} channels")
            }
            () if !(0.0..1.0).contains(&self.dropout) => format!(
                "a dropout probability of {} is not possible; choose one from 0 to below 1",
                self.dropout
            ),
            () => return Ok(()),
        })
    }

    /// How many weights the network has; the largest number where it has more.
    pub fn weights(&self) -> u64 {
        let Self { variables, patch, width, noise, .. } = *self;
        let channels = self.seen();
        let [area, width] = [patch * patch, width].map(|n| n as u64);
        let [channels, variables, noise] = [channels, variables, noise].map(|n| n as u64);
        let norm = width.saturating_mul(2).saturating_mul(noise.saturating_add(1));
        let conv = width.saturating_mul(width).saturating_mul(9).saturating_add(width);
        let block = conv.saturating_mul(2).saturating_add(norm);
        (area.saturating_mul(channels).saturating_add(1))
            .saturating_mul(width)
            .saturating_add(block.saturating_mul(self.dilations.len() as u64))
            .saturating_add(norm)
            .saturating_add(width.saturating_mul(variables).saturating_mul(area))
            .saturating_add(2 * variables)
    }

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass: of a block its input, the normalised one, its activation with the slope, the first
    /// convolution with the activation and the slope of that.
    pub fn activations(&self) -> u64 {
        let [rows, columns] = self.grid().map(|n| n as u64);
        let tokens = rows.saturating_mul(columns);
        let width = self.width as u64;
        let block = tokens.saturating_mul(width.saturating_mul(7));
        let outputs = (self.variables * self.latitudes * self.longitudes) as u64;
        let patches = tokens.saturating_mul((self.patch * self.patch * self.seen()) as u64);
        block
            .saturating_mul(self.dilations.len() as u64 + 1)
            .saturating_add(patches)
            .saturating_add(2 * outputs)
    }

    /// The network, with Burn's initial weights.
    ///
    /// # Panics
    ///
    /// If [`check`](Self::check) refuses the sizes.
    pub fn init(&self, device: &Device) -> GlobeCnn {
        if let Err(reason) = self.check() {
            panic!("{reason}");
        }
        let Self { variables, patch, width, noise, .. } = *self;
        let area = patch * patch;
        let linear = |from, to| LinearConfig::new(from, to).init(device);
        let norm = || Norm {
            layer: LayerNormConfig::new(width).init(device),
            noise: (noise > 0).then(|| NoiseMap::new(noise, width, device)),
        };
        let block = |_| Block {
            norm: norm(),
            first: linear(9 * width, width),
            second: linear(9 * width, width),
        };
        GlobeCnn {
            embed: linear(area * self.seen(), width),
            blocks: self.dilations.iter().map(block).collect(),
            norm: norm(),
            recover: LinearConfig::new(width, variables * area).with_bias(false).init(device),
            bias: Param::from_tensor(Tensor::zeros([variables], device)),
            // Changes are a part of the deviation of a variable.
            change: OutputScale::new(vec![0.1; variables], device),
            config: self.clone(),
        }
    }
}

/// A residual convolutional network on the globe: patches are embedded; every block adds
/// `conv(gelu(conv(gelu(norm x))))`, with neighbours that are farther and farther apart; what comes
/// out, normalised, is the change of the first channels, times a trained scale for each variable.
#[derive(Module, Debug)]
pub struct GlobeCnn {
    embed: Linear,
    blocks: Vec<Block>,
    norm: Norm,
    /// `[width, variables·patch²]`, in the order (variable, row, column).
    recover: Linear,
    /// `[variables]`
    bias: Param<Tensor<1>>,
    change: OutputScale,
    #[module(skip)]
    config: GlobeCnnConfig,
}

/// A normalisation that listens to the latent numbers of a draw, where there are any.
#[derive(Module, Debug)]
struct Norm {
    layer: LayerNorm,
    noise: Option<NoiseMap>,
}

/// `x ← x + second(gelu(first(gelu(norm x))))`; weights are `[9·width, width]`.
#[derive(Module, Debug)]
struct Block {
    norm: Norm,
    first: Linear,
    second: Linear,
}

impl Network for GlobeCnn {
    type Input = (Tensor<4>, Tensor<1, Int>);

    /// The second part of the input says for each row by how many columns the globe is turned
    /// eastwards before the network sees it; the output is turned back.
    ///
    /// # Shapes
    ///
    /// - input: `[rows, channels, latitudes, longitudes]` and `[rows]`
    /// - output: `[rows, variables·latitudes·longitudes]`
    fn forward(&self, (fields, turns): Self::Input, draw: &Draw) -> Tensor<2> {
        let config = &self.config;
        let GlobeCnnConfig { variables, latitudes, longitudes, patch, .. } = *config;
        let turns = turns_of(turns, longitudes);
        let globe = Globe { grid: [latitudes, longitudes], patch, turns };
        let [rows, ..] = fields.dims();
        let seen = with_noise(fields.clone(), config.noise_fields, draw);
        let patches = ops::globe_patches(seen, globe.clone());
        let mut x = linear(&self.embed, patches);
        let latent = match config.noise {
            0 => None,
            n => draw.latent(n).map(|z| Tensor::from_data(TensorData::new(z, [1, n]), &x.device())),
        };
        for (block, &dilation) in self.blocks.iter().zip(&config.dilations) {
            let window = Window::globe(config.grid(), dilation);
            let h = ops::gelu(block.norm.forward(x.clone(), latent.as_ref()));
            let h = ops::gelu(conv(&block.first, h, window));
            x = x + conv(&block.second, draw.dropout(h, config.dropout), window);
        }
        let x = ops::gelu(self.norm.forward(x, latent.as_ref()));
        let change = ops::globe_fields(linear(&self.recover, x), self.bias.val(), globe);
        let scale = self.change.val().reshape([1, variables, 1, 1]);
        let output = fields.narrow(1, 0, variables) + change * scale;
        output.reshape([rows, variables * latitudes * longitudes])
    }
}

impl Norm {
    fn forward(&self, x: Tensor<3>, latent: Option<&Tensor<2>>) -> Tensor<3> {
        let gamma = self.layer.gamma.val();
        let beta = self.layer.beta.as_ref().map_or_else(|| gamma.zeros_like(), Param::val);
        let (gamma, beta) = match (&self.noise, latent) {
            (Some(noise), Some(latent)) => noise.apply(latent.clone(), gamma, beta),
            _ => (gamma, beta),
        };
        ops::layer_norm(x, gamma, beta, EPSILON)
    }
}

fn linear(layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    let bias = layer.bias.as_ref().map(Param::val);
    ops::linear(x, layer.weight.val(), bias, Epilogue::default())
}

fn conv(layer: &Linear, x: Tensor<3>, window: Window) -> Tensor<3> {
    let bias = layer.bias.as_ref().expect("made with a bias").val();
    ops::conv(x, layer.weight.val(), bias, window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> GlobeCnnConfig {
        GlobeCnnConfig {
            channels: 7,
            variables: 2,
            latitudes: 7,
            longitudes: 12,
            patch: 2,
            width: 8,
            dilations: vec![1, 2],
            dropout: 0.0,
            noise: 4,
            noise_fields: 0,
        }
    }

    #[test]
    fn weights_are_counted_before_they_are_made() {
        for [noise, noise_fields] in [[0, 0], [4, 0], [0, 3]] {
            let config = GlobeCnnConfig { noise, noise_fields, ..config() };
            let network = config.init(&Device::default());
            assert_eq!(config.weights(), network.num_params() as u64);
        }
    }

    /// A globe that is turned by a whole patch has the same weather, turned.
    #[test]
    fn forecasts_turn_with_the_globe() {
        let device = Device::default();
        let network = config().init(&device);
        let draw = Draw::new(1, 0, 0).with_latent();
        let values: Vec<f32> = (0..7 * 7 * 12).map(|i| ((i * i) % 23) as f32 / 10.0).collect();
        let fields = Tensor::<4>::from_data(TensorData::new(values, [1, 7, 7, 12]), &device);
        let roll = |fields: Tensor<4>, by: usize| {
            Tensor::cat(
                vec![fields.clone().narrow(3, 12 - by, by), fields.narrow(3, 0, 12 - by)],
                3,
            )
        };
        let turns = |k: i64| Tensor::<1, Int>::from_data([k], &device);
        let plain = network.forward((fields.clone(), turns(0)), &draw);
        let as_field = |x: Tensor<2>| x.reshape([1, 2, 7, 12]);
        let difference = |a: Tensor<4>, b: Tensor<4>| (a - b).abs().max().into_scalar::<f32>();
        // Two columns are a patch: the same but for its place.
        let moved = network.forward((roll(fields.clone(), 2), turns(0)), &draw);
        assert!(difference(as_field(moved), roll(as_field(plain.clone()), 2)) < 1e-5);
        // The network turns its input and turns its output back.
        let turned = network.forward((fields.clone(), turns(2)), &draw);
        assert!(difference(as_field(turned), as_field(plain.clone())) < 1e-5);
        // Half a patch is another view.
        let other = network.forward((fields, turns(1)), &draw);
        assert!(difference(as_field(other), as_field(plain)) > 1e-4);
    }
}
