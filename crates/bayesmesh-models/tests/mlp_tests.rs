//! The perceptron is what its layers say, draw by draw or all draws at once.

use bayesmesh::loss::SquaredErrorOfMean;
use bayesmesh::posterior::{InitialStd, Tape};
use bayesmesh::trainer::{Memory, OptimizerConfig, Schedule};
use bayesmesh::{
    Draw, Length, McDropout, MeanField, Network, Posterior, Prior, Purpose, Settings, Stream,
    TensorDataset, Trainer,
};
use bayesmesh_models::{Activation, Mlp, MlpConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData, activation};

const ACTIVATIONS: [Activation; 3] = [Activation::Relu, Activation::Tanh, Activation::Gelu];
const DROPOUT: f64 = 0.3;

fn mlp(activation: Activation) -> Mlp {
    let config = MlpConfig::new(10, vec![16, 12], 3);
    MlpConfig { activation, dropout: DROPOUT, ..config }.init(&Device::flex())
}

/// Of a table of two numbers and two categories: all options at once.
fn table(activation: Activation) -> Mlp {
    let config = MlpConfig { categories: vec![3, 5], ..MlpConfig::new(4, vec![8, 8, 6], 2) };
    let config = MlpConfig { activation, residual: true, layer_norm: true, ..config };
    MlpConfig { dropout: DROPOUT, input_dropout: 0.2, ..config }.init(&Device::flex())
}

/// Rows of two numbers and two codes.
fn rows(number: u32, codes: &[[f32; 2]]) -> Tensor<2> {
    let columns = codes.iter().flatten().copied().collect::<Vec<f32>>();
    let codes = TensorData::new(columns, [codes.len(), 2]);
    let numbers = numbers(number, [codes.shape()[0], 2]);
    Tensor::cat(vec![numbers, Tensor::from_data(codes, &Device::flex())], 1)
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

#[test]
fn a_table_is_embedded_normalised_and_added_to() {
    for activation in ACTIVATIONS {
        let network = table(activation);
        let mut layers = Layers::default();
        network.visit(&mut layers);
        let tensors: [Tensor<2>; 16] = layers.0.try_into().unwrap();
        let [w0, b0, w1, b1, w2, b2, w3, b3, g0, o0, g1, o1, g2, o2, first, second] = tensors;
        // 1.6·n^0.56 numbers for n codes.
        assert_eq!((first.dims(), second.dims()), ([3, 3], [5, 4]));
        // Codes that a column does not have are those of missing values.
        let codes = [[0.0, 4.0], [2.0, 1.0], [1.0, 0.0], [3.0, 2.0], [-1.0, 7.0], [f32::NAN, 3.0]];
        let known = [[0, 4], [2, 1], [1, 0], [0, 2], [0, 0], [0, 3]];
        let draw = || Draw::new(5, 2, 1).with_rows(4..10);
        let by_hand = draw();
        let x = rows(0, &codes);
        let pick = |table: &Tensor<2>, column: usize| {
            let rows = known.map(|codes| table.clone().narrow(0, codes[column], 1));
            Tensor::cat(rows.to_vec(), 0)
        };
        let features = vec![x.clone().narrow(1, 0, 2), pick(&first, 0), pick(&second, 1)];
        let features = by_hand.dropout(Tensor::cat(features, 1), 0.2);
        let hidden = |sums: &Tensor<2>, gain: &Tensor<2>, offset: &Tensor<2>| {
            let centred = sums.clone() - sums.clone().mean_dim(1);
            let variance = centred.clone().square().mean_dim(1);
            let x = centred / (variance + 1e-5).sqrt() * gain.clone() + offset.clone();
            let units = match activation {
                Activation::Relu => activation::relu(x),
                Activation::Tanh => activation::tanh(x),
                Activation::Gelu => activation::gelu(x),
            };
            by_hand.dropout(units, DROPOUT)
        };
        let s0 = features.matmul(w0) + b0;
        let s1 = s0.clone() + hidden(&s0, &g0, &o0).matmul(w1) + b1;
        // Eight units cannot be added to six.
        let s2 = hidden(&s1, &g1, &o1).matmul(w2) + b2;
        let expected = hidden(&s2, &g2, &o2).matmul(w3) + b3;
        let expected = expected.try_into_vec_as::<f32>().unwrap();
        let output = network.forward(x, &draw()).try_into_vec_as::<f32>().unwrap();
        for (output, expected) in output.iter().zip(&expected) {
            assert!((output - expected).abs() < 1e-5, "{activation:?}: {output} {expected}");
        }
    }
}

/// What a training step does to embeddings is what finite differences of the loss say, through a
/// mean-field posterior whose deviations are nothing.
#[test]
fn gradients_reach_embeddings_through_a_posterior() {
    let config = MlpConfig { categories: vec![3, 5], ..MlpConfig::new(4, vec![6], 1) };
    // A smooth network, so that differences are steady.
    let config = MlpConfig { activation: Activation::Tanh, ..config };
    let posterior = MeanField::new(config.init(&Device::flex()), Prior::normal(0.0, 1.0)).unwrap();
    let posterior = posterior.with_initial_std(InitialStd::Constant(1e-6)).unwrap().initialised(1);
    let distributed = posterior.parameters().slots();
    assert!(distributed.iter().all(|slot| !slot.family.is_certain()), "embeddings have deviations");
    let codes = [[0.0, 4.0], [2.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [2.0, 0.0]];
    let data = TensorDataset::new(rows(1, &codes), numbers(2, [6, 1])).unwrap();
    let optimizer = OptimizerConfig::Sgd { momentum: 0.0, weight_decay: 0.0 };
    let rate = 1e-2;
    let schedule = Schedule::Constant { rate };
    let settings = Settings { samples: 2, batch: 6, schedule, optimizer, ..Settings::default() };
    let settings = Settings { heat: 0.0, ..settings };
    let mut trainer = Trainer::new(posterior.clone(), SquaredErrorOfMean, settings);
    trainer.fit(&data, None, Length::Steps(1)).unwrap();
    let before = posterior.parameters().values().to_vec();
    let after = trainer.posterior().parameters().values();
    let (x, y) = (rows(1, &codes), numbers(2, [6, 1]));
    let loss = |index: usize, change: f32| {
        let mut changed = posterior.parameters().clone();
        changed.values_mut()[index] += change;
        let draw = Draw::new(0, 0, 0);
        let drawn = changed.snapshot().draw(&draw, Tape::Off).network;
        (drawn.forward(x.clone(), &draw) - y.clone()).square().mean().into_scalar::<f32>()
    };
    let step = 0.02;
    for slot in posterior.parameters().slots() {
        let mut largest = 0f32;
        for index in slot.range.start..slot.range.start + slot.len() {
            let difference = (loss(index, step) - loss(index, -step)) / (2.0 * step);
            let gradient = (before[index] - after[index]) / rate as f32;
            assert!((gradient - difference).abs() < 5e-3, "{}: {gradient} {difference}", slot.name);
            largest = largest.max(gradient.abs());
        }
        assert!(largest > 0.02, "{} has no gradient", slot.name);
    }
}

/// `Memory::Retain` evaluates what comes before dropout once for all draws, `Recompute` once for
/// each.
#[test]
fn draws_at_once_train_like_draws_one_by_one() {
    let codes: Vec<[f32; 2]> = (0..32).map(|i| [(i % 3) as f32, (i % 5) as f32]).collect();
    for activation in ACTIVATIONS {
        check_at_once(mlp(activation), numbers(1, [32, 10]), 3);
        check_at_once(table(activation), rows(1, &codes), 2);
    }
}

fn check_at_once(network: Mlp, inputs: Tensor<2>, outputs: usize) {
    let train = |memory| {
        let data = TensorDataset::new(inputs.clone(), numbers(2, [32, outputs])).unwrap();
        let settings = Settings { samples: 4, batch: 8, memory, ..Settings::default() };
        let posterior = McDropout::new(network.clone()).initialised(0);
        let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings);
        trainer.fit(&data, None, Length::Steps(5)).unwrap();
        trainer.posterior().parameters().values().to_vec()
    };
    let (one_by_one, at_once) = (train(Memory::Recompute), train(Memory::Retain));
    let initial = McDropout::new(network.clone()).initialised(0);
    let initial = initial.parameters().values();
    assert!(at_once.iter().zip(initial).any(|(now, then)| (now - then).abs() > 1e-3));
    for (a, b) in at_once.iter().zip(&one_by_one) {
        assert!((a - b).abs() < 1e-5, "{network:?}: {a} {b}");
    }
}
