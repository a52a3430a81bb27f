//! Series: from a table to windows that a network takes.
//!
//! ```text
//! table ── gather ──► Panel ── divide ──► parts ── learn ──► Encoding
//!                                                               │
//!                              SeriesWindows ◄── Scaled ◄── encode
//! ```
//!
//! [`Panel::gather`] brings the rows of one or several series, below or beside each other, to one
//! grid of time. [`Panel::divide`] divides them at the same times. [`Encoding`] learns scales and
//! kinds from the parts for training, and makes any panel with the same columns numbers.
//! [`SeriesWindows`] are the examples.

mod encoding;
mod normaliser;
mod panel;
mod period;
mod split;
pub mod synth;
mod windows;

pub use encoding::{Coding, Encoding, Known};
pub use normaliser::Normaliser;
pub use panel::{Covariate, Panel, Repairs, Roles, Series};
pub use period::{Cycle, Period};
pub use split::{Split, split};
pub use windows::{Cut, Part, Scaled, SeriesWindows};
