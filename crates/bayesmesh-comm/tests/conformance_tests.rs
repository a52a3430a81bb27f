//! Threads pass the suite for communicators, and communicators with a fault do not.

mod broken;
mod common;

use bayesmesh_comm::{RunError, conformance, threads};
use broken::{Broken, DEFECTS, Defect};
use common::watched;

/// How the suite ends on so many ranks that have a defect, or none.
fn outcome(size: usize, defect: Option<Defect>) -> Result<Vec<()>, RunError<String>> {
    watched(move || {
        threads::run(size, |comm| match defect {
            Some(defect) => conformance::check(&Broken::new(comm, defect)),
            None => conformance::check(comm),
        })
    })
}

#[test]
fn threads_pass() {
    for size in 1..=9 {
        outcome(size, None).unwrap_or_else(|error| panic!("{size} ranks: {error}"));
    }
}

#[test]
fn forwarding_without_a_defect_passes() {
    // Otherwise the tests below would show nothing.
    outcome(5, Some(Defect::Forwards)).unwrap();
}

#[test]
fn every_defect_is_caught_and_named() {
    for (defect, check) in DEFECTS {
        match outcome(4, Some(defect)) {
            Err(RunError::Failed { error, .. }) => {
                assert!(error.starts_with(&format!("{check}: ")), "{defect:?}: {error}");
            }
            other => panic!("{defect:?}: {other:?}"),
        }
    }
}

#[test]
fn all_ranks_hear_of_a_fault() {
    // Only rank 3 sees it; the others would wait for it in the next call.
    let errors = watched(|| {
        threads::run(5, |comm| -> Result<String, String> {
            Ok(conformance::check(&Broken::new(comm, Defect::OneRankAddsOtherwise)).unwrap_err())
        })
    });
    match errors {
        Err(RunError::Aborted { rank: 3, reason }) => {
            assert!(reason.starts_with("all_reduce, reproducible sums: f32"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}
