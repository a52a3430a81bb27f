//! The load forecast: from the series to the report.

mod assess;
mod loss;
mod predict;
mod report;
mod task;
mod use_case;

pub use assess::Assessment;
pub use task::Forecast;

use crate::build::TrainerOf;

/// The trainer of a load forecast.
type ForecastTrainer = TrainerOf<Forecast>;
