//! What holds for all shares, meshes and trees. A case that once failed is kept in
//! `proptest-regressions` and tried first from then on.

mod common;

use std::collections::HashSet;
use std::ops::Range;

use bayesmesh_comm::{Communicator, Mesh, MeshError, Operation, Reduce, TreeFold, share};
use common::{add, bits, ranks, values};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

fn config(cases: u32) -> ProptestConfig {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/property_tests.txt");
    let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(file)) as _);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}

/// Numbers whose sum is finite.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => -1e6f32..1e6,
        4 => -1e-6f32..1e-6,
        1 => prop::num::f32::SUBNORMAL | prop::num::f32::ZERO,
        1 => -1e30f32..1e30,
    ]
}

/// Up to 40 vectors of one length.
fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
    (1..40usize, 1..20usize).prop_flat_map(|(count, length)| vec(vec(number(), length), count))
}

fn join(mut left: Vec<f32>, right: Vec<f32>) -> Vec<f32> {
    add(&mut left, &right);
    left
}

/// The sum by the tree.
fn fold(items: impl IntoIterator<Item = Vec<f32>>) -> Vec<f32> {
    let mut fold = TreeFold::new();
    items.into_iter().for_each(|item| fold.push(item, join));
    fold.finish(join).expect("at least one item")
}

fn mesh() -> impl Strategy<Value = Mesh> {
    (1..40usize, 1..40usize).prop_map(|(samples, data)| Mesh::new(samples, data).unwrap())
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn shares_cover_everything_once_and_in_order(total: usize, parts in 1..500usize) {
        let shares: Vec<Range<usize>> = (0..parts).map(|part| share(total, parts, part)).collect();
        prop_assert_eq!(shares[0].start, 0);
        prop_assert_eq!(shares[parts - 1].end, total);
        prop_assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
        prop_assert!(shares.iter().all(|share| share.start <= share.end));
    }

    #[test]
    fn shares_differ_by_at_most_one_and_the_first_are_the_larger(
        total in 0..5000usize,
        parts in 1..500usize,
    ) {
        let lengths: Vec<usize> = (0..parts).map(|part| share(total, parts, part).len()).collect();
        prop_assert!(lengths.is_sorted_by(|left, right| left >= right));
        prop_assert!(lengths[0] - lengths[parts - 1] <= 1);
        prop_assert!(share(total, parts, parts).is_empty());
    }

    #[test]
    fn shares_are_equal_blocks_if_they_can_be(items in 0..100usize, parts in 1..100usize) {
        for part in 0..parts {
            prop_assert_eq!(share(items * parts, parts, part), part * items..(part + 1) * items);
        }
    }

    #[test]
    fn a_mesh_is_its_text(samples in 1..=u32::MAX as usize, data in 1..=u32::MAX as usize) {
        let mesh = Mesh::new(samples, data).unwrap();
        prop_assert_eq!(mesh.to_string().parse(), Ok(mesh));
        prop_assert_eq!(mesh.size(), samples * data);
    }

    #[test]
    fn any_text_is_a_mesh_or_explained(text in prop_oneof!["[0-9x +-]{0,6}", any::<String>()]) {
        match text.parse::<Mesh>() {
            Ok(mesh) => prop_assert_eq!(mesh.to_string().parse(), Ok(mesh)),
            Err(MeshError::Parse { text: told }) => prop_assert_eq!(told, text),
            Err(error) => {
                let is_zero = |axis: &str| axis.trim().parse() == Ok(0);
                prop_assert!(text.split('x').any(is_zero), "{}: {}", text, error);
            }
        }
    }

    #[test]
    fn every_place_of_a_mesh_has_one_rank(mesh in mesh()) {
        let places: HashSet<_> = (0..mesh.size()).map(|rank| mesh.coordinates(rank)).collect();
        prop_assert_eq!(places.len(), mesh.size());
        for place in places {
            prop_assert!(place.sample < mesh.samples_size() && place.data < mesh.data_size());
        }
        // Those that share rows are neighbours.
        for rank in 1..mesh.size() {
            let (before, place) = (mesh.coordinates(rank - 1), mesh.coordinates(rank));
            prop_assert!(before.data == place.data || place.sample == 0);
        }
    }

    #[test]
    fn a_mesh_needs_its_ranks_draws_and_rows(
        mesh in mesh(),
        world in prop_oneof![1..50usize, Just(0)],
        fits: bool,
        draws in 0..50usize,
        batch in 0..50usize,
    ) {
        let world = if fits { mesh.size() } else { world };
        let valid = mesh.validate(world, draws, batch);
        let expected =
            world == mesh.size() && draws >= mesh.samples_size() && batch >= mesh.data_size();
        prop_assert_eq!(valid.is_ok(), expected);
        if expected {
            // Nobody is without work.
            let works = |items, parts| (0..parts).all(|part| !share(items, parts, part).is_empty());
            prop_assert!(works(draws, mesh.samples_size()) && works(batch, mesh.data_size()));
        }
    }

    #[test]
    fn the_default_mesh_is_the_best_there_is(
        nodes in prop_oneof![
            vec(1..9usize, 1..6),
            (1..17usize, 1..9usize).prop_map(|(ranks, nodes)| vec![ranks; nodes]),
        ],
        draws in 0..20usize,
        batch in 0..20usize,
    ) {
        let ranks: usize = nodes.iter().sum();
        let mesh = Mesh::for_nodes(&nodes, draws, batch);
        prop_assert_eq!(mesh.size(), ranks);
        prop_assert!(mesh.samples_size() <= draws.max(1));
        let meshes: Vec<Mesh> = (1..=ranks)
            .filter(|samples| ranks.is_multiple_of(*samples))
            .map(|samples| Mesh::new(samples, ranks / samples).unwrap())
            .filter(|mesh| mesh.validate(ranks, draws, batch).is_ok())
            .collect();
        // Valid if any is.
        prop_assert_eq!(meshes.contains(&mesh), !meshes.is_empty());
        let within =
            |mesh: &Mesh| nodes.iter().all(|node| node.is_multiple_of(mesh.samples_size()));
        let shares = |mesh: &&Mesh| mesh.samples_size() > 1;
        if let Some(best) = meshes.iter().rev().filter(shares).find(|mesh| within(mesh)) {
            // Draws are shared within the nodes if they can be, by as many ranks as can.
            prop_assert_eq!(mesh, *best);
        }
    }

    #[test]
    fn the_tree_nests(items in vectors(), exponent in 0..6u32) {
        let blocks = items.chunks(1 << exponent).map(|block| fold(block.to_vec()));
        prop_assert_eq!(bits(&fold(blocks)), bits(&fold(items.clone())));
    }

    #[test]
    fn the_last_item_may_come_in_pieces(items in vectors(), cuts in vec(0..20usize, 0..5)) {
        let mut before = TreeFold::new();
        let (last, first) = items.split_last().unwrap();
        first.iter().for_each(|item| before.push(item.clone(), join));
        let partials = before.into_partials();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(last.len())).collect();
        cuts.extend([0, last.len()]);
        cuts.sort_unstable();
        let piece = |cut: &[usize]| {
            let range = cut[0]..cut[1];
            let part = |item: &Vec<f32>| item[range.clone()].to_vec();
            partials.iter().rev().fold(part(last), |right, left| join(part(left), right))
        };
        let pieces: Vec<f32> = cuts.windows(2).flat_map(piece).collect();
        prop_assert_eq!(bits(&pieces), bits(&fold(items.clone())));
    }

    #[test]
    fn a_fold_keeps_every_item_in_order_and_few_partials(count in 1..2000usize) {
        let mut fold = TreeFold::new();
        let concatenate = |left: Range<usize>, right: Range<usize>| {
            assert_eq!(left.end, right.start);
            left.start..right.end
        };
        for item in 0..count {
            fold.push(item..item + 1, concatenate);
            prop_assert_eq!(fold.partials(), (item + 1).count_ones() as usize);
        }
        prop_assert_eq!(fold.finish(concatenate), Some(0..count));
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn threads_add_by_the_tree(size in 1..=9usize, length in 0..7000usize, seed: u64) {
        let of = move |rank: usize| values(seed.wrapping_add(rank as u64), length);
        let sums = ranks(size, move |comm| {
            let mut sum = of(comm.rank());
            let mut shared = sum.clone();
            comm.all_reduce(&mut sum, Operation::Sum, Reduce::Reproducible)?;
            comm.reduce_scatter(&mut shared, Reduce::Reproducible)?;
            comm.all_gather_into(&mut shared)?;
            Ok([sum, shared])
        });
        let expected = bits(&fold((0..size).map(of)));
        for sum in sums.unwrap().iter().flatten() {
            prop_assert_eq!(&bits(sum), &expected);
        }
    }

    #[test]
    fn ranks_that_fold_a_power_of_two_add_as_one_rank(
        exponent in 0..4u32,
        size in 1..=9usize,
        short in 0..8usize,
        seed: u64,
    ) {
        // The last rank may have fewer.
        let block = 1usize << exponent;
        let items = block * size - short % block;
        let of = move |item: usize| values(seed.wrapping_add(item as u64), 37);
        let sums = ranks(size, move |comm| {
            let own = comm.rank() * block..items.min((comm.rank() + 1) * block);
            let mut sum = fold(own.map(of));
            let mut joined = sum.clone();
            comm.all_reduce(&mut sum, Operation::Sum, Reduce::Reproducible)?;
            comm.tree_reduce(&mut joined, &add)?;
            Ok([sum, joined])
        });
        let expected = bits(&fold((0..items).map(of)));
        for sum in sums.unwrap().iter().flatten() {
            prop_assert_eq!(&bits(sum), &expected);
        }
    }
}
