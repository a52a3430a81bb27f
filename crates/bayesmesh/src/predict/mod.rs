//! Predictions from many draws, and their scores.

mod lenses;
mod noise;
mod paths;
mod predictive;
mod predictor;
mod readout;
mod roll_out;
mod scoring;
mod standardize;
mod table;

pub use predictive::Predictive;
pub(crate) use predictor::describe;
pub use predictor::{Predictor, Restored};
pub(crate) use readout::Readout;
pub(crate) use scoring::Scorer;
pub use scoring::Scoring;
pub use standardize::Standardize;
