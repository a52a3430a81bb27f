//! A rank that fails takes the run down with its own reason; nobody hangs, whatever they wait for.

mod common;

use std::fmt::Debug;
use std::thread::sleep;
use std::time::Duration;

use bayesmesh_comm::{CommError, Communicator, Operation, Reduce, RunError, threads};
use common::{ranks, watched};

type Call = fn(&dyn Communicator) -> Result<(), CommError>;

/// Every kind of collective call.
const CALLS: [(&str, Call); 12] = [
    ("all_reduce", |comm| comm.all_reduce(&mut [1.0; 5000], Operation::Sum, Reduce::Fast)),
    ("all_reduce_f64", |comm| comm.all_reduce_f64(&mut [1.0], Operation::Max, Reduce::Fast)),
    ("all_reduce_u64", |comm| comm.all_reduce_u64(&mut [1], Operation::Sum)),
    ("tree_reduce", |comm| comm.tree_reduce(&mut [1.0], &|left, right| left[0] += right[0])),
    ("all_gather", |comm| comm.all_gather(&[1.0]).map(drop)),
    ("reduce_scatter", |comm| comm.reduce_scatter(&mut [1.0; 5000], Reduce::Fast).map(drop)),
    ("all_gather_into", |comm| comm.all_gather_into(&mut [1.0; 5000])),
    ("all_gather_bytes", |comm| comm.all_gather_bytes(&[1]).map(drop)),
    ("broadcast", |comm| comm.broadcast(&mut [1.0], 0)),
    ("broadcast_bytes", |comm| comm.broadcast_bytes(&mut vec![1], 0)),
    ("barrier", |comm| comm.barrier()),
    ("split", |comm| comm.split(0).map(drop)),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Error,
    Panic,
    Abort,
    Return,
}

const FAULTS: [Fault; 4] = [Fault::Error, Fault::Panic, Fault::Abort, Fault::Return];
const CULPRIT: usize = 2;
const REASON: &str = "the disk is full";

impl Fault {
    /// Ends the culprit's body. The pause makes it likely that the others already wait; without it
    /// they are likely to come later. Both must work.
    fn happen(self, comm: &dyn Communicator, late: bool) -> Result<(), String> {
        if late {
            sleep(Duration::from_millis(3));
        }
        match self {
            Fault::Error => Err(REASON.to_owned()),
            Fault::Panic => panic!("{REASON}"),
            Fault::Abort => {
                comm.abort(REASON);
                Ok(())
            }
            Fault::Return => Ok(()),
        }
    }

    /// What a rank that waits for the culprit is told.
    fn seen_by_others(self) -> Vec<CommError> {
        let failed = CommError::PeerFailed { rank: CULPRIT, reason: REASON.to_owned() };
        let left = CommError::PeerLeft { rank: CULPRIT };
        // The first rank told that the culprit left fails because of it; then the others may see
        // that failure instead.
        let consequence =
            (0..4).map(|rank| CommError::PeerFailed { rank, reason: left.to_string() });
        match self {
            Fault::Return => [left.clone()].into_iter().chain(consequence).collect(),
            _ => vec![failed],
        }
    }

    fn check_run<T: Debug>(self, outcome: Result<Vec<T>, RunError<String>>) {
        let error = outcome.expect_err("the run must fail");
        match (self, &error) {
            (Fault::Error, RunError::Failed { rank, error }) => {
                assert_eq!((*rank, error.as_str()), (CULPRIT, REASON));
            }
            (Fault::Panic, RunError::Panicked { rank, message }) => {
                assert_eq!((*rank, message.as_str()), (CULPRIT, REASON));
            }
            (Fault::Abort, RunError::Aborted { rank, reason }) => {
                assert_eq!((*rank, reason.as_str()), (CULPRIT, REASON));
            }
            (Fault::Return, RunError::Failed { rank, error }) => {
                assert_ne!(*rank, CULPRIT);
                assert_eq!(*error, CommError::PeerLeft { rank: CULPRIT }.to_string());
            }
            _ => panic!("{self:?} became {error:?}"),
        }
    }
}

/// Runs four ranks of which `victim` is what all but the culprit do. It returns the error of the
/// call that cannot complete.
fn inject(
    fault: Fault,
    late: bool,
    prepare: fn(&dyn Communicator) -> Option<Box<dyn Communicator>>,
    victim: impl Fn(&dyn Communicator, Option<&dyn Communicator>) -> Result<(), CommError>
    + Send
    + Sync
    + 'static,
) {
    let outcome = watched(move || {
        threads::run(4, |comm| {
            let part = prepare(comm);
            if comm.rank() == CULPRIT {
                return fault.happen(part.as_deref().unwrap_or(comm), late);
            }
            let error = victim(comm, part.as_deref()).expect_err("the culprit never came");
            assert!(fault.seen_by_others().contains(&error), "{fault:?}: {error:?}");
            if fault != Fault::Return {
                // It stays so, on every communicator and for every call.
                for (name, call) in CALLS {
                    assert_eq!(call(comm), Err(error.clone()), "{name}");
                    assert_eq!(
                        part.as_deref().map_or(Err(error.clone()), call),
                        Err(error.clone())
                    );
                }
            }
            Err(error.to_string())
        })
    });
    fault.check_run(outcome);
}

#[test]
fn in_the_world_during_every_call() {
    for fault in FAULTS {
        for (_, call) in CALLS {
            for late in [false, true] {
                inject(fault, late, |_| None, move |comm, _| call(comm));
            }
        }
    }
}

#[test]
fn in_a_split_during_every_call() {
    for fault in FAULTS {
        for (_, call) in CALLS {
            for late in [false, true] {
                // The part of the culprit: all four ranks in one, by way of a split.
                let prepare = |comm: &dyn Communicator| Some(comm.split(7).unwrap());
                inject(fault, late, prepare, move |_, part| call(part.unwrap()));
            }
        }
    }
}

#[test]
fn in_a_split_without_the_culprit() {
    for fault in FAULTS {
        for (_, call) in CALLS {
            for late in [false, true] {
                // Parts {0, 1, 3} and {2}. Rank 0 waits in its part for the ranks 1 and 3, which
                // wait in the world for rank 2.
                let prepare = |comm: &dyn Communicator| {
                    Some(comm.split(usize::from(comm.rank() == CULPRIT)).unwrap())
                };
                inject(fault, late, prepare, move |comm, part| match comm.rank() {
                    0 => call(part.unwrap()),
                    _ => call(comm),
                });
            }
        }
    }
}

#[test]
fn a_part_goes_on_when_others_have_finished() {
    let sums = ranks(5, |comm| {
        let part = comm.split(comm.rank() % 2)?;
        let mut sum = [comm.rank() as f32];
        if comm.rank() % 2 == 0 {
            // Ranks 1 and 3 have probably returned by now.
            sleep(Duration::from_millis(5));
            for _ in 0..100 {
                part.barrier()?;
            }
            part.all_reduce(&mut sum, Operation::Sum, Reduce::Fast)?;
        }
        Ok(sum[0])
    });
    assert_eq!(sums.unwrap(), [6.0, 1.0, 6.0, 3.0, 6.0]);
}

#[test]
fn finishing_right_after_a_call_disturbs_nobody() {
    for round in 0..200 {
        let sums = ranks(4, move |comm| {
            let mut sum = [round as f32];
            comm.all_reduce(&mut sum, Operation::Sum, Reduce::Fast)?;
            Ok(sum[0])
        });
        assert_eq!(sums.unwrap(), [4.0 * round as f32; 4]);
    }
}

#[test]
fn a_panic_while_combining_reaches_everyone() {
    // With five ranks, rank 4 is combined in last, by rank 0, and rank 3 first, by rank 2.
    for (culprit, partner) in [(0, 4.0), (2, 3.0)] {
        let outcome = watched(move || {
            threads::run(5, |comm| {
                let mut values = vec![comm.rank() as f32; 3000];
                let combine = |_: &mut [f32], right: &[f32]| {
                    assert!(right[0] != partner, "cannot combine");
                };
                let error = comm.tree_reduce(&mut values, &combine).unwrap_err();
                let reason = "cannot combine".to_owned();
                assert_eq!(error, CommError::PeerFailed { rank: culprit, reason });
                Err::<(), _>(error.to_string())
            })
        });
        match outcome {
            Err(RunError::Panicked { rank, message }) => {
                assert_eq!((rank, message.as_str()), (culprit, "cannot combine"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_first_failure_wins() {
    let outcome = watched(|| {
        threads::run(3, |comm| {
            match comm.rank() {
                1 => comm.abort("first"),
                _ => while comm.barrier().is_ok() {},
            }
            comm.abort("second");
            Err::<(), _>(format!("error of rank {}", comm.rank()))
        })
    });
    match outcome {
        Err(RunError::Failed { rank: 1, error }) => assert_eq!(error, "error of rank 1"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_single_rank_fails_like_many() {
    let failed = threads::run(1, |_| Err::<(), _>("no".to_owned()));
    assert!(matches!(failed, Err(RunError::Failed { rank: 0, error }) if error == "no"));
    let panicked = threads::run(1, |_| -> Result<(), String> { panic!("oh {}", "no") });
    assert!(matches!(panicked, Err(RunError::Panicked { rank: 0, message }) if message == "oh no"));
}

#[test]
fn a_communicator_that_outlives_its_run_waits_for_nobody() {
    let mut parts = ranks(2, |comm| comm.split(0)).unwrap();
    let part = parts.swap_remove(1);
    let error = watched(move || part.barrier().unwrap_err());
    assert!(matches!(error, CommError::PeerLeft { .. }), "{error}");
}
