//! Every collective against the same computation done serially, on several world sizes.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bayesmesh_comm::{Communicator, Operation, Reduce, RunError, threads};
use common::{bits, ranks, values};

const SIZES: [usize; 6] = [1, 2, 3, 4, 5, 8];
/// Nothing, one, less than a block of the implementation, and several with a ragged end.
const LENGTHS: [usize; 5] = [0, 1, 7, 2048, 3 * 2048 * 5 + 13];
const MODES: [Reduce; 2] = [Reduce::Fast, Reduce::Reproducible];

#[test]
fn sums_agree_with_f64_and_between_ranks() {
    for size in SIZES {
        for length in LENGTHS {
            for reduce in MODES {
                let results = ranks(size, move |comm| {
                    let mut mine = values(comm.rank() as u64, length);
                    comm.all_reduce(&mut mine, Operation::Sum, reduce)?;
                    Ok(mine)
                })
                .unwrap();
                let inputs: Vec<_> = (0..size).map(|rank| values(rank as u64, length)).collect();
                for i in 0..length {
                    let exact: f64 = inputs.iter().map(|input| f64::from(input[i])).sum();
                    let magnitude: f64 = inputs.iter().map(|input| f64::from(input[i].abs())).sum();
                    let error = (f64::from(results[0][i]) - exact).abs();
                    // Each of the at most 3 levels of the tree rounds once.
                    assert!(error <= 3.0 * magnitude * f64::from(f32::EPSILON), "{i}: {error}");
                }
                for result in &results {
                    assert_eq!(bits(result), bits(&results[0]));
                }
            }
        }
    }
}

#[test]
fn double_precision_sums_are_exact_on_integers_beyond_f32() {
    for size in SIZES {
        for length in LENGTHS {
            let results = ranks(size, move |comm| {
                let scale = (comm.rank() + 1) as f64;
                let mut mine: Vec<f64> = (0..length).map(|i| scale * (i as f64 + 1e12)).collect();
                comm.all_reduce_f64(&mut mine, Operation::Sum, Reduce::Reproducible)?;
                Ok(mine)
            })
            .unwrap();
            let scale = (size * (size + 1) / 2) as f64;
            let expected: Vec<f64> = (0..length).map(|i| scale * (i as f64 + 1e12)).collect();
            assert!(results.iter().all(|result| *result == expected));
        }
    }
}

#[test]
fn maxima_are_exact() {
    for size in SIZES {
        for length in LENGTHS {
            for reduce in MODES {
                let results = ranks(size, move |comm| {
                    let mut mine = values(comm.rank() as u64, length);
                    let mut wide: Vec<f64> = mine.iter().map(|&value| f64::from(value)).collect();
                    comm.all_reduce(&mut mine, Operation::Max, reduce)?;
                    comm.all_reduce_f64(&mut wide, Operation::Max, reduce)?;
                    assert!(mine.iter().zip(&wide).all(|(&a, &b)| f64::from(a) == b));
                    Ok(mine)
                })
                .unwrap();
                let inputs: Vec<_> = (0..size).map(|rank| values(rank as u64, length)).collect();
                let expected: Vec<f32> = (0..length)
                    .map(|i| inputs.iter().map(|input| input[i]).fold(f32::MIN, f32::max))
                    .collect();
                assert!(results.iter().all(|result| *result == expected));
            }
        }
    }
}

#[test]
fn a_maximum_with_a_nan_is_nan_whoever_has_it() {
    for culprit in 0..5 {
        let results = ranks(5, move |comm| {
            let mut mine = [comm.rank() as f32, 1.0];
            if comm.rank() == culprit {
                mine[0] = f32::NAN;
            }
            comm.all_reduce(&mut mine, Operation::Max, Reduce::Fast)?;
            Ok(mine)
        })
        .unwrap();
        assert!(results.iter().all(|result| result[0].is_nan() && result[1] == 1.0));
    }
}

/// `[count, mean, m2]`: merging is neither element-wise nor a sum.
fn merge_moments(left: &mut [f32], right: &[f32]) {
    let (count, delta) = (left[0] + right[0], right[1] - left[1]);
    left[2] += right[2] + delta * delta * left[0] * right[0] / count;
    left[1] += delta * right[0] / count;
    left[0] = count;
}

#[test]
fn tree_reduce_merges_moments() {
    for size in SIZES {
        let results = ranks(size, move |comm| {
            // Rank r holds the values r and r + 1: count 2, mean r + 1/2, m2 1/2.
            let mut moments = [2.0, comm.rank() as f32 + 0.5, 0.5];
            comm.tree_reduce(&mut moments, &merge_moments)?;
            Ok(moments)
        })
        .unwrap();
        let all: Vec<f32> = (0..size).flat_map(|rank| [rank as f32, rank as f32 + 1.0]).collect();
        let count = all.len() as f32;
        let mean = all.iter().sum::<f32>() / count;
        let m2: f32 = all.iter().map(|value| (value - mean).powi(2)).sum();
        for result in results {
            assert_eq!(result[0], count);
            assert!((result[1] - mean).abs() < 1e-5, "{} {mean}", result[1]);
            assert!((result[2] - m2).abs() < 1e-4, "{} {m2}", result[2]);
        }
    }
}

#[test]
fn gather_keeps_rank_order_and_lengths() {
    for size in SIZES {
        let gathered = ranks(size, |comm| {
            // Rank 0 has nothing, rank r has 3r values.
            comm.all_gather(&values(comm.rank() as u64, 3 * comm.rank()))
        })
        .unwrap();
        let expected: Vec<_> = (0..size).map(|rank| values(rank as u64, 3 * rank)).collect();
        assert!(gathered.iter().all(|result| *result == expected));
    }
}

#[test]
fn broadcast_copies_every_root() {
    for size in SIZES {
        for root in 0..size {
            let results = ranks(size, move |comm| {
                let mut mine = values(comm.rank() as u64, 5000);
                comm.broadcast(&mut mine, root)?;
                Ok(mine)
            })
            .unwrap();
            let expected = values(root as u64, 5000);
            assert!(results.iter().all(|result| *result == expected));
        }
    }
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    for size in SIZES {
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
