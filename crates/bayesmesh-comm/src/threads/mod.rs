//! Ranks that are threads of one process.
//!
//! A collective call is a meeting: every rank hands in what it calls and where its values lie; the
//! last to arrive checks that all agree; then the ranks read and write each other's buffers
//! directly, each working on its own blocks, and part only when all are done. An all-reduce thus
//! reads and writes every buffer once, with all ranks working.

mod communicator;
#[allow(unsafe_code)]
mod exchange;
mod group;
mod offer;
mod run;
mod world;

pub use world::panic_message;

pub use communicator::ThreadCommunicator;
pub use run::run;
