//! The load forecast: from the series to the report.

mod assess;
mod build;
mod report;
mod task;

pub use assess::{Assessment, assess, in_mw};
pub use build::{ForecastTrainer, trainer};
pub use report::{RunFacts, report};
pub use task::Forecast;
