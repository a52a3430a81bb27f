//! The multi-layer perceptron of the load forecast.

use bayesmesh::{Draw, Network};
use bayesmesh_kernels::ops::{self, Epilogue};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};

/// What a hidden layer does to its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(x, 0)`
    Relu,
    /// `tanh x`
    Tanh,
    /// `x Φ(x)`
    Gelu,
}

/// Sizes of an [`Mlp`].
#[derive(Clone, Debug, PartialEq)]
pub struct MlpConfig {
    /// Numbers in an example.
    pub inputs: usize,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// Numbers in a prediction.
    pub outputs: usize,
    /// After every hidden layer.
    pub activation: Activation,
    /// The probability with which a hidden unit is dropped.
    pub dropout: f64,
}

impl MlpConfig {
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
