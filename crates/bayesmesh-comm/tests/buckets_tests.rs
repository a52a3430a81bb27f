//! Reducing in buckets.

mod common;

use bayesmesh_comm::{
    CommError, Communicator, DEFAULT_BUCKET_BYTES, Operation, Reduce, all_reduce_buckets,
};
use common::{bits, ranks, values};

const LENGTH: usize = 10_007;

#[test]
fn the_bucket_size_does_not_change_a_bit() {
    for reduce in [Reduce::Fast, Reduce::Reproducible] {
        for size in [1, 2, 3, 4] {
            let whole = ranks(size, move |comm| {
                let mut mine = values(comm.rank() as u64, LENGTH);
                comm.all_reduce(&mut mine, Operation::Sum, reduce)?;
                Ok(mine)
            })
            .unwrap();
            // One value, an odd size that is no multiple of a value, exactly all, more than all.
            for bucket in [4, 4003, 4 * LENGTH, DEFAULT_BUCKET_BYTES] {
                let parts = ranks(size, move |comm| {
                    let mut mine = values(comm.rank() as u64, LENGTH);
                    all_reduce_buckets(comm, &mut mine, bucket, reduce)?;
                    Ok(mine)
                })
                .unwrap();
                for part in parts {
                    assert_eq!(bits(&part), bits(&whole[0]), "bucket of {bucket} bytes");
                }
            }
        }
    }
}

#[test]
fn lengths_that_differ_by_whole_buckets_are_an_error_on_every_rank() {
    let errors = ranks(3, |comm| {
        let mut mine = vec![1.0; if comm.rank() == 2 { 200 } else { 100 }];
        Ok(all_reduce_buckets(comm, &mut mine, 400, Reduce::Fast).unwrap_err())
    })
    .unwrap();
    let expected = CommError::LengthMismatch {
        call: "all_reduce_buckets".to_owned(),
        rank: 0,
        length: 100,
        other_rank: 2,
        other_length: 200,
    };
    assert!(errors.iter().all(|error| *error == expected), "{errors:?}");
}

#[test]
fn a_bucket_must_hold_a_value() {
    let errors =
        ranks(2, |comm| Ok(all_reduce_buckets(comm, &mut [1.0], 3, Reduce::Fast).unwrap_err()));
    assert_eq!(errors.unwrap(), [const { CommError::BucketTooSmall { bytes: 3 } }; 2]);
}
