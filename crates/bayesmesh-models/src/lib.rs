//! Networks of the use cases: ordinary Burn modules, Bayesian through a posterior around them.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod block;
mod embed;
mod error;
mod globe;
mod globe_cnn;
mod mlp;
mod patch_transformer;
pub mod pytorch;
mod resnet;
mod swin;
mod vit;

pub use error::WeightsError;
pub use globe_cnn::{GlobeCnn, GlobeCnnConfig};
pub use mlp::{Activation, Mlp, MlpConfig};
pub use patch_transformer::{PatchTransformer, PatchTransformerConfig};
pub use pytorch::PyTorch;
pub use resnet::{ResNet, ResNetConfig};
pub use swin::{Swin, SwinConfig, SwinSize};
pub use vit::{Vit, VitConfig};
