//! Gradients that travel during the backward pass arrive as those that travel after it: to the bit,
//! for any network, however often and in whichever order it uses its weights.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{ExpectedSquaredError, GaussianOfDraws, SquaredErrorOfMean};
use bayesmesh::posterior::{InitialStd, Kl};
use bayesmesh::trainer::{Callback, Flow, Length, Memory, OptimizerConfig, Schedule, StepReport};
use bayesmesh::{
    Draw, Loss, McDropout, MeanField, Network, Point, Posterior, Prior, Purpose, Reduce, Settings,
    TensorDataset, Trainer,
};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, unary};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use common::{Mlp, distance, regression};

type Data = TensorDataset<Tensor<2>, Tensor<2>>;

const STEPS: usize = 5;

fn settings(mesh: &str) -> Settings {
    Settings {
        samples: 5,
        batch: 7,
        seed: 5,
        mesh: mesh.parse().unwrap(),
        heat: 0.7,
        clip_norm: Some(2.0),
        schedule: Schedule::Constant { rate: 0.05 },
        optimizer: OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.0 },
        // Small enough for several buckets, with slots that end within one.
        bucket_bytes: 64,
        ..Settings::default()
    }
}

/// What every step reported.
#[derive(Clone, Default)]
struct Steps(Arc<Mutex<Vec<StepReport>>>);

impl Callback for Steps {
    fn on_step(
        &mut self,
        report: &StepReport,
        _: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        self.0.lock().unwrap().push(report.clone());
        Ok(Flow::Continue)
    }
}

/// The parameters and running statistics after some steps, and what the steps reported.
fn train<P, L>(posterior: &P, loss: &L, settings: Settings) -> (Vec<f32>, Vec<StepReport>)
where
    P: Posterior<Network: Network<Input = Tensor<2>>> + Clone,
    L: Loss<Target = Tensor<2>> + Clone,
{
    let steps = Steps::default();
    let data: Data = regression(20);
    let trainer = Trainer::new(posterior.clone(), loss.clone(), settings);
    let mut trainer = trainer.with_callback(steps.clone());
    trainer.fit(&data, None, Length::Steps(STEPS)).unwrap();
    let parameters = trainer.posterior().parameters();
    let reports = steps.0.lock().unwrap().clone();
    ([parameters.values(), parameters.buffers()].concat(), reports)
}

/// Trains with and without overlap in every way; the shares of the gradient that went early.
fn assert_same<P, L>(posterior: &P, loss: L) -> Vec<f64>
where
    P: Posterior<Network: Network<Input = Tensor<2>>> + Clone,
    L: Loss<Target = Tensor<2>> + Clone,
{
    let mut early = Vec::new();
    for mesh in ["2x1", "1x2", "2x2"] {
        for memory in [Memory::Recompute, Memory::Retain] {
            for reduce in [Reduce::Fast, Reduce::Reproducible] {
                let run = |overlap| {
                    let settings = Settings { memory, reduce, overlap, ..settings(mesh) };
                    train(posterior, &loss, settings)
                };
                let (expected, without) = run(false);
                let (values, with) = run(true);
                let start = posterior.parameters().values();
                assert!(distance(start, &expected[..start.len()]) > 1e-3, "nothing changed");
                let error = distance(&expected, &values);
                assert!(values == expected, "{mesh} {memory:?} {reduce}: off by {error}");
                assert!(without.iter().all(|step| step.overlapped == 0.0));
                for step in without.iter().chain(&with) {
                    let time = step.time;
                    assert!(time.communication > 0.0 && time.exposed <= time.seconds);
                }
                // In the first step it is only seen what can go early.
                assert_eq!(with[0].overlapped, 0.0);
                early.extend(with[1..].iter().map(|step| step.overlapped));
            }
        }
    }
    early
}

fn mean_field<N: Network>(network: N) -> MeanField<N> {
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap();
    posterior.with_initial_std(InitialStd::Constant(0.1)).unwrap().initialised(1)
}

#[test]
fn overlap_changes_no_bit_of_any_posterior_and_loss() {
    let gaussian = mean_field(Mlp::new(5, 8, 3, 0.2));
    let early = assert_same(&gaussian, ExpectedSquaredError);
    assert!(early.iter().all(|share| *share > 0.0), "{early:?}");
    assert_same(&gaussian, GaussianOfDraws::default());
    assert_same(&gaussian.with_kl(Kl::MonteCarlo).unwrap(), SquaredErrorOfMean);
    assert_same(&McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1), SquaredErrorOfMean);
    assert_same(&Point::new(Mlp::new(5, 8, 3, 0.3)).initialised(1), ExpectedSquaredError);
}

/// Burn's own layers, running statistics, a weight used twice and one that is not used at all.
#[derive(Module, Debug)]
struct Mixed {
    unused: Linear,
    conv: Conv2d,
    norm: BatchNorm,
    tied: Param<Tensor<2>>,
    last: Linear,
}

impl Mixed {
    fn new() -> Self {
        let device = Device::default();
        Self {
            unused: LinearConfig::new(4, 3).init(&device),
            conv: Conv2dConfig::new([1, 2], [1, 2]).init(&device),
            norm: BatchNormConfig::new(2).init(&device),
            tied: Param::from_tensor(Tensor::eye(8, &device) * 0.5),
            last: LinearConfig::new(8, 3).init(&device),
        }
    }
}

impl Network for Mixed {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        let [rows, columns] = input.dims();
        let image = self.norm.forward(self.conv.forward(input.reshape([rows, 1, 1, columns])));
        let hidden: Tensor<2> = activation::tanh(image.reshape([rows, 8]));
        let hidden = activation::tanh(hidden.matmul(self.tied.val()));
        self.last.forward(hidden.matmul(self.tied.val().transpose()))
    }
}

#[test]
fn layers_of_burn_tied_and_unused_weights_are_complete_when_they_go() {
    let early = assert_same(&mean_field(Mixed::new()), ExpectedSquaredError);
    assert!(early.iter().all(|share| *share < 1.0), "an unused weight never arrives");
    assert_same(&Point::new(Mixed::new()), SquaredErrorOfMean);
}

/// Uses its layers in an order that the draw's number says, and as often as its randomness says.
#[derive(Module, Debug)]
struct Moody {
    first: Param<Tensor<2>>,
    second: Param<Tensor<2>>,
    last: Linear,
}

impl Network for Moody {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, draw: &Draw) -> Tensor<2> {
        let mut mood = [0.0];
        draw.stream(Purpose::Dropout).at_tensor(7).fill_uniform(0, &mut mood);
        let mut weights = [self.first.val(), self.second.val()];
        // The last draws of two sample ranks complete their weights in different orders.
        if draw.index() > 2 {
            weights.reverse();
        }
        let [one, other] = weights;
        let mut hidden =
            activation::tanh(activation::tanh(input.matmul(one)).matmul(other.clone()));
        for _ in 0..(mood[0] * 4.0) as usize {
            hidden = activation::tanh(hidden.matmul(other.clone()));
        }
        self.last.forward(hidden)
    }
}

#[test]
fn a_network_that_changes_from_draw_to_draw_is_trained_rightly() {
    let device = Device::default();
    let network = Moody {
        first: Param::from_tensor(Tensor::eye(5, &device)),
        second: Param::from_tensor(Tensor::eye(5, &device) * 0.7),
        last: LinearConfig::new(5, 3).init(&device),
    };
    assert_same(&mean_field(network), ExpectedSquaredError);
}

/// Panics in the backward pass of the last draw in the third step, between two layers.
#[derive(Module, Debug)]
struct Faulty {
    first: Linear,
    second: Linear,
}

static FORWARDS: AtomicUsize = AtomicUsize::new(0);

impl Network for Faulty {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, draw: &Draw) -> Tensor<2> {
        let hidden = self.first.forward(input);
        let is_last = draw.index() == 4;
        let breaks = is_last && FORWARDS.fetch_add(1, Ordering::Relaxed) == 2;
        let hidden = Tensor::from_dispatch(Dispatch::brittle(hidden.into_dispatch(), breaks));
        self.second.forward(hidden)
    }
}

#[backend_extension(Autodiff, Flex)]
trait Brittle: Backend {
    fn brittle(x: FloatTensor<Self>, breaks: bool) -> FloatTensor<Self>;
}

impl Brittle for Flex {
    fn brittle(x: FloatTensor<Self>, _breaks: bool) -> FloatTensor<Self> {
        x
    }
}

impl<C: CheckpointStrategy> Brittle for Autodiff<Flex, C> {
    fn brittle(x: FloatTensor<Self>, breaks: bool) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Identity;
        impl Backward<Flex, 1> for Identity {
            type State = bool;

            fn backward(self, ops: Ops<bool, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                assert!(!ops.state, "the processor melts");
                unary::<Flex, _>(ops.parents, ops.node, grads, |grad| grad);
            }
        }
        let (x, node) = x.into_parts();
        match Identity.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(breaks, x),
            OpsKind::UnTracked(prep) => prep.finish(x),
        }
    }
}

#[test]
fn a_rank_that_fails_within_its_backward_pass_leaves_nobody_waiting() {
    let device = Device::default();
    let network = Faulty {
        first: LinearConfig::new(5, 64).init(&device),
        second: LinearConfig::new(64, 3).init(&device),
    };
    for mesh in ["2x1", "4x1"] {
        FORWARDS.store(0, Ordering::Relaxed);
        let posterior = mean_field(network.clone());
        let mut trainer = Trainer::new(posterior, ExpectedSquaredError, settings(mesh));
        let error = trainer.fit(&regression(20), None, Length::Steps(STEPS)).unwrap_err();
        assert!(error.to_string().contains("the processor melts"), "{mesh}: {error}");
        assert_eq!(trainer.step(), 2);
    }
}

#[test]
fn one_rank_neither_communicates_nor_overlaps() {
    let posterior = mean_field(Mlp::new(5, 8, 3, 0.2));
    let (_, steps) = train(&posterior, &ExpectedSquaredError, settings("1x1"));
    for step in steps {
        let time = step.time;
        assert_eq!((time.communication, time.exposed, step.overlapped), (0.0, 0.0, 0.0));
    }
}
