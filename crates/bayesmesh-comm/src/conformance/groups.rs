//! Ranks that wait for each other, and parts of the world.

use std::thread::{scope, sleep};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::verdict::{Fault, Verdict, ensure, same_bits};
use crate::communicator::{Communicator, Operation, Reduce};
use crate::numbers::gather_numbers;

/// By how much one rank comes later than the others.
const LATE: Duration = Duration::from_millis(5);

/// Nobody leaves before the last has come. Times are compared within a node, where all ranks look
/// at the same clock.
pub(super) fn barrier(world: &dyn Communicator) -> Verdict {
    let node = world.split_node()?;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    for late in 0..world.size() {
        if world.rank() == late {
            sleep(LATE);
        }
        let came = now() as u64;
        world.barrier()?;
        let left = now() as u64;
        let all_came = gather_numbers(&*node, &[came])?.concat();
        let last = all_came.into_iter().max().unwrap_or(came);
        ensure(last <= left, || format!("rank {} left before all had come", world.rank()))?;
    }
    Ok(())
}

pub(super) fn split(world: &dyn Communicator) -> Verdict {
    // Colours need be neither small nor in order.
    const COLOURS: [usize; 7] = [9, usize::MAX, 9, 0, usize::MAX, 9, 3];
    let colour = |rank: usize| COLOURS[rank % COLOURS.len()];
    let (rank, size) = (world.rank(), world.size());
    let part = world.split(colour(rank))?;
    let members = members(world, &*part)?;
    let expected = (0..size).filter(|&other| colour(other) == colour(rank));
    same_bits("ranks of equal colour", &members, &expected.map(|r| r as u64).collect::<Vec<_>>())?;

    // Parts do not wait for each other, and their values do not meet.
    for _ in 0..5 * members[0] {
        part.barrier()?;
    }
    let mut sums = [rank as u64; 2];
    part.all_reduce_u64(&mut sums[..1], Operation::Sum)?;
    world.all_reduce_u64(&mut sums[1..], Operation::Sum)?;
    let expected = [members.iter().sum(), (size * (size - 1) / 2) as u64];
    same_bits("sums over a part and over the world", &sums, &expected)?;

    // And may be split again.
    let half = part.split(part.rank() % 2)?;
    let expected: Vec<u64> = members.iter().skip(part.rank() % 2).step_by(2).copied().collect();
    same_bits("ranks of a part of a part", &self::members(world, &*half)?, &expected)
}

pub(super) fn split_node(world: &dyn Communicator) -> Verdict {
    let node = world.split_node()?;
    let members = members(world, &*node)?;
    let in_order = members.is_sorted_by(|left, right| left < right);
    ensure(in_order, || format!("ranks {members:?} of a node are not in order"))?;
    // All ranks of a node see the same node.
    let all = gather_numbers(world, &members)?;
    for &other in &members {
        same_bits(&format!("node of rank {other}"), &all[other as usize], &members)?;
    }
    Ok(())
}

/// The ranks of `world` that are in `part`, in the order of the part; among them this rank, at the
/// place it has there.
fn members(world: &dyn Communicator, part: &dyn Communicator) -> Result<Vec<u64>, Fault> {
    let members = gather_numbers(part, &[world.rank() as u64])?.concat();
    let (rank, size) = (part.rank(), part.size());
    let fits = members.len() == size && members.get(rank) == Some(&(world.rank() as u64));
    let world_rank = world.rank();
    ensure(fits, || {
        format!("rank {world_rank} is rank {rank} of {size} in a part of the ranks {members:?}")
    })?;
    Ok(members)
}

/// Threads of a rank that communicate at the same time, each on a communicator of its own.
pub(super) fn threads(world: &dyn Communicator) -> Verdict {
    if !world.is_concurrent() {
        return Ok(());
    }
    let communicators = [world.split(0)?, world.split(0)?, world.split(0)?];
    let rounds = &|thread: usize| -> Verdict {
        let rounds =
            || (0..30).try_for_each(|step| round(&*communicators[thread], 3 * step + thread));
        // The other threads of the rank must not wait for ever.
        rounds().inspect_err(|Fault(fault)| world.abort(fault))
    };
    scope(|scope| {
        let threads = [0, 1, 2].map(|thread| scope.spawn(move || rounds(thread)));
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Fault("a call panicked".to_owned())))
        })
    })
}

/// Some calls whose results tell `salt`s apart.
fn round(comm: &dyn Communicator, salt: usize) -> Verdict {
    let (rank, size) = (comm.rank(), comm.size());
    let value = |rank: usize| (salt + 7 * rank) as f32;
    let total: f32 = (0..size).map(value).sum();
    let mut sums = vec![value(rank); 1 + salt % 5];
    comm.all_reduce(&mut sums, Operation::Sum, Reduce::Reproducible)?;
    same_bits("sums", &sums, &vec![total; 1 + salt % 5])?;
    let mut sum = [value(rank)];
    comm.tree_reduce(&mut sum, &|left, right| left[0] += right[0])?;
    same_bits("sum by the tree", &sum, &[total])?;
    let mut copy = [value(rank)];
    comm.broadcast(&mut copy, salt % size)?;
    same_bits("copy", &copy, &[value(salt % size)])?;
    Ok(comm.barrier()?)
}
