//! The multi-layer perceptron: of the load forecast and of tables.

use bayesmesh::{Draw, Network};
use bayesmesh_kernels::ops::{self, Epilogue};
use bayesmesh_schema::{Choice, Keys};
use burn::module::{Module, Param};
use burn::nn::{Embedding, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use serde::Deserialize;

use crate::embed::{embed, embedding_width, embeddings};

/// Burn's default and PyTorch's.
const EPSILON: f32 = 1e-5;

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

/// Linear layers with an activation and dropout after each but the last; for tables with an
/// embedding of each category.
///
/// Sizes of an [`Mlp`].
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct MlpConfig {
    /// Columns of an example: first numbers, then the codes of its categories.
    #[serde(skip)]
    pub inputs: usize,
    /// How many codes each categorical column has, the 0 of a missing or unknown one included.
    /// These are the last columns of an example; empty where all are numbers.
    #[serde(skip)]
    pub categories: Vec<usize>,
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
    /// The probability that a number of the example, or of an embedding, is dropped before the
    /// first layer.
    #[key(default = 0.0, at_least = 0, below = 1, also("dropout_input", "input_dropout_rate"))]
    pub input_dropout: f64,
    /// Each hidden layer adds to the sums of the one before, where both have as many units: blocks
    /// `s ← s + W·dropout(a(s)) + b`, activated before their weights.
    #[key(default = false, also("resnet", "skip", "skip_connections"))]
    pub residual: bool,
    /// The sums of each hidden layer are normalised before their activation.
    #[key(default = false, also("layernorm", "norm", "normalisation"))]
    pub layer_norm: bool,
    /// Numbers that stand for a category, in every categorical column.
    #[key(unset = "1.6·n^0.56 for n codes, at most 64", at_least = 1)]
    #[key(also("embedding_dim", "embedding_width", "embeddings"))]
    pub embedding: Option<usize>,
}

impl MlpConfig {
    /// A network of numbers with ReLU, without dropout and all else.
    pub fn new(inputs: usize, hidden: Vec<usize>, outputs: usize) -> Self {
        Self {
            inputs,
            categories: Vec::new(),
            hidden,
            outputs,
            activation: Activation::Relu,
            dropout: 0.0,
            input_dropout: 0.0,
            residual: false,
            layer_norm: false,
            embedding: None,
        }
    }

    /// The columns that are numbers.
    fn numbers(&self) -> usize {
        self.inputs.saturating_sub(self.categories.len())
    }

    /// What the first layer sees: the numbers, and an embedding of each category.
    fn features(&self) -> usize {
        let widths = self.categories.iter().map(|&codes| embedding_width(codes, self.embedding));
        widths.fold(self.numbers(), usize::saturating_add)
    }

    /// How many weights the network has; the largest number where it has more.
    pub fn weights(&self) -> u64 {
        let ends = self.hidden.iter().copied().chain([self.outputs]);
        let starts = [self.features()].into_iter().chain(self.hidden.iter().copied());
        let layers = starts.zip(ends).map(|(from, to)| {
            let (from, to) = (from as u64, to as u64);
            from.saturating_mul(to).saturating_add(to)
        });
        let embeddings = self.categories.iter().map(|&codes| {
            let width = embedding_width(codes, self.embedding) as u64;
            width.saturating_mul(codes as u64)
        });
        let units = self.hidden.iter().filter(|_| self.layer_norm);
        let norms = units.map(|&units| 2u64.saturating_mul(units as u64));
        layers.chain(embeddings).chain(norms).fold(0, u64::saturating_add)
    }

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass: each layer's sum, normalised sum, activation and dropout, and their gradients.
    pub fn activations(&self) -> u64 {
        let units = self.hidden.iter().copied().chain([self.features(), self.outputs]);
        let sum = units.fold(0u64, |sum, units| sum.saturating_add(units as u64));
        sum.saturating_mul(if self.layer_norm { 8 } else { 6 })
    }

    /// The network, with Burn's initial weights.
    ///
    /// # Panics
    ///
    /// If there are more categorical columns than columns.
    pub fn init(&self, device: &Device) -> Mlp {
        assert!(
            self.categories.len() <= self.inputs,
            "{} categorical columns among {} columns",
            self.categories.len(),
            self.inputs
        );
        let ends = self.hidden.iter().copied().chain([self.outputs]);
        let starts = std::iter::once(self.features()).chain(self.hidden.iter().copied());
        let layers = starts.zip(ends).map(|(from, to)| LinearConfig::new(from, to).init(device));
        let normalised = self.hidden.iter().filter(|_| self.layer_norm);
        let norms = normalised.map(|&units| LayerNormConfig::new(units).init(device));
        let embeddings = embeddings(&self.categories, self.embedding, device);
        Mlp {
            layers: layers.collect(),
            norms: norms.collect(),
            embeddings,
            activation: self.activation,
            dropout: self.dropout,
            input_dropout: self.input_dropout,
            residual: self.residual,
        }
    }
}

/// Linear layers with an activation and dropout between them: dropout comes before every layer
/// but the first, and before that one where it is asked for.
///
/// With x₀ the numbers of an example beside the embeddings of its categories, the sums of layer l
/// are
///
/// ```text
/// s₀ = W₀·dropout(x₀) + b₀,    s_l = [s_{l−1} +] W_l·dropout(a([norm] s_{l−1})) + b_l
/// ```
///
/// where what is in brackets is optional. The last sums are the output, which nothing is added to.
#[derive(Module, Debug)]
pub struct Mlp {
    layers: Vec<Linear>,
    /// One for each hidden layer, or none.
    norms: Vec<LayerNorm>,
    /// One for each categorical column.
    embeddings: Vec<Embedding>,
    #[module(skip)]
    activation: Activation,
    dropout: f64,
    input_dropout: f64,
    residual: bool,
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
    /// The forward pass for `copies` draws, which share what comes before any dropout.
    fn pass(&self, input: Tensor<2>, mut copies: usize, draw: &Draw) -> Tensor<2> {
        let mut x = embed(&self.embeddings, input);
        if self.input_dropout > 0.0 {
            if copies > 1 {
                x = x.repeat_dim(0, copies);
                copies = 1;
            }
            x = draw.dropout(x, self.input_dropout);
        }
        match self.residual || !self.norms.is_empty() {
            true => self.blocks(x, copies, draw),
            false => self.plain(x, copies, draw),
        }
    }

    /// Layers without normalisation and residuals: what follows their sums is done with them.
    fn plain(&self, mut x: Tensor<2>, mut copies: usize, draw: &Draw) -> Tensor<2> {
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

    /// Layers that are activated before their weights: normalised, added to what came in, or both.
    fn blocks(&self, x: Tensor<2>, copies: usize, draw: &Draw) -> Tensor<2> {
        let epilogue = Epilogue { copies, ..Epilogue::default() };
        let mut sums = linear(&self.layers[0], x, epilogue);
        for (index, layer) in self.layers.iter().enumerate().skip(1) {
            let normalised = match self.norms.get(index - 1) {
                Some(layer) => norm(layer, sums.clone()),
                None => sums.clone(),
            };
            let active = match self.activation {
                Activation::Relu => activation::relu(normalised),
                Activation::Tanh => activation::tanh(normalised),
                Activation::Gelu => ops::gelu(normalised),
            };
            let active = draw.dropout(active, self.dropout);
            let [from, to] = layer.weight.dims();
            let hidden = index + 1 < self.layers.len();
            sums = match self.residual && hidden && from == to {
                true => linear_residual(layer, active, sums),
                false => linear(layer, active, Epilogue::default()),
            };
        }
        sums
    }
}

fn linear(layer: &Linear, x: Tensor<2>, epilogue: Epilogue) -> Tensor<2> {
    ops::linear(x, layer.weight.val(), layer.bias.as_ref().map(Param::val), epilogue)
}

fn linear_residual(layer: &Linear, x: Tensor<2>, residual: Tensor<2>) -> Tensor<2> {
    ops::linear_residual(x, layer.weight.val(), layer.bias.as_ref().map(Param::val), residual)
}

fn norm(layer: &LayerNorm, x: Tensor<2>) -> Tensor<2> {
    let gamma = layer.gamma.val();
    let beta = layer.beta.as_ref().map_or_else(|| gamma.zeros_like(), Param::val);
    ops::layer_norm(x, gamma, beta, EPSILON)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count agrees with the network that is made, and absurd sizes are very many.
    #[test]
    fn weights_are_counted_before_they_are_made() {
        let plain = MlpConfig::new(5, vec![7, 7], 2);
        let table = MlpConfig { categories: vec![3, 40, 100_000], ..plain.clone() };
        let narrow = MlpConfig { embedding: Some(2), ..table.clone() };
        let norm = MlpConfig { layer_norm: true, residual: true, ..table.clone() };
        assert_eq!(table.features(), 2 + 3 + 13 + 64);
        assert_eq!(narrow.features(), 2 + 3 * 2);
        for config in [plain.clone(), table, narrow, norm] {
            let network = config.init(&Device::default());
            assert_eq!(config.weights(), network.num_params() as u64, "{config:?}");
        }
        let absurd =
            MlpConfig { categories: vec![usize::MAX], embedding: Some(usize::MAX), ..plain };
        assert_eq!((absurd.weights(), absurd.activations()), (u64::MAX, u64::MAX));
    }
}
