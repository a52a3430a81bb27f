//! How single weights are distributed: one file for each family.
//!
//! A posterior gives every tensor of its network a family
//! ([`Parameters::with_families`](super::Parameters::with_families)). The family says how many
//! trainable numbers a weight has, how a draw is made of them, and what the gradient of the drawn
//! weights means for them. Nothing else in the library knows: a new family is one `impl`.

mod gaussian;
mod point;

pub use gaussian::Gaussian;
pub use point::Point;

use std::fmt::Debug;
use std::sync::Arc;

use bayesmesh_kernels::stream::Stream;

/// A distribution of single, independent weights with `width` trainable numbers each.
///
/// # Shapes
///
/// The n weights of a tensor have their numbers side by side, not weight by weight:
///
/// - `numbers`, `into`: `[width, n]`; the first row is where the weights are centred
/// - `weights`, `gradient`: `[n]`
pub trait Family: Debug + Send + Sync {
    /// What the numbers of a weight are called in checkpoints and messages, in order: as many as a
    /// weight has. The only number of a point has no name.
    fn names(&self) -> &[&str];

    /// The weights of a draw. `noise` is the draw's stream for this tensor.
    fn sample(&self, noise: &Stream, numbers: &[f32], weights: &mut [f32]);

    /// Adds to `into` what `gradient = ∂L/∂w` of such a draw means for the numbers.
    fn pull_back(&self, noise: &Stream, numbers: &[f32], gradient: &[f32], into: &mut [f32]);

    /// The standard deviation of each weight.
    fn deviations(&self, numbers: &[f32]) -> Vec<f32>;

    /// Whether every draw has the same weights.
    fn is_certain(&self) -> bool {
        false
    }

    /// A name by which checkpoints call the family, with its constants.
    fn id(&self) -> String;
}

/// Families of the same name and constants are the same.
impl PartialEq for dyn Family {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

/// The family of the library that has this [`id`](Family::id).
pub(crate) fn by_id(id: &str) -> Option<Arc<dyn Family>> {
    let mut known: Vec<Arc<dyn Family>> = vec![Arc::new(Point)];
    known.extend(Gaussian::ALL.map(|family| Arc::new(family) as Arc<dyn Family>));
    known.into_iter().find(|family| family.id() == id)
}
