//! Whether a [`Communicator`] keeps the promises of the trait.
//!
//! Everything above this crate is written against the trait: an implementation of one's own, over
//! another library or another network, that passes [`check`] can take the place of
//! [`threads`](crate::threads). Every call is compared with the same computation done serially, and
//! the ranks also make calls that do not fit together, which must be told.
//!
//! ```
//! use bayesmesh_comm::{conformance, threads};
//!
//! for size in [1, 2, 3, 5] {
//!     threads::run(size, |comm| conformance::check(comm))?;
//! }
//! # Ok::<(), bayesmesh_comm::RunError<String>>(())
//! ```
//!
//! Two things are left to the tests of an implementation, since they end the world: what the others
//! are told when a rank fails, and that nobody waits for a rank that is gone.

mod floats;
mod groups;
mod integers;
mod mismatches;
mod moves;
mod verdict;

use crate::communicator::Communicator;
use crate::tree::TreeFold;
use verdict::{Fault, Verdict};

/// Nothing, one, fewer than ranks, and some on both sides of what implementations treat as long,
/// with ragged ends.
const LENGTHS: [usize; 6] = [0, 1, 7, 1000, 8192, 3 * 2048 * 5 + 13];

type Check = fn(&dyn Communicator) -> Verdict;

/// The checks, those first whose calls the later ones need.
const CHECKS: [(&str, Check); 19] = [
    ("all_gather_bytes", moves::all_gather_bytes),
    ("broadcast_bytes", moves::broadcast_bytes),
    ("all_reduce_u64", integers::all_reduce),
    ("all_gather", moves::all_gather),
    ("broadcast", moves::broadcast),
    ("all_reduce, reproducible sums", floats::reproducible_sums),
    ("all_reduce, fast sums", floats::fast_sums),
    ("all_reduce, maxima", floats::maxima),
    ("tree_reduce", floats::tree_reduce),
    ("reduce_scatter", floats::reduce_scatter),
    ("all_gather_into", moves::all_gather_into),
    ("all_to_all", moves::all_to_all),
    ("barrier", groups::barrier),
    ("split", groups::split),
    ("split_node", groups::split_node),
    ("calls from several threads", groups::threads),
    ("different lengths", mismatches::lengths),
    ("different calls", mismatches::calls),
    ("calls that cannot be made", mismatches::refused),
];

/// Puts `world` through all checks; the error names the one that failed, and what was wrong.
/// Collective.
///
/// Run it on at least 1, 2, 3, 4 and 5 ranks: one or two ranks can be summed in one order only.
/// It makes communicators from `world` by [`split`](Communicator::split) and checks those too.
///
/// A rank that finds a fault calls [`abort`](Communicator::abort), so that no other waits for it.
/// An implementation may still hang, where it does not notice that ranks make different calls for
/// instance: give the test a limit of time.
pub fn check(world: &dyn Communicator) -> Result<(), String> {
    check_all(world).map_err(|Fault(fault)| {
        world.abort(&fault);
        fault
    })
}

fn check_all(world: &dyn Communicator) -> Verdict {
    let (rank, size) = (world.rank(), world.size());
    if rank >= size {
        return Err(Fault(format!("rank: {rank} of {size} ranks; they count from 0")));
    }
    for (name, check) in CHECKS {
        check(world).map_err(|fault| fault.within(name))?;
    }
    // Parts must be as good as the world.
    let part = world.split(rank % 2).map_err(|error| Fault::from(error).within("split"))?;
    for (name, check) in CHECKS {
        check(&*part).map_err(|fault| fault.within(name).within("in a part of the world"))?;
    }
    Ok(())
}

/// Pseudo-random values of either sign whose magnitudes span 2^-12 to 2^12, so that the bits of
/// their sums depend on the order of summation.
pub fn values(seed: u64, length: usize) -> Vec<f32> {
    let mut next = random(seed);
    let mut value = || {
        let mantissa = (next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        // The exponent is in the upper bits of a float: 2^-12 to 2^12.
        mantissa * f32::from_bits((127 - 12 + (next() % 25) as u32) << 23)
    };
    (0..length).map(|_| value()).collect()
}

/// Pseudo-random numbers: SplitMix64.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// What ranks that have `of(rank)` combine to by the [`tree`](crate::tree), done serially.
fn by_tree<T>(
    size: usize,
    of: impl Fn(usize) -> Vec<T>,
    combine: impl Fn(&mut [T], &[T]),
) -> Vec<T> {
    let join = |mut left: Vec<T>, right: Vec<T>| {
        combine(&mut left, &right);
        left
    };
    let mut fold = TreeFold::new();
    for rank in 0..size {
        fold.push(of(rank), join);
    }
    fold.finish(join).unwrap_or_default()
}
