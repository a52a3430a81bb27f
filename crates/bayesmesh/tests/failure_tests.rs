//! What a user can do wrong ends in an error that says what to do, on every rank, without a hang.

mod common;

use bayesmesh::comm::{Communicator, threads};
use bayesmesh::loss::{GaussianOfDraws, SquaredErrorOfMean};
use bayesmesh::trainer::{Length, OptimizerConfig, Schedule};
use bayesmesh::{
    Dataset, Draw, Error, McDropout, Network, Place, Point, Posterior, Result, Settings,
    TensorDataset, Trainer,
};
use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use common::{Mlp, numbers, regression};

fn trainer(settings: Settings) -> Trainer<McDropout<Mlp>, SquaredErrorOfMean> {
    let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1);
    Trainer::new(posterior, SquaredErrorOfMean, settings)
}

fn settings(mesh: &str) -> Settings {
    Settings { samples: 4, batch: 8, mesh: mesh.parse().unwrap(), ..Settings::default() }
}

fn message(settings: Settings) -> String {
    let outcome = trainer(settings).fit(&regression(20), None, Length::Steps(2));
    outcome.expect_err("an error").to_string()
}

#[test]
fn settings_that_do_not_fit_are_refused_before_training() {
    let told = |settings: Settings, words: &[&str]| {
        let message = message(settings);
        for word in words {
            assert!(message.contains(word), "{word:?} not in: {message}");
        }
    };
    told(settings("8x1"), &["8", "4 draws"]);
    told(settings("1x9"), &["9", "8"]);
    told(Settings { batch: 30, ..settings("1x1") }, &["30", "20"]);
    told(Settings { batch: 0, ..settings("1x1") }, &["0"]);
    told(Settings { samples: 0, ..settings("1x1") }, &["0"]);
    told(Settings { heat: f64::NAN, ..settings("1x1") }, &["heat", "NaN"]);
    told(Settings { clip_norm: Some(0.0), ..settings("1x1") }, &["clip_norm", "0"]);
    let rate = Schedule::Constant { rate: -1.0 };
    told(Settings { schedule: rate, ..settings("1x1") }, &["learning rate", "-1"]);
    let falling = Schedule::Cosine { rate: 0.1, warmup: 0, total: 9, floor: -1e-3 };
    told(Settings { schedule: falling, ..settings("1x1") }, &["floor", "-0.001"]);
    let adam = OptimizerConfig::Adam { betas: (1.0, 0.9), epsilon: 1e-8, weight_decay: 0.0 };
    told(Settings { optimizer: adam, ..settings("1x1") }, &["betas", "1.0"]);
    told(Settings { validation_draws: Some(0), ..settings("1x1") }, &["validation draws"]);
}

#[test]
fn ranks_that_would_not_do_the_same_run_are_refused() {
    let message = |odd: fn(&mut Settings, &mut usize, &mut usize, &mut u64)| {
        let messages = threads::run(2, |world| {
            let (mut settings, mut rows, mut steps, mut weights) = (settings("2x1"), 20, 2, 1);
            if world.rank() == 1 {
                odd(&mut settings, &mut rows, &mut steps, &mut weights);
            }
            let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(weights);
            let place = Place::job(world.clone());
            let mut trainer = Trainer::at(place, posterior, SquaredErrorOfMean, settings)?;
            let outcome = trainer.fit(&regression(rows), None, Length::Steps(steps));
            Ok::<_, Error>(outcome.err().map(|error| error.to_string()))
        });
        let messages = messages.unwrap();
        assert_eq!(messages[0], messages[1], "all ranks are told the same");
        messages[0].clone().unwrap_or_default()
    };
    assert_eq!(message(|_, _, _, _| ()), "");
    // A rank may work and load in its own way.
    assert_eq!(message(|settings, _, _, _| settings.threads = Some(2)), "");
    assert_eq!(message(|settings, _, _, _| settings.prefetch = 7), "");
    for (message, words) in [
        (message(|settings, _, _, _| settings.seed = 3), "seed differs between ranks"),
        (message(|settings, _, _, _| settings.heat = 0.5), "rank 0 has `1`, rank 1 has `0.5`"),
        (message(|settings, _, _, _| settings.shard_optimizer = true), "shard_optimizer differs"),
        (message(|settings, _, _, _| settings.mesh = "1x2".parse().unwrap()), "mesh differs"),
        (message(|_, rows, _, _| *rows = 21), "number of training examples differs"),
        (message(|_, _, steps, _| *steps = 3), "length of the run differs"),
        (message(|_, _, _, weights| *weights = 2), "digest of the parameters differs"),
    ] {
        assert!(message.contains(words), "{words:?} not in: {message}");
    }
}

#[test]
fn the_gaussian_of_draws_needs_two_draws_in_all_or_on_every_rank() {
    let fit = |samples: usize, mesh: &str, exact: bool| {
        let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1);
        let settings = Settings { samples, exact, ..settings(mesh) };
        let mut trainer = Trainer::new(posterior, GaussianOfDraws::default(), settings);
        trainer.fit(&regression(20), None, Length::Steps(1))
    };
    assert!(fit(1, "1x1", true).unwrap_err().to_string().contains("2 draws in all"));
    assert!(fit(3, "2x1", false).unwrap_err().to_string().contains("on every rank"));
    fit(2, "2x1", true).unwrap();
    fit(4, "2x1", false).unwrap();
}

#[test]
fn a_loss_that_is_not_finite_stops_every_rank_and_names_the_step() {
    let mut inputs = numbers(0, [20, 5]);
    inputs = inputs.slice_fill([7..8, 2..3], f32::NAN);
    let data = TensorDataset::new(inputs, numbers(1, [20, 3])).unwrap();
    for mesh in ["1x1", "2x1", "1x2", "2x2"] {
        let mut trainer = trainer(settings(mesh));
        let before = trainer.posterior().parameters().values().to_vec();
        let error = trainer.fit(&data, None, Length::Steps(20)).unwrap_err();
        let Error::NotFinite { step, what } = &error else { panic!("{error}") };
        assert!(*step < 20 && what.contains("the loss"), "{error}");
        // The trainer stands at the last complete step.
        assert_eq!(trainer.step(), *step);
        let values = trainer.posterior().parameters().values();
        assert!(values.iter().all(|v| v.is_finite()));
        assert_eq!(*step == 0, before == values);
    }
}

/// Finite outputs with a gradient that is not: the slope of a root at zero.
#[derive(Module, Debug)]
struct Rooted {
    linear: Linear,
    root: Param<Tensor<1>>,
}

impl Network for Rooted {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.linear.forward(input) + self.root.val().abs().sqrt().unsqueeze_dim(0)
    }
}

#[test]
fn a_gradient_that_is_not_finite_names_its_tensor() {
    let device = Device::default();
    let network = Rooted {
        linear: LinearConfig::new(5, 3).init(&device),
        root: Param::from_tensor(Tensor::zeros([3], &device)),
    };
    for mesh in ["1x1", "2x1"] {
        let posterior = bayesmesh::Point::new(network.clone());
        let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings(mesh));
        let error = trainer.fit(&regression(20), None, Length::Steps(3)).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("step 0: the gradient of root"), "{message}");
    }
}

#[test]
fn outputs_that_do_not_fit_the_targets_are_an_error() {
    fn told<L: bayesmesh::Loss<Target = Tensor<2>>>(outputs: usize, loss: L) -> String {
        let posterior = McDropout::new(Mlp::new(5, 8, outputs, 0.3)).initialised(1);
        let mut trainer = Trainer::new(posterior, loss, settings("2x1"));
        let outcome = trainer.fit(&regression(20), None, Length::Steps(1));
        outcome.expect_err("an error").to_string()
    }
    use bayesmesh::loss::{EnsembleCrps, Expected, ExpectedSquaredError, Gaussian, Mixture};
    for message in [
        told(1, SquaredErrorOfMean),
        told(4, ExpectedSquaredError),
        told(1, GaussianOfDraws::default()),
        told(6, EnsembleCrps::default()),
        told(7, Expected(Gaussian)),
        told(3, Mixture::new(Gaussian)),
    ] {
        assert!(message.contains("outputs for an example"), "{message}");
    }
}

/// A data source that fails, or panics, for one example.
struct Faulty {
    inner: TensorDataset<Tensor<2>, Tensor<2>>,
    panics: bool,
}

impl Dataset for Faulty {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        if rows.contains(&5) {
            assert!(!self.panics, "the disk is on fire");
            return Err(Error::Data("example 5 cannot be read".to_owned()));
        }
        self.inner.batch(rows, device)
    }
}

#[test]
fn a_rank_that_fails_or_panics_ends_the_run_with_its_reason() {
    for (panics, reason) in [(false, "example 5 cannot be read"), (true, "the disk is on fire")] {
        let data = Faulty { inner: regression(20), panics };
        // Of four data ranks only one meets the example.
        for mesh in ["1x4", "2x2", "4x1"] {
            let error = trainer(settings(mesh)).fit(&data, None, Length::Epochs(3)).unwrap_err();
            assert!(error.to_string().contains(reason), "{mesh}: {error}");
        }
    }
}

#[derive(Module, Debug)]
struct Wrong {
    linear: Linear,
}

impl Network for Wrong {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        // The one example that is tried before a run shows nothing.
        assert_eq!(input.dims()[0], 1, "more than one row");
        self.linear.forward(input)
    }
}

#[test]
fn a_network_that_panics_in_a_thread_is_an_error() {
    let network = Wrong { linear: LinearConfig::new(5, 3).init(&Device::default()) };
    let posterior = Point::new(network);
    let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings("2x1"));
    let error = trainer.fit(&regression(20), None, Length::Steps(1)).unwrap_err();
    assert!(matches!(error, Error::Rank(_)), "{error}");
    assert!(error.to_string().contains("more than one row"), "{error}");
}
