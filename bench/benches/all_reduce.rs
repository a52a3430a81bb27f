//! The all-reduce of a gradient of the paper's ViT, 5.4 million values, between thread ranks; and
//! of a loss summary, 640 values.

use std::time::{Duration, Instant};

use bayesmesh_comm::{CommError, Communicator, Operation, Reduce, threads};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Time of `iterations` all-reduces in a row, the slowest rank's.
fn time(ranks: usize, length: usize, reduce: Reduce, iterations: u64) -> Duration {
    let times = threads::run(ranks, |comm| -> Result<Duration, CommError> {
        let mut values = vec![0.0; length];
        comm.all_reduce(&mut values, Operation::Sum, reduce)?;
        let start = Instant::now();
        for _ in 0..iterations {
            comm.all_reduce(&mut values, Operation::Sum, reduce)?;
        }
        Ok(start.elapsed())
    });
    times.expect("no rank fails").into_iter().max().expect("at least one rank")
}

fn all_reduce(criterion: &mut Criterion) {
    for length in [640, 5_400_000] {
        let mut group = criterion.benchmark_group(format!("all_reduce of {length}"));
        group.throughput(Throughput::Elements(length as u64)).sample_size(20);
        for reduce in [Reduce::Fast, Reduce::Reproducible] {
            for ranks in [2, 4] {
                group.bench_function(BenchmarkId::new(reduce.to_string(), ranks), |bencher| {
                    bencher.iter_custom(|iterations| time(ranks, length, reduce, iterations));
                });
            }
        }
    }
}

criterion_group!(benches, all_reduce);
criterion_main!(benches);
