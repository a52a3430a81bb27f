//! The transformer of series against PyTorch 2.9.0 (`scripts/golden_patch_transformer.py` made the
//! files), and on any mesh.

mod common;

use bayesmesh::loss::SquaredErrorOfMean;
use bayesmesh::posterior::Parameters;
use bayesmesh::trainer::{Length, OptimizerConfig, Schedule};
use bayesmesh::{Draw, Network, Point, Posterior, Settings, TensorDataset, Trainer};
use bayesmesh_models::{PatchTransformer, PatchTransformerConfig, PyTorch};
use burn::tensor::{Device, Tensor, TensorData};
use common::{golden_path, list, to_vec};
use serde_json::Value;

const TOLERANCE: f64 = 1e-5;
const ROWS: usize = 6;

fn config() -> PatchTransformerConfig {
    PatchTransformerConfig {
        history: [3, 24],
        inputs: 3 * 24 + 5 + 1,
        categories: vec![4],
        outputs: 7,
        patch: Some(4),
        width: 8,
        depth: 2,
        heads: 2,
        mlp: 16,
        dropout: 0.0,
    }
}

fn network(file: &str) -> PatchTransformer {
    config().init(&Device::default()).load_pytorch(golden_path(file)).unwrap()
}

fn tensor(values: &Value, columns: usize) -> Tensor<2> {
    let values: Vec<f32> = list(values).into_iter().map(|value| value as f32).collect();
    Tensor::from_data(TensorData::new(values, [ROWS, columns]), &Device::default())
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// The largest difference, relative to the largest expected number.
fn distance(expected: &[f64], found: &[f64]) -> f64 {
    assert_eq!(expected.len(), found.len());
    let scale = expected.iter().fold(0.0f64, |m, e| m.max(e.abs()));
    expected.iter().zip(found).fold(0.0f64, |m, (e, f)| m.max((e - f).abs())) / scale
}

#[test]
fn outputs_and_gradients_are_pytorchs() {
    let text = std::fs::read_to_string(golden_path("patch_transformer.json")).unwrap();
    let golden: Value = serde_json::from_str(&text).unwrap();
    let network = network("patch_transformer.safetensors");
    let inputs = tensor(&golden["inputs"], config().inputs);
    let outputs = to_vec(network.forward(inputs.clone(), &Draw::new(0, 0, 0)));
    let error = distance(&list(&golden["outputs_f64"]), &wide(&outputs));
    assert!(error < TOLERANCE, "outputs: off by {error:e}");

    // A step of plain gradient descent moves every number by its gradient. The rate makes the step
    // so large that rounding in the difference does not count.
    const RATE: f32 = 1024.0;
    let posterior = Point::new(network);
    let before = posterior.parameters().values().to_vec();
    let data = TensorDataset::new(inputs, tensor(&golden["targets"], 7)).unwrap();
    let settings = Settings {
        samples: 1,
        batch: ROWS,
        optimizer: OptimizerConfig::sgd(),
        schedule: Schedule::Constant { rate: f64::from(RATE) },
        ..Settings::default()
    };
    let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings);
    trainer.fit(&data, None, Length::Steps(1)).unwrap();
    // The file has the gradients where a state has weights: it is read like one.
    let gradients = self::network("patch_transformer_gradients.safetensors");
    let expected = wide(Parameters::new(gradients).values());
    let parameters = trainer.posterior().parameters();
    let moved: Vec<f32> =
        before.iter().zip(parameters.values()).map(|(b, a)| (b - a) / RATE).collect();
    for slot in parameters.slots() {
        let range = slot.range.clone();
        let error = distance(&expected[range.clone()], &wide(&moved[range]));
        assert!(error < TOLERANCE, "{}: off by {error:e}", slot.name);
    }
}

/// A unit that is dropped for one draw is kept for another, and without dropout nothing is.
#[test]
fn draws_differ_by_dropout() {
    let input = Tensor::ones([2, config().inputs], &Device::default());
    let outputs = |dropout: f64| {
        let network = PatchTransformerConfig { dropout, ..config() }.init(&Device::default());
        let posterior = bayesmesh::McDropout::new(network).initialised(3);
        let snapshot = posterior.parameters().snapshot();
        [0, 1].map(|sample| {
            let draw = Draw::new(0, 0, sample);
            let network = snapshot.draw(&draw, bayesmesh::posterior::Tape::Paused).network;
            to_vec(network.forward(input.clone(), &draw))
        })
    };
    let [one, other] = outputs(0.3);
    assert!(one.iter().zip(&other).any(|(a, b)| (a - b).abs() > 1e-3), "{one:?} {other:?}");
    let [one, other] = outputs(0.0);
    assert_eq!(one, other);
}
