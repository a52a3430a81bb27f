//! Calls that move values and change none.

use super::verdict::{Verdict, same_bits, same_lists};
use super::{LENGTHS, random, values};
use crate::communicator::Communicator;
use crate::mesh::share;

/// More than a message is likely to have room for.
const LONG: usize = 70_001;

/// Bytes of all kinds, with zeros at both ends.
fn bytes(rank: usize, length: usize) -> Vec<u8> {
    let mut next = random(rank as u64);
    let mut bytes: Vec<u8> = (0..length).map(|_| next() as u8).collect();
    for end in [0, length.saturating_sub(1)] {
        if let Some(byte) = bytes.get_mut(end) {
            *byte = 0;
        }
    }
    bytes
}

/// Floats of which some are equal to others, or to nothing, and have bits of their own.
fn floats(rank: usize, length: usize) -> Vec<f32> {
    let mut values = values(rank as u64, length);
    let special = [-0.0, f32::from_bits(0x7fc0_1234), f32::NEG_INFINITY, f32::from_bits(1)];
    values.iter_mut().skip(2).zip(special).for_each(|(value, special)| *value = special);
    values
}

pub(super) fn all_gather_bytes(world: &dyn Communicator) -> Verdict {
    for length in lengths_by_rank() {
        let found = world.all_gather_bytes(&bytes(world.rank(), length(world.rank())))?;
        let expected: Vec<_> = (0..world.size()).map(|rank| bytes(rank, length(rank))).collect();
        same_lists("bytes", &found, &expected)?;
    }
    Ok(())
}

pub(super) fn all_gather(world: &dyn Communicator) -> Verdict {
    for length in lengths_by_rank() {
        let found = world.all_gather(&floats(world.rank(), length(world.rank())))?;
        let expected: Vec<_> = (0..world.size()).map(|rank| floats(rank, length(rank))).collect();
        same_lists("values", &found, &expected)?;
    }
    Ok(())
}

pub(super) fn all_to_all(world: &dyn Communicator) -> Verdict {
    let (rank, size) = (world.rank(), world.size());
    // What one rank has for another: nothing, as much for all, by either rank, for the next only.
    let lengths: [fn(usize, usize) -> usize; 7] = [
        |_, _| 0,
        |_, _| 5,
        |from, to| 3 * from + 5 * to,
        |from, to| 700 * to + 11 * from,
        |from, to| if from + 1 == to { 900 } else { 0 },
        |from, _| if from == 0 { 40 } else { 0 },
        |from, to| LONG / (1 + from + to),
    ];
    for length in lengths {
        let parts = |from: usize| -> Vec<usize> { (0..size).map(|to| length(from, to)).collect() };
        let of = |from: usize| floats(from, parts(from).iter().sum());
        let found = world.all_to_all(&of(rank), &parts(rank))?;
        let part = |from: usize| {
            let start = parts(from)[..rank].iter().sum::<usize>();
            of(from)[start..][..length(from, rank)].to_vec()
        };
        let expected: Vec<f32> = (0..size).flat_map(part).collect();
        same_bits("parts", &found, &expected)?;
    }
    Ok(())
}

/// How much each rank has: nothing, as much as the others, more than those before, or only one
/// has anything.
fn lengths_by_rank() -> [fn(usize) -> usize; 6] {
    [
        |_| 0,
        |_| 5,
        |rank| 3 * rank,
        |rank| 5000 * rank + 1,
        |rank| if rank == 0 { 7 } else { 0 },
        |_| LONG,
    ]
}

pub(super) fn broadcast_bytes(world: &dyn Communicator) -> Verdict {
    let rank = world.rank();
    for (root, length) in every_root(world) {
        // The others hold nothing, less or more.
        let held = [0, length / 2, 2 * length + 1][(rank + root) % 3];
        let mut mine = bytes(rank, if rank == root { length } else { held });
        world.broadcast_bytes(&mut mine, root)?;
        same_bits(&format!("from rank {root}"), &mine, &bytes(root, length))?;
    }
    Ok(())
}

pub(super) fn broadcast(world: &dyn Communicator) -> Verdict {
    for (root, length) in every_root(world) {
        let mut mine = floats(world.rank(), length);
        world.broadcast(&mut mine, root)?;
        same_bits(&format!("from rank {root}"), &mine, &floats(root, length))?;
    }
    Ok(())
}

fn every_root(world: &dyn Communicator) -> impl Iterator<Item = (usize, usize)> {
    let lengths = LENGTHS.into_iter().chain([LONG]);
    (0..world.size()).flat_map(move |root| lengths.clone().map(move |length| (root, length)))
}

pub(super) fn all_gather_into(world: &dyn Communicator) -> Verdict {
    let size = world.size();
    for length in LENGTHS {
        let mut mine = floats(world.rank(), length);
        world.all_gather_into(&mut mine)?;
        let own = |rank| floats(rank, length)[share(length, size, rank)].to_vec();
        let expected: Vec<f32> = (0..size).flat_map(own).collect();
        same_bits("shares", &mine, &expected)?;
    }
    Ok(())
}
