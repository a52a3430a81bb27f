//! Data of the use cases: reading, checking, repairing, and serving batches.

pub mod cifar10;
mod fetch;
pub mod load;

pub use fetch::Source;
