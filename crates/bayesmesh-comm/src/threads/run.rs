//! Starting thread ranks and collecting what they return.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crate::error::RunError;
use crate::threads::communicator::ThreadCommunicator;
use crate::threads::group::Group;
use crate::threads::world::{World, panic_message};

/// As much stack as a main thread usually has: a rank runs what a serial program would run there.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// How a rank's body ended.
enum End<T, E> {
    Returned(T),
    Failed(E),
    Panicked(String),
}

/// Runs `body` once per rank, each on its own thread, and returns the results in rank order. A
/// single rank runs on the calling thread.
///
/// If a body returns an error or panics, the pending and later calls of all other ranks return
/// [`CommError::PeerFailed`](crate::CommError::PeerFailed), and the error of the run is that of the
/// rank that failed first. If a body returns `Ok` while others still wait for it, those get
/// [`CommError::PeerLeft`](crate::CommError::PeerLeft).
pub fn run<T: Send, E: Send + Display>(
    size: usize,
    body: impl Fn(&ThreadCommunicator) -> Result<T, E> + Sync,
) -> Result<Vec<T>, RunError<E>> {
    if size == 0 {
        return Err(RunError::NoRanks);
    }
    let world = World::new(size);
    let group = Group::new(Arc::clone(&world), (0..size).collect());
    let rank =
        |rank| run_rank(&world, ThreadCommunicator::new(Arc::clone(&group), rank), rank, &body);
    let ends = if size == 1 { vec![rank(0)] } else { run_threads(&world, size, &rank)? };
    collect(&world, ends)
}

/// Runs every rank on a thread.
fn run_threads<T: Send, E: Send>(
    world: &World,
    size: usize,
    run_rank: &(impl Fn(usize) -> End<T, E> + Sync),
) -> Result<Vec<End<T, E>>, RunError<E>> {
    thread::scope(|scope| {
        let mut handles = Vec::with_capacity(size);
        for rank in 0..size {
            let builder =
                thread::Builder::new().name(format!("rank {rank}")).stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, move || run_rank(rank)) {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    world.fail(rank, format!("its thread could not be started: {source}"));
                    return Err(RunError::Spawn { rank, source });
                }
            }
        }
        let join = |handle: thread::ScopedJoinHandle<'_, End<T, E>>| {
            handle.join().unwrap_or_else(|payload| End::Panicked(panic_message(&*payload)))
        };
        Ok(handles.into_iter().map(join).collect())
    })
}

/// Runs the body of one rank and tells the world how it ended.
fn run_rank<T, E: Display>(
    world: &World,
    comm: ThreadCommunicator,
    rank: usize,
    body: &impl Fn(&ThreadCommunicator) -> Result<T, E>,
) -> End<T, E> {
    // The error is turned into text in here, since that is the user's code too.
    let outcome =
        catch_unwind(AssertUnwindSafe(|| body(&comm).map_err(|error| (error.to_string(), error))));
    match outcome {
        Ok(Ok(value)) => {
            world.finish(rank);
            End::Returned(value)
        }
        Ok(Err((reason, error))) => {
            world.fail(rank, reason);
            End::Failed(error)
        }
        Err(payload) => {
            let message = panic_message(&*payload);
            world.fail(rank, message.clone());
            End::Panicked(message)
        }
    }
}

/// The results of all ranks, or the end of the rank that failed first: any error that is only a
/// consequence was returned after the world had recorded its cause.
fn collect<T, E>(world: &World, ends: Vec<End<T, E>>) -> Result<Vec<T>, RunError<E>> {
    let mut values = Vec::with_capacity(ends.len());
    let root = world.failure();
    for (rank, end) in ends.into_iter().enumerate() {
        match (end, root) {
            (End::Returned(value), None) => values.push(value),
            (end, Some(failure)) if failure.rank == rank => {
                return Err(match end {
                    End::Failed(error) => RunError::Failed { rank, error },
                    End::Panicked(message) => RunError::Panicked { rank, message },
                    End::Returned(_) => RunError::Aborted { rank, reason: failure.reason.clone() },
                });
            }
            _ => {}
        }
    }
    Ok(values)
}
