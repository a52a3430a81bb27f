//! Losses and gradients against torch_blue 1.1.0 on PyTorch 2.9.0.
//!
//! `scripts/golden.py` made the files in `golden/`; its noise is that of our streams, so a whole
//! training step is compared: sampling, network, loss, KL and the sums over draws and ranks.

mod common;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{
    Categorical, Expected, ExpectedSquaredError, GaussianOfDraws, Mixture, SquaredErrorOfMean,
};
use bayesmesh::posterior::Kl;
use bayesmesh::trainer::{Callback, Flow, Length, OptimizerConfig, Schedule, StepReport};
use bayesmesh::{
    Dataset, Draw, Loss, MeanField, Mesh, Network, Posterior, Prior, Purpose, Settings, Stream,
    TensorDataset, Trainer,
};
use bayesmesh_kernels::gaussian::{Scale, kl_monte_carlo, kl_normal};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use common::distance;
use serde_json::Value;
use std::sync::{Arc, Mutex};

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("golden files are part of the project");
    serde_json::from_str(&text).expect("valid JSON")
}

fn data(tensor: &Value) -> Vec<f32> {
    let numbers = tensor["data"].as_array().expect("a tensor");
    numbers.iter().map(|n| n.as_f64().expect("a number") as f32).collect()
}

fn shape(tensor: &Value) -> Vec<usize> {
    let sizes = tensor["shape"].as_array().expect("a tensor");
    sizes.iter().map(|n| n.as_u64().expect("a size") as usize).collect()
}

fn matrix(tensor: &Value) -> Tensor<2> {
    Tensor::from_data(TensorData::new(data(tensor), shape(tensor)), &Device::default())
}

/// PyTorch keeps linear weights as `[out, in]`, Burn as `[in, out]`.
fn in_burn_layout(tensor: &Value) -> Vec<f32> {
    let (values, shape) = (data(tensor), shape(tensor));
    match shape[..] {
        [rows, columns] => (0..columns)
            .flat_map(|c| (0..rows).map(move |r| (r, c)))
            .map(|(r, c)| values[r * columns + c])
            .collect(),
        _ => values,
    }
}

#[derive(Module, Debug)]
struct TwoLayers {
    layer0: Linear,
    layer1: Linear,
    relu: bool,
}

impl Network for TwoLayers {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        let hidden = self.layer0.forward(input);
        self.layer1.forward(match self.relu {
            true => activation::relu(hidden),
            false => activation::tanh(hidden),
        })
    }
}

/// A number of the case, e.g. `heat`.
fn number(case: &Value, name: &str) -> f64 {
    case[name].as_f64().unwrap_or_else(|| panic!("{name} in the golden file"))
}

/// The flat vector `[mean | log_std]` of every tensor, in our layout.
fn flat<'a>(case: &'a Value, pick: impl Fn(&'a Value) -> &'a Value) -> Vec<Vec<f32>> {
    let parameters = case["parameters"].as_array().expect("parameters");
    let pairs = parameters.iter().map(pick);
    pairs.map(|p| [in_burn_layout(&p["mean"]), in_burn_layout(&p["log_std"])].concat()).collect()
}

fn posterior(case: &Value, prior: Prior, kl: Kl) -> MeanField<TwoLayers> {
    let sizes: Vec<usize> =
        case["sizes"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let device = Device::default();
    let network = TwoLayers {
        layer0: LinearConfig::new(sizes[0], sizes[1]).init(&device),
        layer1: LinearConfig::new(sizes[1], sizes[2]).init(&device),
        relu: case["activation"] == "relu",
    };
    let mut posterior = MeanField::new(network, prior).unwrap().with_kl(kl).unwrap();
    let values = flat(case, |p| p).concat();
    posterior.parameters_mut().restore(&values, &[]).unwrap();
    posterior
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

/// One step of plain gradient descent at rate 1, which moves every number by its gradient: the
/// report, and the gradient of every tensor.
fn step<L: Loss + Clone, D: Dataset<Input = Tensor<2>, Target = L::Target>>(
    posterior: MeanField<TwoLayers>,
    loss: L,
    data: &D,
    case: &Value,
    heat_over_size: f64,
    mesh: Mesh,
) -> (StepReport, Vec<Vec<f32>>) {
    let before = posterior.parameters().values().to_vec();
    let kept = Keep::default();
    let settings = Settings {
        samples: number(case, "samples") as usize,
        batch: data.len(),
        seed: case["seed"].as_u64().unwrap_or(0x0123456789abcdef),
        mesh,
        heat: heat_over_size * data.len() as f64,
        optimizer: OptimizerConfig::sgd(),
        schedule: Schedule::Constant { rate: 1.0 },
        ..Settings::default()
    };
    let mut trainer = Trainer::new(posterior, loss, settings).with_callback(kept.clone());
    trainer.fit(data, None, Length::Steps(1)).unwrap();
    let parameters = trainer.posterior().parameters();
    let moved: Vec<f32> = before.iter().zip(parameters.values()).map(|(b, a)| b - a).collect();
    let gradients = parameters.slots().iter().map(|s| moved[s.range.clone()].to_vec()).collect();
    let report = kept.0.lock().unwrap().take().expect("one step");
    (report, gradients)
}

fn assert_gradients(case: &Value, term: &str, ours: &[Vec<f32>]) {
    let theirs = flat(case, |p| &p["gradients"][term]);
    for (index, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
        let (mean, log_std) = theirs.split_at(theirs.len() / 2);
        let (ours_mean, ours_rho) = ours.split_at(ours.len() / 2);
        for (what, theirs, ours) in [("mean", mean, ours_mean), ("log_std", log_std, ours_rho)] {
            let error = distance(theirs, ours);
            assert!(error < 1e-5, "{term}, {what} of tensor {index}: off by {error}");
        }
    }
}

fn assert_value(what: &str, ours: f64, theirs: f64) {
    assert!((ours / theirs - 1.0).abs() < 1e-5, "{what}: {ours} against {theirs}");
}

/// The ELBO of a file with both forms of the KL, on one rank and on as many as there are draws.
fn assert_elbo<L: Loss + Clone, D: Dataset<Input = Tensor<2>, Target = L::Target>>(
    case: &Value,
    loss: L,
    data: &D,
) {
    let prior = Prior::Normal {
        mean: number(&case["prior"], "mean") as f32,
        std: number(&case["prior"], "std") as f32,
    };
    let weight = number(case, "heat") / number(case, "dataset_size");
    let samples = number(case, "samples") as usize;
    let values = &case["values"];
    for mesh in [Mesh::serial(), Mesh::samples(samples).unwrap(), Mesh::data(5).unwrap()] {
        for (kl, name) in [(Kl::Analytic, "analytic"), (Kl::MonteCarlo, "monte_carlo")] {
            let posterior = posterior(case, prior, kl);
            let (report, gradients) = step(posterior, loss.clone(), data, case, weight, mesh);
            assert_value("data", report.data, number(values, "data_f64"));
            assert_value("kl", report.kl, number(values, &format!("kl_{name}_f64")));
            assert_value("loss", report.loss, number(values, &format!("total_{name}_f64")));
            assert_gradients(case, &format!("total_{name}"), &gradients);
        }
        // Without the KL, whose gradients could hide an error of the data term.
        let posterior = posterior(case, prior, Kl::Analytic);
        let (_, gradients) = step(posterior, loss.clone(), data, case, 0.0, mesh);
        assert_gradients(case, "data", &gradients);
    }
}

fn labels(case: &Value) -> Tensor<1, Int> {
    let labels: Vec<i64> = match case["targets"].as_array() {
        Some(labels) => labels.iter().map(|l| l.as_i64().unwrap()).collect(),
        None => data(&case["targets"]).iter().map(|&l| l as i64).collect(),
    };
    let n = labels.len();
    Tensor::from_data(TensorData::new(labels, [n]), &Device::default())
}

#[test]
fn cross_entropy_of_mean_probabilities_is_torch_blues_categorical() {
    let case = golden("categorical");
    let data = TensorDataset::new(matrix(&case["inputs"]), labels(&case)).unwrap();
    assert_elbo(&case, Mixture::new(Categorical).with_floor(1e-5).unwrap(), &data);
}

#[test]
fn gaussian_of_draws_is_torch_blues_mean_field_normal() {
    let case = golden("mean_field_normal");
    let data = TensorDataset::new(matrix(&case["inputs"]), matrix(&case["targets"])).unwrap();
    assert_elbo(&case, GaussianOfDraws::default(), &data);
}

#[test]
fn expected_losses_are_pytorchs() {
    fn check<L: Loss + Clone, D: Dataset<Input = Tensor<2>, Target = L::Target>>(
        case: &Value,
        term: &str,
        loss: L,
        data: &D,
    ) {
        let prior = Prior::normal(0.0, 1.0);
        let posterior = posterior(case, prior, Kl::Analytic);
        let (report, gradients) = step(posterior, loss, data, case, 0.0, Mesh::serial());
        assert_value(term, report.data, number(&case["values"], &format!("{term}_f64")));
        assert_gradients(case, term, &gradients);
    }
    let file = golden("expected_losses");
    let case = &file["classification"];
    let data = TensorDataset::new(matrix(&case["inputs"]), labels(case)).unwrap();
    check(case, "expected_cross_entropy", Expected(Categorical), &data);

    let case = &file["regression"];
    let data = TensorDataset::new(matrix(&case["inputs"]), matrix(&case["targets"])).unwrap();
    check(case, "expected_mse", ExpectedSquaredError, &data);
    check(case, "mse_of_mean", SquaredErrorOfMean, &data);
}

#[test]
fn divergences_are_torchs() {
    let file = golden("kl");
    let mean = data(&file["mean"]);
    let n = mean.len();
    let samples = number(&file, "samples") as u32;
    let seed = file["seed"].as_u64().unwrap();
    for case in file["cases"].as_array().unwrap() {
        let (scale, raw) = match case["scale"].as_str().unwrap() {
            "exp" => (Scale::Exp, data(&file["log_std"])),
            _ => (Scale::Softplus, data(&file["rho"])),
        };
        let prior = &case["prior"];
        let prior = match prior["kind"].as_str().unwrap() {
            "normal" => Prior::Normal {
                mean: number(prior, "mean") as f32,
                std: number(prior, "std") as f32,
            },
            _ => Prior::ScaleMixture {
                weight: number(prior, "pi") as f32,
                std_wide: number(prior, "std1") as f32,
                std_narrow: number(prior, "std2") as f32,
            },
        };
        let check = |term: &str, value: f64, grad_mean: &[f32], grad_rho: &[f32]| {
            assert_value(term, value, number(case, &format!("{term}_f64")));
            for (what, ours) in [("mean", grad_mean), ("raw", grad_rho)] {
                let theirs = data(&case[format!("{term}_grad_{what}_f64")]);
                let error = distance(&theirs, ours);
                assert!(error < 1e-5, "{prior:?} {scale:?} {term} {what}: off by {error}");
            }
        };
        let (mut grad_mean, mut grad_rho) = (vec![0.0; n], vec![0.0; n]);
        let mut value = 0.0;
        for draw in 0..samples {
            let stream = Stream::new(seed, Purpose::Weights).at_draw(draw);
            let weight = 1.0 / samples as f32;
            value += kl_monte_carlo(
                &stream,
                0,
                scale,
                &mean,
                &raw,
                &prior,
                weight,
                &mut grad_mean,
                &mut grad_rho,
            ) / f64::from(samples);
        }
        check("monte_carlo", value, &grad_mean, &grad_rho);
        if let Prior::Normal { mean: prior_mean, std } = prior {
            let (mut grad_mean, mut grad_rho) = (vec![0.0; n], vec![0.0; n]);
            let value =
                kl_normal(scale, &mean, &raw, prior_mean, std, 1.0, &mut grad_mean, &mut grad_rho);
            check("analytic", value, &grad_mean, &grad_rho);
        }
    }
}
