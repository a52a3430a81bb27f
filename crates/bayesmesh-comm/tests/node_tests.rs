//! Ranks of one node: one reads for all.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bayesmesh_comm::{
    CommError, Communicator, NodeShared, Processors, RunError, node_processors, node_sizes,
};
use common::{ranks, values};

#[test]
fn everything_is_read_once_and_in_turns() {
    for size in [1, 2, 3, 5] {
        let read = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&read);
        let turns = ranks(size, move |comm| {
            let node = NodeShared::new(comm)?;
            assert_eq!((node.node().rank(), node.node().size()), (comm.rank(), size));
            let mut own = 0;
            for turn in 0..30 {
                // Batches need not be equally long, nor have anything.
                let length = 100 * (turn % 4);
                let batch = node.share(turn, || {
                    count.fetch_add(1, Ordering::SeqCst);
                    own += 1;
                    Ok::<_, CommError>(values(turn as u64, length))
                })?;
                assert_eq!(batch, values(turn as u64, length));
            }
            Ok(own)
        });
        assert_eq!(turns.unwrap(), vec![30 / size; size]);
        assert_eq!(read.load(Ordering::SeqCst), 30);
    }
}

#[test]
fn a_reader_that_fails_ends_the_run() {
    let outcome = common::watched(|| {
        bayesmesh_comm::threads::run(3, |comm| -> Result<(), Box<dyn std::error::Error + Send>> {
            let boxed = |error| -> Box<dyn std::error::Error + Send> { Box::new(error) };
            let node = NodeShared::new(comm).map_err(boxed)?;
            let read = || Err(CommError::Thread { reason: "no such file".to_owned() });
            node.share(1, read).map(drop).map_err(boxed)
        })
    });
    match outcome {
        Err(RunError::Failed { rank: 1, error }) => {
            assert!(error.to_string().contains("no such file"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn threads_are_on_one_node() {
    for size in [1, 2, 6] {
        let nodes = ranks(size, |comm| node_sizes(comm)).unwrap();
        assert_eq!(nodes, vec![vec![size]; size]);
    }
}

#[test]
fn ranks_divide_the_processors_of_their_node() {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    for size in [1, 2, 3] {
        let found = ranks(size, |comm| node_processors(comm)).unwrap();
        assert_eq!(found, vec![Processors { count: all, ranks: size }; size]);
        assert_eq!(found[0].each(), (all / size).max(1));
    }
}
