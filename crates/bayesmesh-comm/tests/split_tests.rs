//! Sub-communicators.

mod common;

use bayesmesh_comm::{Communicator, Operation, Reduce};
use common::ranks;

#[test]
fn equal_colours_meet_in_rank_order() {
    // Colours need be neither small nor in order.
    const COLOURS: [usize; 7] = [9, usize::MAX, 9, 0, usize::MAX, 9, 3];
    let parts = ranks(7, |comm| {
        let part = comm.split(COLOURS[comm.rank()])?;
        let members = part.all_gather(&[comm.rank() as f32])?.concat();
        Ok((part.rank(), part.size(), members))
    })
    .unwrap();
    for (rank, (part_rank, part_size, members)) in parts.into_iter().enumerate() {
        let expected: Vec<usize> =
            (0..7).filter(|&other| COLOURS[other] == COLOURS[rank]).collect();
        assert_eq!(members, expected.iter().map(|&other| other as f32).collect::<Vec<_>>());
        assert_eq!(part_size, expected.len());
        assert_eq!(expected[part_rank], rank);
    }
}

#[test]
fn splits_of_splits() {
    let sums = ranks(8, |comm| {
        let half = comm.split(comm.rank() / 4)?;
        let quarter = half.split(half.rank() % 2)?;
        let mut sums = [comm.rank() as f32; 3];
        quarter.all_reduce(&mut sums[..1], Operation::Sum, Reduce::Fast)?;
        half.all_reduce(&mut sums[1..2], Operation::Sum, Reduce::Fast)?;
        comm.all_reduce(&mut sums[2..], Operation::Sum, Reduce::Fast)?;
        Ok(sums)
    })
    .unwrap();
    for (rank, sums) in sums.into_iter().enumerate() {
        // Quarters are {0, 2}, {1, 3}, {4, 6}, {5, 7}.
        let quarter = [2.0, 4.0, 2.0, 4.0, 10.0, 12.0, 10.0, 12.0][rank];
        let half = [6.0, 22.0][rank / 4];
        assert_eq!(sums, [quarter, half, 28.0]);
    }
}

#[test]
fn parts_do_not_wait_for_each_other() {
    let done = ranks(4, |comm| {
        let part = comm.split(comm.rank() / 2)?;
        // Different numbers and kinds of calls in the two parts.
        if comm.rank() < 2 {
            (0..50).try_for_each(|_| part.barrier())?;
        } else {
            (0..3).try_for_each(|_| part.all_gather(&[1.0]).map(drop))?;
        }
        comm.barrier()?;
        Ok(())
    });
    assert_eq!(done.unwrap().len(), 4);
}
