//! Predictions from many draws, and their scores.

mod on_mesh;
mod predictive;
mod scoring;
mod standardize;

pub use on_mesh::{evaluate_on, predict_on, visit_on};
pub use predictive::Predictive;
pub use scoring::Scoring;
pub(crate) use scoring::{Scorer, merge_set};
pub use standardize::Standardize;
