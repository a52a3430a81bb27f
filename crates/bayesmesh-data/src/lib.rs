//! Data of the use cases: reading, checking, repairing, and serving batches.

pub mod cifar10;
pub mod load;
