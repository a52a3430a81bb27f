//! Data of the use cases: reading, checking, repairing, and serving batches.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod cifar10;
mod fetch;
pub mod load;

pub use fetch::Source;
