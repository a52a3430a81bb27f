//! The promise behind reproducible mode: how many ranks share the items does not change a bit.

mod common;

use bayesmesh_comm::{Communicator, Operation, Reduce, TreeFold, share};
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

/// The sum over `items` items shared by `size` ranks, by `all_reduce` and by `tree_reduce`.
fn shared(items: usize, size: usize) -> (Vec<f32>, Vec<f32>) {
    let mut results = ranks(size, move |comm| {
        let mut by_all_reduce = fold(share(items, size, comm.rank()));
        let mut by_tree_reduce = by_all_reduce.clone();
        comm.all_reduce(&mut by_all_reduce, Operation::Sum, Reduce::Reproducible)?;
        comm.tree_reduce(&mut by_tree_reduce, &add)?;
        Ok((by_all_reduce, by_tree_reduce))
    })
    .unwrap();
    for result in &results {
        assert_eq!((bits(&result.0), bits(&result.1)), (bits(&results[0].0), bits(&results[0].1)));
    }
    results.swap_remove(0)
}

#[test]
fn powers_of_two_give_the_bits_of_one_rank() {
    for items in [1, 2, 4, 8, 16, 32] {
        let serial = bits(&fold(0..items));
        for size in [1, 2, 4, 8].into_iter().filter(|&size| size <= items) {
            let (all_reduced, tree_reduced) = shared(items, size);
            assert_eq!(bits(&all_reduced), serial, "{items} items on {size} ranks");
            assert_eq!(bits(&tree_reduced), serial, "{items} items on {size} ranks");
        }
    }
}

#[test]
fn equal_powers_of_two_per_rank_are_enough() {
    for (items, size) in [(12, 3), (10, 5), (24, 6), (7, 7)] {
        let (all_reduced, tree_reduced) = shared(items, size);
        assert_eq!(bits(&all_reduced), bits(&fold(0..items)), "{items} items on {size} ranks");
        assert_eq!(bits(&tree_reduced), bits(&fold(0..items)), "{items} items on {size} ranks");
    }
}

#[test]
fn the_data_can_tell_orders_apart() {
    // Otherwise the tests above could not fail.
    for items in [4, 8, 16, 32] {
        let one_by_one = (0..items).map(|item| values(item as u64, LENGTH)).reduce(join).unwrap();
        assert_ne!(bits(&one_by_one), bits(&fold(0..items)));
    }
    // Blocks of three are no subtree.
    assert_ne!(bits(&shared(6, 2).0), bits(&fold(0..6)));
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

/// Folding keeps every item once and in order, in logarithmic memory.
#[test]
fn fold_keeps_order_and_little() {
    let concatenate = |mut left: Vec<usize>, right: Vec<usize>| {
        left.extend(right);
        left
    };
    for n in 1..300 {
        let mut fold = TreeFold::new();
        for item in 0..n {
            fold.push(vec![item], concatenate);
            assert!(fold.partials() <= (item + 1).ilog2() as usize + 1);
        }
        assert_eq!(fold.finish(concatenate), Some((0..n).collect()));
    }
}
