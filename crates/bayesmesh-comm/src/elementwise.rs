//! Combining slices element by element.

use crate::communicator::Operation;

/// What reductions combine.
pub(crate) trait Number: Copy + PartialOrd {
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

impl Number for f32 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Number for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Number for u64 {
    /// Modulo 2^64, so that the order of a sum does not matter.
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

/// `left[i] = left[i] ∘ right[i]`.
pub(crate) fn combine<T: Number>(operation: Operation, left: &mut [T], right: &[T]) {
    match operation {
        Operation::Sum => join(left, right, T::plus),
        Operation::Max => join(left, right, larger),
    }
}

fn join<T: Copy>(left: &mut [T], right: &[T], operation: impl Fn(T, T) -> T) {
    for (left, &right) in left.iter_mut().zip(right) {
        *left = operation(*left, right);
    }
}

/// The larger one, or the first that is not a number.
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn larger<T: Copy + PartialOrd>(left: T, right: T) -> T {
    if left >= right || left != left { left } else { right }
}
