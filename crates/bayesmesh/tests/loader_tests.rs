//! Every batch is loaded once for all ranks that share it, ahead of time, in bounded memory; and
//! nothing but time depends on it.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::comm::threads;
use bayesmesh::data::Rows;
use bayesmesh::loss::ExpectedSquaredError;
use bayesmesh::trainer::{Callback, EpochReport, Flow, Length, StepReport, Time};
use bayesmesh::{
    Dataset, Draw, Error, McDropout, Mesh, Network, Place, Posterior, Result, Settings,
    TensorDataset, Trainer,
};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use common::{Mlp, regression};

const MESHES: [&str; 7] = ["1x1", "2x1", "4x1", "1x2", "2x2", "3x2", "1x4"];
const BATCH: usize = 8;
/// Two epochs and a half.
const STEPS: usize = 13;
/// Makes loading slow enough for the threads in the background, or leaves it quick.
const DELAYS: [Duration; 2] = [Duration::ZERO, Duration::from_micros(50)];

fn settings(mesh: &str) -> Settings {
    Settings { samples: 4, batch: BATCH, mesh: mesh.parse().unwrap(), ..Settings::default() }
}

fn data() -> TensorDataset<Tensor<2>, Tensor<2>> {
    regression(40)
}

fn trainer(settings: Settings) -> Trainer<McDropout<Mlp>, ExpectedSquaredError> {
    trainer_at(Place::Threads, settings).unwrap()
}

fn trainer_at(
    place: Place,
    settings: Settings,
) -> bayesmesh::Result<Trainer<McDropout<Mlp>, ExpectedSquaredError>> {
    let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1);
    Trainer::at(place, posterior, ExpectedSquaredError, settings)
}

/// Writes down what is asked for, and fails or panics for one example.
struct Watched {
    inner: TensorDataset<Tensor<2>, Tensor<2>>,
    asked: Mutex<Vec<Vec<usize>>>,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Error,
    Panic,
}

impl Watched {
    fn new(fault: Option<Fault>) -> Self {
        Self { inner: data(), asked: Mutex::default(), fault }
    }

    /// The batches asked for, in an order that does not depend on time.
    fn asked(&self) -> Vec<Vec<usize>> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

impl Dataset for Watched {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        // The first example is tried before every run.
        if rows != [0] {
            self.asked.lock().unwrap().push(rows.to_vec());
        }
        match self.fault.filter(|_| rows.contains(&5)) {
            Some(Fault::Error) => Err(Error::Data("example 5 cannot be read".to_owned())),
            Some(Fault::Panic) => panic!("example 5 is on fire"),
            None => self.inner.batch(rows, device),
        }
    }
}

#[test]
fn every_batch_is_loaded_once_for_all_sample_ranks() {
    let run = |settings: Settings| {
        let data = Watched::new(None);
        trainer(settings).fit(&data, None, Length::Steps(STEPS)).unwrap();
        data.asked()
    };
    let serial = run(settings("1x1"));
    assert_eq!(serial.len(), STEPS);
    let examples = |asked: &[Vec<usize>]| {
        let mut examples = asked.concat();
        examples.sort_unstable();
        examples
    };
    for text in MESHES {
        let mesh: Mesh = text.parse().unwrap();
        for load_delay in DELAYS {
            let shared = run(Settings { load_delay, ..settings(text) });
            assert_eq!(shared.len(), STEPS * mesh.data_size(), "{text} {load_delay:?}");
            assert_eq!(examples(&shared), examples(&serial), "{text} {load_delay:?}");
            if mesh.data_size() == 1 {
                assert_eq!(shared, serial, "{text} {load_delay:?}");
            }

            // As in the paper: every sample rank the same.
            let own = run(Settings { load_delay, share_loading: false, ..settings(text) });
            let times = mesh.samples_size();
            let expected: Vec<_> =
                shared.iter().flat_map(|batch| vec![batch.clone(); times]).collect();
            assert_eq!(own, expected, "{text} {load_delay:?}");
        }
    }
}

#[test]
fn the_ranks_of_a_node_load_every_batch_once() {
    let run = |settings: Settings| {
        let data = Watched::new(None);
        let ranks = settings.mesh.size();
        let digests = threads::run(ranks, |world| {
            let mut trainer = trainer_at(Place::job(world.clone()), settings.clone())?;
            trainer.fit(&data, None, Length::Steps(STEPS))?;
            Ok::<_, Error>(trainer.checkpoint().digest())
        });
        let digests = digests.unwrap();
        assert!(digests.iter().all(|digest| *digest == digests[0]));
        (data.asked(), digests[0].clone())
    };
    for text in ["2x1", "3x1", "2x2", "1x2"] {
        let slow = Settings { load_delay: Duration::from_micros(100), ..settings(text) };
        let (samples, data) = (slow.mesh.samples_size(), slow.mesh.data_size());
        // Three more for each rank that shares: to find out whether that is worth it.
        let trial = if samples > 1 { 3 * samples * data } else { 0 };
        let (turns, digest) = run(slow.clone());
        assert_eq!(turns.len(), data * STEPS + trial, "{text}");
        let alone = Settings { share_loading: false, ..slow };
        let (each, same) = run(alone.clone());
        assert_eq!(each.len(), samples * data * STEPS, "{text}");
        assert_eq!(same, digest, "{text}");

        // What takes long is loaded in parts.
        let slower = Settings { load_delay: Duration::from_millis(3), ..alone };
        let (parts, same) = run(Settings { share_loading: true, ..slower });
        assert_eq!(parts.len(), samples * data * STEPS + trial, "{text}");
        assert_eq!(parts.concat().len(), turns.concat().len(), "{text}");
        assert_eq!(same, digest, "{text}");
    }
}

#[test]
fn how_batches_are_loaded_does_not_change_a_bit() {
    for mesh in ["1x1", "3x1", "2x2"] {
        let digest = |settings: Settings| {
            let mut trainer = trainer(settings);
            trainer.fit(&data(), None, Length::Steps(STEPS)).unwrap();
            trainer.checkpoint().digest()
        };
        let expected = digest(settings(mesh));
        for load_delay in DELAYS {
            for share_loading in [true, false] {
                for prefetch in [0, 1, 2, 5] {
                    let settings =
                        Settings { load_delay, share_loading, prefetch, ..settings(mesh) };
                    assert_eq!(digest(settings), expected, "{mesh} {load_delay:?} {prefetch}");
                }
            }
        }
    }
}

/// The first step whose batch has the faulty example.
fn faulty_step() -> usize {
    for step in 0..STEPS {
        let data = Watched::new(None);
        let mut trainer = trainer(settings("1x1"));
        trainer.fit(&data, None, Length::Steps(step + 1)).unwrap();
        if data.asked().concat().contains(&5) {
            return step;
        }
    }
    panic!("every epoch has every example");
}

#[test]
fn a_run_fails_at_the_step_whose_batch_cannot_be_loaded() {
    let step = faulty_step();
    assert!(step > 0, "choose a seed with which loading ahead makes a difference");
    for mesh in MESHES {
        for (fault, reason) in
            [(Fault::Error, "example 5 cannot be read"), (Fault::Panic, "example 5 is on fire")]
        {
            for load_delay in DELAYS {
                for share_loading in [true, false] {
                    let settings = Settings { load_delay, share_loading, ..settings(mesh) };
                    let mut trainer = trainer(settings);
                    let data = Watched::new(Some(fault));
                    let error = trainer.fit(&data, None, Length::Epochs(2)).unwrap_err();
                    assert!(error.to_string().contains(reason), "{mesh} {fault:?}: {error}");
                    assert_eq!(trainer.step(), step, "{mesh} {fault:?} {load_delay:?}");
                }
            }
        }
    }
}

/// Stops after a step; adds up times.
#[derive(Clone, Default)]
struct Follow {
    stop: Option<usize>,
    times: Arc<Mutex<(Time, Time)>>,
}

impl Callback for Follow {
    fn on_step(
        &mut self,
        report: &StepReport,
        _state: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        assert_eq!(report.examples, BATCH);
        assert!(0.0 <= report.time.waited && report.time.waited <= report.time.seconds);
        self.times.lock().unwrap().0 += report.time;
        Ok(if self.stop == Some(report.step) { Flow::Stop } else { Flow::Continue })
    }

    fn on_epoch(
        &mut self,
        report: &EpochReport,
        _state: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        self.times.lock().unwrap().1 += report.time;
        Ok(Flow::Continue)
    }
}

#[test]
fn a_stopped_run_goes_on_in_the_middle_of_an_epoch() {
    for load_delay in DELAYS {
        let settings = |mesh: &str| Settings {
            load_delay,
            reduce: bayesmesh::Reduce::Reproducible,
            ..settings(mesh)
        };
        let mut whole = trainer(settings("1x1"));
        whole.fit(&data(), None, Length::Steps(STEPS)).unwrap();

        let mut first =
            trainer(settings("2x1")).with_callback(Follow { stop: Some(6), ..Follow::default() });
        let seen = Watched::new(None);
        first.fit(&seen, None, Length::Steps(STEPS)).unwrap();
        assert_eq!(first.step(), 7);
        // No more is loaded than what may be ahead.
        assert!((7..=7 + 3).contains(&seen.asked().len()), "{}", seen.asked().len());

        let mut second = trainer(settings("4x1"));
        second.restore(&first.checkpoint(), "first").unwrap();
        let seen = Watched::new(None);
        second.fit(&seen, None, Length::Steps(STEPS)).unwrap();
        assert_eq!(seen.asked().len(), STEPS - 7);
        assert_eq!(second.checkpoint(), whole.checkpoint());
    }
}

#[test]
fn a_rank_that_fails_ends_the_run_while_batches_are_being_loaded() {
    let mut inputs = common::numbers(0, [40, 5]);
    inputs = inputs.slice_fill([5..6, 2..3], f32::NAN);
    let data = TensorDataset::new(inputs, common::numbers(1, [40, 3])).unwrap();
    for mesh in MESHES {
        for load_delay in DELAYS {
            let mut trainer = trainer(Settings { load_delay, prefetch: 4, ..settings(mesh) });
            let error = trainer.fit(&data, None, Length::Epochs(2)).unwrap_err();
            assert!(matches!(error, Error::NotFinite { .. }), "{mesh}: {error}");
        }
    }
}

#[test]
fn time_is_measured() {
    for (mesh, load_delay) in ["1x1", "2x1"].into_iter().flat_map(|mesh| DELAYS.map(|d| (mesh, d)))
    {
        let follow = Follow::default();
        let mut trainer =
            trainer(Settings { load_delay, ..settings(mesh) }).with_callback(follow.clone());
        assert_eq!(trainer.time().waiting(), 0.0);
        trainer.fit(&data(), None, Length::Steps(STEPS)).unwrap();
        let (steps, epochs) = *follow.times.lock().unwrap();
        // Callbacks are told of the first rank, the trainer of the one that takes longest.
        let (all, first) = (trainer.time(), steps);
        assert!(mesh != "1x1" || all == first, "{all:?}, {first:?}");
        assert!(all.seconds >= first.seconds && all.waited >= first.waited, "{all:?}, {first:?}");
        assert!(all.exposed >= first.exposed && all.communication >= first.communication);
        assert!((epochs.seconds - steps.seconds).abs() < 1e-9 * steps.seconds);
        assert!((epochs.waited - steps.waited).abs() <= 1e-9 * steps.waited);
        assert!(0.0 < steps.waiting() && steps.waiting() < 1.0, "{}", steps.waiting());
    }
}

/// Batches that are alive: now, and the most there ever were.
#[derive(Debug, Default)]
struct Alive {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// One for each batch, shared by its copies.
#[derive(Debug)]
struct Token(Arc<Alive>);

impl Token {
    fn new(alive: &Arc<Alive>) -> Self {
        let now = alive.now.fetch_add(1, Ordering::SeqCst) + 1;
        alive.most.fetch_max(now, Ordering::SeqCst);
        Self(alive.clone())
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An input that counts.
#[derive(Clone, Debug)]
struct Counted {
    tensor: Tensor<2>,
    token: Arc<Token>,
}

impl Rows for Counted {
    fn rows(&self) -> usize {
        self.tensor.rows()
    }

    fn select_rows(&self, rows: &[usize], device: &Device) -> Self {
        Self { tensor: self.tensor.select_rows(rows, device), token: self.token.clone() }
    }

    fn stack(_batches: Vec<Self>) -> Self {
        unreachable!("draws go through the network one by one")
    }

    fn pack(&self, _words: &mut Vec<f32>) {
        unreachable!("threads do not send batches")
    }

    fn unpack(_words: &mut &[f32], _device: &Device) -> bayesmesh::Result<Self> {
        unreachable!("threads do not send batches")
    }
}

struct CountedData {
    inner: TensorDataset<Tensor<2>, Tensor<2>>,
    alive: Arc<Alive>,
}

impl Dataset for CountedData {
    type Input = Counted;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Counted, Tensor<2>)> {
        let token = Arc::new(Token::new(&self.alive));
        let (tensor, target) = self.inner.batch(rows, device)?;
        Ok((Counted { tensor, token }, target))
    }
}

#[derive(Module, Debug)]
struct Slow {
    linear: Linear,
}

/// How many batches the network waits for.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);

impl Network for Slow {
    type Input = Counted;

    /// At first it waits until as many batches are there as may be. The one example that is tried
    /// before the run is none.
    fn forward(&self, input: Counted, _draw: &Draw) -> Tensor<2> {
        let alive = &input.token.0;
        let begin = Instant::now();
        let in_training = input.tensor.dims()[0] > 1;
        while in_training && alive.most.load(Ordering::SeqCst) < EXPECTED.load(Ordering::SeqCst) {
            assert!(begin.elapsed() < Duration::from_secs(60), "nothing is loaded ahead");
            std::thread::yield_now();
        }
        self.linear.forward(input.tensor)
    }
}

/// One test, since the network knows what it waits for from a static.
#[test]
fn so_many_batches_are_loaded_ahead_and_no_more() {
    for (mesh, prefetch, ahead) in [("1x1", 2, 2), ("2x1", 2, 3), ("2x1", 4, 5), ("3x1", 1, 3)] {
        let data = CountedData { inner: data(), alive: Arc::default() };
        let network = Slow { linear: LinearConfig::new(5, 3).init(&Device::default()) };
        let settings = Settings { prefetch, load_delay: DELAYS[1], ..settings(mesh) };
        // The one in use and those ahead.
        EXPECTED.store(ahead + 1, Ordering::SeqCst);
        let mut trainer =
            Trainer::new(bayesmesh::Point::new(network), ExpectedSquaredError, settings);
        trainer.fit(&data, None, Length::Steps(STEPS)).unwrap();
        assert_eq!(data.alive.most.load(Ordering::SeqCst), ahead + 1, "{mesh} {prefetch}");
        assert_eq!(data.alive.now.load(Ordering::SeqCst), 0, "{mesh} {prefetch}");
    }
}
