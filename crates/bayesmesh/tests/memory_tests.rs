//! Memory does not grow with the number of draws, nor that of their outputs with the ranks. Measured
//! by counting allocated bytes.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use bayesmesh::loss::{Categorical, Combine, EnsembleCrps, Expected, Loss, Mixture};
use bayesmesh::trainer::{Length, Memory};
use bayesmesh::{
    Dataset, Draw, MeanField, Mesh, Network, Posterior, Prior, Settings, Stream, TensorDataset,
    Trainer,
};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor};
use common::{Mlp, classification};

/// Counts what is allocated, and the most there ever was.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands every call on to the system's allocator; counting does not touch memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are those of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes allocated at once during three steps, beyond what there was before.
fn peak(loss: impl Loss<Target = Tensor<1, Int>>, samples: usize, memory: Memory) -> usize {
    let posterior = MeanField::new(Mlp::new(5, 512, 3, 0.1), Prior::normal(0.0, 1.0)).unwrap();
    let data = classification(600);
    // One thread: each that takes part in a product has room for it of its own, and how many do so
    // is a matter of chance.
    let threads = Some(1);
    let settings = Settings { samples, batch: 512, memory, threads, ..Settings::default() };
    let mut trainer = Trainer::new(posterior.initialised(0), loss, settings);
    wait_for_threads();
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    trainer.fit(&data, None, Length::Steps(3)).unwrap();
    PEAK.load(Ordering::Relaxed) - before
}

/// A network of two numbers and many outputs.
#[derive(Module, Debug)]
struct Wide {
    line: Linear,
}

const WIDTH: usize = 40_000;
const DRAWS: usize = 32;

impl Network for Wide {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.line.forward(input).repeat_dim(1, WIDTH)
    }
}

/// The most bytes allocated at once on all ranks together, for a loss of all draws' outputs.
fn peak_of_outputs(loss: impl Loss<Target = Tensor<2>>, ranks: usize) -> usize {
    let device = Device::default();
    let network = Wide { line: LinearConfig::new(1, 1).init(&device) };
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap();
    let (x, y) = (Tensor::<2>::ones([2, 1], &device), Tensor::<2>::ones([2, WIDTH], &device));
    let data = TensorDataset::new(x, y).unwrap();
    let settings = Settings {
        samples: DRAWS,
        batch: 1,
        mesh: Mesh::samples(ranks).unwrap(),
        threads: Some(1),
        ..Settings::default()
    };
    let mut trainer = Trainer::new(posterior.initialised(0), loss, settings);
    wait_for_threads();
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    trainer.fit(&data, None, Length::Steps(3)).unwrap();
    PEAK.load(Ordering::Relaxed) - before
}

/// Hands its draws on as the CRPS does, but gathered.
struct Gathered;

impl Loss for Gathered {
    type Target = Tensor<2>;

    fn combine(&self) -> Combine {
        Combine::Gather
    }

    fn summary(&self, output: Tensor<2>, _target: &Tensor<2>) -> Tensor<2> {
        output
    }
}

/// Waits for the threads of an earlier training to end, where the system tells: what they still
/// hold would count as having been there before.
fn wait_for_threads() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    // This one and that of the test harness. Threads that never end are waited for in vain.
    for _ in 0..1000 {
        if threads() <= 2 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Data whose third random variation panics: a run that ends in its first step.
struct Ending(TensorDataset<Tensor<2>, Tensor<1, Int>>, AtomicUsize);

impl Dataset for Ending {
    type Input = Tensor<2>;
    type Target = Tensor<1, Int>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(
        &self,
        rows: &[usize],
        device: &Device,
    ) -> bayesmesh::Result<(Tensor<2>, Tensor<1, Int>)> {
        self.0.batch(rows, device)
    }

    fn augment(&self, _: &Tensor<2>, _: &[usize], _: &Stream) -> Option<Tensor<2>> {
        if self.1.fetch_add(1, Ordering::Relaxed) == 2 {
            // Past the panic hook, whose backtrace would need more memory than the draws.
            std::panic::resume_unwind(Box::new("enough draws"));
        }
        None
    }
}

/// The most bytes allocated at once for the first draws of a step that has `samples` of them, each
/// made when it is its turn.
fn peak_of_first_draws(samples: usize) -> usize {
    let posterior = MeanField::new(Mlp::new(5, 64, 3, 0.1), Prior::normal(0.0, 1.0)).unwrap();
    let settings = Settings { samples, batch: 8, threads: Some(1), ..Settings::default() };
    let mut trainer = Trainer::new(posterior.initialised(0), Expected(Categorical), settings);
    let data = Ending(classification(16), AtomicUsize::new(0));
    wait_for_threads();
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let message = trainer.fit(&data, None, Length::Steps(1)).unwrap_err().to_string();
    assert!(message.contains("enough draws"), "{message}");
    PEAK.load(Ordering::Relaxed) - before
}

/// One test, since the counters are the process's.
#[test]
fn peak_memory_does_not_grow_with_the_draws() {
    // Buffers that are made once and kept.
    peak(Expected(Categorical), 2, Memory::Recompute);

    let (one, many) = (
        peak(Expected(Categorical), 1, Memory::Recompute),
        peak(Expected(Categorical), 64, Memory::Recompute),
    );
    println!("streaming: {one} bytes with 1 draw, {many} with 64");
    assert!(many as f64 <= 1.1 * one as f64, "streaming: {one} with 1 draw, {many} with 64");

    let mixture = Mixture::new(Categorical);
    let (one, many) = (peak(mixture, 1, Memory::Recompute), peak(mixture, 64, Memory::Recompute));
    println!("recompute: {one} bytes with 1 draw, {many} with 64");
    assert!(many as f64 <= 1.1 * one as f64, "recompute: {one} with 1 draw, {many} with 64");

    // Retaining does grow, or the measurement would not notice.
    let retained = peak(mixture, 64, Memory::Retain);
    println!("retain: {retained} bytes with 64");
    assert!(retained > 10 * one, "retain: {retained} against {one}");

    // All ranks together hold the outputs of all draws twice, and each some of one draw.
    let (one_draw, all) = (WIDTH * 4, DRAWS * WIDTH * 4);
    let [alone, divided] = [1, 4].map(|ranks| peak_of_outputs(EnsembleCrps::fair(), ranks));
    println!("transposed: {alone} bytes on 1 rank, {divided} on 4, of outputs of {all}");
    assert!(divided < 2 * all + 4 * 12 * one_draw, "transposed: {divided} on 4 ranks, of {all}");
    // Gathered draws do grow with the ranks, or the measurement would not notice.
    let gathered = peak_of_outputs(Gathered, 4);
    println!("gathered: {gathered} bytes on 4 ranks");
    assert!(gathered > 4 * all, "gathered: {gathered} on 4 ranks, of {all}");

    // A list of ten million draws would have 160 MB.
    let (few, many) = (peak_of_first_draws(4), peak_of_first_draws(10_000_000));
    println!("first draws: {few} bytes of 4, {many} of 10,000,000");
    assert!(many < few + 1_000_000, "first draws: {few} of 4, {many} of 10,000,000");
}
