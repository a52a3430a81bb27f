//! Posteriors that are written outside of the library, such as that of `examples/own_posterior`,
//! and the library's ensemble: they train on any mesh as on one rank, their gradients are right,
//! and members stay apart.

mod common;
#[path = "../examples/own_posterior/laplace.rs"]
#[allow(dead_code)]
mod laplace;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bayesmesh::checkpoint::{Checkpoint, NamedTensor};
use bayesmesh::comm::{CommError, Communicator, Operation, threads};
use bayesmesh::loss::{Categorical, EnsembleCrps, Expected, Gaussian, Mixture, SquaredErrorOfMean};
use bayesmesh::posterior::{Ownership, Parameters, Update};
use bayesmesh::testing::check_meshes;
use bayesmesh::trainer::{BestCheckpoint, Callback, Flow, Length, OptimizerConfig, StepReport};
use bayesmesh::{
    Draw, Ensemble, Error, Mesh, Network, Place, Point, Posterior, Predictor, Reduce, Result,
    Settings, TensorDataset, Trainer,
};
use bayesmesh_files::testing::Scratch;
use burn::module::{Module, Param};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use common::{Mlp, classification, distance, regression};
use laplace::MeanFieldLaplace;

type Regression = TensorDataset<Tensor<2>, Tensor<2>>;

fn settings() -> Settings {
    Settings {
        samples: 4,
        batch: 7,
        seed: 5,
        heat: 0.7,
        clip_norm: Some(2.0),
        schedule: 0.05.into(),
        ..Settings::default()
    }
}

fn laplace() -> MeanFieldLaplace<Mlp> {
    MeanFieldLaplace::new(Mlp::new(5, 8, 3, 0.2), 1.0).initialised(1)
}

fn ensemble(outputs: usize) -> Ensemble<Mlp> {
    Ensemble::new(Mlp::new(5, 8, outputs, 0.2))
}

#[test]
fn a_laplace_posterior_is_the_same_on_any_mesh() {
    let data = regression(40);
    check_meshes(&laplace(), &SquaredErrorOfMean, &data, &settings()).unwrap();
    check_meshes(&laplace(), &Expected(Gaussian::fixed(0.3).unwrap()), &data, &settings()).unwrap();
}

#[test]
fn an_ensemble_is_the_same_on_any_mesh() {
    let sgd = Settings { optimizer: OptimizerConfig::sgd().momentum(0.9).unwrap(), ..settings() };
    // Each for itself, and all together.
    for settings in [settings(), sgd] {
        check_meshes(&ensemble(3), &Expected(Categorical), &classification(40), &settings).unwrap();
        check_meshes(&ensemble(6), &Mixture::new(Gaussian), &regression(40), &settings).unwrap();
    }
    let uneven = Settings { samples: 5, ..settings() };
    check_meshes(&ensemble(6), &Mixture::new(Gaussian), &regression(40), &uneven).unwrap();
    // Without Adam: the gradient of a last bias is a sum of few different numbers, which may cancel
    // to zero in one order and to 1e-9 in another, and Adam makes a step of either.
    let uneven = Settings { optimizer: OptimizerConfig::sgd(), ..uneven };
    check_meshes(&ensemble(3), &EnsembleCrps::fair(), &regression(40), &uneven).unwrap();
}

/// What the check is for: a posterior whose draws depend on the rank is found out.
#[test]
fn the_check_finds_a_run_that_depends_on_the_mesh() {
    let per_rank = Settings { exact: false, ..settings() };
    let error = check_meshes(&laplace(), &SquaredErrorOfMean, &regression(40), &per_rank);
    let message = error.unwrap_err().to_string();
    assert!(message.contains("on a mesh of 2x1"), "{message}");
    let still = Settings { schedule: 1e-12.into(), ..settings() };
    let error = check_meshes(&laplace(), &SquaredErrorOfMean, &regression(40), &still);
    assert!(error.unwrap_err().to_string().contains("nothing is compared"));
}

/// The penalty and its derivatives against finite differences, in parts as ranks add them.
#[test]
fn the_penalty_of_the_laplace_posterior_is_its_divergence() {
    let mut posterior = laplace();
    let count = posterior.parameters().values().len();
    // Scales and centres of all sizes.
    for (index, value) in posterior.parameters_mut().values_mut().iter_mut().enumerate() {
        *value = ((index * 37 % 101) as f32 / 25.0 - 2.0) * 0.9 + 0.01;
    }
    let penalty =
        |posterior: &MeanFieldLaplace<Mlp>| posterior.penalty(0.0, 0..count, &mut vec![0.0; count]);
    let mut gradient = vec![0.0; count];
    let cut = count / 3;
    let (left, right) = gradient.split_at_mut(cut);
    let parts = posterior.penalty(2.0, 0..cut, left) + posterior.penalty(2.0, cut..count, right);
    assert!((parts - penalty(&posterior)).abs() < 1e-6 * parts.abs(), "{parts}");
    for index in (0..count).step_by(7) {
        let moved = |by: f32| {
            let mut moved = posterior.clone();
            moved.parameters_mut().values_mut()[index] += by;
            penalty(&moved)
        };
        let difference = (moved(1e-2) - moved(-1e-2)) / 2e-2;
        let error = (f64::from(gradient[index]) / 2.0 - difference).abs();
        assert!(error < 2e-3 * difference.abs().max(1.0), "{index}: {error} of {difference}");
    }
    // KL(q‖q) = 0 at μ = 0 and b = s.
    let values = posterior.parameters_mut().values_mut();
    values.fill(0.0);
    assert!(penalty(&posterior).abs() < 1e-6);
}

/// A member of an ensemble whose members are averaged is the network that would be trained alone.
#[test]
fn members_that_are_averaged_are_trained_as_each_would_be_alone() {
    let data = regression(40);
    let settings = Settings { optimizer: OptimizerConfig::sgd(), clip_norm: None, ..settings() };
    let loss = Expected(Gaussian::fixed(0.5).unwrap());
    let mut together = Trainer::new(Ensemble::new(Mlp::new(5, 8, 3, 0.0)), loss, settings.clone());
    let starts: Vec<Vec<f32>> =
        together.members().map(|member| member.parameters().values().to_vec()).collect();
    together.fit(&data, None, Length::Steps(6)).unwrap();
    for (start, member) in starts.iter().zip(together.members()) {
        let mut alone = Point::new(Mlp::new(5, 8, 3, 0.0));
        alone.parameters_mut().restore(start, &[]).unwrap();
        let mut alone = Trainer::new(alone, loss, Settings { samples: 1, ..settings.clone() });
        alone.fit(&data, None, Length::Steps(6)).unwrap();
        let (alone, member) = (alone.posterior().parameters(), member.parameters());
        assert!(distance(start, alone.values()) > 1e-3);
        let error = distance(alone.values(), member.values());
        assert!(error < 1e-6, "{error}");
    }
    assert!(starts[0] != starts[1], "members begin apart");
}

/// In a job each rank has its members only, the checkpoint has all, and any number of ranks goes
/// on.
#[test]
fn members_live_on_their_rank_and_checkpoints_have_all() {
    let data = regression(40);
    let job = |ranks: usize, saved: Option<bayesmesh::checkpoint::Checkpoint>, steps: usize| {
        let outcome = threads::run(ranks, |world| {
            let mesh = format!("{ranks}x1").parse()?;
            let settings = Settings { mesh, ..settings() };
            let place = Place::job(world.clone());
            let mut trainer = Trainer::at(place, ensemble(6), Mixture::new(Gaussian), settings)?;
            assert_eq!(trainer.members().count(), 4 / ranks);
            if let Some(saved) = &saved {
                let own = (bayesmesh::comm::Communicator::rank(world) == 0).then(|| saved.clone());
                trainer.restore_from_first(own, "saved")?;
            }
            trainer.fit(&data, None, Length::Steps(steps))?;
            let scores = trainer.evaluate(&data, 4)?;
            let crps = scores.score("crps")?.value;
            Ok::<_, Error>((trainer.checkpoint_on(true)?.expect("kept"), crps))
        });
        outcome.unwrap().swap_remove(0)
    };
    let (whole, crps) = job(1, None, 6);
    assert_eq!(whole.parameters.len(), 4 * 6, "six tensors of each of four members");
    assert!(whole.parameters[6].name.starts_with("member.1."), "{}", whole.parameters[6].name);
    for (first, then) in [(2, 4), (4, 2), (1, 2)] {
        let (half, _) = job(first, None, 3);
        let (resumed, other) = job(then, Some(half), 6);
        assert!(resumed == whole, "{first} ranks, then {then}");
        assert!((other - crps).abs() < 1e-6 * crps, "{other} and {crps}");
    }
}

#[test]
fn an_ensemble_has_no_more_draws_than_members() {
    let trainer = Trainer::new(ensemble(6), Mixture::new(Gaussian), settings());
    assert_eq!(trainer.posterior().ownership(), Ownership::PerDraw);
    let data: Regression = regression(5);
    let message = trainer.evaluate(&data, 5).unwrap_err().to_string();
    assert!(message.contains("at most 4"), "{message}");
    let input = common::numbers(0, [3, 5]);
    let some = trainer.predict(&input, 2).unwrap();
    let all = trainer.predict(&input, 4).unwrap();
    assert_eq!(some.values(), &all.values()[..some.values().len()]);
    assert!(all.epistemic_std().iter().all(|std| *std > 1e-3), "members differ");
}

/// Saved and read elsewhere: an ensemble by its network alone, a family of one's own by its
/// posterior.
#[test]
fn own_posteriors_predict_from_what_was_saved() {
    let (data, scratch) = (regression(40), Scratch::new());
    let input = common::numbers(3, [4, 5]);
    let path = scratch.path().join("ensemble.safetensors");
    let mut trainer = Trainer::new(ensemble(6), Mixture::new(Gaussian), settings());
    trainer.fit(&data, None, Length::Steps(3)).unwrap();
    trainer.save(&path).unwrap();
    let loaded = Predictor::load(&path, Mlp::new(5, 8, 6, 0.2)).unwrap();
    assert_eq!(loaded.predict(&input, 4).unwrap(), trainer.predict(&input, 4).unwrap());

    let path = scratch.path().join("laplace.safetensors");
    let mut trainer = Trainer::new(laplace(), SquaredErrorOfMean, settings());
    trainer.fit(&data, None, Length::Steps(3)).unwrap();
    trainer.save(&path).unwrap();
    let refused = Predictor::load(&path, Mlp::new(5, 8, 3, 0.2)).err().unwrap().to_string();
    assert!(refused.contains("`laplace`") && refused.contains("load_as"), "{refused}");
    let loaded = Predictor::load_as(&path, laplace()).unwrap();
    assert_eq!(loaded.predict(&input, 4).unwrap(), trainer.predict(&input, 4).unwrap());
}

/// A layer with running statistics.
#[derive(Module, Debug)]
struct Normed {
    first: Linear,
    norm: BatchNorm,
    second: Linear,
}

impl Normed {
    fn new() -> Self {
        let device = Device::default();
        Self {
            first: LinearConfig::new(5, 6).init(&device),
            norm: BatchNormConfig::new(6).init(&device),
            second: LinearConfig::new(6, 3).init(&device),
        }
    }
}

impl Network for Normed {
    type Input = Tensor<2>;
    fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> {
        let hidden = self.norm.forward(self.first.forward(x).unsqueeze_dim::<3>(2));
        self.second.forward(hidden.squeeze_dim::<2>(2).tanh())
    }
}

/// Langevin chains: `θ ← θ − η·∇(L + |θ|²/2N) + √(2ηT)·ε`, with the mean of each chain as its
/// state. Every question that a posterior can answer is.
#[derive(Clone)]
struct Langevin {
    parameters: Parameters<Normed>,
    mean: Vec<f32>,
    /// The member and the step at which its update fails.
    fails: Option<(usize, usize)>,
    index: usize,
}

impl Langevin {
    fn new() -> Self {
        let parameters = Parameters::new(Normed::new());
        let mean = vec![0.0; parameters.values().len()];
        Self { parameters, mean, fails: None, index: 0 }
    }
}

impl Posterior for Langevin {
    type Network = Normed;

    fn parameters(&self) -> &Parameters<Normed> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<Normed> {
        &mut self.parameters
    }

    fn ownership(&self) -> Ownership {
        Ownership::PerDraw
    }

    fn become_member(&mut self, index: usize, _seed: u64) {
        self.index = index;
        for (place, value) in self.parameters.values_mut().iter_mut().enumerate() {
            *value = ((place * 31 + index * 17) % 23) as f32 / 23.0 - 0.5;
        }
    }

    fn penalty(&self, weight: f32, range: Range<usize>, gradient: &mut [f32]) -> f64 {
        let values = &self.parameters.values()[range];
        gradient.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        values.iter().map(|value| 0.5 * f64::from(*value).powi(2)).sum()
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<()> {
        if self.fails == Some((self.index, update.step)) {
            return Err(Error::Setting("this chain breaks".to_owned()));
        }
        let mut noise = vec![0.0; update.values.len()];
        update.noise().fill_normal(update.range.start as u64, &mut noise);
        let (rate, spread) = (update.rate as f32, (2e-4 * update.rate).sqrt() as f32);
        let steps = update.gradient.iter().zip(noise);
        for (value, (gradient, noise)) in update.values.iter_mut().zip(steps) {
            *value += spread * noise - rate * gradient;
        }
        Ok(())
    }

    fn after_step(&mut self, steps: usize) {
        for (mean, value) in self.mean.iter_mut().zip(self.parameters.values()) {
            *mean += (value - *mean) / steps as f32;
        }
    }

    fn state(&self) -> Vec<NamedTensor> {
        let (name, values) = ("mean".to_owned(), self.mean.clone());
        vec![NamedTensor { name, shape: vec![values.len()], values }]
    }

    fn restore_state(&mut self, mut state: Vec<NamedTensor>) -> Result<()> {
        self.mean = state.pop().map(|tensor| tensor.values).unwrap_or_default();
        Ok(())
    }
}

/// Own update, own state, own beginning, a penalty and running statistics, for members.
#[test]
fn chains_are_the_same_on_any_mesh() {
    // Batch statistics are those of a shard, so that the data axis is another model: draws only.
    let settings = Settings { optimizer: OptimizerConfig::sgd(), heat: 5.0, ..settings() };
    let train = |mesh: &str, shard_optimizer: bool, reduce| {
        let mesh = mesh.parse().unwrap();
        let settings = Settings { mesh, shard_optimizer, reduce, ..settings.clone() };
        let mut trainer = Trainer::new(Langevin::new(), SquaredErrorOfMean, settings);
        trainer.fit(&regression(40), None, Length::Steps(4)).unwrap();
        trainer
    };
    let serial = train("1x1", false, Reduce::Reproducible).checkpoint();
    let named = |name: &str| serial.optimizer.iter().any(|tensor| tensor.name == name);
    assert!(named("member.3.posterior.mean"), "the state is kept");
    assert!(serial.buffers.iter().any(|tensor| tensor.name.starts_with("member.2.norm")));
    for (mesh, divided) in [("2x1", false), ("4x1", true), ("1x1", true)] {
        let other = train(mesh, divided, Reduce::Reproducible);
        assert!(other.checkpoint() == serial, "{mesh}");
    }
    // On the data axis the update is divided too; compared with itself undivided.
    let (whole, divided) = (train("2x2", false, Reduce::Fast), train("2x2", true, Reduce::Fast));
    for (one, other) in whole.members().zip(divided.members()) {
        let error = distance(one.parameters().values(), other.parameters().values());
        assert!(error < 1e-6, "{error}");
    }
    // The mean of a chain is that of what it went through, also after a stop.
    let mut half = Trainer::new(Langevin::new(), SquaredErrorOfMean, settings.clone());
    half.fit(&regression(40), None, Length::Steps(2)).unwrap();
    let reduce = Reduce::Reproducible;
    let settings = Settings { mesh: "2x1".parse().unwrap(), reduce, ..settings };
    let mut resumed = Trainer::new(Langevin::new(), SquaredErrorOfMean, settings);
    resumed.restore(&half.checkpoint(), "half").unwrap();
    resumed.fit(&regression(40), None, Length::Steps(4)).unwrap();
    let means = |trainer: &Trainer<Langevin, SquaredErrorOfMean>| -> Vec<f32> {
        trainer.members().flat_map(|chain| chain.mean.clone()).collect()
    };
    let whole = train("1x1", false, Reduce::Reproducible);
    assert!(distance(&means(&whole), &means(&resumed)) < 1e-6);
    assert!(distance(&means(&whole), &means(&half)) > 1e-4, "the mean moves");
    assert_eq!(OptimizerConfig::sgd(), whole.settings().optimizer);
}

/// The penalty of members is that of each, not of their mean.
#[test]
fn the_penalty_of_members_has_its_full_weight() {
    let still = Settings { heat: 40.0, batch: 8, clip_norm: None, ..settings() };
    let step = |heat: f64| {
        let settings = Settings { heat, ..still.clone() };
        let mut trainer = Trainer::new(Langevin::new(), SquaredErrorOfMean, settings);
        let before: Vec<f32> = trainer.posterior().parameters().values().to_vec();
        trainer.fit(&regression(40), None, Length::Steps(1)).unwrap();
        let after: Vec<f32> = trainer.posterior().parameters().values().to_vec();
        (before, after)
    };
    // Of the same noise and the same data: the difference is −η·(heat/N)·θ.
    let ((before, with), (_, without)) = (step(40.0), step(0.0));
    for ((before, with), without) in before.iter().zip(with).zip(without) {
        let expected = -0.05 * (40.0 / 40.0) * before;
        assert!((with - without - expected).abs() < 1e-6, "{with} {without} {before}");
    }
}

/// A step that fails in the middle leaves members apart: the trainer knows.
#[test]
fn a_run_that_failed_in_the_middle_of_a_step_goes_on_from_a_checkpoint_only() {
    let data = regression(40);
    for mesh in ["1x1", "2x1", "4x1"] {
        let settings = Settings { mesh: mesh.parse().unwrap(), ..settings() };
        let mut trainer = Trainer::new(Langevin::new(), SquaredErrorOfMean, settings.clone());
        trainer.fit(&data, None, Length::Steps(2)).unwrap();
        let saved = trainer.checkpoint();
        let breaking = Langevin { fails: Some((2, 3)), ..Langevin::new() };
        let mut trainer = Trainer::new(breaking, SquaredErrorOfMean, settings);
        trainer.restore(&saved, "saved").unwrap();
        let error = trainer.fit(&data, None, Length::Steps(6)).unwrap_err().to_string();
        assert!(error.contains("this chain breaks"), "{mesh}: {error}");
        for error in [
            trainer.fit(&data, None, Length::Steps(6)).unwrap_err(),
            trainer.checkpoint_on(true).unwrap_err(),
        ] {
            assert!(error.to_string().contains("restore a checkpoint"), "{mesh}: {error}");
        }
        trainer.restore(&saved, "saved").unwrap();
        trainer.fit(&data, None, Length::Steps(3)).unwrap();
    }
}

/// Fails once.
struct Fails(usize);

impl Callback for Fails {
    fn on_step(&mut self, report: &StepReport, _: &dyn Fn() -> Checkpoint) -> Result<Flow> {
        match report.step == self.0 {
            true => Err(Error::Setting("the disk is full".to_owned())),
            false => Ok(Flow::Continue),
        }
    }
}

#[test]
fn a_callback_that_fails_leaves_members_that_can_go_on() {
    let data = regression(40);
    for (mesh, shard_optimizer) in [("1x1", true), ("2x1", false), ("2x2", true), ("4x1", false)] {
        let (mesh, reduce) = (mesh.parse().unwrap(), Reduce::Reproducible);
        let settings = Settings { mesh, shard_optimizer, reduce, ..settings() };
        let trainer = || Trainer::new(ensemble(6), Mixture::new(Gaussian), settings.clone());
        let mut whole = trainer();
        whole.fit(&data, None, Length::Steps(6)).unwrap();
        let mut broken = trainer().with_callback(Fails(2));
        let error = broken.fit(&data, None, Length::Steps(6)).unwrap_err().to_string();
        assert!(error.contains("the disk is full"), "{mesh}: {error}");
        assert!((2..6).contains(&broken.step()), "{mesh}: {}", broken.step());
        broken.fit(&data, None, Length::Steps(6)).unwrap();
        assert!(broken.checkpoint() == whole.checkpoint(), "{mesh}");
    }
}

#[test]
fn the_best_checkpoint_has_all_members() {
    let (train, valid) = (regression(40), regression(12));
    for mesh in ["1x1", "2x2", "4x1"] {
        let settings = Settings { mesh: mesh.parse().unwrap(), ..settings() };
        let best = BestCheckpoint::on("crps");
        let kept = best.kept();
        let trainer = Trainer::new(ensemble(6), Mixture::new(Gaussian), settings);
        let mut trainer = trainer.with_callback(best);
        trainer.fit(&train, Some(&valid), Length::Epochs(4)).unwrap();
        let best = kept.get().unwrap();
        assert_eq!(best.checkpoint.parameters.len(), 4 * 6, "{mesh}");
        trainer.restore(&best.checkpoint, "best").unwrap();
        let crps = trainer.evaluate(&valid, 4).unwrap().score("crps").unwrap().value;
        assert!((crps - best.score).abs() < 1e-6 * crps, "{mesh}: {crps} and {}", best.score);
    }
}

#[test]
fn too_many_sample_ranks_for_the_members_are_refused_in_words() {
    let settings = Settings { mesh: "4x1".parse().unwrap(), samples: 2, ..settings() };
    let trainer = Trainer::new(ensemble(6), Mixture::new(Gaussian), settings);
    let data = regression(8);
    for message in [
        trainer.evaluate(&data, 2).unwrap_err().to_string(),
        trainer.predict(&common::numbers(0, [3, 5]), 2).unwrap_err().to_string(),
    ] {
        assert!(message.contains("4x1"), "{message}");
    }
    let few = Settings { validation_draws: Some(9), ..self::settings() };
    let mut trainer = Trainer::new(ensemble(6), Mixture::new(Gaussian), few);
    let message = trainer.fit(&data, None, Length::Steps(1)).unwrap_err().to_string();
    assert!(message.contains("9 validation draws"), "{message}");
}

/// A gradient that is not finite where its weight is zero: the slope of a root.
#[derive(Module, Debug)]
struct Rooted {
    linear: Linear,
    root: Param<Tensor<1>>,
}

impl Network for Rooted {
    type Input = Tensor<2>;
    fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> {
        self.linear.forward(x) + self.root.val().abs().sqrt().unsqueeze_dim(0)
    }
}

/// Members whose root is one, but for that of member 2.
#[derive(Clone)]
struct Roots(Parameters<Rooted>);

impl Posterior for Roots {
    type Network = Rooted;

    fn parameters(&self) -> &Parameters<Rooted> {
        &self.0
    }

    fn parameters_mut(&mut self) -> &mut Parameters<Rooted> {
        &mut self.0
    }

    fn ownership(&self) -> Ownership {
        Ownership::PerDraw
    }

    fn become_member(&mut self, index: usize, _seed: u64) {
        let values = self.0.values_mut();
        let first = values.len() - 3;
        values[first..].fill(if index == 2 { 0.0 } else { 1.0 });
    }
}

#[test]
fn a_gradient_that_is_not_finite_is_named_with_its_member_on_all_ranks() {
    let device = Device::default();
    let network = Rooted {
        linear: LinearConfig::new(5, 3).init(&device),
        root: Param::from_tensor(Tensor::ones([3], &device)),
    };
    for (ranks, mesh) in [(1, "1x1"), (2, "2x1"), (4, "4x1"), (4, "2x2")] {
        let messages = std::sync::Mutex::new(Vec::new());
        let outcome = threads::run(ranks, |world| {
            let posterior = Roots(Parameters::new(network.clone()));
            let settings = Settings { mesh: mesh.parse()?, ..settings() };
            let place = Place::job(world.clone());
            let mut trainer = Trainer::at(place, posterior, SquaredErrorOfMean, settings)?;
            let outcome = trainer.fit(&regression(40), None, Length::Steps(3));
            messages.lock().unwrap().push(outcome.as_ref().unwrap_err().to_string());
            assert_eq!(trainer.step(), 0);
            outcome
        });
        assert!(outcome.is_err());
        for message in messages.into_inner().unwrap() {
            assert!(message.contains("the gradient of root of member 2"), "{mesh}: {message}");
        }
    }
}

/// Counts the numbers that a rank brings to sums, gathers and exchanges.
#[derive(Clone, Debug)]
struct Counting {
    inner: Arc<dyn Communicator>,
    floats: Arc<AtomicUsize>,
}

impl Counting {
    fn over(&self, inner: Box<dyn Communicator>) -> Box<dyn Communicator> {
        Box::new(Self { inner: Arc::from(inner), floats: Arc::clone(&self.floats) })
    }

    fn count(&self, numbers: usize) {
        self.floats.fetch_add(numbers, Ordering::Relaxed);
    }
}

impl Communicator for Counting {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn all_reduce(
        &self,
        values: &mut [f32],
        operation: Operation,
        reduce: Reduce,
    ) -> std::result::Result<(), CommError> {
        self.count(values.len());
        self.inner.all_reduce(values, operation, reduce)
    }
    fn all_reduce_f64(
        &self,
        values: &mut [f64],
        operation: Operation,
        reduce: Reduce,
    ) -> std::result::Result<(), CommError> {
        self.count(values.len());
        self.inner.all_reduce_f64(values, operation, reduce)
    }
    fn all_reduce_u64(
        &self,
        values: &mut [u64],
        operation: Operation,
    ) -> std::result::Result<(), CommError> {
        self.inner.all_reduce_u64(values, operation)
    }
    fn tree_reduce(
        &self,
        values: &mut [f32],
        combine: &dyn Fn(&mut [f32], &[f32]),
    ) -> std::result::Result<(), CommError> {
        self.count(values.len());
        self.inner.tree_reduce(values, combine)
    }
    fn reduce_scatter(
        &self,
        values: &mut [f32],
        reduce: Reduce,
    ) -> std::result::Result<Range<usize>, CommError> {
        self.count(values.len());
        self.inner.reduce_scatter(values, reduce)
    }
    fn all_gather(&self, values: &[f32]) -> std::result::Result<Vec<Vec<f32>>, CommError> {
        self.count(values.len());
        self.inner.all_gather(values)
    }
    fn all_gather_bytes(&self, bytes: &[u8]) -> std::result::Result<Vec<Vec<u8>>, CommError> {
        self.inner.all_gather_bytes(bytes)
    }
    fn all_gather_into(&self, values: &mut [f32]) -> std::result::Result<(), CommError> {
        self.count(values.len());
        self.inner.all_gather_into(values)
    }
    fn all_to_all(
        &self,
        values: &[f32],
        parts: &[usize],
    ) -> std::result::Result<Vec<f32>, CommError> {
        self.count(values.len());
        self.inner.all_to_all(values, parts)
    }
    fn broadcast(&self, values: &mut [f32], root: usize) -> std::result::Result<(), CommError> {
        self.count(values.len());
        self.inner.broadcast(values, root)
    }
    fn broadcast_bytes(
        &self,
        bytes: &mut Vec<u8>,
        root: usize,
    ) -> std::result::Result<(), CommError> {
        self.inner.broadcast_bytes(bytes, root)
    }
    fn barrier(&self) -> std::result::Result<(), CommError> {
        self.inner.barrier()
    }
    fn split(&self, colour: usize) -> std::result::Result<Box<dyn Communicator>, CommError> {
        Ok(self.over(self.inner.split(colour)?))
    }
    fn split_node(&self) -> std::result::Result<Box<dyn Communicator>, CommError> {
        Ok(self.over(self.inner.split_node()?))
    }
    fn is_concurrent(&self) -> bool {
        self.inner.is_concurrent()
    }
    fn abort(&self, reason: &str) {
        self.inner.abort(reason);
    }
}

/// What members send along the sample axis does not grow with the network or the batch under a
/// mean over draws, and is that of the loss alone; draws that share their weights send gradients,
/// and a mixture of members sends its summaries.
#[test]
fn members_that_are_averaged_send_nothing_but_the_value_of_the_loss() {
    const RUN: usize = 6;
    fn sent<P, L>(posterior: impl Fn() -> P + Sync, loss: L, batch: usize) -> usize
    where
        P: Posterior<Network = Mlp> + Clone,
        L: bayesmesh::Loss<Target = Tensor<2>> + Clone,
    {
        let data = regression(40);
        let outcome = threads::run(2, |world| {
            let floats = Arc::new(AtomicUsize::new(0));
            let inner: Arc<dyn Communicator> = Arc::new(world.clone());
            let place = Place::job(Counting { inner, floats: Arc::clone(&floats) });
            let (mesh, share_loading) = (Mesh::samples(2)?, false);
            let settings = Settings { mesh, share_loading, batch, clip_norm: None, ..settings() };
            let mut trainer = Trainer::at(place, posterior(), loss.clone(), settings)?;
            floats.store(0, Ordering::Relaxed);
            trainer.fit(&data, None, Length::Steps(RUN))?;
            Ok::<_, Error>(floats.load(Ordering::Relaxed))
        });
        outcome.unwrap().swap_remove(0)
    }
    let members = |width| move || Ensemble::new(Mlp::new(5, width, 6, 0.0));
    let shared = |width| move || Point::new(Mlp::new(5, width, 6, 0.0)).initialised(1);
    let few = sent(members(8), Expected(Gaussian), 8);
    assert_eq!(few, sent(members(64), Expected(Gaussian), 8), "weights");
    assert_eq!(few, sent(members(8), Expected(Gaussian), 32), "rows");
    assert!(few <= 16 * RUN, "{few} numbers in {RUN} steps");
    // The counter counts.
    let weights = shared(64)().parameters().values().len();
    assert!(sent(shared(64), Expected(Gaussian), 8) >= RUN * weights);
    assert!(sent(members(8), Mixture::new(Gaussian), 32) >= few + RUN * 32);
}
