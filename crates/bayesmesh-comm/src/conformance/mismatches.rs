//! Calls that do not fit together: every rank is told, nothing hangs, and the ranks can go on.

use std::cell::RefCell;

use super::verdict::{Verdict, ensure};
use crate::communicator::{Communicator, Operation, Reduce};
use crate::error::CommError;

/// A call with so many values.
type Call = fn(&dyn Communicator, usize) -> Result<(), CommError>;

/// The calls to which all ranks must bring as many values.
const CALLS: [(&str, Call); 7] = [
    ("all_reduce", |comm, length| {
        comm.all_reduce(&mut vec![0.0; length], Operation::Sum, Reduce::Fast)
    }),
    ("all_reduce_f64", |comm, length| {
        comm.all_reduce_f64(&mut vec![0.0; length], Operation::Max, Reduce::Reproducible)
    }),
    ("all_reduce_u64", |comm, length| comm.all_reduce_u64(&mut vec![0; length], Operation::Sum)),
    ("tree_reduce", |comm, length| comm.tree_reduce(&mut vec![0.0; length], &|_, _| ())),
    ("reduce_scatter", |comm, length| {
        comm.reduce_scatter(&mut vec![0.0; length], Reduce::Fast).map(drop)
    }),
    ("all_gather_into", |comm, length| comm.all_gather_into(&mut vec![0.0; length])),
    ("broadcast", |comm, length| comm.broadcast(&mut vec![0.0; length], 0)),
];

pub(super) fn lengths(world: &dyn Communicator) -> Verdict {
    if world.size() == 1 {
        return Ok(());
    }
    let last = world.size() - 1;
    let length_of = |rank: usize| if rank == last { 70 } else { 50 };
    for (name, call) in CALLS {
        let told = call(world, length_of(world.rank()));
        let is_told = match told {
            // Any two ranks whose lengths differ.
            Err(CommError::LengthMismatch { rank, length, other_rank, other_length, .. }) => {
                (rank == last) != (other_rank == last)
                    && [length, other_length] == [rank, other_rank].map(length_of)
            }
            _ => false,
        };
        ensure(is_told, || format!("{name} of 50 and of 70 values met, and gave {told:?}"))?;
        goes_on(world, name)?;
    }
    Ok(())
}

/// Calls of which the last rank makes the second.
const PAIRS: [(&str, Call, Call); 11] = [
    ("barrier and all_gather_into", |comm, _| comm.barrier(), CALLS[5].1),
    (
        "all_gather and all_gather_bytes",
        |comm, _| comm.all_gather(&[1.0]).map(drop),
        |comm, _| comm.all_gather_bytes(&[0; 4]).map(drop),
    ),
    (
        "all_to_all and all_gather",
        |comm, _| comm.all_to_all(&[], &vec![0; comm.size()]).map(drop),
        |comm, _| comm.all_gather(&[]).map(drop),
    ),
    (
        "split and broadcast_bytes",
        |comm, _| comm.split(0).map(drop),
        |comm, _| comm.broadcast_bytes(&mut vec![0], 0),
    ),
    ("all_reduce and all_reduce_f64", CALLS[0].1, |comm, length| {
        comm.all_reduce_f64(&mut vec![0.0; length], Operation::Sum, Reduce::Fast)
    }),
    ("all_reduce_f64 and all_reduce_u64", CALLS[1].1, CALLS[2].1),
    ("sums and maxima", CALLS[0].1, |comm, length| {
        comm.all_reduce(&mut vec![0.0; length], Operation::Max, Reduce::Fast)
    }),
    ("sums and maxima of integers", CALLS[2].1, |comm, length| {
        comm.all_reduce_u64(&mut vec![0; length], Operation::Max)
    }),
    ("fast and reproducible sums", CALLS[0].1, |comm, length| {
        comm.all_reduce(&mut vec![0.0; length], Operation::Sum, Reduce::Reproducible)
    }),
    ("broadcasts from two ranks", CALLS[6].1, |comm, length| {
        comm.broadcast(&mut vec![0.0; length], 1)
    }),
    (
        "broadcasts of bytes from two ranks",
        |comm, _| comm.broadcast_bytes(&mut Vec::new(), 0),
        |comm, _| comm.broadcast_bytes(&mut Vec::new(), 1),
    ),
];

pub(super) fn calls(world: &dyn Communicator) -> Verdict {
    if world.size() == 1 {
        return Ok(());
    }
    let last = world.size() - 1;
    for (name, call, last_call) in PAIRS {
        let told = if world.rank() == last { last_call(world, 8) } else { call(world, 8) };
        let is_told = match &told {
            Err(CommError::CallMismatch { rank, call, other_rank, other_call }) => {
                (*rank == last) != (*other_rank == last) && call != other_call
            }
            _ => false,
        };
        ensure(is_told, || format!("{name} met, and gave {told:?}"))?;
        goes_on(world, name)?;
    }
    Ok(())
}

pub(super) fn refused(world: &dyn Communicator) -> Verdict {
    let size = world.size();
    let none = Err(CommError::RootOutOfRange { root: size, size });
    let told = world.broadcast(&mut [1.0], size);
    ensure(told == none, || format!("a broadcast from rank {size} of {size} gave {told:?}"))?;
    let told = world.broadcast_bytes(&mut vec![1], size);
    ensure(told == none, || format!("bytes from rank {size} of {size} gave {told:?}"))?;
    goes_on(world, "a root that is no rank")?;

    // The last rank has a part too many, and then parts of one value less than it has.
    for (parts, short) in [(size + 1, 0), (size, 1)] {
        let (parts, length) = match world.rank() + 1 == size {
            true => (vec![2; parts], 2 * parts + short),
            false => (vec![2; size], 2 * size),
        };
        let told = world.all_to_all(&vec![0.0; length], &parts);
        let is_told = matches!(&told, Err(CommError::PartsMismatch { rank, length, total, .. })
            if *rank == size - 1 && *length == *total + short);
        ensure(is_told, || format!("parts that do not fit gave {told:?}"))?;
        goes_on(world, "parts that do not fit")?;
    }

    // Rank 0 joins what others have brought, and a second call could not find its partners.
    let within = RefCell::new(Err(CommError::Busy));
    world.tree_reduce(&mut [1.0], &|_, _| {
        *within.borrow_mut() = world.barrier();
    })?;
    let told = within.into_inner();
    ensure(told == Err(CommError::Busy), || format!("a call within a call gave {told:?}"))?;
    goes_on(world, "a call within a call")
}

/// A fault unless the ranks can still communicate.
fn goes_on(world: &dyn Communicator, after: &str) -> Verdict {
    let mut one = [1];
    world.all_reduce_u64(&mut one, Operation::Sum)?;
    ensure(one == [world.size() as u64], || format!("after {after}: {} ranks meet", one[0]))
}
