//! Bayesian neural networks whose draws are spread over processors.
//!
//! An ordinary Burn module becomes Bayesian by being wrapped in a [`posterior`]; a
//! [trainer](trainer::Trainer) evaluates many random *draws* of it at every step, on one rank or on
//! a [mesh](Mesh) of many, with the same result:
//!
//! - randomness belongs to the [`Draw`], never to the rank or the thread;
//! - every [loss] says how it parallelises, and its exact form is the default;
//! - memory does not grow with the number of draws unless asked for speed instead.
//!
//! The way of the data: [`data`] → [`Draw`] → [`Network`] → summary → [`loss`] → gradients →
//! [mesh](Mesh) → optimiser → [`checkpoint`]; then [`predict`], [`calibrate`] and [`metrics`].
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod calibrate;
pub mod checkpoint;
pub mod data;
mod draw;
mod error;
pub mod loss;
pub mod metrics;
mod network;
pub mod posterior;
pub mod predict;
pub mod prelude;
mod tensors;
pub mod testing;
pub mod trainer;

/// Ranks and what they say to each other.
pub use bayesmesh_comm as comm;
pub use bayesmesh_comm::{Mesh, Reduce};
pub use bayesmesh_kernels::stream::{Purpose, Stream};
pub use bayesmesh_kernels::{Precision, process_memory};
pub use calibrate::{CalibrateConfig, Calibration, Follower};
pub use data::{Dataset, TensorDataset};
pub use draw::Draw;
pub use error::{Error, Result};
pub use loss::Loss;
pub use metrics::Evaluation;
pub use network::{LearnedNoise, Network, NoiseMap, OutputScale};
pub use posterior::{
    Ensemble, FunctionalNoise, McDropout, MeanField, Point, Posterior, Prior, Scale,
};
pub use predict::{Predictive, Predictor, Scoring, Standardize};
pub use trainer::{Length, Place, Settings, Trainer};
