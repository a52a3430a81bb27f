//! Starting thread ranks.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bayesmesh_comm::{Communicator, RunError, threads};
use common::ranks;

#[test]
fn results_come_in_rank_order_and_one_rank_needs_no_thread() {
    let results = ranks(5, |comm| Ok((comm.rank(), comm.size()))).unwrap();
    assert_eq!(results, [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5)]);

    let here = std::thread::current().id();
    threads::run(1, |_| -> Result<(), String> {
        assert_eq!(std::thread::current().id(), here);
        Ok(())
    })
    .unwrap();
}

#[test]
fn no_ranks_is_an_error() {
    let error = ranks(0, |_| Ok(())).unwrap_err();
    assert!(matches!(error, RunError::NoRanks), "{error}");
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    for size in [1, 2, 3, 5, 8] {
        let come = Arc::new(AtomicUsize::new(0));
        ranks(size, move |comm| {
            for round in 1..=100 {
                come.fetch_add(1, Ordering::SeqCst);
                comm.barrier()?;
                assert!(come.load(Ordering::SeqCst) >= round * size);
            }
            Ok(())
        })
        .unwrap();
    }
}
