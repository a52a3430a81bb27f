//! The perceptron is what its layers say, draw by draw or all draws at once.

use bayesmesh::loss::SquaredErrorOfMean;
use bayesmesh::trainer::Memory;
use bayesmesh::{
    Draw, Length, McDropout, Network, Posterior, Purpose, Settings, Stream, TensorDataset, Trainer,
};
use bayesmesh_models::{Activation, Mlp, MlpConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData, activation};

const ACTIVATIONS: [Activation; 3] = [Activation::Relu, Activation::Tanh, Activation::Gelu];
const DROPOUT: f64 = 0.3;

fn mlp(activation: Activation) -> Mlp {
    let hidden = vec![16, 12];
    MlpConfig { inputs: 10, hidden, outputs: 3, activation, dropout: DROPOUT }.init(&Device::flex())
}

fn numbers(number: u32, shape: [usize; 2]) -> Tensor<2> {
    let mut values = vec![0.0; shape[0] * shape[1]];
    Stream::new(1, Purpose::Synthesis).at_tensor(number).fill_normal(0, &mut values);
    Tensor::from_data(TensorData::new(values, shape), &Device::flex())
}

/// The weights and biases of a module, in order; a bias as a row.
#[derive(Default)]
struct Layers(Vec<Tensor<2>>);

impl ModuleVisitor for Layers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let last = param.dims()[D - 1];
        self.0.push(param.val().reshape([-1, last as i32]));
    }
}

#[test]
fn it_is_linear_layers_with_activation_and_dropout_between() {
    for activation in ACTIVATIONS {
        let network = mlp(activation);
        let mut layers = Layers::default();
        network.visit(&mut layers);
        let [w0, b0, w1, b1, w2, b2] = layers.0.try_into().unwrap();
        let draw = || Draw::new(5, 2, 1).with_rows(4..10);
        let x = numbers(0, [6, 10]);
        let by_hand = draw();
        let hidden = |sums: Tensor<2>| {
            let units = match activation {
                Activation::Relu => activation::relu(sums),
                Activation::Tanh => activation::tanh(sums),
                Activation::Gelu => activation::gelu(sums),
            };
            by_hand.dropout(units, DROPOUT)
        };
        let first = hidden(x.clone().matmul(w0) + b0);
        let second = hidden(first.matmul(w1) + b1);
        let expected = (second.matmul(w2) + b2).try_into_vec_as::<f32>().unwrap();
        let output = network.forward(x, &draw()).try_into_vec_as::<f32>().unwrap();
        for (output, expected) in output.iter().zip(&expected) {
            assert!((output - expected).abs() < 1e-5, "{activation:?}: {output} {expected}");
        }
    }
}

/// `Memory::Retain` evaluates the first layer once for all draws, `Recompute` once for each.
#[test]
fn draws_at_once_train_like_draws_one_by_one() {
    for activation in ACTIVATIONS {
        let train = |memory| {
            let data = TensorDataset::new(numbers(1, [32, 10]), numbers(2, [32, 3])).unwrap();
            let settings = Settings { samples: 4, batch: 8, memory, ..Settings::default() };
            let posterior = McDropout::new(mlp(activation)).initialised(0);
            let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings);
            trainer.fit(&data, None, Length::Steps(5)).unwrap();
            trainer.posterior().parameters().values().to_vec()
        };
        let (one_by_one, at_once) = (train(Memory::Recompute), train(Memory::Retain));
        let initial = McDropout::new(mlp(activation)).initialised(0);
        let initial = initial.parameters().values();
        assert!(at_once.iter().zip(initial).any(|(now, then)| (now - then).abs() > 1e-3));
        for (a, b) in at_once.iter().zip(&one_by_one) {
            assert!((a - b).abs() < 1e-5, "{activation:?}: {a} {b}");
        }
    }
}
