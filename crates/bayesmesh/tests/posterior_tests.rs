//! The posterior is right, not only its gradient: Bayesian linear regression has a Gaussian
//! posterior and an evidence in closed form.

mod common;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Combine, ExpectedSquaredError};
use bayesmesh::posterior::{InitialStd, Kl, Parameters, Tape};
use bayesmesh::trainer::{
    Callback, EpochReport, Flow, Length, Memory, OptimizerConfig, Schedule, StepReport,
};
use bayesmesh::{
    Draw, Loss, McDropout, MeanField, Network, Point, Posterior, Precision, Prior, Scale, Settings,
    TensorDataset, Trainer,
};
use bayesmesh_kernels::ops;
use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, TensorData};
use common::{Mlp, distance, numbers, regression};
use std::sync::{Arc, Mutex};

/// `y = x·w` without a bias.
#[derive(Module, Debug)]
struct Weights {
    linear: Linear,
}

impl Network for Weights {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        ops::linear(input, self.linear.weight.val(), None, ops::Epilogue::default())
    }
}

/// Known noise: `−ln N(y; ŷ, NOISE²)`, complete with its constant.
#[derive(Clone)]
struct KnownNoise;

const NOISE: f64 = 0.5;
const ROWS: usize = 64;
const INPUTS: usize = 4;

impl Loss for KnownNoise {
    type Target = Tensor<2>;
    fn combine(&self) -> Combine {
        Combine::Mean
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        let constant = 0.5 * (2.0 * std::f64::consts::PI * NOISE * NOISE).ln();
        (output - target.clone()).square() * (0.5 / (NOISE * NOISE)) as f32 + constant as f32
    }
}

/// Inputs with orthogonal columns, so that the posterior has independent weights and the mean
/// field can be exact: column k is a sign pattern (a Walsh function) times a length of its own.
fn design() -> Vec<[f64; INPUTS]> {
    (0..ROWS)
        .map(|row| {
            std::array::from_fn(|k| {
                let sign = if (row & (k + 1)).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
                sign * [1.0, 0.5, 0.25, 1.5][k]
            })
        })
        .collect()
}

struct Problem {
    data: TensorDataset<Tensor<2>, Tensor<2>>,
    /// Mean and variance of each weight under the posterior with the prior N(0, 1).
    mean: [f64; INPUTS],
    variance: [f64; INPUTS],
    /// `ln p(y)`.
    log_evidence: f64,
}

fn problem() -> Problem {
    let design = design();
    let truth = [0.8, -1.2, 0.4, 0.1];
    let noise: Vec<f32> = common::numbers(7, [ROWS, 1]).into_data().try_into_vec().unwrap();
    let targets: Vec<f64> = design
        .iter()
        .zip(&noise)
        .map(|(x, e)| x.iter().zip(truth).map(|(x, w)| x * w).sum::<f64>() + NOISE * f64::from(*e))
        .collect();
    let precision = 1.0 / (NOISE * NOISE);
    // With orthogonal columns XᵀX is diagonal: everything separates.
    let square: [f64; INPUTS] = std::array::from_fn(|k| design.iter().map(|x| x[k] * x[k]).sum());
    let dot: [f64; INPUTS] =
        std::array::from_fn(|k| design.iter().zip(&targets).map(|(x, y)| x[k] * y).sum());
    let variance = square.map(|s| 1.0 / (1.0 + precision * s));
    let mean = std::array::from_fn(|k| variance[k] * precision * dot[k]);
    // ln p(y) = ln p(y, w) − ln p(w|y) at w = mean
    let residual: f64 = design
        .iter()
        .zip(&targets)
        .map(|(x, y)| (y - x.iter().zip(&mean).map(|(x, w): (_, &f64)| x * w).sum::<f64>()).powi(2))
        .sum();
    let two_pi = 2.0 * std::f64::consts::PI;
    let log_likelihood =
        -0.5 * (ROWS as f64 * (two_pi * NOISE * NOISE).ln() + residual * precision);
    let log_prior: f64 = mean.iter().map(|w| -0.5 * (two_pi.ln() + w * w)).sum();
    let log_posterior: f64 = variance.iter().map(|v| -0.5 * (two_pi * v).ln()).sum();

    let flat: Vec<f32> = design.iter().flatten().map(|&x| x as f32).collect();
    let device = Device::default();
    let x = Tensor::from_data(TensorData::new(flat, [ROWS, INPUTS]), &device);
    let targets: Vec<f32> = targets.iter().map(|&y| y as f32).collect();
    let y = Tensor::from_data(TensorData::new(targets, [ROWS, 1]), &device);
    Problem {
        data: TensorDataset::new(x, y).unwrap(),
        mean,
        variance,
        log_evidence: log_likelihood + log_prior - log_posterior,
    }
}

/// The mean of the objective over the second half of the run.
#[derive(Clone, Default)]
struct LateLoss(Arc<Mutex<Vec<f64>>>);

impl Callback for LateLoss {
    fn on_step(
        &mut self,
        report: &StepReport,
        _state: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        self.0.lock().unwrap().push(report.loss);
        Ok(Flow::Continue)
    }
}

#[test]
fn linear_regression_recovers_the_known_posterior_and_stays_below_the_evidence() {
    let problem = problem();
    for (scale, kl, precision) in [
        (Scale::Exp, Kl::Analytic, Precision::F32),
        (Scale::Softplus, Kl::Analytic, Precision::F32),
        (Scale::Exp, Kl::MonteCarlo, Precision::F32),
        (Scale::Exp, Kl::Analytic, Precision::Bf16),
    ] {
        let network = Weights {
            linear: LinearConfig::new(INPUTS, 1).with_bias(false).init(&Device::default()),
        };
        let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))
            .unwrap()
            .with_scale(scale)
            .with_initial_std(InitialStd::Constant(0.3))
            .unwrap()
            .with_kl(kl)
            .unwrap()
            .initialised(0);
        let losses = LateLoss::default();
        let steps = 3000;
        let settings = Settings {
            precision,
            samples: 16,
            batch: ROWS,
            seed: 1,
            schedule: Schedule::Cosine { rate: 0.02, warmup: 0, total: steps, floor: 1e-5 },
            ..Settings::default()
        };
        let mut trainer =
            Trainer::new(posterior, KnownNoise, settings).with_callback(losses.clone());
        trainer.fit(&problem.data, None, Length::Steps(steps)).unwrap();

        let values = trainer.posterior().parameters().values();
        for k in 0..INPUTS {
            let (mean, std) = (f64::from(values[k]), scale.apply(values[INPUTS + k]));
            let (exact_mean, exact_std) = (problem.mean[k], problem.variance[k].sqrt());
            // Within a twentieth of a posterior standard deviation, and 5 % of the deviation.
            let error = (mean - exact_mean).abs() / exact_std;
            assert!(
                error < 0.05,
                "{scale:?} {kl:?} {precision:?}: mean {k} off by {error} deviations"
            );
            let ratio = f64::from(std) / exact_std;
            assert!(
                (ratio - 1.0).abs() < 0.05,
                "{scale:?} {kl:?} {precision:?}: deviation {k} is {ratio} times"
            );
        }
        // −loss·|D| estimates the evidence lower bound without bias; its mean over the last
        // thousand steps has a standard error far below the 0.05 nats allowed for it here.
        let losses = losses.0.lock().unwrap();
        let late = &losses[steps - 1000..];
        let elbo = -late.iter().sum::<f64>() / late.len() as f64 * ROWS as f64;
        assert!(elbo < problem.log_evidence + 0.05, "{elbo} above {}", problem.log_evidence);
        // And the bound is tight where the family holds the posterior.
        assert!(elbo > problem.log_evidence - 0.1, "{elbo} far below {}", problem.log_evidence);
    }
}

#[test]
fn normalisation_layers_are_points_and_the_rest_is_distributed() {
    let posterior = MeanField::new(Mlp::new(5, 8, 3, 0.0), Prior::normal(0.0, 1.0)).unwrap();
    let described: Vec<(&str, bool, usize)> = posterior
        .parameters()
        .slots()
        .iter()
        .map(|slot| (&slot.name[..], !slot.family.is_certain(), slot.fan_in))
        .collect();
    let expected = [
        ("first.weight", true, 5),
        ("first.bias", true, 5),
        ("norm.gamma", false, 8),
        ("norm.beta", false, 8),
        ("second.weight", true, 8),
        ("second.bias", true, 8),
    ];
    assert_eq!(described, expected);
    let weights: usize = posterior.parameters().slots().iter().map(|slot| slot.len()).sum();
    let numbers = posterior.parameters().values().len();
    assert_eq!((weights, numbers), (48 + 16 + 27, 2 * 48 + 16 + 2 * 27));

    let last = posterior.with_selection(|slot| slot.name.starts_with("second"));
    assert_eq!(last.parameters().values().len(), 48 + 16 + 2 * 27);
}

#[test]
fn initial_values_are_those_of_the_reference() {
    let posterior = MeanField::new(Mlp::new(5, 8, 3, 0.0), Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::PerFanIn(1.0))
        .unwrap()
        .initialised(4);
    let parameters = posterior.parameters();
    let first = &parameters.values()[parameters.slots()[0].range.clone()];
    let (mean, rho) = first.split_at(40);
    // torch_blue with 5 inputs and std 1 starts at log std −0.804697.
    assert!(rho.iter().all(|rho| (rho + 0.804697).abs() < 1e-5), "{}", rho[0]);
    let bound = 1.0 / 5f32.sqrt();
    assert!(mean.iter().all(|m| m.abs() <= bound));
    assert!(mean.iter().any(|m| m.abs() > 0.8 * bound));
    let norm = &parameters.values()[parameters.slots()[2].range.clone()];
    assert_eq!(norm, [1.0; 8], "normalisation keeps what the network has");
    // The same seed, the same start; another seed, another.
    let again = posterior.clone().initialised(4);
    assert_eq!(again.parameters().values(), posterior.parameters().values());
    let other = posterior.clone().initialised(5);
    assert_ne!(other.parameters().values(), posterior.parameters().values());
}

#[test]
fn impossible_settings_are_refused() {
    let network = || Mlp::new(5, 8, 3, 0.0);
    assert!(MeanField::new(network(), Prior::normal(0.0, 0.0)).is_err());
    let mixture = |weight| Prior::ScaleMixture { weight, std_wide: 1.0, std_narrow: 0.1 };
    assert!(MeanField::new(network(), mixture(1.5)).is_err());
    let posterior = MeanField::new(network(), mixture(0.5)).unwrap();
    assert!(posterior.clone().with_initial_std(InitialStd::Constant(-1.0)).is_err());
    let message = posterior.with_kl(Kl::Analytic).unwrap_err().to_string();
    assert!(message.contains("Monte Carlo"), "{message}");
}

fn outputs<N: Network<Input = Tensor<2>>>(parameters: &Parameters<N>, draw: &Draw) -> Vec<f32> {
    let network = parameters.snapshot().draw(draw, Tape::Off).network;
    network.forward(numbers(3, [6, 5]), draw).into_data().try_into_vec().unwrap()
}

#[test]
fn draws_differ_between_but_not_within_addresses() {
    let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.5)).initialised(0);
    let parameters = posterior.parameters();
    let first = outputs(parameters, &Draw::new(1, 2, 3));
    assert_eq!(first, outputs(parameters, &Draw::new(1, 2, 3)));
    for other in [Draw::new(1, 2, 4), Draw::new(1, 3, 3), Draw::new(2, 2, 3)] {
        assert_ne!(first, outputs(parameters, &other));
    }
}

/// Rows that are divided further along the first axis still have the masks of their rows.
#[test]
fn a_shard_of_folded_rows_is_dropped_as_in_the_whole() {
    let x = numbers(3, [8 * 5, 3]);
    let whole = Draw::new(1, 0, 0).with_rows(0..8).dropout(x.clone(), 0.5);
    let part = Draw::new(1, 0, 0).with_rows(4..8).dropout(x.narrow(0, 4 * 5, 4 * 5), 0.5);
    whole.narrow(0, 4 * 5, 4 * 5).into_data().assert_eq(&part.into_data(), true);
}

#[test]
fn a_point_estimate_drops_out_in_training_only() {
    let posterior = Point::new(Mlp::new(5, 8, 3, 0.5)).initialised(0);
    let parameters = posterior.parameters();
    let predict = |index| outputs(parameters, &posterior.adapt(Draw::for_prediction(1, index)));
    let train = |index| outputs(parameters, &posterior.adapt(Draw::new(1, 0, index)));
    assert_eq!(predict(0), predict(1));
    assert_ne!(train(0), train(1));
}

#[derive(Module, Debug)]
struct Normalised {
    linear: Linear,
    norm: BatchNorm,
    out: Linear,
}

impl Network for Normalised {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.out.forward(self.norm.forward(self.linear.forward(input)))
    }
}

/// Batch normalisation keeps running statistics, which are averaged over draws: they must move,
/// not depend on the ranks along the sample axis, and leave frozen weights alone.
#[test]
fn running_statistics_are_those_of_all_draws() {
    let device = Device::default();
    let network = Normalised {
        linear: LinearConfig::new(5, 4).init(&device),
        norm: BatchNormConfig::new(4).init(&device),
        out: LinearConfig::new(4, 3).init(&device).no_grad(),
    };
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::Constant(0.2))
        .unwrap()
        .initialised(0);
    let start = posterior.parameters().buffers().to_vec();
    assert_eq!(start.len(), 4 + 4 + 15, "running mean, running variance, frozen layer");
    let run = |ranks: usize, memory: Memory| {
        let settings = Settings {
            samples: 6,
            batch: 10,
            mesh: bayesmesh::Mesh::samples(ranks).unwrap(),
            memory,
            optimizer: OptimizerConfig::sgd(),
            ..Settings::default()
        };
        let mut trainer = Trainer::new(posterior.clone(), ExpectedSquaredError, settings);
        trainer.fit(&regression(30), None, Length::Steps(7)).unwrap();
        trainer.posterior().parameters().buffers().to_vec()
    };
    let serial = run(1, Memory::Recompute);
    assert!(distance(&start[..8], &serial[..8]) > 0.01, "statistics did not move");
    assert_eq!(start[8..], serial[8..], "frozen weights moved");
    for ranks in [2, 3] {
        assert!(distance(&serial, &run(ranks, Memory::Retain)) < 1e-5);
    }

    // Statistics that are not finite would spoil every prediction.
    let settings = Settings::default();
    let mut trainer = Trainer::new(posterior.clone(), ExpectedSquaredError, settings);
    let mut spoilt = trainer.checkpoint();
    spoilt.buffers[0].values[0] = f32::NAN;
    let message = trainer.restore(&spoilt, "spoilt").unwrap_err().to_string();
    assert!(message.contains("spoilt: buffers: 'norm.running_mean' is not finite"), "{message}");
}

/// A callback that stops the run.
struct StopAt(usize);

impl Callback for StopAt {
    fn on_step(
        &mut self,
        report: &StepReport,
        _state: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        Ok(if report.step >= self.0 { Flow::Stop } else { Flow::Continue })
    }

    fn on_epoch(
        &mut self,
        _report: &EpochReport,
        _state: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        Ok(Flow::Continue)
    }
}

#[test]
fn a_stopped_and_resumed_run_is_the_uninterrupted_one() {
    let posterior =
        || MeanField::new(Mlp::new(5, 8, 3, 0.2), Prior::normal(0.0, 1.0)).unwrap().initialised(0);
    for optimizer in [
        OptimizerConfig::adam(),
        OptimizerConfig::adamw(),
        OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.1 },
    ] {
        let settings = |mesh: &str| Settings {
            samples: 4,
            batch: 8,
            seed: 9,
            mesh: mesh.parse().unwrap(),
            reduce: bayesmesh::Reduce::Reproducible,
            optimizer,
            ..Settings::default()
        };
        let data = regression(30);
        let mut whole = Trainer::new(posterior(), ExpectedSquaredError, settings("1x1"));
        whole.fit(&data, None, Length::Steps(11)).unwrap();

        let mut first = Trainer::new(posterior(), ExpectedSquaredError, settings("2x1"))
            .with_callback(StopAt(4));
        first.fit(&data, None, Length::Steps(11)).unwrap();
        assert_eq!(first.step(), 5, "the step under way when it was asked to stop is finished");
        let mut second = Trainer::new(posterior(), ExpectedSquaredError, settings("4x1"));
        second.restore(&first.checkpoint(), "first").unwrap();
        second.fit(&data, None, Length::Steps(11)).unwrap();
        assert_eq!(whole.checkpoint(), second.checkpoint());

        let mut other = Trainer::new(
            McDropout::new(Mlp::new(5, 8, 3, 0.2)),
            ExpectedSquaredError,
            settings("1x1"),
        );
        let message = other.restore(&first.checkpoint(), "first").unwrap_err().to_string();
        assert!(message.contains("first") && message.contains("parameters"), "{message}");
    }
}
