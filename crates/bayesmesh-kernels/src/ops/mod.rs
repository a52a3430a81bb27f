//! Differentiable operations on Burn tensors.
//!
//! Each has one implementation written for the CPU device (Flex) and one composed from Burn's own
//! operations that serves every other device; a test holds the two together. Where an operation
//! needs random numbers it takes a [`Stream`](crate::stream::Stream) and regenerates them in the
//! backward pass, so that the graph keeps no noise.

mod attention;
mod conv;
mod dense;
mod dropout;
mod flex;
mod fused;
mod gelu;
mod globe;
mod group_norm;
mod layer_norm;
mod linear;
mod matrix;
mod merge;
mod patches;
mod sample;
mod softmax;
mod sums;
mod watch;
mod window_attention;
mod window_block;

pub use attention::{attention, attention_composed};
pub use conv::{Border, Window, conv, conv_composed};
pub use dropout::{Mask, dropout, dropout_composed};
pub use gelu::{gelu, gelu_composed};
pub use globe::{
    Globe, globe_fields, globe_fields_composed, globe_patches, globe_patches_composed,
};
pub use group_norm::{group_norm, group_norm_composed};
pub use layer_norm::{layer_norm, layer_norm_composed, layer_norm_residual};
pub use linear::{
    Activation, Epilogue, linear, linear_composed, linear_residual, norm_linear,
    norm_linear_composed,
};
pub use merge::{merge_tokens, merge_tokens_composed, split_tokens, split_tokens_composed};
pub use patches::{patches, patches_composed};
pub use sample::{sample, sample_composed};
pub use softmax::{softmax, softmax_composed};
pub use watch::{Arrived, TapeId, Watcher, backward_watched};
pub use window_attention::{Windows, window_attention, window_attention_composed};
pub use window_block::{WindowBlock, WindowBlockWeights, window_block, window_block_composed};
