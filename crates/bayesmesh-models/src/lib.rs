//! Networks of the use cases: ordinary Burn modules, Bayesian through a posterior around them.

mod mlp;
mod vit;

pub use mlp::{Activation, Mlp, MlpConfig};
pub use vit::{Vit, VitConfig};
