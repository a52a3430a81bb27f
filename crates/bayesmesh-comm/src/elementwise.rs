//! Combining slices element by element.

use std::ops::Add;

use crate::communicator::Operation;

/// `left[i] = left[i] ∘ right[i]`.
pub(crate) fn combine<T: Copy + PartialOrd + Add<Output = T>>(
    operation: Operation,
    left: &mut [T],
    right: &[T],
) {
    match operation {
        Operation::Sum => join(left, right, |l, r| l + r),
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
