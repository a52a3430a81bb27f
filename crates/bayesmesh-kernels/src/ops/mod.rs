//! Differentiable operations on Burn tensors.
//!
//! Each has one implementation written for the CPU device (Flex) and one composed from Burn's own
//! operations that serves every other device; a test holds the two together. Where an operation
//! needs random numbers it takes a [`Stream`](crate::stream::Stream) and regenerates them in the
//! backward pass, so that the graph keeps no noise.

mod attention;
mod dropout;
mod flex;
mod fused;
mod gelu;
mod layer_norm;
mod linear;
mod matrix;
mod patches;
mod sample;
mod softmax;
mod sums;
mod watch;

pub use attention::{attention, attention_composed};
pub use dropout::{Mask, dropout, dropout_composed};
pub use gelu::{gelu, gelu_composed};
pub use layer_norm::{layer_norm, layer_norm_composed};
pub use linear::{Activation, Epilogue, linear, linear_composed, linear_residual};
pub use patches::{patches, patches_composed};
pub use sample::{sample, sample_composed};
pub use softmax::{softmax, softmax_composed};
pub use watch::{Arrived, TapeId, Watcher, backward_watched};
