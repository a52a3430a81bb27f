//! In which numbers products are made.

use std::cell::Cell;

use bayesmesh_schema::Choice;
use serde::Deserialize;

use crate::simd;

/// The numbers of products and of what is kept for the backward pass.
///
/// In bf16 a number has the exponent of single precision and 8 bits of precision. Weights and
/// activations are rounded to it where they enter a product; sums of products, and everything else,
/// are in single precision: trainable numbers, sums over draws and ranks, the distance to the
/// prior, the optimiser, softmax, normalisations, losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Products of bf16, summed in single precision.
    Bf16,
}

thread_local! {
    static CURRENT: Cell<Precision> = const { Cell::new(Precision::F32) };
}

impl Precision {
    /// Runs `body` with the operations that this thread calls in this precision. An operation keeps
    /// it for its backward pass.
    pub fn scope<R>(self, body: impl FnOnce() -> R) -> R {
        /// Puts the old one back even when `body` panics.
        struct Restore(Precision);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(self));
        body()
    }

    /// The one of the scope that this thread is in.
    pub fn current() -> Self {
        CURRENT.get()
    }

    /// Whether this machine multiplies such numbers by instructions of its own. Elsewhere bf16 is
    /// widened to single precision first: the same results within rounding, but slower than there.
    pub fn is_in_hardware(self) -> bool {
        self == Precision::F32 || simd::has_bf16()
    }
}
