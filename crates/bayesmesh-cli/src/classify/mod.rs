//! The classification of images: from the photographs to the report.

mod assess;
mod loss;
mod picture;
mod predict;
mod predictions;
mod report;
mod task;
mod use_case;

pub use task::Classification;

use crate::build::TrainerOf;

/// The trainer of a classification.
type ClassTrainer = TrainerOf<Classification>;
