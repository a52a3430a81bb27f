//! The multi-layer perceptron of the load forecast.

use bayesmesh::{Draw, Network};
use bayesmesh_kernels::ops::{self, Epilogue};
use bayesmesh_schema::{Choice, Keys};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use serde::Deserialize;

/// What a hidden layer does to its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(x, 0)`
    Relu,
    /// `tanh x`
    Tanh,
    /// `x Φ(x)`
    Gelu,
}

/// Linear layers with an activation and dropout after each but the last.
///
/// Sizes of an [`Mlp`].
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct MlpConfig {
    /// Numbers in an example.
    #[serde(skip)]
    pub inputs: usize,
    /// Units of each hidden layer, from the input on; `[]` is a linear model.
    #[key(default = [128, 128], at_least = 1)]
    #[key(also("layers", "hidden_sizes", "hidden_size", "units", "width"))]
    pub hidden: Vec<usize>,
    /// Numbers in a prediction.
    #[serde(skip)]
    pub outputs: usize,
    /// What follows each hidden layer.
    #[key(default = "relu")]
    pub activation: Activation,
    /// The probability that a hidden unit is dropped. The kept ones are scaled by 1/(1 − p).
    #[key(default = 0.0, at_least = 0, below = 1, also("dropout_rate", "p"))]
    pub dropout: f64,
}

impl MlpConfig {
    /// How many weights the network has; the largest number where it has more.
    pub fn weights(&self) -> u64 {
        let ends = self.hidden.iter().chain([&self.outputs]);
        let starts = [&self.inputs].into_iter().chain(&self.hidden);
        let layers = starts.zip(ends).map(|(&from, &to)| {
            let (from, to) = (from as u64, to as u64);
            from.saturating_mul(to).saturating_add(to)
        });
        layers.fold(0, u64::saturating_add)
    }

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass: each layer's sum, activation and dropout, and their gradients.
    pub fn activations(&self) -> u64 {
        let units = self.hidden.iter().chain([&self.inputs, &self.outputs]);
        units.fold(0u64, |sum, &units| sum.saturating_add(units as u64)).saturating_mul(6)
    }

    /// The network, with Burn's initial weights.
    pub fn init(&self, device: &Device) -> Mlp {
        let ends = self.hidden.iter().copied().chain([self.outputs]);
        let starts = std::iter::once(self.inputs).chain(self.hidden.iter().copied());
        let layers = starts.zip(ends).map(|(from, to)| LinearConfig::new(from, to).init(device));
        Mlp { layers: layers.collect(), activation: self.activation, dropout: self.dropout }
    }
}

/// Linear layers with an activation and dropout between them: dropout comes before every layer
/// but the first.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<Linear>,
    #[module(skip)]
    activation: Activation,
    dropout: f64,
}

impl Network for Mlp {
    type Input = Tensor<2>;
    const STACKS_DRAWS: bool = true;

    /// # Shapes
    ///
    /// - input: `[rows, inputs]`
    /// - output: `[rows, outputs]`
    fn forward(&self, input: Tensor<2>, draw: &Draw) -> Tensor<2> {
        self.pass(input, 1, draw)
    }

    fn forward_draws(&self, input: Tensor<2>, draw: &Draw) -> Tensor<2> {
        self.pass(input, draw.count(), draw)
    }
}

impl Mlp {
    /// The forward pass. The sums of the first layer, which come before any dropout, are used for
    /// `copies` draws.
    fn pass(&self, input: Tensor<2>, mut copies: usize, draw: &Draw) -> Tensor<2> {
        let mut x = input;
        for (index, layer) in self.layers.iter().enumerate() {
            let [_, units] = layer.weight.dims();
            let mut epilogue = Epilogue { copies, ..Epilogue::default() };
            copies = 1;
            let hidden = index + 1 < self.layers.len();
            epilogue.activation = match self.activation {
                Activation::Relu if hidden => ops::Activation::Relu,
                Activation::Gelu if hidden => ops::Activation::Gelu,
                _ => ops::Activation::Identity,
            };
            if hidden && self.activation != Activation::Tanh {
                epilogue.mask = draw.mask(units, self.dropout);
            }
            x = linear(layer, x, epilogue);
            if hidden && self.activation == Activation::Tanh {
                x = draw.dropout(activation::tanh(x), self.dropout);
            }
        }
        x
    }
}

fn linear(layer: &Linear, x: Tensor<2>, epilogue: Epilogue) -> Tensor<2> {
    ops::linear(x, layer.weight.val(), layer.bias.as_ref().map(Param::val), epilogue)
}
