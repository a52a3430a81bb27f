//! Benchmarks: `benches/` of single operations, `src/bin/` of whole steps, `peers/` the
//! competition.

pub mod epoch_files;
mod png_files;

pub use png_files::PngFiles;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bayesmesh::comm::Communicator;
use bayesmesh::trainer::Memory;
use bayesmesh::{Precision, Reduce, Settings};

/// Runs a benchmark on threads of this process or, built with the feature `mpi` and started by
/// `mpirun`, as one rank of the job: then with the world that connects them.
pub fn run(
    body: impl FnOnce(Option<Arc<dyn Communicator>>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    bayesmesh::process_memory::keep_freed();
    #[cfg(feature = "mpi")]
    if bayesmesh::comm::launch::ranks().is_some() {
        let rank = |world: &bayesmesh::comm::mpi::MpiCommunicator| {
            body(Some(Arc::new(world.clone()))).map_err(|error| error.to_string())
        };
        return Ok(bayesmesh::comm::mpi::run(rank)?);
    }
    body(None)
}

/// Settings with changes such as `threads=1`, `overlap=false`, `memory=retain`,
/// `reduce=reproducible`, `share_loading=false` or `load_delay_ms=0.5`.
pub fn changed(mut settings: Settings, changes: &[String]) -> Result<Settings, Box<dyn Error>> {
    for change in changes {
        let (key, value) = change.split_once('=').ok_or("changes are KEY=VALUE")?;
        match key {
            "threads" => settings.threads = Some(value.parse()?),
            "overlap" => settings.overlap = value.parse()?,
            "share_loading" => settings.share_loading = value.parse()?,
            "shard_optimizer" => settings.shard_optimizer = value.parse()?,
            "reduce" => {
                settings.reduce = match value {
                    "fast" => Reduce::Fast,
                    "reproducible" => Reduce::Reproducible,
                    _ => return Err(format!("no sum is {value}").into()),
                }
            }
            "memory" => {
                settings.memory = match value {
                    "retain" => Memory::Retain,
                    "recompute" => Memory::Recompute,
                    _ => return Err(format!("no memory is {value}").into()),
                }
            }
            "precision" => {
                settings.precision = match value {
                    "f32" => Precision::F32,
                    "bf16" => Precision::Bf16,
                    _ => return Err(format!("no precision is {value}").into()),
                }
            }
            "load_delay_ms" => {
                settings.load_delay = Duration::try_from_secs_f64(value.parse::<f64>()? / 1e3)?;
            }
            _ => return Err(format!("no setting {key}").into()),
        }
    }
    Ok(settings)
}
