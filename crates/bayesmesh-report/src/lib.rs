//! The run report of BayesMesh: plain data in, one self-contained HTML page out.
//!
//! - [`Report`] is the page: a title, a few [`KeyFigure`]s and [`Section`]s made of [`Block`]s.
//! - [`Plot`] is a chart: two [`Axis`] and the [`Layer`]s drawn over each other. It also stands
//!   alone as an SVG file ([`Plot::to_svg`]).
//! - [`MapSeries`] are maps of the globe over time, with a slider.
//! - [`Table`], facts, notes and a [`Gallery`] of images are the other blocks.
//!
//! The page needs no network, and no script but for the slider of maps. It follows the reader's
//! light or dark preference, and fits a phone: every wide plot is drawn twice, and the style shows
//! the drawing that suits the width. Nothing here can fail. Values that are not finite leave gaps,
//! missing data gives a note in the place of a plot, text is escaped, and long series are thinned
//! to the pixels that can show them.
//!
//! ```
//! use bayesmesh_report::{Axis, Block, Color, KeyFigure, Layer, Plot, Report, Section};
//!
//! let loss = (0..500).map(|step| (f64::from(step), (-0.01 * f64::from(step)).exp()));
//! let plot = Plot::new("Training loss", Axis::linear("step"), Axis::log("loss"))
//!     .with(Layer::line("train", loss, Color::Blue));
//! let report = Report {
//!     title: "Load forecast".into(),
//!     lead: "MC dropout, 16 draws, on `2x1` ranks.".into(),
//!     headline: vec![KeyFigure::new("RMSE", "1,274").unit("MW").note("yesterday: 6,781")],
//!     sections: vec![Section::new("Training").with(Block::Plot(plot))],
//!     footer: String::new(),
//! };
//! let html = report.to_html();
//! assert!(html.contains("<svg") && html.contains("<code>2x1</code>"));
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod base64;
mod gallery;
mod map;
mod number;
mod page;
mod plot;
mod report;
mod table;
mod text;

pub use gallery::{Gallery, Image};
pub use map::{Coast, MapField, MapGrid, MapPanel, MapScale, MapSeries, MapTime, MapVariable};
pub use number::format_number;
pub use plot::{Axis, Bar, Color, Interval, Layer, Plot, Rule, ScaleKind, Shape, Stroke};
pub use report::{Block, KeyFigure, Report, Section};
pub use table::{Cell, Table};
