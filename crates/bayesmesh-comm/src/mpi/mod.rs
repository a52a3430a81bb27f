//! Ranks that are processes of an MPI job.
//!
//! [`run`] starts MPI, runs the body of this rank and ends MPI; [`MpiCommunicator`] is a rank's end
//! of a group. Before any values move, the ranks of a call compare what they call and how much they
//! bring. Ranks that do not make the same call all get an error instead of garbage, and a rank that
//! comes early sleeps. Values move by MPI's non-blocking operations, looked after with the core
//! given up in between: MPI's blocking calls would keep a core busy while they wait, perhaps the
//! very one that the other rank or this rank's own work needs.
//!
//! [`Reduce::Fast`](crate::Reduce::Fast) sums and those of integers are MPI's.
//! [`Reduce::Reproducible`] sums, sums in shares and all maxima go by the [`tree`](crate::tree)
//! over the rank index, each rank working on its own share of the elements: the bits of
//! [`threads`](crate::threads).
//!
//! # Ranks that fail
//!
//! A rank whose body returns an error or panics says so in one line on the standard error stream,
//! with its number and node, and ends the whole job by `MPI_Abort`. Of several that fail at the
//! same time, the lowest speaks. A process that is killed cannot do that: the launcher notices it,
//! says which one it was and ends the others; where it does not, another rank of the node does.
//!
//! [`Reduce::Reproducible`]: crate::Reduce::Reproducible

mod communicator;
mod failure;
#[allow(unsafe_code)]
mod raw;
mod run;
mod watch;

pub use crate::launch::is_launched;
pub use communicator::MpiCommunicator;
pub use raw::library;
pub use run::{Failure, run, run_as};
