//! Sums computed in the background are those of a call that waits.

mod common;

use std::thread::sleep;
use std::time::Duration;

use bayesmesh_comm::{
    BucketReducer, CommError, Communicator, Operation, Reduce, RunError, all_reduce_buckets,
    threads,
};
use common::{bits, ranks, values, watched};

const LENGTH: usize = 10_007;
const MODES: [Reduce; 2] = [Reduce::Fast, Reduce::Reproducible];

/// Pieces of many sizes that cover everything, ascending or descending.
fn pieces(descending: bool) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for size in [1, 700, 3, 2048, 64, 5000].into_iter().cycle() {
        let end = LENGTH.min(start + size);
        pieces.push((start, end));
        if end == LENGTH {
            break;
        }
        start = end;
    }
    if descending {
        pieces.reverse();
    }
    pieces
}

#[test]
fn sums_are_those_of_a_call_that_waits() {
    for (size, mode) in [1, 2, 3, 4].into_iter().flat_map(|size| MODES.map(|mode| (size, mode))) {
        // Few values, an odd size, all of it.
        for bucket in [84, 4003, 1 << 20] {
            ranks(size, move |comm| {
                let mut reducer = BucketReducer::start(comm, bucket, mode)?;
                for step in 0..4 {
                    let mine = values((comm.rank() + 10 * step) as u64, LENGTH);
                    for (start, end) in pieces(step % 2 == 0) {
                        reducer.submit(start, &mine[start..end]);
                    }
                    // The caller's own calls go on meanwhile.
                    let mut expected = mine;
                    all_reduce_buckets(comm, &mut expected, bucket.max(400), mode)?;
                    let mut sums = vec![f32::NAN; LENGTH];
                    let time = reducer.wait(&mut sums)?;
                    assert_eq!(bits(&sums), bits(&expected));
                    assert_eq!(time.buckets, LENGTH.div_ceil(bucket / 4));
                    assert!(time.exposed + time.communication > Duration::ZERO);
                }
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn only_what_was_handed_in_changes() {
    let vectors = ranks(2, |comm| {
        let mut reducer = BucketReducer::start(comm, 8, Reduce::Fast)?;
        let mut vector = vec![7.0; 6];
        reducer.submit(4, &[1.0, 2.0]);
        reducer.submit(1, &[3.0]);
        reducer.submit(0, &[]);
        reducer.wait(&mut vector)?;
        // Nothing handed in: nothing happens.
        assert_eq!(reducer.wait(&mut vector)?.buckets, 0);
        Ok(vector)
    });
    assert_eq!(vectors.unwrap()[1], [7.0, 6.0, 7.0, 7.0, 2.0, 4.0]);
}

#[test]
fn work_hides_communication() {
    let times = ranks(2, |comm| {
        let mut reducer = BucketReducer::start(comm, 4000, Reduce::Fast)?;
        let mut vector = vec![1.0; 4000];
        reducer.submit(0, &vector.clone());
        // The sums are done long before anybody asks for them.
        sleep(Duration::from_millis(200));
        reducer.wait(&mut vector)
    });
    for time in times.unwrap() {
        assert!(time.exposed < Duration::from_millis(100), "{time:?}");
    }
}

#[test]
fn a_rank_that_fails_is_seen_by_those_that_wait() {
    for culprit in 0..3 {
        let outcome = watched(move || {
            threads::run(3, |comm| {
                let text = |error: CommError| error.to_string();
                let mut reducer = BucketReducer::start(comm, 400, Reduce::Fast).map_err(text)?;
                let mut vector = vec![1.0; 1000];
                reducer.submit(0, &vector[..500]);
                if comm.rank() == culprit {
                    return Err("bad gradient".to_owned());
                }
                reducer.submit(500, &vector[500..]);
                let error = reducer.wait(&mut vector).unwrap_err();
                // And it stays so.
                reducer.submit(0, &[1.0]);
                assert_eq!(reducer.wait(&mut vector), Err(error.clone()));
                Err::<(), _>(text(error))
            })
        });
        match outcome {
            Err(RunError::Failed { rank, error }) => {
                assert_eq!((rank, error.as_str()), (culprit, "bad gradient"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_panic_is_no_hang() {
    let outcome = watched(|| {
        threads::run(2, |comm| -> Result<(), CommError> {
            let mut reducer = BucketReducer::start(comm, 400, Reduce::Fast)?;
            reducer.submit(0, &[1.0; 500]);
            assert!(comm.rank() == 0, "rank 1 goes");
            reducer.submit(500, &[1.0; 500]);
            reducer.wait(&mut [0.0; 1000]).map(drop)
        })
    });
    assert!(matches!(outcome, Err(RunError::Panicked { rank: 1, .. })), "{outcome:?}");
}

#[test]
fn ranks_that_hand_in_different_pieces_are_told() {
    let errors = ranks(2, |comm| {
        let mut reducer = BucketReducer::start(comm, 400, Reduce::Fast)?;
        let mut vector = vec![1.0; 50 + comm.rank()];
        reducer.submit(0, &vector.clone());
        let error = reducer.wait(&mut vector).unwrap_err();
        comm.all_reduce(&mut [1.0], Operation::Sum, Reduce::Fast)?;
        Ok(error)
    });
    for error in errors.unwrap() {
        assert!(matches!(error, CommError::LengthMismatch { .. }), "{error}");
    }
}

#[test]
fn a_bucket_must_hold_a_value() {
    let errors = ranks(2, |comm| Ok(BucketReducer::start(comm, 3, Reduce::Fast).unwrap_err()));
    assert_eq!(errors.unwrap(), [const { CommError::BucketTooSmall { bytes: 3 } }; 2]);
}
