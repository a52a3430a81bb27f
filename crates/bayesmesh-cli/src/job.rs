//! The processes that do a command together.

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use bayesmesh::comm::{
    Communicator, agree, are_uneven, gather_texts, launch, node_processors, node_sizes,
};
#[cfg(feature = "mpi")]
use bayesmesh::data::Checksum;
use bayesmesh::{Dataset, Mesh, Place};

use crate::args::Ranks;
use crate::exit::{self, Usage};
use crate::recipe::{Catalogue, Recipe};
use crate::run::host;
use crate::say::{self, say};

/// This process alone, with threads as ranks, or the processes of an MPI job, each one rank. They
/// all do the same commands; only the first speaks and writes.
#[derive(Clone)]
pub struct Job {
    world: Option<Arc<dyn Communicator>>,
    catalogue: Arc<Catalogue>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("world", &self.world).finish_non_exhaustive()
    }
}

/// Runs a program as one process, or as one of those that `mpirun` or `srun` started together.
///
/// The program returns the exit code that all processes end with, or why this one failed.
pub fn run(
    json: bool,
    catalogue: Arc<Catalogue>,
    program: impl FnOnce(&Job) -> Result<u8>,
) -> ExitCode {
    if !launch::is_launched() {
        return match program(&Job { world: None, catalogue }) {
            Ok(code) => ExitCode::from(code),
            Err(error) => exit::report(&error, json),
        };
    }
    launched(json, catalogue, program)
}

#[cfg(feature = "mpi")]
fn launched(
    json: bool,
    catalogue: Arc<Catalogue>,
    program: impl FnOnce(&Job) -> Result<u8>,
) -> ExitCode {
    use bayesmesh::comm::mpi;

    struct Failure {
        error: anyhow::Error,
        json: bool,
    }

    impl mpi::Failure for Failure {
        fn reason(&self) -> String {
            format!("{:#}", self.error)
        }

        fn code(&self) -> u8 {
            exit::code(&self.error)
        }

        fn said(&self) {
            if self.json {
                let _ = say::to_output(&format!("{}\n", exit::json(&self.error)));
            }
        }
    }

    let body = |world: &mpi::MpiCommunicator| {
        let job = Job { world: Some(Arc::new(world.clone())), catalogue };
        say::let_speak(job.leads());
        let outcome = job.agree(&started_with()).and_then(|()| program(&job));
        outcome.map_err(|error| Failure { error, json })
    };
    match mpi::run_as(body) {
        Ok(code) => ExitCode::from(code),
        Err(error) => exit::report(&error.into(), json),
    }
}

/// What all processes must have been started with: the same program and the same arguments.
#[cfg(feature = "mpi")]
fn started_with() -> [(&'static str, String); 3] {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    [
        ("version of the program", env!("CARGO_PKG_VERSION").to_owned()),
        ("checksum of the program", Checksum::default().bytes(&program).text()),
        ("command line", arguments.join(" ")),
    ]
}

#[cfg(not(feature = "mpi"))]
fn launched(
    json: bool,
    _catalogue: Arc<Catalogue>,
    _program: impl FnOnce(&Job) -> Result<u8>,
) -> ExitCode {
    // Each would do the whole work, and all would write into one folder.
    let ranks = launch::ranks().unwrap_or(1);
    let error = Usage(format!(
        "this program was started as {ranks} processes, by mpirun or srun, but was built without \
         MPI: build it with `--features mpi` (docs/cluster.md), or start it once and use --ranks \
         or --mesh"
    ));
    exit::report(&error.into(), json)
}

impl Job {
    /// What recipes may contain.
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// Where the ranks are.
    pub fn place(&self) -> Place {
        self.world.as_ref().map_or(Place::Threads, |world| Place::Job(Arc::clone(world)))
    }

    /// Whether this process speaks and writes.
    pub fn leads(&self) -> bool {
        self.world.as_ref().is_none_or(|world| world.rank() == 0)
    }

    /// Refuses a command that only one process can do.
    pub fn refuse(&self, command: &str) -> Result<()> {
        match &self.world {
            None => Ok(()),
            Some(world) => Err(Usage(format!(
                "`bayesmesh {command}` is for one process, but this is one of {}: start it without \
                 mpirun or srun",
                world.size()
            ))
            .into()),
        }
    }

    /// Whether there are other processes.
    pub fn is_launched(&self) -> bool {
        self.world.is_some()
    }

    /// What ranks are, for people.
    pub fn kind(&self) -> &'static str {
        if self.world.is_some() { "MPI ranks" } else { "thread-ranks" }
    }

    /// What starts a job like this one, before the command.
    pub fn launcher(&self) -> String {
        let program = if launch::is_slurm_step() { "srun" } else { "mpirun" };
        self.world
            .as_ref()
            .map_or_else(String::new, |world| format!("{program} -n {} ", world.size()))
    }

    /// The mesh that was asked for, otherwise the default of the library.
    pub fn mesh(&self, asked: &Ranks, recipe: &Recipe) -> Result<Mesh> {
        let (draws, batch) = (recipe.train.samples, recipe.train.batch);
        let Some(world) = &self.world else {
            let mesh = match (asked.mesh, asked.ranks) {
                (Some(mesh), _) => mesh,
                (None, Some(n)) => Mesh::samples(n).map_err(|error| Usage(error.to_string()))?,
                (None, None) => Place::Threads.default_mesh(draws, batch)?,
            };
            // Some thousand threads exhaust what a system gives a process, which ends it unheard.
            const MOST: usize = 1000;
            if mesh.size() > MOST {
                return Err(Usage(format!(
                    "{mesh} are {} ranks, and one process takes at most {MOST} as threads: use \
                     fewer (--ranks, --mesh), or several processes (docs/cluster.md)",
                    mesh.size()
                ))
                .into());
            }
            return Ok(mesh);
        };
        let size = world.size();
        if let Some(ranks) = asked.ranks {
            return Err(Usage(format!(
                "--ranks {ranks} is for threads; this job has {size} processes as ranks: leave it \
                 out, or arrange them with --mesh"
            ))
            .into());
        }
        match asked.mesh {
            Some(mesh) if mesh.size() == size => Ok(mesh),
            Some(mesh) => Err(Usage(format!(
                "--mesh {mesh} has {} ranks, but this job has {size} processes",
                mesh.size()
            ))
            .into()),
            None => {
                let mesh = Place::Job(world.clone()).default_mesh(draws, batch)?;
                let sizes = node_sizes(&**world)?;
                if are_uneven(&sizes) {
                    say::warn(format!(
                        "the nodes have different numbers of ranks ({}): the mesh is {mesh}; give \
                         every node as many (--ntasks-per-node), or choose a --mesh",
                        sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
                    ));
                }
                Ok(mesh)
            }
        }
    }

    /// The ranks on this machine. Collective.
    pub fn ranks_here(&self, mesh: Mesh) -> Result<usize> {
        match &self.world {
            None => Ok(mesh.size()),
            Some(world) => Ok(node_processors(&**world)?.ranks),
        }
    }

    /// Warns of more ranks than processors. Collective.
    pub fn warn_of_crowding(&self, mesh: Mesh) -> Result<()> {
        let ranks = self.ranks_here(mesh)?;
        let count = match &self.world {
            None => thread::available_parallelism().map_or(1, usize::from),
            Some(world) => node_processors(&**world)?.count,
        };
        if ranks > count {
            let s = if count == 1 { "" } else { "s" };
            say::warn(format!(
                "{ranks} ranks share {count} processor{s} on {}: they will wait for each other; \
                 start fewer, or give each its own (docs/cluster.md)",
                host::name()
            ));
        }
        Ok(())
    }

    /// Refuses processes that were given different things, on all of them. Collective.
    pub fn agree(&self, values: &[(impl AsRef<str>, String)]) -> Result<()> {
        match &self.world {
            None => Ok(()),
            Some(world) => Ok(agree(&**world, values).map_err(bayesmesh::Error::from)?),
        }
    }

    /// Refuses processes that see different examples. Collective.
    pub fn agree_on_examples(&self, data: &impl Dataset) -> Result<()> {
        match &self.world {
            None => Ok(()),
            Some(_) => {
                let checksum = data.checksum().unwrap_or_default();
                self.agree(&[("checksum of the examples", checksum)])
            }
        }
    }

    /// The text of the first process, which alone makes it. Collective.
    pub fn first(&self, text: impl FnOnce() -> Result<String>) -> Result<String> {
        let own = if self.leads() { vec![text()?] } else { Vec::new() };
        let first = self.gather(own)?.into_iter().next().and_then(|texts| texts.into_iter().next());
        Ok(first.expect("the first process brings one"))
    }

    /// Lets the first process say the warnings of the others that it has not said itself.
    /// Collective.
    pub fn pass_on_warnings(&self) -> Result<()> {
        let all = self.gather(say::take_warnings())?;
        let mut said = all[0].clone();
        for (rank, warnings) in all.iter().enumerate().skip(1) {
            for warning in warnings {
                if !said.contains(warning) {
                    say!("warning: rank {rank} of {}: {warning}", all.len());
                    said.push(warning.clone());
                }
            }
        }
        Ok(())
    }

    fn gather(&self, texts: Vec<String>) -> Result<Vec<Vec<String>>> {
        match &self.world {
            None => Ok(vec![texts]),
            Some(world) => Ok(gather_texts(&**world, &texts).map_err(bayesmesh::Error::from)?),
        }
    }
}
