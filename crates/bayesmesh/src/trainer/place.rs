//! Where the ranks of a run are.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bayesmesh_comm::{Communicator, Mesh, MeshComm, RunError, agree, node_sizes, threads};

use crate::error::{Error, Result};

/// Where the ranks of a run are.
#[derive(Clone, Debug, Default)]
pub enum Place {
    /// Threads of this process, one for every rank of the mesh.
    #[default]
    Threads,
    /// The processes of a job, of which this one is a rank.
    Job(Arc<dyn Communicator>),
}

impl Place {
    /// The ranks of the job that `world` connects.
    pub fn job(world: impl Communicator + 'static) -> Self {
        Self::Job(Arc::new(world))
    }

    /// The mesh that a run with so many draws and examples a step gets by default: draws within a
    /// node and data across nodes ([`Mesh::for_nodes`]). Threads are one node, with a rank for
    /// every processor but no more than draws. Collective in a job.
    pub fn default_mesh(&self, draws: usize, batch: usize) -> Result<Mesh> {
        let nodes = match self {
            Self::Job(world) => node_sizes(&**world)?,
            Self::Threads => {
                let processors = std::thread::available_parallelism().map_or(1, usize::from);
                vec![processors.min(draws).max(1)]
            }
        };
        Ok(Mesh::for_nodes(&nodes, draws, batch))
    }

    /// How many ranks there are, of which a mesh must have as many.
    pub(crate) fn size(&self, mesh: Mesh) -> usize {
        match self {
            Self::Threads => mesh.size(),
            Self::Job(world) => world.size(),
        }
    }

    /// The ranks of a mesh that are in this process.
    pub(crate) fn ranks(&self, mesh: Mesh) -> Range<usize> {
        match self {
            Self::Threads => 0..mesh.size(),
            Self::Job(world) => world.rank()..world.rank() + 1,
        }
    }

    /// An error on every process of a job, the same one, unless all have the same values.
    /// Collective.
    pub(crate) fn agree<N: AsRef<str>>(
        &self,
        values: impl FnOnce() -> Vec<(N, String)>,
    ) -> Result<()> {
        match self {
            Self::Job(world) if world.size() > 1 => Ok(agree(&**world, &values())?),
            _ => Ok(()),
        }
    }

    /// Runs `body` on all ranks of the mesh, each on `threads` threads of its own and with its own
    /// state: those of the ranks that are [here](Self::ranks). The result of the first of these.
    /// Collective in a job.
    ///
    /// Each rank has a thread pool of its own: with a shared one, ranks would wait for each other's
    /// work.
    pub(crate) fn run<S: Send, T: Send>(
        &self,
        mesh: Mesh,
        threads: usize,
        states: &mut [S],
        body: impl Fn(&MeshComm, &mut S) -> Result<T> + Sync,
    ) -> Result<T> {
        let states: Vec<Mutex<&mut S>> = states.iter_mut().map(Mutex::new).collect();
        let on_rank = |world: Arc<dyn Communicator>, state: usize| {
            with_threads(threads, || {
                let mut state = states[state].lock().expect("each rank locks its own once");
                body(&MeshComm::new(mesh, world)?, &mut state)
            })
        };
        match self {
            Self::Job(world) => on_rank(Arc::clone(world), 0),
            Self::Threads => {
                let outcome = threads::run(mesh.size(), |world| {
                    on_rank(Arc::new(world.clone()), world.rank())
                });
                match outcome {
                    Ok(results) => Ok(results.into_iter().next().expect("at least one rank")),
                    // The error of the rank that failed first.
                    Err(RunError::Failed { error, .. }) => Err(error),
                    Err(other) => Err(Error::Rank(other.to_string())),
                }
            }
        }
    }
}

/// Runs `body` in a pool of so many threads.
fn with_threads<T: Send>(threads: usize, body: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Rank(format!("could not start threads: {error}")))?;
    pool.install(body)
}
