//! Reductions of floats.

use std::ops::Range;

use super::verdict::{Verdict, ensure, same, same_bits, same_everywhere};
use super::{LENGTHS, by_tree, values};
use crate::communicator::{Communicator, Operation, Reduce};
use crate::mesh::share;

const MODES: [Reduce; 2] = [Reduce::Fast, Reduce::Reproducible];

/// Values to sum; among them a zero that becomes positive, and a number that becomes zero, if
/// anything but these values goes into the sum.
fn narrow(rank: usize, length: usize) -> Vec<f32> {
    let mut values = values(rank as u64, length);
    let special = [-0.0, f32::from_bits(1 + rank as u32)];
    values.iter_mut().skip(2).zip(special).for_each(|(value, special)| *value = special);
    values
}

/// The same with more digits than an `f32` has.
fn wide(rank: usize, length: usize) -> Vec<f64> {
    let mut values: Vec<f64> =
        values(rank as u64, length).into_iter().map(|value| f64::from(value) / 3.0).collect();
    let special = [-0.0, f64::from_bits(1 + rank as u64)];
    values.iter_mut().skip(2).zip(special).for_each(|(value, special)| *value = special);
    values
}

fn add_narrow(left: &mut [f32], right: &[f32]) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
}

fn add_wide(left: &mut [f64], right: &[f64]) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
}

pub(super) fn reproducible_sums(world: &dyn Communicator) -> Verdict {
    let (rank, size) = (world.rank(), world.size());
    for length in LENGTHS {
        let mut sums = narrow(rank, length);
        world.all_reduce(&mut sums, Operation::Sum, Reduce::Reproducible)?;
        same_bits("f32", &sums, &by_tree(size, |rank| narrow(rank, length), add_narrow))?;
        let mut sums = wide(rank, length);
        world.all_reduce_f64(&mut sums, Operation::Sum, Reduce::Reproducible)?;
        same_bits("f64", &sums, &by_tree(size, |rank| wide(rank, length), add_wide))?;
    }
    Ok(())
}

pub(super) fn fast_sums(world: &dyn Communicator) -> Verdict {
    let (rank, size) = (world.rank(), world.size());
    for length in LENGTHS {
        let mut sums = narrow(rank, length);
        world.all_reduce(&mut sums, Operation::Sum, Reduce::Fast)?;
        is_sum_of_narrow("f32", &sums, size, 0..length)?;
        same_everywhere(world, "f32", &sums)?;
        let mut sums = wide(rank, length);
        world.all_reduce_f64(&mut sums, Operation::Sum, Reduce::Fast)?;
        is_sum("f64", &sums, size, f64::EPSILON, |rank| wide(rank, length))?;
        same_everywhere(world, "f64", &sums)?;
    }
    Ok(())
}

/// A fault unless `found` are the elements `range` of the sum of [`narrow`], but for rounding.
fn is_sum_of_narrow(what: &str, found: &[f32], size: usize, range: Range<usize>) -> Verdict {
    let widened =
        |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| value.into()).collect() };
    let of = |rank| widened(&narrow(rank, range.end)[range.clone()]);
    is_sum(what, &widened(found), size, f32::EPSILON.into(), of)
}

/// A fault unless `found` is the sum over the ranks, but for rounding: each of the `size - 1`
/// additions rounds by half an epsilon, and so do those of the sum it is compared with.
fn is_sum(
    what: &str,
    found: &[f64],
    size: usize,
    epsilon: f64,
    of: impl Fn(usize) -> Vec<f64>,
) -> Verdict {
    let magnitude = |rank| of(rank).into_iter().map(f64::abs).collect();
    let sums = by_tree(size, &of, add_wide);
    let magnitudes = by_tree(size, magnitude, add_wide);
    let rounding = (size - 1) as f64 * epsilon;
    ensure(found.len() == sums.len(), || format!("{what}: {} sums", found.len()))?;
    for (i, (found, sum)) in found.iter().zip(&sums).enumerate() {
        let close = (found - sum).abs() <= rounding * magnitudes[i];
        ensure(close, || format!("{what}: sum {i} of {} is {found:?}, not {sum:?}", sums.len()))?;
    }
    Ok(())
}

pub(super) fn maxima(world: &dyn Communicator) -> Verdict {
    let size = world.size();
    // Nobody has a NaN, or one rank, in a short and in a long vector.
    let without = LENGTHS.map(|length| (length, size));
    let with = [7, 8192].into_iter().flat_map(|length| (0..size).map(move |rank| (length, rank)));
    let cases = without.into_iter().chain(with);
    for ((length, culprit), mode) in cases.flat_map(|case| MODES.map(|mode| (case, mode))) {
        let of = |rank: usize| {
            let mut values = values(rank as u64, length);
            let first = if rank == culprit { f32::NAN } else { 1.0 };
            // Less than any number that a maximum might begin with.
            let special = [first, f32::NEG_INFINITY];
            values.iter_mut().zip(special).for_each(|(value, special)| *value = special);
            values
        };
        let largest = |left: f32, right: f32| {
            if left.is_nan() || right.is_nan() { f32::NAN } else { left.max(right) }
        };
        let expected = by_tree(size, of, |left, right| {
            left.iter_mut().zip(right).for_each(|(left, &right)| *left = largest(*left, right));
        });
        let is_same =
            |found: f32, expected: f32| found == expected || found.is_nan() && expected.is_nan();
        let mut found = of(world.rank());
        let mut wide: Vec<f64> = found.iter().map(|&value| value.into()).collect();
        world.all_reduce(&mut found, Operation::Max, mode)?;
        same(&format!("f32, {mode}"), &found, &expected, is_same)?;
        world.all_reduce_f64(&mut wide, Operation::Max, mode)?;
        let found: Vec<f32> = wide.iter().map(|&value| value as f32).collect();
        same(&format!("f64, {mode}"), &found, &expected, is_same)?;
    }
    Ok(())
}

/// Joins slices in a way that depends on all of both, and on which is which.
fn join(left: &mut [f32], right: &[f32]) {
    add_narrow(left, right);
    left.reverse();
    if let (Some(first), Some(last)) = (left.first_mut(), right.last()) {
        *first -= 0.3 * last;
    }
}

pub(super) fn tree_reduce(world: &dyn Communicator) -> Verdict {
    for length in LENGTHS {
        let mut joined = narrow(world.rank(), length);
        world.tree_reduce(&mut joined, &join)?;
        let expected = by_tree(world.size(), |rank| narrow(rank, length), join);
        same_bits("joined slices", &joined, &expected)?;
    }
    Ok(())
}

pub(super) fn reduce_scatter(world: &dyn Communicator) -> Verdict {
    let (rank, size) = (world.rank(), world.size());
    for (length, mode) in LENGTHS.into_iter().flat_map(|length| MODES.map(|mode| (length, mode))) {
        let mut sums = narrow(rank, length);
        let own = world.reduce_scatter(&mut sums, mode)?;
        let expected = share(length, size, rank);
        ensure(own == expected, || format!("share {own:?} of {length}, not {expected:?}"))?;
        is_sum_of_narrow(&mode.to_string(), &sums[own.clone()], size, own.clone())?;
        if mode == Reduce::Reproducible {
            let expected = by_tree(size, |rank| narrow(rank, length), add_narrow);
            same_bits("reproducible", &sums[own.clone()], &expected[own])?;
        }
    }
    Ok(())
}
