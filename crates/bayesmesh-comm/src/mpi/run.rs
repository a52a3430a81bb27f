//! Starting and ending MPI around the body of a rank.

use std::any::Any;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::communicator::MpiCommunicator;
use super::failure::{EXIT_CODE, Job};
use super::raw::{self, RawComm};
use super::watch::Watch;
use crate::communicator::Communicator;
use crate::error::StartError;
use crate::launch;

/// Where and why the last panic of any thread was, for the one message of the job.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs `body` as one rank of the MPI job that this process was started in, and returns when all
/// ranks are done. Without a launcher the job is this process alone.
///
/// The ranks of a node are next to each other, however the launcher has dealt them out.
///
/// If the body of any rank returns an error or panics, a line on the standard error stream says
/// which rank and why, all processes of the job end with a code other than zero, and this does not
/// return. Panics print nothing else meanwhile; set `RUST_BACKTRACE` to see them in full.
///
/// ```no_run
/// use bayesmesh_comm::{CommError, Communicator, Operation, Reduce, mpi};
///
/// let sum = mpi::run(|world| -> Result<f32, CommError> {
///     let mut values = [world.rank() as f32];
///     world.all_reduce(&mut values, Operation::Sum, Reduce::Fast)?;
///     Ok(values[0])
/// })?;
/// # Ok::<(), bayesmesh_comm::StartError>(())
/// ```
pub fn run<T, E: Display>(
    body: impl FnOnce(&MpiCommunicator) -> Result<T, E>,
) -> Result<T, StartError> {
    struct Plain<E>(E);
    impl<E: Display> Failure for Plain<E> {
        fn reason(&self) -> String {
            self.0.to_string()
        }
    }
    run_as(|world| body(world).map_err(Plain))
}

/// Why a rank failed, and how its job ends.
pub trait Failure {
    /// What the line on the standard error stream says.
    fn reason(&self) -> String;

    /// What the job ends with; launchers make it their own exit code.
    fn code(&self) -> u8 {
        EXIT_CODE
    }

    /// Called when the line has been said, on the one rank that says it.
    fn said(&self) {}
}

/// [`run`], where the error that a body returns says how the job ends.
pub fn run_as<T, E: Failure>(
    body: impl FnOnce(&MpiCommunicator) -> Result<T, E>,
) -> Result<T, StartError> {
    let concurrent = raw::start()?;
    let world = RawComm::world()?;
    if let Some(launched) = launch::ranks().filter(|&ranks| ranks > 1 && world.size() == 1) {
        return Err(StartError::Alone { launched, library: raw::library() });
    }
    let world = world.by_node()?;
    let job = Arc::new(Job::new(world.duplicate()?, concurrent));
    let watch = Watch::start(&world, &job)?;
    let world = MpiCommunicator::new(world, Arc::clone(&job));

    let printing = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0");
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = describe(info);
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        if printing {
            previous(info);
        }
    }));
    let value = match catch_unwind(AssertUnwindSafe(|| body(&world))) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => job.fail(&error.reason(), error.code(), || error.said()),
        Err(payload) => {
            job.fail(&last_panic().unwrap_or_else(|| text(&*payload)), EXIT_CODE, || ())
        }
    };
    if let Err(error) = world.finish() {
        job.fail(&error.to_string(), EXIT_CODE, || ());
    }
    drop(panic::take_hook());
    // A thread that panicked without anybody's noticing.
    if let Some(text) = last_panic() {
        // Where standard error is closed there is nobody to tell.
        let (rank, size) = (world.rank(), world.size());
        let _ = writeln!(io::stderr(), "rank {rank} of {size}: a thread {text}");
    }
    drop((watch, world, job));
    raw::end()?;
    Ok(value)
}

/// `panicked at file:line:column: message`.
fn describe(info: &PanicHookInfo<'_>) -> String {
    let message = text(info.payload());
    match info.location() {
        Some(place) => format!("panicked at {place}: {message}"),
        None => format!("panicked: {message}"),
    }
}

fn last_panic() -> Option<String> {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn text(payload: &(dyn Any + Send)) -> String {
    crate::threads::panic_message(payload)
}
