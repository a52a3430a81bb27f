//! Networks of the use cases: ordinary Burn modules, Bayesian through a posterior around them.

mod mlp;

pub use mlp::{Activation, Mlp, MlpConfig};
