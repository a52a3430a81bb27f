//! Ranks that are processes of an MPI job.
//!
//! [`run`] starts MPI, runs the body of this rank and ends MPI; [`MpiCommunicator`] is a rank's end
//! of a group. Before any values move, the ranks of a call compare what they call and how much they
//! bring, by a small non-blocking exchange. Three things follow: ranks that do not make the same
//! call all get an error instead of garbage; a rank that comes early sleeps, where MPI's own calls
//! would keep its core busy; and values move at full speed, because everybody is there.
//!
//! [`Reduce::Fast`](crate::Reduce::Fast) sums are those of MPI. [`Reduce::Reproducible`] sums, and
//! maxima of both kinds, go by the [`tree`](crate::tree) over the rank index, each rank working on
//! its own share of the elements: the bits of [`threads`](crate::threads).
//!
//! # Ranks that fail
//!
//! A rank whose body returns an error or panics says so in one line on the standard error stream,
//! with its number and node, and ends the whole job by `MPI_Abort`. Of several that fail at the
//! same time, the lowest speaks. A process that is killed cannot do that: the launcher notices it,
//! says which one it was and ends the others.
//!
//! [`Reduce::Reproducible`]: crate::Reduce::Reproducible

mod communicator;
mod failure;
#[allow(unsafe_code)]
mod raw;
mod run;

pub use crate::launch::is_launched;
pub use communicator::MpiCommunicator;
pub use raw::library;
pub use run::run;
