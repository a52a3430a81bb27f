//! The paper's Bayesian ViT: a training step with sampling, KL and Adam.
//!
//! usage: vit BATCH DRAWS MESH STEPS [KEY=VALUE ...]     with changes of the settings: `threads=1`
//! prints the peak memory in MiB, the minor page faults of a step, the milliseconds a step
//! communicates and stands still for that (medians, as rank 0 sees them), the share of the gradient
//! that goes during the backward pass, the seconds of all steps divided by their number and, last,
//! the seconds of the best step
//!
//! Built with the feature `mpi` and started by `mpirun -n P`, its ranks are P processes.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Categorical, Expected};
use bayesmesh::trainer::{Callback, Flow, Memory, StepReport};
use bayesmesh::{
    Communicator, Length, MeanField, Mesh, Posterior, Prior, Settings, TensorDataset, Trainer,
};
use bayesmesh::{Purpose, Stream, memory};
use bayesmesh_bench::changed;
use bayesmesh_models::VitConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// When each step ended, the page faults until then, and what it reported.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Vec<(Instant, u64, StepReport)>>>);

impl Callback for Clock {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn on_step(&mut self, report: &StepReport, _: &dyn Fn() -> Checkpoint) -> Flow {
        let faults = memory::minor_faults().unwrap_or(0);
        self.0.lock().expect("not poisoned").push((Instant::now(), faults, report.clone()));
        Flow::Continue
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    bayesmesh_bench::run(train)
}

/// Trains on threads, or as a rank of a job.
fn train(world: Option<Arc<dyn Communicator>>) -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([batch, draws, mesh, steps], changes) =
        arguments.split_first_chunk().ok_or("usage: vit BATCH DRAWS MESH STEPS [KEY=VALUE ...]")?;
    let batch: usize = batch.parse()?;
    let steps: usize = steps.parse()?;
    let device = Device::default();
    let mut pixels = vec![0.0; batch * 3 * 32 * 32];
    Stream::new(0, Purpose::Synthesis).fill_normal(0, &mut pixels);
    let images = Tensor::<4>::from_data(TensorData::new(pixels, [batch, 3, 32, 32]), &device);
    let labels: Vec<i64> = (0..batch as i64).map(|i| i % 10).collect();
    let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [batch]), &device);
    let data = TensorDataset::new(images, labels)?;

    let posterior = MeanField::new(VitConfig::cifar10().init(&device), Prior::normal(0.0, 1.0))?;
    let settings = Settings {
        samples: draws.parse()?,
        batch,
        mesh: mesh.parse::<Mesh>()?,
        memory: Memory::Retain,
        ..Settings::default()
    };
    let settings = changed(settings, changes)?;
    let clock = Clock::default();
    let loss = Expected(Categorical);
    let mut trainer =
        Trainer::new(posterior.initialised(0), loss, settings).with_callback(clock.clone());
    let first = world.as_ref().is_none_or(|world| world.rank() == 0);
    if let Some(world) = world {
        trainer = trainer.with_world(world)?;
    }
    trainer.fit(&data, None, Length::Steps(steps + 2))?;
    if !first {
        return Ok(());
    }

    let times = clock.0.lock().expect("not poisoned").clone();
    let each: Vec<f64> =
        times.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
    // In the first steps the heap grows to what a step needs.
    let (half, last) = (times.len() / 2, times.len() - 1);
    println!("{}", memory::peak_bytes().unwrap_or(0) as f64 / f64::from(1 << 20));
    println!("{}", (times[last].1 - times[half].1) as f64 / (last - half) as f64);
    let late = &times[half..];
    let median = |of: fn(&StepReport) -> f64| {
        let mut values: Vec<f64> = late.iter().map(|(.., report)| of(report)).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("{}", 1e3 * median(|step| step.time.communication));
    println!("{}", 1e3 * median(|step| step.time.exposed));
    println!("{}", median(|step| step.overlapped));
    println!("{}", each[1..].iter().sum::<f64>() / (each.len() - 1) as f64);
    println!("{}", each.iter().copied().fold(f64::INFINITY, f64::min));
    Ok(())
}
