//! The vision transformer against PyTorch 2.9.0; `scripts/golden_vit.py` made the files.

mod common;

use std::sync::{Arc, Mutex};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Categorical, Expected};
use bayesmesh::trainer::{Callback, Flow, Length, OptimizerConfig, Schedule, StepReport};
use bayesmesh::{
    Draw, MeanField, Network, Point, Posterior, Prior, Settings, TensorDataset, Trainer,
};
use bayesmesh_models::{PyTorch, Vit, VitConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::{
    Scratch, config, golden, golden_path, images, list, sizes, stream_values, to_vec, write_file,
};
use serde_json::Value;

const TOLERANCE: f64 = 1e-5;

/// The largest difference, relative to the largest expected number.
fn distance(expected: &[f64], found: &[f32]) -> f64 {
    assert_eq!(expected.len(), found.len());
    let scale = expected.iter().fold(0.0f64, |m, e| m.max(e.abs()));
    let pairs = expected.iter().zip(found);
    pairs.fold(0.0f64, |m, (e, f)| m.max((e - f64::from(*f)).abs())) / scale
}

/// The network of the golden file: weights from streams, by way of a file in PyTorch's layout.
fn full_size(case: &Value) -> Vit {
    let tensors = case["tensors"].as_array().unwrap().iter().enumerate().map(|(index, tensor)| {
        let shape = sizes(&tensor["shape"]);
        let number = |name: &str| tensor[name].as_f64().unwrap() as f32;
        let n = shape.iter().product();
        let values = stream_values(0, index as u32, n, number("scale"), number("offset"));
        (tensor["name"].as_str().unwrap().to_owned(), shape, values)
    });
    let scratch = Scratch::new("vit-golden");
    let path = scratch.file("vit.safetensors");
    write_file(&path, &tensors.collect::<Vec<_>>());
    config(&case["config"]).init(&Device::default()).load_pytorch(&path).unwrap()
}

/// Keeps the report of a step.
#[derive(Clone, Default)]
struct Keep(Arc<Mutex<Option<StepReport>>>);

impl Callback for Keep {
    fn on_step(
        &mut self,
        report: &StepReport,
        _state: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        *self.0.lock().unwrap() = Some(report.clone());
        Ok(Flow::Continue)
    }
}

#[test]
fn logits_loss_and_gradients_of_the_full_size_are_pytorchs() {
    let file = golden();
    let case = &file["full"];
    assert_eq!(config(&case["config"]), VitConfig::cifar10());
    let network = full_size(case);
    let images = images(case);

    let draw = Draw::new(0, 0, 0);
    let logits = to_vec(network.forward(images.clone(), &draw));
    let error = distance(&list(&case["logits_f64"]), &logits);
    println!("logits: off by {error:.1e}");
    assert!(error < TOLERANCE, "logits: off by {error:e}");

    // A step of plain gradient descent moves every number by its gradient. The rate makes the step
    // so large that rounding in the difference does not count.
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
    let report = kept.0.lock().unwrap().take().expect("one step");
    let loss = case["loss_f64"].as_f64().unwrap();
    let error = (report.data / loss - 1.0).abs();
    println!("loss: off by {error:.1e}");
    assert!(error < TOLERANCE, "loss: {} against {loss}", report.data);

    let parameters = trainer.posterior().parameters();
    let tensors = case["tensors"].as_array().unwrap();
    assert_eq!(parameters.slots().len(), tensors.len());
    let mut worst = [0.0f64; 3];
    for slot in parameters.slots() {
        let name = Vit::pytorch_name(&slot.name);
        let index = tensors.iter().position(|t| t["name"] == name.as_str()).unwrap();
        let tensor = &tensors[index];
        let moved = before.iter().zip(parameters.values()).map(|(b, a)| (b - a) / RATE);
        let moved: Vec<f32> = moved.skip(slot.range.start).take(slot.len()).collect();
        // In PyTorch's layout.
        let gradient: Vec<f64> = match slot.shape[..] {
            [inputs, outputs] => (0..outputs)
                .flat_map(|o| (0..inputs).map(move |i| i * outputs + o))
                .map(|place| f64::from(moved[place]))
                .collect(),
            _ => moved.iter().copied().map(f64::from).collect(),
        };
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let expected = tensor["norm_f64"].as_f64().unwrap();
        let of_norm = (norm / expected - 1.0).abs();

        // A direction has entries of variance 1/3: the product of a gradient that is wrong
        // anywhere is off by about its error.
        let products = list(&tensor["products_f64"]);
        let of_products = (1..).zip(&products).fold(0.0f64, |worst, (draw, product)| {
            let direction = stream_values(draw, index as u32, gradient.len(), 1.0, 0.0);
            let ours: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * f64::from(*d)).sum();
            worst.max((ours - product).abs() / expected)
        });

        let scale = gradient.iter().fold(0.0f64, |m, g| m.max(g.abs()));
        let places = sizes(&tensor["places"]);
        let elements = list(&tensor["elements_f64"]);
        let of_elements = places.iter().zip(&elements).fold(0.0f64, |worst, (place, element)| {
            worst.max((gradient[*place] - element).abs() / scale)
        });
        let errors = [of_norm, of_products, of_elements];
        for (worst, error) in worst.iter_mut().zip(errors) {
            *worst = worst.max(error);
        }
        assert!(
            errors.iter().all(|error| *error < TOLERANCE),
            "{name}: norm, products, elements off by {errors:?}"
        );
    }
    println!("gradients: norms, products, elements off by at most {worst:?}");
}

#[test]
fn a_file_saved_by_pytorch_gives_its_logits() {
    let file = golden();
    let case = &file["small"];
    let network = config(&case["config"]).init(&Device::default());
    let random = to_vec(network.forward(images(case), &Draw::new(0, 0, 0)));
    let network = network.load_pytorch(golden_path("vit_small.safetensors")).unwrap();
    let logits = to_vec(network.forward(images(case), &Draw::new(0, 0, 0)));
    let expected = list(&case["logits_f64"]);
    let error = distance(&expected, &logits);
    println!("logits: off by {error:.1e}");
    assert!(error < TOLERANCE, "off by {error:e}");
    assert!(distance(&expected, &random) > 0.1, "the weights of the file make no difference");
}

#[test]
fn the_full_size_has_the_weights_of_the_paper() {
    let network = VitConfig::cifar10().init(&Device::default());
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap();
    let parameters = posterior.parameters();
    let slots = parameters.slots();
    let weights: usize = slots.iter().map(|slot| slot.len()).sum();
    let gaussian = slots.iter().filter(|slot| !slot.family.is_certain());
    assert_eq!(weights, 2_676_778);
    assert_eq!(gaussian.map(|slot| slot.len()).sum::<usize>(), 2_671_306);
    assert_eq!(parameters.values().len(), 5_348_084);
    assert!(parameters.buffers().is_empty());
}

#[test]
fn other_sizes_work() {
    let finer = VitConfig { image: 16, patch: 2, channels: 1, heads: 4, ..VitConfig::tiny() };
    for config in [VitConfig::tiny(), finer] {
        let network = config.init(&Device::default());
        let shape = [3, config.channels, config.image, config.image];
        let values = stream_values(0, 0, shape.iter().product(), 1.0, 0.0);
        let images = Tensor::from_data(TensorData::new(values, shape), &Device::default());
        let logits = network.forward(images, &Draw::new(0, 0, 0));
        assert_eq!(logits.dims(), [3, config.classes]);
        let logits = to_vec(logits);
        assert!(logits.iter().all(|l| l.is_finite()) && logits[..10] != logits[10..20]);
    }
}
