//! What the property tests of the tree rest on, and that nobody's being late changes a bit.

mod common;

use bayesmesh_comm::{Communicator, Operation, Reduce, TreeFold};
use common::{add, bits, ranks, values};

const LENGTH: usize = 37;

fn join(mut left: Vec<f32>, right: Vec<f32>) -> Vec<f32> {
    add(&mut left, &right);
    left
}

/// The sum over `items` by the tree.
fn fold(items: impl Iterator<Item = usize>) -> Vec<f32> {
    let mut fold = TreeFold::new();
    for item in items {
        fold.push(values(item as u64, LENGTH), join);
    }
    fold.finish(join).expect("at least one item")
}

#[test]
fn the_data_can_tell_orders_apart() {
    // Otherwise neither these tests nor the property tests could fail.
    for items in [4, 8, 16, 32] {
        let one_by_one = (0..items).map(|item| values(item as u64, LENGTH)).reduce(join).unwrap();
        assert_ne!(bits(&one_by_one), bits(&fold(0..items)));
    }
    // Blocks of three are no subtree.
    assert_ne!(bits(&join(fold(0..3), fold(3..6))), bits(&fold(0..6)));
}

#[test]
fn the_order_of_arrival_does_not_matter() {
    let expected = bits(&fold(0..5));
    for late in 0..5 {
        let results = ranks(5, move |comm| {
            let mut mine = values(comm.rank() as u64, LENGTH);
            if comm.rank() == late {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            comm.all_reduce(&mut mine, Operation::Sum, Reduce::Reproducible)?;
            Ok(mine)
        })
        .unwrap();
        assert!(results.iter().all(|result| bits(result) == expected));
    }
}
