//! Random streams and fused differentiable operations for Bayesian networks.
//!
//! - [`stream`]: counter-based random numbers. Every number has an address; nobody stores noise.
//! - [`gaussian`]: kernels of the mean-field Gaussian on slices: sampling, its gradient, KL.
//! - [`process_memory`]: freed memory is kept, and how much the process has used.
//! - [`ops`]: differentiable operations on Burn tensors.
//! - [`adam`]: the optimiser in one pass.
//! - [`Precision`]: in which numbers products are made.
//! - [`simd`]: which vector instructions all of them run with.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod adam;
mod elementary;
pub mod gaussian;
pub mod ops;
mod precision;
pub mod process_memory;
mod product;
mod scratch;
pub mod simd;
pub mod stream;

pub use precision::Precision;
