//! Memory does not grow with the number of draws. Measured by counting allocated bytes.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use bayesmesh::loss::{Categorical, Expected, Loss, Mixture};
use bayesmesh::trainer::{Length, Memory};
use bayesmesh::{MeanField, Posterior, Prior, Settings, Trainer};
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
fn peak(
    loss: impl Loss<Target = burn::tensor::Tensor<1, burn::tensor::Int>>,
    samples: usize,
    memory: Memory,
) -> usize {
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
}
