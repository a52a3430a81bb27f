//! The paper's Bayesian ViT: a training step with sampling, KL and Adam.
//!
//! usage: vit BATCH DRAWS MESH STEPS [KEY=VALUE ...]     with changes of the settings: `threads=1`;
//! `images=FOLDER` trains on files of that folder instead of one batch in memory
//! prints the peak memory in MiB, the minor page faults of a step, the milliseconds a step
//! communicates and stands still for that (medians; on the rank that stands still least, which is
//! the last to come and waits for nobody, and on the one that does most), the share of the gradient
//! that goes during the backward pass, the seconds of all steps divided by their number and, last,
//! the seconds of the best step
//!
//! Built with the feature `mpi` and started by `mpirun -n P`, its ranks are P processes.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::comm::{Communicator, Operation};
use bayesmesh::loss::{Categorical, Expected};
use bayesmesh::trainer::{Callback, Flow, Memory, StepReport};
use bayesmesh::{
    Dataset, Length, MeanField, Mesh, Place, Posterior, Prior, Reduce, Settings, TensorDataset,
    Trainer,
};
use bayesmesh::{Purpose, Stream, process_memory};
use bayesmesh_bench::{PngFiles, changed};
use bayesmesh_models::VitConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// When each step ended, the page faults until then, and what it reported.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Vec<(Instant, u64, StepReport)>>>);

impl Callback for Clock {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn on_step(
        &mut self,
        report: &StepReport,
        _: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        let faults = process_memory::minor_faults().unwrap_or(0);
        self.0.lock().expect("not poisoned").push((Instant::now(), faults, report.clone()));
        Ok(Flow::Continue)
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[global_allocator]
static ALLOCATOR: bayesmesh::process_memory::Allocator = bayesmesh::process_memory::Allocator;

fn main() -> Outcome {
    bayesmesh_bench::run(train)
}

/// Trains on threads, or as a rank of a job.
fn train(world: Option<Arc<dyn Communicator>>) -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([batch, draws, mesh, steps], changes) =
        arguments.split_first_chunk().ok_or("usage: vit BATCH DRAWS MESH STEPS [KEY=VALUE ...]")?;
    let batch: usize = batch.parse()?;
    let settings = Settings {
        samples: draws.parse()?,
        batch,
        mesh: mesh.parse::<Mesh>()?,
        memory: Memory::Retain,
        ..Settings::default()
    };
    let (files, changes): (Vec<_>, Vec<_>) =
        changes.iter().cloned().partition(|change| change.starts_with("images="));
    let (settings, steps) = (changed(settings, &changes)?, steps.parse()?);
    match files.first().and_then(|change| change.split_once('=')) {
        Some((_, folder)) => fit(world, &PngFiles::new(folder), settings, steps),
        None => fit(world, &in_memory(batch)?, settings, steps),
    }
}

/// One batch of noise.
fn in_memory(batch: usize) -> bayesmesh::Result<TensorDataset<Tensor<4>, Tensor<1, Int>>> {
    let device = Device::default();
    let mut pixels = vec![0.0; batch * 3 * 32 * 32];
    Stream::new(0, Purpose::Synthesis).fill_normal(0, &mut pixels);
    let images = Tensor::<4>::from_data(TensorData::new(pixels, [batch, 3, 32, 32]), &device);
    let labels: Vec<i64> = (0..batch as i64).map(|i| i % 10).collect();
    let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [batch]), &device);
    TensorDataset::new(images, labels)
}

fn fit<D>(
    world: Option<Arc<dyn Communicator>>,
    data: &D,
    settings: Settings,
    steps: usize,
) -> Outcome
where
    D: Dataset<Input = Tensor<4>, Target = Tensor<1, Int>>,
{
    let device = Device::default();
    let posterior = MeanField::new(VitConfig::cifar10().init(&device), Prior::normal(0.0, 1.0))?;
    let clock = Clock::default();
    let loss = Expected(Categorical);
    let place = world.clone().map_or(Place::Threads, Place::Job);
    let mut trainer =
        Trainer::at(place, posterior.initialised(0), loss, settings)?.with_callback(clock.clone());
    trainer.fit(data, None, Length::Steps(steps + 2))?;

    let times = clock.0.lock().expect("not poisoned").clone();
    let each: Vec<f64> =
        times.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
    // In the first steps the heap grows to what a step needs.
    let (half, last) = (times.len() / 2, times.len() - 1);
    let late = &times[half..];
    let of_steps = |of: fn(&StepReport) -> f64| -> Vec<f64> {
        late.iter().map(|(.., report)| of(report)).collect()
    };
    let exposed = of_steps(|step| step.time.exposed);
    // The least is the largest of the negative.
    let (mut least, mut most): (Vec<f64>, _) =
        (exposed.iter().map(|seconds| -seconds).collect(), exposed);
    if let Some(world) = world {
        for exposed in [&mut least, &mut most] {
            world.all_reduce_f64(exposed, Operation::Max, Reduce::Fast)?;
        }
        if world.rank() > 0 {
            return Ok(());
        }
    }
    println!("{}", process_memory::peak_bytes().unwrap_or(0) as f64 / f64::from(1 << 20));
    println!("{}", (times[last].1 - times[half].1) as f64 / (last - half) as f64);
    println!("{}", 1e3 * median(of_steps(|step| step.time.communication)));
    println!("{}", -1e3 * median(least));
    println!("{}", 1e3 * median(most));
    println!("{}", median(of_steps(|step| step.overlapped)));
    println!("{}", each[1..].iter().sum::<f64>() / (each.len() - 1) as f64);
    println!("{}", each.iter().copied().fold(f64::INFINITY, f64::min));
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
