//! The shifted-window transformer against PyTorch 2.9.0; `scripts/golden_swin.py` made the files.

mod common;

use std::collections::HashMap;

use bayesmesh::posterior::Tape;
use bayesmesh::{Draw, MeanField, Network, Point, Posterior, Prior};
use bayesmesh_models::{PyTorch, Swin, SwinConfig};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use common::{Scratch, golden_path, list, sizes, stream_values, to_vec, write_file};
use serde_json::Value;

const TOLERANCE: f64 = 2e-5;

fn golden() -> Value {
    let text = std::fs::read_to_string(golden_path("swin.json")).expect("part of the project");
    serde_json::from_str(&text).expect("valid JSON")
}

fn config(value: &Value) -> SwinConfig {
    let number = |name: &str| value[name].as_u64().expect("a size") as usize;
    let all = |name: &str| sizes(&value[name]);
    SwinConfig {
        patch: number("patch"),
        width: number("width"),
        depths: all("depths").try_into().unwrap(),
        heads: all("heads").try_into().unwrap(),
        window: all("window").try_into().unwrap(),
        ..SwinConfig::paper(number("channels"), number("variables"), all("grid")[0], all("grid")[1])
    }
}

/// Fields from a stream, and by how much each is turned.
fn input(case: &Value) -> (Tensor<4>, Tensor<1, Int>) {
    let about = &case["fields"];
    let shape = sizes(&about["shape"]);
    let scale = about["scale"].as_f64().unwrap() as f32;
    let tensor = about["tensor"].as_u64().unwrap() as u32;
    let values = stream_values(0, tensor, shape.iter().product(), scale, 0.0);
    let turns: Vec<i64> = list(&about["turns"]).into_iter().map(|turn| turn as i64).collect();
    let (device, rows) = (Device::default(), turns.len());
    (
        Tensor::from_data(TensorData::new(values, shape), &device),
        Tensor::from_data(TensorData::new(turns, [rows]), &device),
    )
}

/// The network of a case: weights from streams, by way of a file in PyTorch's layout.
fn network(case: &Value, change: impl FnOnce(&mut SwinConfig)) -> Swin {
    let tensors = case["tensors"].as_array().unwrap().iter().enumerate().map(|(index, tensor)| {
        let shape = sizes(&tensor["shape"]);
        let number = |name: &str| tensor[name].as_f64().unwrap() as f32;
        let n = shape.iter().product();
        let values = stream_values(0, index as u32, n, number("scale"), number("offset"));
        (tensor["name"].as_str().unwrap().to_owned(), shape, values)
    });
    let grid = sizes(&case["config"]["grid"]);
    let scratch =
        Scratch::new(&format!("swin-golden-{}-{:?}", grid[0], std::thread::current().id()));
    let path = scratch.file("swin.safetensors");
    write_file(&path, &tensors.collect::<Vec<_>>());
    let mut config = config(&case["config"]);
    change(&mut config);
    config.init(&Device::default()).load_pytorch(&path).unwrap()
}

/// The largest difference, relative to the largest expected number.
fn distance(expected: &[f64], found: &[f32]) -> f64 {
    assert_eq!(expected.len(), found.len());
    let scale = expected.iter().fold(0.0f64, |m, e| m.max(e.abs()));
    let pairs = expected.iter().zip(found);
    pairs.fold(0.0f64, |m, (e, f)| m.max((e - f64::from(*f)).abs())) / scale
}

/// The gradients of a module's tensors by their paths.
struct Collect<'a> {
    gradients: &'a Gradients,
    path: Vec<String>,
    found: HashMap<String, Vec<f32>>,
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(self.gradients).expect("every tensor is used");
        self.found.insert(self.path.join("."), to_vec(gradient));
    }
}

/// The outputs, and the gradients of their product with a direction.
fn differentiate(network: &Swin, case: &Value) -> (Vec<f32>, HashMap<String, Vec<f32>>) {
    let posterior = Point::new(network.clone());
    let draw = Draw::new(0, 0, 0);
    let drawn = posterior.parameters().snapshot().draw(&draw, Tape::Recording).network;
    let outputs = drawn.forward(input(case), &draw);
    let [rows, units] = outputs.dims();
    let tensor = case["fields"]["tensor"].as_u64().unwrap() as u32 + 1;
    let direction = stream_values(1, tensor, rows * units, 1.0, 0.0);
    let direction = TensorData::new(direction, [rows, units]);
    let direction = Tensor::from_data(direction, &outputs.device());
    let gradients = (outputs.clone() * direction).sum().backward();
    let mut collect = Collect { gradients: &gradients, path: Vec::new(), found: HashMap::new() };
    drawn.visit(&mut collect);
    (to_vec(outputs), collect.found)
}

fn check(name: &str) {
    let case = &golden()[name];
    let network = network(case, |_| ());
    let (outputs, gradients) = differentiate(&network, case);
    let error = distance(&list(&case["outputs"]), &outputs);
    println!("{name}: outputs off by {error:.1e}");
    assert!(error < TOLERANCE, "{name}: outputs off by {error:e}");

    let posterior = Point::new(network.clone());
    let slots = posterior.parameters().slots();
    let tensors = case["tensors"].as_array().unwrap();
    assert_eq!(slots.len(), tensors.len());
    let mut worst = [0.0f64; 3];
    for slot in slots {
        let pytorch = Swin::pytorch_name(&slot.name);
        let index = tensors.iter().position(|t| t["name"] == pytorch.as_str()).unwrap();
        let tensor = &tensors[index];
        let layout = network.pytorch_layout(slot);
        assert_eq!(layout.shape(), sizes(&tensor["shape"]), "{pytorch}");
        let ours = &gradients[&slot.name];
        let gradient: Vec<f64> =
            layout.places().into_iter().map(|place| f64::from(ours[place])).collect();
        let expected = tensor["norm_f64"].as_f64().unwrap();
        let of_norm = (gradient.iter().map(|g| g * g).sum::<f64>().sqrt() / expected - 1.0).abs();
        let products = list(&tensor["products_f64"]);
        let of_products = (1..).zip(&products).fold(0.0f64, |worst, (draw, product)| {
            let direction = stream_values(draw, index as u32, gradient.len(), 1.0, 0.0);
            let ours: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * f64::from(*d)).sum();
            worst.max((ours - product).abs() / expected)
        });
        let places = sizes(&tensor["places"]);
        let elements = list(&tensor["elements_f64"]);
        let scale = gradient.iter().fold(0.0f64, |m, g| m.max(g.abs()));
        let of_elements = places.iter().zip(&elements).fold(0.0f64, |worst, (place, element)| {
            worst.max((gradient[*place] - element).abs() / scale)
        });
        let errors = [of_norm, of_products, of_elements];
        for (worst, error) in worst.iter_mut().zip(errors) {
            *worst = worst.max(error);
        }
        assert!(
            errors.iter().all(|error| *error < TOLERANCE),
            "{name}, {pytorch}: norm, products, elements off by {errors:?}"
        );
    }
    println!("{name}: gradients: norms, products, elements off by at most {worst:?}");
}

#[test]
fn a_grid_that_windows_divide_is_pytorchs() {
    check("even");
}

#[test]
fn a_grid_with_padding_and_a_turned_globe_is_pytorchs() {
    check("odd");
}

#[test]
fn a_token_at_every_point_is_pytorchs() {
    check("points");
}

#[test]
fn a_file_saved_by_pytorch_gives_its_outputs() {
    let file = golden();
    let case = &file["small"];
    let network = config(&case["config"]).init(&Device::default());
    let random = to_vec(network.forward(input(case), &Draw::new(0, 0, 0)));
    let network = network.load_pytorch(golden_path("swin_small.safetensors")).unwrap();
    let outputs = to_vec(network.forward(input(case), &Draw::new(0, 0, 0)));
    let expected = list(&case["outputs"]);
    let error = distance(&expected, &outputs);
    println!("outputs: off by {error:.1e}");
    assert!(error < TOLERANCE, "off by {error:e}");
    assert!(distance(&expected, &random) > 0.1, "the weights of the file make no difference");

    // And back: what is written is what was read.
    let scratch = Scratch::new("swin-export");
    let path = scratch.file("swin.safetensors");
    network.save_pytorch(&path).unwrap();
    let read = |path: &std::path::Path| {
        let bytes = std::fs::read(path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = file
            .tensors()
            .into_iter()
            .map(|(name, tensor)| (name, tensor.shape().to_vec(), tensor.data().to_vec()))
            .collect();
        tensors.sort();
        tensors
    };
    assert!(read(&path) == read(&golden_path("swin_small.safetensors")));
}

/// Recomputing blocks changes no bit, with dropout and noise too.
#[test]
fn blocks_that_are_run_again_have_the_same_bits() {
    let file = golden();
    for name in ["even", "odd"] {
        let case = &file[name];
        let kept = differentiate(&network(case, |_| ()), case);
        let again = differentiate(&network(case, |config| config.checkpoint_blocks = true), case);
        assert!(kept.0 == again.0, "{name}: outputs");
        for (tensor, gradient) in &kept.1 {
            assert!(*gradient == again.1[tensor], "{name}: gradient of {tensor}");
        }
    }
}

#[test]
fn the_full_size_has_the_weights_of_the_paper() {
    let config = SwinConfig::paper(76, 69, 121, 240);
    assert_eq!(config.weights(), 103_543_449);
    let network = config.init(&Device::default());
    assert_eq!(network.num_params(), 103_543_449);
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap();
    let parameters = posterior.parameters();
    assert_eq!(parameters.slots().len(), 203);
    assert_eq!(parameters.values().len(), 207_038_298);
    assert!(parameters.buffers().is_empty());
    let shape = |name: &str| {
        let slot = parameters.slots().iter().find(|s| Swin::pytorch_name(&s.name) == name).unwrap();
        parameters.network().pytorch_layout(slot).shape()
    };
    assert_eq!(shape("embed.weight"), [540, 76, 2, 2]);
    assert_eq!(shape("recover.weight"), [1080, 69, 2, 2]);
    assert_eq!(shape("layer1.5.fc1.weight"), [2160, 540]);
    assert_eq!(shape("middle.3.norm2.bias"), [1080]);
    assert_eq!(shape("up.expand.weight"), [2160, 1080]);
}
