//! Reductions of integers.

use super::verdict::{Verdict, same_bits};
use super::{LENGTHS, random};
use crate::communicator::{Communicator, Operation};

/// Numbers of all 64 bits; the first ones differ by little, beyond what floats tell apart.
fn numbers(rank: usize, length: usize) -> Vec<u64> {
    let mut next = random(rank as u64);
    let mut numbers: Vec<u64> = (0..length).map(|_| next()).collect();
    let close = [(1 << 24) + rank as u64, (1 << 60) + rank as u64, u64::MAX - rank as u64, 0];
    numbers.iter_mut().zip(close).for_each(|(number, close)| *number = close);
    numbers
}

pub(super) fn all_reduce(world: &dyn Communicator) -> Verdict {
    for length in LENGTHS {
        let all: Vec<_> = (0..world.size()).map(|rank| numbers(rank, length)).collect();
        let over_ranks = |join: fn(u64, u64) -> u64| -> Vec<u64> {
            let over_ranks = |i: usize| all.iter().map(|numbers| numbers[i]).reduce(join);
            (0..length).filter_map(over_ranks).collect()
        };
        let mut sums = numbers(world.rank(), length);
        world.all_reduce_u64(&mut sums, Operation::Sum)?;
        same_bits("sums modulo 2^64", &sums, &over_ranks(u64::wrapping_add))?;
        let mut maxima = numbers(world.rank(), length);
        world.all_reduce_u64(&mut maxima, Operation::Max)?;
        same_bits("maxima", &maxima, &over_ranks(u64::max))?;
    }
    Ok(())
}
