//! Where the memory of a run goes: a Bayesian perceptron of any size, phase by phase.
//!
//! usage: memory LAYERS WIDTH BATCH DRAWS MESH [KEY=VALUE ...]     with changes of the settings:
//! `reduce=reproducible`, `memory=retain`, `shard_optimizer=true`; `steps=N` (3 by default);
//! `checkpoint=false` ends after the steps
//!
//! Prints for each phase its seconds and, in GB: what was allocated when it ended, the most that
//! was during it, and the most that the process held during it, as the system counts it. All over
//! all ranks of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::GaussianOfDraws;
use bayesmesh::{
    Length, MeanField, Mesh, Posterior, Prior, Purpose, Settings, Stream, TensorDataset, Trainer,
};
use bayesmesh_bench::changed;
use bayesmesh_models::MlpConfig;
use burn::tensor::{Device, Tensor, TensorData};

/// Counts what is allocated, and the most there ever was.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: hands every call on to the system's allocator; counting does not touch memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's guarantees are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's guarantees are those of `System`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grown(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are those of `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are those of `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Does something and prints what it took.
fn phase<T>(name: &str, body: impl FnOnce() -> T) -> T {
    let gb = |bytes: usize| bytes as f64 / 1e9;
    PEAK.store(NOW.load(Ordering::Relaxed), Ordering::Relaxed);
    // From here on Linux counts the peak anew.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let started = Instant::now();
    let result = body();
    println!(
        "{name:<28} {:6.1} s   held {:6.2}   most {:6.2}   resident {:6.2}",
        started.elapsed().as_secs_f64(),
        gb(NOW.load(Ordering::Relaxed)),
        gb(PEAK.load(Ordering::Relaxed)),
        gb(resident_peak())
    );
    result
}

/// The most that the process held since the last reset, in bytes.
fn resident_peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1024
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    bayesmesh::process_memory::keep_freed();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: memory LAYERS WIDTH BATCH DRAWS MESH [KEY=VALUE ...]";
    let ([layers, width, batch, draws, mesh], changes) =
        arguments.split_first_chunk().ok_or(usage)?;
    let (layers, width, batch): (usize, usize, usize) =
        (layers.parse()?, width.parse()?, batch.parse()?);
    let (mut steps, mut checkpoint, mut others) = (3, true, Vec::new());
    for change in changes {
        match change.split_once('=') {
            Some(("steps", value)) => steps = value.parse()?,
            Some(("checkpoint", value)) => checkpoint = value.parse()?,
            _ => others.push(change.clone()),
        }
    }
    let settings = Settings {
        samples: draws.parse()?,
        batch,
        mesh: mesh.parse::<Mesh>()?,
        ..Settings::default()
    };
    let settings = changed(settings, &others)?;

    let config = MlpConfig::new(width, vec![width; layers - 1], width);
    let numbers = 2 * config.weights();
    println!("{numbers} trainable numbers, {:.2} GB", numbers as f64 * 4e-9);
    let device = Device::default();
    let mut values = vec![0.0; batch * width];
    Stream::new(0, Purpose::Synthesis).fill_normal(0, &mut values);
    let x = Tensor::<2>::from_data(TensorData::new(values, [batch, width]), &device);
    let data = TensorDataset::new(x.clone(), x)?;

    let network = phase("network", || config.init(&device));
    let posterior = phase("posterior", || MeanField::new(network, Prior::normal(0.0, 1.0)))?;
    let posterior = phase("initialised", || posterior.initialised(0));
    let built = |posterior| Trainer::new(posterior, GaussianOfDraws::default(), settings.clone());
    let mut trainer = phase("trainer", || built(posterior));
    phase("plan", || trainer.plan(&data, None, Length::Steps(1)))?;
    phase("first step", || trainer.fit(&data, None, Length::Steps(1)))?;
    phase("next steps", || trainer.fit(&data, None, Length::Steps(steps)))?;
    if !checkpoint {
        return Ok(());
    }
    let digest = phase("digest", || trainer.digest());
    let folder = std::env::temp_dir().join(format!("bayesmesh-memory-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("state.safetensors");
    phase("checkpoint and save", || trainer.checkpoint().save(&path))?;
    let saved = phase("load", || Checkpoint::load(&path))?;
    std::fs::remove_dir_all(&folder)?;
    phase("restore", || trainer.restore_from_first(Some(saved), &path))?;
    assert_eq!(trainer.digest(), digest, "what was saved is what was restored");
    phase("next step", || trainer.fit(&data, None, Length::Steps(steps + 1)))?;
    phase("predictor", || trainer.predictor());
    Ok(())
}
