//! The load forecast's MC-dropout MLP: time of a training step.
//!
//! usage: mlp BATCH DRAWS MESH STEPS [KEY=VALUE ...]     with changes of the settings; prints the
//! milliseconds of a step

use std::sync::Arc;
use std::time::Instant;

use bayesmesh::comm::Communicator;
use bayesmesh::loss::SquaredErrorOfMean;
use bayesmesh::trainer::Memory;
use bayesmesh::{Length, McDropout, Mesh, Place, Posterior, Purpose, Settings, Stream, Trainer};
use bayesmesh_bench::changed;
use bayesmesh_data::series::SeriesWindows;
use bayesmesh_models::MlpConfig;

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
        arguments.split_first_chunk().ok_or("usage: mlp BATCH DRAWS MESH STEPS [KEY=VALUE ...]")?;
    let steps: usize = steps.parse()?;
    let mut series = vec![0.0; 170_000 + 120];
    Stream::new(0, Purpose::Synthesis).fill_normal(0, &mut series);
    let length = series.len();
    let data = SeriesWindows::of_values(series, 0..length, 96, 24, 1);
    let network = MlpConfig { dropout: 0.1, ..MlpConfig::new(96, vec![128, 128], 24) };
    let posterior = McDropout::new(network.init(&Default::default())).initialised(0);
    let settings = Settings {
        samples: draws.parse()?,
        batch: batch.parse()?,
        mesh: mesh.parse::<Mesh>()?,
        memory: Memory::Retain,
        ..Settings::default()
    };
    let settings = changed(settings, changes)?;
    let first = world.as_ref().is_none_or(|world| world.rank() == 0);
    let place = world.map_or(Place::Threads, Place::Job);
    let mut trainer = Trainer::at(place, posterior, SquaredErrorOfMean, settings)?;
    trainer.fit(&data, None, Length::Steps(50))?;
    let start = Instant::now();
    trainer.fit(&data, None, Length::Steps(50 + steps))?;
    if first {
        println!("{}", start.elapsed().as_secs_f64() * 1e3 / steps as f64);
    }
    Ok(())
}
