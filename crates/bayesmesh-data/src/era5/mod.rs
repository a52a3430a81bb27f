//! Weather on a global grid: ERA5 and what is stored like it.
//!
//! A [`Store`] is a Zarr store in WeatherBench2's layout, here or on the web; [`Fields`] makes
//! examples of it, normalised by [`Statistics`]; [`Climatology`] is what they are held against.
//! [`Synthetic`] makes weather whose best forecast is known, [`ForecastWriter`] writes forecasts,
//! [`Survey`] says what is in a store and [`fetch`](fetch()) copies a part of one.

mod climatology;
mod error;
mod fetch;
mod fields;
mod forecast;
mod grid;
mod layout;
mod masks;
mod progress;
mod statistics;
mod store;
mod survey;
mod synth;
mod time;
mod variable;

pub use climatology::Climatology;
pub use error::Era5Error;
pub use fetch::{FetchConfig, fetch};
pub use fields::{FEATURES, Fields, FieldsConfig, Missing, Parts, Split};
pub use forecast::{ForecastConfig, ForecastWriter};
pub use grid::Grid;
pub use masks::MASKS;
pub use progress::{Progress, silent};
pub use statistics::{Moments, Statistics};
pub use store::{DEFAULT_CACHE, Store, Stored};
pub use survey::{Survey, Surveyed};
pub use synth::{Best, SynthConfig, Synthetic};
pub use time::{parse_date, utc};
pub use variable::{PANGU_LEVELS, Variable, pangu69};
