//! Grid load series: read what people have, repair it by stated rules.
//!
//! [`read`] recognises the file by its header (see [`Format`] for the headers), brings it to a
//! regular UTC grid in MW and says in a [`RepairReport`] everything it changed. The rules are those
//! of [`RepairRules`], applied in this order:
//!
//! 1. **Clock.** Local times (Europe/Berlin) become UTC. Of the hour that is repeated in autumn the
//!    first row in time order is summer time, the second winter time; rows in the hour that does
//!    not exist in spring are dropped. Times without an offset in a plain file are taken as UTC.
//! 2. **Order.** Rows are sorted; of rows with equal time the first one that has a value is kept.
//! 3. **Grid.** The step is the most common difference of times (15 min, 30 min or an hour); rows
//!    off that grid are dropped. Energies (MWh per step) become mean powers (MW).
//! 4. **Missing.** Empty cells, `-`, `n/e`, `N/A` and loads of zero or below are missing. Missing
//!    values at either end are trimmed.
//! 5. **Outliers.** A single point above both or below both of its neighbours by more than the
//!    threshold of [`RepairRules`] is replaced by their mean. Next to a clock change it is reported
//!    as such: it is how an exporter that lost part of an hour shows.
//! 6. **Gaps.** Short ones are interpolated, longer ones filled from the weeks around them, and
//!    those too long for that are an error.
//!
//! [`fetch`](fetch()) brings a series from elsewhere, [`synth::german_like`] makes one without any
//! file, [`save_csv`] writes one.

mod calendar;
mod error;
mod fetch;
mod format;
mod gaps;
mod grid;
mod number;
mod outliers;
mod read;
mod report;
mod rules;
mod series;
pub mod synth;
mod time;
mod write;

pub use error::LoadError;
pub use fetch::fetch;
pub use format::Format;
pub use read::{read, read_from, read_with};
pub use report::{RepairEvent, RepairKind, RepairReport};
pub use rules::RepairRules;
pub use series::LoadSeries;
pub use time::format_time;
pub use write::{save_csv, write_csv};
