//! Small networks and data that several tests use.
#![allow(dead_code)] // each test uses a part

use bayesmesh::{Draw, Network, Purpose, Stream, TensorDataset};
use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};

/// Two layers with a normalisation and a dropout between them.
#[derive(Module, Debug)]
pub struct Mlp {
    pub first: Linear,
    pub norm: LayerNorm,
    pub second: Linear,
    pub dropout: f64,
}

impl Mlp {
    pub fn new(inputs: usize, hidden: usize, outputs: usize, dropout: f64) -> Self {
        let device = Device::default();
        Self {
            first: LinearConfig::new(inputs, hidden).init(&device),
            norm: LayerNormConfig::new(hidden).init(&device),
            second: LinearConfig::new(hidden, outputs).init(&device),
            dropout,
        }
    }
}

impl Network for Mlp {
    type Input = Tensor<2>;
    const STACKS_DRAWS: bool = true;

    fn forward(&self, input: Tensor<2>, draw: &Draw) -> Tensor<2> {
        let hidden = activation::tanh(self.norm.forward(self.first.forward(input)));
        self.second.forward(draw.dropout(hidden, self.dropout))
    }
}

/// Standard normal numbers from a stream of their own.
pub fn numbers(tensor: u32, shape: [usize; 2]) -> Tensor<2> {
    let mut values = vec![0.0; shape[0] * shape[1]];
    Stream::new(99, Purpose::Synthesis).at_tensor(tensor).fill_normal(0, &mut values);
    Tensor::from_data(TensorData::new(values, shape), &Device::default())
}

/// `rows` examples of a smooth function of five inputs with three outputs, with noise.
pub fn regression(rows: usize) -> TensorDataset<Tensor<2>, Tensor<2>> {
    let x = numbers(0, [rows, 5]);
    let y = (x.clone().matmul(numbers(1, [5, 3])) * 0.7).sin() + numbers(2, [rows, 3]) * 0.1;
    TensorDataset::new(x, y).unwrap()
}

/// `rows` examples of five inputs in three classes.
pub fn classification(rows: usize) -> TensorDataset<Tensor<2>, Tensor<1, Int>> {
    let x = numbers(0, [rows, 5]);
    let labels = x.clone().matmul(numbers(1, [5, 3])).argmax(1).squeeze_dim(1);
    TensorDataset::new(x, labels).unwrap()
}

/// The largest distance between two vectors, relative to the largest number in the first.
pub fn distance(left: &[f32], right: &[f32]) -> f64 {
    assert_eq!(left.len(), right.len());
    let scale = left.iter().fold(0.0f64, |m, &l| m.max(f64::from(l).abs()));
    let pairs = left.iter().zip(right);
    let worst = pairs.fold(0.0f64, |m, (&l, &r)| m.max((f64::from(l) - f64::from(r)).abs()));
    worst / scale.max(f64::MIN_POSITIVE)
}
