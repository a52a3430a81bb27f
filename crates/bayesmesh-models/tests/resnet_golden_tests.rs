//! The residual network against PyTorch 2.9.0; `scripts/golden_resnet.py` made the files.

mod common;

use std::sync::{Arc, Mutex};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Categorical, Expected};
use bayesmesh::posterior::Parameters;
use bayesmesh::trainer::{Callback, Flow, Length, OptimizerConfig, Schedule, StepReport};
use bayesmesh::{Draw, Network, Point, Posterior, Settings, TensorDataset, Trainer};
use bayesmesh_models::{PyTorch, ResNet, ResNetConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::{Scratch, golden_path, images, list, sizes, to_vec};
use serde_json::Value;

const TOLERANCE: f64 = 1e-5;
const CASES: [&str; 2] = ["odd", "wide"];

fn case(name: &str) -> Value {
    let text = std::fs::read_to_string(golden_path("resnet.json")).expect("part of the project");
    let mut file: Value = serde_json::from_str(&text).expect("valid JSON");
    file[name].take()
}

fn config(case: &Value) -> ResNetConfig {
    let value = &case["config"];
    let size = |name: &str| value[name].as_u64().expect("a size") as usize;
    ResNetConfig {
        image: size("image"),
        channels: size("channels"),
        classes: size("classes"),
        width: size("width"),
        blocks: sizes(&value["blocks"]),
        stride: size("stride"),
        groups: size("groups"),
        dropout: 0.0,
    }
}

fn network(name: &str, file: &str) -> ResNet {
    let network = config(&case(name)).init(&Device::default());
    network.load_pytorch(golden_path(file)).unwrap()
}

/// The largest difference, relative to the largest expected number.
fn distance(expected: &[f64], found: &[f64]) -> f64 {
    assert_eq!(expected.len(), found.len());
    let scale = expected.iter().fold(0.0f64, |m, e| m.max(e.abs()));
    expected.iter().zip(found).fold(0.0f64, |m, (e, f)| m.max((e - f).abs())) / scale
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

#[derive(Clone, Default)]
struct Keep(Arc<Mutex<f64>>);

impl Callback for Keep {
    fn on_step(
        &mut self,
        report: &StepReport,
        _: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        *self.0.lock().unwrap() = report.data;
        Ok(Flow::Continue)
    }
}

#[test]
fn logits_loss_and_gradients_are_pytorchs() {
    for name in CASES {
        let case = case(name);
        let network = network(name, &format!("resnet_{name}.safetensors"));
        let images = images(&case);
        let logits = to_vec(network.forward(images.clone(), &Draw::new(0, 0, 0)));
        let error = distance(&list(&case["logits_f64"]), &wide(&logits));
        println!("{name}, logits: off by {error:.1e}");
        assert!(error < TOLERANCE, "{name}, logits: off by {error:e}");

        // A step of plain gradient descent moves every number by its gradient. The rate makes the
        // step so large that rounding in the difference does not count.
        const RATE: f32 = 1024.0;
        let posterior = Point::new(network);
        let before = posterior.parameters().values().to_vec();
        let labels: Vec<i64> = list(&case["labels"]).into_iter().map(|l| l as i64).collect();
        let rows = labels.len();
        let labels: Tensor<1, Int> =
            Tensor::from_data(TensorData::new(labels, [rows]), &Device::default());
        let data = TensorDataset::new(images, labels).unwrap();
        let settings = Settings {
            samples: 1,
            batch: rows,
            optimizer: OptimizerConfig::sgd(),
            schedule: Schedule::Constant { rate: f64::from(RATE) },
            ..Settings::default()
        };
        let kept = Keep::default();
        let mut trainer =
            Trainer::new(posterior, Expected(Categorical), settings).with_callback(kept.clone());
        trainer.fit(&data, None, Length::Steps(1)).unwrap();
        let (loss, expected) = (*kept.0.lock().unwrap(), case["loss_f64"].as_f64().unwrap());
        assert!((loss / expected - 1.0).abs() < TOLERANCE, "{name}: {loss} against {expected}");

        // The file has the gradients where a state has weights: it is read like one.
        let gradients = self::network(name, &format!("resnet_{name}_gradients.safetensors"));
        let expected = wide(Parameters::new(gradients).values());
        let parameters = trainer.posterior().parameters();
        let moved: Vec<f32> =
            before.iter().zip(parameters.values()).map(|(b, a)| (b - a) / RATE).collect();
        for slot in parameters.slots() {
            let range = slot.range.clone();
            let error = distance(&expected[range.clone()], &wide(&moved[range]));
            assert!(error < TOLERANCE, "{name}, {}: off by {error:e}", slot.name);
        }
    }
}

/// What is written in PyTorch's layout is read back as it was.
#[test]
fn weights_go_to_pytorch_and_come_back() {
    let scratch = Scratch::new("resnet");
    let path = scratch.file("resnet.safetensors");
    let network = ResNetConfig::tiny().init(&Device::default());
    network.save_pytorch(&path).unwrap();
    let other = ResNetConfig::tiny().init(&Device::default()).load_pytorch(&path).unwrap();
    assert_eq!(Parameters::new(network).values(), Parameters::new(other).values());
}
