//! Differentiable operations on Burn tensors.
//!
//! Each has one implementation written for the CPU device (Flex) and one composed from Burn's own
//! operations that serves every other device; a test holds the two together. Where an operation
//! needs random numbers it takes a [`Stream`](crate::stream::Stream) and regenerates them in the
//! backward pass, so that the graph keeps no noise.

mod dropout;
mod flex;
mod linear;
mod matrix;
mod sample;

pub use dropout::{Mask, dropout, dropout_composed};
pub use linear::{Epilogue, linear, linear_composed};
pub use sample::{sample, sample_composed};
