//! What can go wrong, in words that say what to do.

use std::error::Error as StdError;
use std::sync::Arc;

use bayesmesh_comm::{CommError, MeshError};

use crate::checkpoint::CheckpointError;
use crate::metrics::MetricError;

/// Error of the library. `{:?}` is its text too, so that `fn main() -> bayesmesh::Result<()>` tells
/// what to do.
#[derive(Clone, thiserror::Error)]
pub enum Error {
    /// The mesh does not fit the ranks, the draws or the batch.
    #[error(transparent)]
    Mesh(#[from] MeshError),

    /// A rank failed, left or could not be reached.
    #[error(transparent)]
    Communication(#[from] CommError),

    /// A metric was given values it is not defined for.
    #[error(transparent)]
    Metric(#[from] MetricError),

    /// A checkpoint could not be written, read or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),

    /// A setting is out of range or does not go with another one.
    #[error("{0}")]
    Setting(String),

    /// A loss or a gradient stopped being a number.
    #[error(
        "step {step}: {what} is not finite. Lower the learning rate, clip the gradient norm, or \
         look for invalid values in the data of this step"
    )]
    NotFinite {
        /// The training step, counted from zero.
        step: usize,
        /// The loss, or the name of the tensor whose gradient it is.
        what: String,
    },

    /// Values to restore, or targets, do not fit the network.
    #[error("{0}")]
    Mismatch(String),

    /// The data source could not deliver a batch.
    #[error("data: {0}")]
    Data(String),

    /// What follows the run failed, in a way of its own ([`Error::callback`]).
    #[error(transparent)]
    Callback(Arc<dyn StdError + Send + Sync>),

    /// A rank panicked or left; the message is about the first one.
    #[error("{0}")]
    Rank(String),
}

bayesmesh_comm::debug_is_display!(Error);

impl Error {
    /// The error of a [`Callback`](crate::trainer::Callback), or a text, as one of the library.
    pub fn callback(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Callback(error.into().into())
    }
}

/// Result of the library.
pub type Result<T> = std::result::Result<T, Error>;
