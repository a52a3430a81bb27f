//! What a recipe may contain, from the types that it is read into.
//!
//! A type that a user configures exists once: its fields are the keys, its documentation is what
//! they mean, and serde reads it. From the schema come the checks of a recipe, its resolved form,
//! the suggestions in errors and the tables of `docs/recipes.md`.
//!
//! ```
//! use bayesmesh_schema::Keys;
//!
//! /// How training is done.
//! #[derive(Keys)]
//! # #[allow(dead_code)]
//! struct Train {
//!     /// Draws per step, S, over all ranks.
//!     #[key(default = 16, at_least = 1, also("draws", "mc_samples"))]
//!     samples: usize,
//!     /// The largest norm of the whole gradient.
//!     #[key(unset = "no clipping", above = 0)]
//!     clip_norm: Option<f64>,
//! }
//!
//! let [samples, clip_norm] = &Train::keys()[..] else { panic!() };
//! assert_eq!(samples.meaning, "Draws per step, S, over all ranks.");
//! assert_eq!(samples.values.to_string(), "a whole number of at least 1");
//! assert_eq!(clip_norm.values.to_string(), "a number above 0");
//! ```

mod key;
mod range;
mod section;
mod values;

pub use bayesmesh_schema_derive::{Choice, Keys, Kinds};
pub use key::{Absent, Key, Lookup};
pub use range::Range;
pub use section::{KIND, Kind, Section};
pub use values::{Value, Values};

/// A struct whose fields are keys.
pub trait Keys {
    /// What it is.
    fn meaning() -> &'static str;

    /// Its keys, in the order in which they are written.
    fn keys() -> Vec<Key>;
}

/// An enum whose variants are kinds, told apart by the key `kind`.
pub trait Kinds {
    /// Its kinds with their keys, as a section without a name.
    fn section() -> Section;
}

/// Names between backticks, separated by commas.
pub fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
