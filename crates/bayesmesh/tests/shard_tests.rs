//! A divided optimiser makes no difference: not to the parameters, not to checkpoints, not to what
//! callbacks see. Only when a rank fails is its state gone.

mod common;

use std::sync::{Arc, Mutex};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::comm::threads;
use bayesmesh::loss::{ExpectedSquaredError, SquaredErrorOfMean};
use bayesmesh::posterior::InitialStd;
use bayesmesh::trainer::{
    Callback, EpochReport, Flow, Length, OptimizerConfig, Schedule, StepReport,
};
use bayesmesh::{
    Dataset, Draw, Error, Loss, MeanField, Network, Place, Point, Posterior, Prior, Reduce, Result,
    Settings, TensorDataset, Trainer,
};
use burn::module::{Module, Param};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use common::{Mlp, distance, numbers, regression};

const STEPS: usize = 5;
const MESHES: [&str; 6] = ["1x1", "2x1", "4x1", "2x2", "1x3", "3x1"];

fn optimizers() -> [OptimizerConfig; 4] {
    [
        OptimizerConfig::Adam { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay: 0.01 },
        OptimizerConfig::adamw(),
        OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.01 },
        OptimizerConfig::sgd(),
    ]
}

fn settings(mesh: &str, shard_optimizer: bool) -> Settings {
    Settings {
        samples: 4,
        batch: 12,
        seed: 5,
        heat: 0.7,
        mesh: mesh.parse().unwrap(),
        reduce: Reduce::Reproducible,
        schedule: Schedule::Constant { rate: 0.01 },
        shard_optimizer,
        // Several pieces of every share.
        bucket_bytes: 4000,
        ..Settings::default()
    }
}

/// With 333 hidden units it has 6666 trainable numbers: seven blocks, the last one not full.
fn mean_field(hidden: usize) -> MeanField<Mlp> {
    MeanField::new(Mlp::new(5, hidden, 3, 0.2), Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::Constant(0.1))
        .unwrap()
        .initialised(1)
}

/// What callbacks saw of a run.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<StepReport>>>);

impl Callback for Seen {
    fn wants_checkpoint(&self, _report: &StepReport) -> bool {
        false
    }

    fn on_step(
        &mut self,
        report: &StepReport,
        _: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        self.0.lock().unwrap().push(report.clone());
        Ok(Flow::Continue)
    }
}

/// Everything there is after a run, and its reports.
fn run<P, L, D>(
    posterior: &P,
    loss: L,
    data: &D,
    settings: Settings,
) -> (Checkpoint, Vec<StepReport>)
where
    P: Posterior<Network: Network<Input = Tensor<2>>> + Clone,
    L: Loss + Clone,
    D: Dataset<Input = Tensor<2>, Target = L::Target>,
{
    let seen = Seen::default();
    let trainer = Trainer::new(posterior.clone(), loss, settings);
    let mut trainer = trainer.with_callback(seen.clone());
    trainer.fit(data, None, Length::Steps(STEPS)).unwrap();
    let reports = seen.0.lock().unwrap().clone();
    assert_eq!(reports.len(), STEPS);
    (trainer.checkpoint(), reports)
}

/// Compares divided and undivided runs on every mesh.
fn assert_no_difference<P: Posterior<Network: Network<Input = Tensor<2>>> + Clone>(
    posterior: &P,
    change: impl Fn(Settings) -> Settings,
) {
    let data = regression(40);
    for mesh in MESHES {
        let of =
            |divided| run(posterior, SquaredErrorOfMean, &data, change(settings(mesh, divided)));
        let ((expected, expected_reports), (checkpoint, reports)) = (of(false), of(true));
        assert_eq!(expected.digest(), checkpoint.digest(), "{mesh}");
        assert!(expected == checkpoint, "{mesh}: statistics or the optimiser's state differ");
        for (expected, report) in expected_reports.iter().zip(&reports) {
            assert_eq!(expected.gradient_norm.to_bits(), report.gradient_norm.to_bits(), "{mesh}");
            assert_eq!((expected.data, expected.rate), (report.data, report.rate), "{mesh}");
            assert!((expected.kl - report.kl).abs() <= 1e-12 * expected.kl, "{mesh}");
        }
        if ["2x1", "4x1"].contains(&mesh) {
            let serial = run(posterior, SquaredErrorOfMean, &data, change(settings("1x1", false)));
            assert_eq!(serial.0.digest(), checkpoint.digest(), "{mesh} and one rank");
        }
    }
}

#[test]
fn reproducible_digests_are_those_of_the_undivided_run() {
    for optimizer in optimizers() {
        for clip_norm in [None, Some(0.05)] {
            let change = |settings| Settings { optimizer, clip_norm, ..settings };
            assert_no_difference(&mean_field(333), change);
        }
    }
    let clipped = Settings { clip_norm: Some(0.05), ..settings("1x1", true) };
    let (_, reports) = run(&mean_field(333), SquaredErrorOfMean, &regression(40), clipped);
    assert!(reports.iter().all(|report| report.gradient_norm > 0.05), "nothing was clipped");
}

/// Less than a block: the first rank does all the work.
#[test]
fn ranks_without_a_share_take_part() {
    for optimizer in optimizers() {
        assert_no_difference(&mean_field(8), |settings| Settings { optimizer, ..settings });
    }
}

#[derive(Module, Debug)]
struct Normalised {
    first: Linear,
    norm: BatchNorm,
    second: Linear,
}

impl Network for Normalised {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.second.forward(activation::tanh(self.norm.forward(self.first.forward(input))))
    }
}

#[test]
fn running_statistics_go_along() {
    let device = Device::default();
    let network = Normalised {
        first: LinearConfig::new(5, 300).init(&device),
        norm: BatchNormConfig::new(300).init(&device),
        second: LinearConfig::new(300, 3).init(&device),
    };
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap().initialised(1);
    let before = posterior.parameters().buffers().to_vec();
    assert_eq!(before.len(), 600);
    let (after, _) = run(&posterior, SquaredErrorOfMean, &regression(40), settings("2x1", true));
    let after: Vec<f32> = after.buffers.iter().flat_map(|t| t.values.clone()).collect();
    assert!(distance(&before, &after) > 0.01, "statistics did not move");
    assert_no_difference(&posterior, |settings| settings);
}

#[test]
fn fast_sums_agree_to_rounding() {
    let (posterior, data) = (mean_field(333), regression(40));
    for mesh in MESHES {
        let values = |divided: bool| {
            let fast = Settings { reduce: Reduce::Fast, ..settings(mesh, divided) };
            let (checkpoint, _) = run(&posterior, ExpectedSquaredError, &data, fast);
            let values = checkpoint.parameters.into_iter().flat_map(|tensor| tensor.values);
            values.collect::<Vec<f32>>()
        };
        let (expected, divided) = (values(false), values(true));
        assert!(distance(posterior.parameters().values(), &divided) > 1e-3, "no change");
        let error = distance(&expected, &divided);
        assert!(error <= 1e-6, "{mesh}: off by {error}");
    }
}

#[test]
fn a_run_goes_on_divided_or_not_on_any_number_of_ranks() {
    let data = regression(40);
    for optimizer in optimizers() {
        let trainer = |mesh: &str, divided: bool| {
            let settings = Settings { optimizer, ..settings(mesh, divided) };
            Trainer::new(mean_field(333), SquaredErrorOfMean, settings)
        };
        let mut whole = trainer("1x1", false);
        whole.fit(&data, None, Length::Steps(10)).unwrap();

        let mut last = trainer("2x1", true);
        last.fit(&data, None, Length::Steps(2)).unwrap();
        // Once more with what it has.
        last.fit(&data, None, Length::Steps(4)).unwrap();
        for (mesh, divided, steps) in [("4x1", false, 6), ("4x1", true, 8), ("1x1", true, 10)] {
            let mut next = trainer(mesh, divided);
            next.restore(&last.checkpoint(), "last").unwrap();
            next.fit(&data, None, Length::Steps(steps)).unwrap();
            last = next;
        }
        assert_eq!(whole.checkpoint().digest(), last.checkpoint().digest());
        assert!(whole.checkpoint() == last.checkpoint());
    }
}

/// Makes checkpoints after steps, if it says that it wants them, and after epochs.
#[derive(Clone)]
struct Keep {
    wanted: fn(usize) -> bool,
    made: fn(usize) -> bool,
    kept: Arc<Mutex<Vec<(&'static str, Checkpoint)>>>,
}

impl Callback for Keep {
    fn wants_checkpoint(&self, report: &StepReport) -> bool {
        (self.wanted)(report.step)
    }

    fn on_step(
        &mut self,
        report: &StepReport,
        checkpoint: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        if (self.made)(report.step) {
            self.kept.lock().unwrap().push(("step", checkpoint()));
        }
        Ok(Flow::Continue)
    }

    fn on_epoch(
        &mut self,
        _: &EpochReport,
        checkpoint: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        self.kept.lock().unwrap().push(("epoch", checkpoint()));
        Ok(Flow::Continue)
    }
}

#[test]
fn callbacks_get_complete_checkpoints() {
    let data = regression(40);
    let kept = |mesh: &str, divided: bool, made: fn(usize) -> bool| {
        let keep = Keep { wanted: made, made, kept: Arc::default() };
        let mut trainer =
            Trainer::new(mean_field(333), SquaredErrorOfMean, settings(mesh, divided))
                .with_callback(Seen::default())
                .with_callback(keep.clone());
        // Three steps are an epoch.
        trainer.fit(&data, None, Length::Steps(7)).unwrap();
        let kept = keep.kept.lock().unwrap().clone();
        (kept, trainer.checkpoint())
    };
    for made in [(|_| true) as fn(usize) -> bool, |step| step == 2, |_| false] {
        let (expected, end) = kept("1x1", false, made);
        assert_eq!(expected.iter().filter(|(at, _)| *at == "epoch").count(), 3);
        assert!(expected.iter().all(|(_, checkpoint)| checkpoint.optimizer.len() == 2));
        for mesh in ["1x1", "2x1", "4x1"] {
            let (kept, kept_end) = kept(mesh, true, made);
            assert!(expected == kept && end == kept_end, "{mesh}");
        }
    }
}

#[test]
fn a_checkpoint_that_a_callback_did_not_want_ends_the_run() {
    let data = regression(40);
    for mesh in ["1x1", "2x1"] {
        let keep = Keep { wanted: |_| false, made: |step| step == 2, kept: Arc::default() };
        let mut trainer = Trainer::new(mean_field(333), SquaredErrorOfMean, settings(mesh, true))
            .with_callback(keep.clone());
        let message = trainer.fit(&data, None, Length::Steps(4)).unwrap_err().to_string();
        assert!(message.contains("wants_checkpoint"), "{message}");
        let (_, checkpoint) = keep.kept.lock().unwrap().remove(0);
        let message = trainer.restore(&checkpoint, "kept").unwrap_err().to_string();
        assert!(message.contains("no optimiser state"), "{message}");
    }
}

/// A gradient that is not finite in the last tensor: the slope of a root at zero.
#[derive(Module, Debug)]
struct Rooted {
    first: Linear,
    second: Linear,
    root: Param<Tensor<1>>,
}

impl Network for Rooted {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.second.forward(self.first.forward(input))
            + self.root.val().abs().sqrt().unsqueeze_dim(0)
    }
}

#[test]
fn a_gradient_that_is_not_finite_is_named_on_all_ranks() {
    let device = Device::default();
    let network = Rooted {
        first: LinearConfig::new(5, 500).init(&device),
        second: LinearConfig::new(500, 3).init(&device),
        root: Param::from_tensor(Tensor::zeros([3], &device)),
    };
    for (ranks, mesh) in [(1, "1x1"), (2, "2x1"), (4, "2x2"), (3, "1x3")] {
        let messages = Mutex::new(Vec::new());
        let outcome = threads::run(ranks, |world| {
            let posterior = Point::new(network.clone());
            let (place, settings) = (Place::job(world.clone()), settings(mesh, true));
            let mut trainer = Trainer::at(place, posterior, SquaredErrorOfMean, settings)?;
            let outcome = trainer.fit(&regression(40), None, Length::Steps(3));
            messages.lock().unwrap().push(outcome.as_ref().unwrap_err().to_string());
            outcome
        });
        assert!(outcome.is_err());
        let messages = messages.into_inner().unwrap();
        assert_eq!(messages.len(), ranks);
        for message in messages {
            assert!(message.contains("step 0: the gradient of root"), "{mesh}: {message}");
        }
    }
}

/// All ranks see it, so that they can bring the optimiser's state together.
#[test]
fn a_loss_that_is_not_finite_loses_nothing() {
    let inputs = numbers(0, [40, 5]).slice_fill([7..8, 2..3], f32::NAN);
    let data = TensorDataset::new(inputs, numbers(1, [40, 3])).unwrap();
    // Another seed puts the bad example into a later batch.
    let seeded = |mesh: &str, divided: bool, seed: u64| {
        let settings = Settings { seed, ..settings(mesh, divided) };
        Trainer::new(mean_field(333), SquaredErrorOfMean, settings)
    };
    let failed = |mesh: &str, divided: bool, seed: u64| {
        let mut trainer = seeded(mesh, divided, seed);
        let error = trainer.fit(&data, None, Length::Steps(20)).unwrap_err();
        assert!(matches!(error, Error::NotFinite { .. }), "{error}");
        trainer
    };
    let seed = (0..20).find(|&seed| failed("1x1", false, seed).step() == 2).expect("one of them");
    let expected = failed("1x1", false, seed).checkpoint();
    assert_eq!(expected.optimizer.len(), 2);
    for mesh in ["1x1", "2x1", "4x1"] {
        let mut trainer = failed(mesh, true, seed);
        assert!(trainer.checkpoint() == expected, "{mesh}");
        // The same step of the same data again.
        let again = trainer.fit(&data, None, Length::Steps(20)).unwrap_err();
        assert!(matches!(again, Error::NotFinite { step: 2, .. }), "{again}");
    }
}

/// A data source that fails for one example.
struct Faulty(TensorDataset<Tensor<2>, Tensor<2>>);

impl Dataset for Faulty {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        match rows.contains(&5) {
            true => Err(Error::Data("example 5 cannot be read".to_owned())),
            false => self.0.batch(rows, device),
        }
    }
}

#[test]
fn after_a_failure_a_checkpoint_must_be_restored() {
    let data = regression(40);
    for mesh in ["1x1", "2x1", "1x3"] {
        let trainer = || Trainer::new(mean_field(333), SquaredErrorOfMean, settings(mesh, true));
        let mut whole = trainer();
        whole.fit(&data, None, Length::Steps(4)).unwrap();
        let mut saved = trainer();
        saved.fit(&data, None, Length::Steps(1)).unwrap();

        let mut failed = trainer();
        let error = failed.fit(&Faulty(regression(40)), None, Length::Epochs(3)).unwrap_err();
        assert!(error.to_string().contains("example 5"), "{mesh}: {error}");
        let refused = failed.fit(&data, None, Length::Steps(4)).unwrap_err().to_string();
        assert!(refused.contains("restore a checkpoint"), "{mesh}: {refused}");
        let refused = trainer().restore(&failed.checkpoint(), "failed").unwrap_err().to_string();
        assert!(refused.contains("no optimiser state"), "{mesh}: {refused}");

        failed.restore(&saved.checkpoint(), "saved").unwrap();
        failed.fit(&data, None, Length::Steps(4)).unwrap();
        assert!(failed.checkpoint() == whole.checkpoint(), "{mesh}");
    }
}
