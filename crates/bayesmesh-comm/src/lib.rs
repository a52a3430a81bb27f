//! Collective communication for BayesMesh: who the ranks are and how they combine what they hold.
//!
//! - [`Communicator`] is the interface everything above is written against: all-reduce, all-gather,
//!   all-to-all, broadcast, barrier, split, of floats, integers and bytes. All of them are
//!   *collective*: every rank of the communicator calls the same operations in the same order.
//! - [`threads`] implements it for ranks that are threads of one process and share memory;
//!   `mpi`, with the cargo feature of that name, for ranks that are processes of an MPI job.
//!   [`launch`] says whether this process is one.
//! - [`conformance`] checks any implementation of it.
//! - [`Mesh`] arranges ranks on two axes, samples × data, by default by [`Mesh::for_nodes`];
//!   [`MeshComm`] is a communicator with the sub-communicators of both axes.
//! - [`TreeFold`] sums a local sequence by the same fixed binary tree that
//!   [`Reduce::Reproducible`] uses between ranks, so that the two compose to the same bits.
//! - [`all_reduce_buckets`] reduces a long vector piece by piece; [`BucketReducer`] does it while
//!   the caller computes the rest.
//! - [`agree`](fn@agree) refuses ranks that were started with different things; [`gather_texts`]
//!   and [`gather_numbers`] tell each what the others say; [`NodeShared`] lets one rank of a node
//!   read for all.
//!
//! A rank that fails never leaves the others waiting: their pending and later calls return an
//! error that names the rank and its reason.
//!
//! ```
//! use bayesmesh_comm::{CommError, Communicator, Operation, Reduce, threads};
//!
//! // Two ranks, each with its own gradient; afterwards both hold the sum.
//! let sums = threads::run(2, |comm| -> Result<Vec<f32>, CommError> {
//!     let mut gradient = vec![1.0 + comm.rank() as f32, 10.0];
//!     comm.all_reduce(&mut gradient, Operation::Sum, Reduce::Reproducible)?;
//!     Ok(gradient)
//! })?;
//! assert_eq!(sums, [vec![3.0, 20.0], vec![3.0, 20.0]]);
//! # Ok::<(), bayesmesh_comm::RunError<CommError>>(())
//! ```
#![deny(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod agree;
pub mod buckets;
mod call;
pub mod communicator;
pub mod conformance;
mod elementwise;
pub mod error;
pub mod launch;
pub mod mesh;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod node;
mod numbers;
mod parts;
pub mod reducer;
mod texts;
pub mod threads;
pub mod tree;

pub use agree::agree;
pub use buckets::{DEFAULT_BUCKET_BYTES, all_reduce_buckets};
pub use communicator::{Communicator, Operation, Reduce};
pub use error::{CommError, MeshError, RunError, StartError};
pub use mesh::{Coordinates, Mesh, MeshComm, are_uneven, share};
#[cfg(feature = "mpi")]
pub use mpi::MpiCommunicator;
pub use node::{NodeShared, Processors, node_processors, node_sizes};
pub use numbers::gather_numbers;
pub use reducer::{BucketReducer, ReducerTime};
pub use texts::gather_texts;
pub use threads::ThreadCommunicator;
pub use tree::TreeFold;
