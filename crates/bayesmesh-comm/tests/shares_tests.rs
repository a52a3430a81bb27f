//! Sums of which each rank gets its share, and putting shares together.

mod common;

use bayesmesh_comm::{CommError, Communicator, Operation, Reduce, share};
use common::{bits, ranks, values};

const SIZES: [usize; 6] = [1, 2, 3, 4, 5, 8];
/// Nothing, fewer than ranks, several blocks with a ragged end.
const LENGTHS: [usize; 5] = [0, 1, 7, 2048, 3 * 2048 * 5 + 13];

#[test]
fn a_share_of_the_sum_has_the_bits_of_the_sum() {
    for (size, length) in SIZES.into_iter().flat_map(|size| LENGTHS.map(|length| (size, length))) {
        for reduce in [Reduce::Fast, Reduce::Reproducible] {
            ranks(size, move |comm| {
                let mut whole = values(comm.rank() as u64, length);
                let mut shared = whole.clone();
                comm.all_reduce(&mut whole, Operation::Sum, reduce)?;
                let own = comm.reduce_scatter(&mut shared, reduce)?;
                assert_eq!(own, share(length, size, comm.rank()));
                assert_eq!(bits(&shared[own.clone()]), bits(&whole[own]));
                // Both calls together are the whole sum.
                comm.all_gather_into(&mut shared)?;
                assert_eq!(bits(&shared), bits(&whole));
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn shares_come_from_their_owners() {
    for (size, length) in SIZES.into_iter().flat_map(|size| LENGTHS.map(|length| (size, length))) {
        let results = ranks(size, move |comm| {
            let mut mine = values(comm.rank() as u64, length);
            comm.all_gather_into(&mut mine)?;
            Ok(mine)
        })
        .unwrap();
        let own = |rank| values(rank as u64, length)[share(length, size, rank)].to_vec();
        let expected: Vec<f32> = (0..size).flat_map(own).collect();
        assert!(results.iter().all(|result| *result == expected));
    }
}

#[test]
fn lengths_must_agree() {
    let errors = ranks(2, |comm| {
        let length = 5 + comm.rank();
        let scatter = comm.reduce_scatter(&mut vec![1.0; length], Reduce::Fast).unwrap_err();
        let gather = comm.all_gather_into(&mut vec![1.0; length]).unwrap_err();
        Ok([scatter, gather])
    });
    for errors in errors.unwrap() {
        for (error, name) in errors.iter().zip(["reduce_scatter(fast)", "all_gather_into"]) {
            let expected = CommError::LengthMismatch {
                call: name.to_owned(),
                rank: 0,
                length: 5,
                other_rank: 1,
                other_length: 6,
            };
            assert_eq!(*error, expected);
        }
    }
}
