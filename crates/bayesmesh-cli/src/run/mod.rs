//! The folder of a run and what is written to it while it goes on.
//!
//! ```text
//! recipe.toml                    the resolved recipe; its presence makes the folder a run
//! metrics.csv                    one row per report: step and numbers
//! events.jsonl                   one JSON object per event: time, step, kind, fields
//! events.out.tfevents.*          the numbers for TensorBoard
//! checkpoints/                   see `bayesmesh::checkpoint::Store`
//! report.html                    the report
//! run.lock                       held while a program writes the run
//! ```
//!
//! A killed run can have written more than its last checkpoint knows of. Resumed at step `n`, the
//! writers therefore forget what belongs to steps after `n`, and a line cut off by the kill.

mod clock;
mod crc32c;
mod error;
mod event_log;
mod folder;
pub(crate) mod host;
mod line_file;
mod metrics_csv;
mod tensorboard;

pub use error::RunError;
pub use event_log::EventLog;
pub use folder::RunFolder;
pub use metrics_csv::{MetricsCsv, MetricsTable};
pub use tensorboard::TensorBoard;
