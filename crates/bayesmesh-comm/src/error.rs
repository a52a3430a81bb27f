//! What can go wrong between ranks, and what to do about it.

use std::fmt;

use thiserror::Error;

use crate::mesh::Mesh;

/// Lets `{:?}` of errors be their text, which is what `fn main() -> Result<…>` prints.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_is_display {
    ($($error:ty),+) => {
        $(impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        })+
    };
}

debug_is_display!(CommError, StartError, MeshError);

/// A collective call that did not complete.
///
/// In [`PeerFailed`](Self::PeerFailed) and [`PeerLeft`](Self::PeerLeft) the rank is that of the
/// whole world; in the mismatches it is that of the communicator the call was made on.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommError {
    /// Another rank failed or called abort; nothing can be communicated any more.
    #[error("rank {rank} failed: {reason}")]
    PeerFailed {
        /// World rank that failed first.
        rank: usize,
        /// Its error, panic message or abort reason.
        reason: String,
    },
    /// A member finished without an error while this rank waited for it.
    #[error(
        "rank {rank} has finished while other ranks still communicate with it; \
         make every rank issue the same collective calls"
    )]
    PeerLeft {
        /// World rank that has finished.
        rank: usize,
    },
    /// Two ranks passed slices of different lengths to a call that needs equal ones.
    #[error(
        "{call}: rank {rank} passed {length} values but rank {other_rank} passed {other_length}; \
         every rank must pass the same number"
    )]
    LengthMismatch {
        /// The call.
        call: String,
        /// One rank of the communicator.
        rank: usize,
        /// How many values it passed.
        length: usize,
        /// Another rank of the communicator.
        other_rank: usize,
        /// How many values that one passed.
        other_length: usize,
    },
    /// A rank divides its values otherwise than one part for each rank.
    #[error(
        "all_to_all: rank {rank} passed {parts} parts of {total} values in all, but there are \
         {size} ranks and it has {length} values; pass one part for each rank that together are \
         all values"
    )]
    PartsMismatch {
        /// The lowest rank of the communicator that does.
        rank: usize,
        /// How many parts it has.
        parts: usize,
        /// How many values they are.
        total: usize,
        /// Ranks of the communicator.
        size: usize,
        /// How many values it passed.
        length: usize,
    },
    /// Two ranks met in different collective calls.
    #[error(
        "rank {rank} called {call} while rank {other_rank} called {other_call}; \
         every rank must issue the same collective calls in the same order"
    )]
    CallMismatch {
        /// One rank of the communicator.
        rank: usize,
        /// What it called.
        call: String,
        /// Another rank of the communicator.
        other_rank: usize,
        /// What that one called.
        other_call: String,
    },
    /// The root of a broadcast is not a rank of the communicator.
    #[error("broadcast from rank {root} of {size}; ranks count from 0 to below the size")]
    RootOutOfRange {
        /// The root asked for.
        root: usize,
        /// Ranks of the communicator.
        size: usize,
    },
    /// The same rank is already inside a call on this communicator.
    #[error(
        "this rank is already inside a collective call on this communicator; \
         give a second thread its own communicator by `split`"
    )]
    Busy,
    /// A bucket too small to hold one value.
    #[error("a bucket of {bytes} bytes holds no value; use at least 4 bytes")]
    BucketTooSmall {
        /// The bucket size asked for.
        bytes: usize,
    },
    /// More values in one call than MPI can count.
    #[error("{call}: {length} values are more than MPI counts in one call; use smaller buckets")]
    TooLong {
        /// The call.
        call: String,
        /// How many values it would have to count.
        length: usize,
    },
    /// The MPI library refused a call.
    #[error("{call}: {message}")]
    Mpi {
        /// The function of MPI.
        call: &'static str,
        /// What the library says.
        message: String,
    },
    /// The thread that communicates in the background could not be started or is gone.
    #[error("communication in the background: {reason}")]
    Thread {
        /// Why.
        reason: String,
    },
    /// Ranks were started with different things that must be equal.
    #[error(
        "{key} differs between ranks: rank 0 has {first}, rank {rank} has {other}; \
         start every rank with the same program, recipe and data"
    )]
    Disagreement {
        /// What differs.
        key: String,
        /// What rank 0 has, in quotes, or `nothing`.
        first: String,
        /// The lowest rank that differs.
        rank: usize,
        /// What that one has.
        other: String,
    },
    /// A reduction mode of unknown name.
    #[error("unknown reduction `{text}`; use `fast` or `reproducible`")]
    UnknownReduce {
        /// The text found.
        text: String,
    },
}

/// Why [`threads::run`](crate::threads::run) did not produce a result: the first rank that failed
/// by itself, never the ranks that failed because of it.
#[derive(Error)]
#[non_exhaustive]
pub enum RunError<E> {
    /// A world without ranks was asked for.
    #[error("a run needs at least one rank, but the size is 0")]
    NoRanks,
    /// The operating system refused a thread.
    #[error("could not start the thread of rank {rank}: {source}; use fewer ranks")]
    Spawn {
        /// The rank without a thread.
        rank: usize,
        /// The reason of the operating system.
        source: std::io::Error,
    },
    /// A rank's body returned an error.
    #[error("rank {rank} failed: {error}")]
    Failed {
        /// The rank.
        rank: usize,
        /// Its error.
        error: E,
    },
    /// A rank's body panicked.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// The rank.
        rank: usize,
        /// The panic message.
        message: String,
    },
    /// A rank called abort and then returned normally.
    #[error("rank {rank} aborted the run: {reason}")]
    Aborted {
        /// The rank.
        rank: usize,
        /// The reason it gave.
        reason: String,
    },
}

// Its text, as that of the others.
impl<E: fmt::Display> fmt::Debug for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why MPI did not start.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// MPI can be started once in the life of a process.
    #[error("MPI has been started before in this process; one process can do so once only")]
    Again,
    /// The library does not let a thread other than the first communicate.
    #[error(
        "this MPI library ({library}) allows calls from the first thread only; \
         use one that gives MPI_THREAD_MULTIPLE, as OpenMPI and MPICH do by default"
    )]
    Threading {
        /// What the library calls itself.
        library: String,
    },
    /// The launcher started several processes but MPI sees only this one.
    #[error(
        "{launched} processes were started but MPI ({library}) sees only this one: \
         the launcher is not the one of this MPI library; \
         use its own mpirun, or tell srun the interface: --mpi=pmix (OpenMPI) or --mpi=pmi2 (MPICH)"
    )]
    Alone {
        /// Processes that the launcher says it started.
        launched: usize,
        /// What the library calls itself.
        library: String,
    },
    /// The first calls failed.
    #[error(transparent)]
    Comm(#[from] CommError),
}

/// A mesh that does not fit the world or the work.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MeshError {
    /// An axis of length zero.
    #[error("a mesh of {samples}x{data} has no ranks; both axes need at least 1")]
    EmptyAxis {
        /// Length asked for on the sample axis.
        samples: usize,
        /// Length asked for on the data axis.
        data: usize,
    },
    /// More ranks than can be counted.
    #[error("a mesh of {samples}x{data} has more ranks than can be counted; use shorter axes")]
    TooLarge {
        /// Length asked for on the sample axis.
        samples: usize,
        /// Length asked for on the data axis.
        data: usize,
    },
    /// Text that is not `SAMPLESxDATA`.
    #[error("`{text}` is not a mesh; write SAMPLESxDATA, for example 4x2")]
    Parse {
        /// The text found.
        text: String,
    },
    /// The world has another number of ranks than the mesh.
    #[error(
        "mesh {mesh} needs {} ranks but the world has {world}; \
         start {} ranks or choose a mesh whose axes multiply to {world}",
        mesh.size(),
        mesh.size()
    )]
    WorldSize {
        /// The mesh.
        mesh: Mesh,
        /// Ranks in the world.
        world: usize,
    },
    /// Some sample rank would have no draw.
    #[error(
        "mesh {mesh} splits the draws over {} sample ranks but there are only {draws} draws; \
         take at least {} draws or shorten the sample axis",
        mesh.samples_size(),
        mesh.samples_size()
    )]
    TooFewDraws {
        /// The mesh.
        mesh: Mesh,
        /// Draws per step.
        draws: usize,
    },
    /// Some data rank would have no row of the batch.
    #[error(
        "mesh {mesh} splits the batch over {} data ranks but it has only {batch} rows; \
         use a batch of at least {} or shorten the data axis",
        mesh.data_size(),
        mesh.data_size()
    )]
    TooFewRows {
        /// The mesh.
        mesh: Mesh,
        /// Rows of the global batch.
        batch: usize,
    },
    /// Two ranks were configured with different meshes.
    #[error(
        "rank 0 has mesh {first} but rank {rank} has mesh {other}; give every rank the same mesh"
    )]
    Disagreement {
        /// Mesh of rank 0, as `SAMPLESxDATA`.
        first: String,
        /// The lowest rank that differs.
        rank: usize,
        /// Its mesh.
        other: String,
    },
    /// The collective construction failed.
    #[error(transparent)]
    Comm(#[from] CommError),
}
