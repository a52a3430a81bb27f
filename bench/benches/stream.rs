//! Elements per second of the random streams and the Gaussian kernels on one core, at every level
//! of vector instructions the machine has.

use std::hint::black_box;
use std::time::Duration;

use bayesmesh_kernels::gaussian::{
    Prior, Scale, kl_monte_carlo, kl_normal, sample, sample_backward,
};
use bayesmesh_kernels::simd::Level;
use bayesmesh_kernels::stream::{Purpose, Stream};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};

/// Small enough that every slice stays in the second-level cache.
const ELEMENTS: usize = 1 << 15;

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(ELEMENTS as u64));
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group
}

fn streams(criterion: &mut Criterion) {
    let stream = Stream::new(1, Purpose::Weights);
    let mut bits = vec![0; ELEMENTS];
    let mut out = vec![0.0; ELEMENTS];
    for level in Level::available() {
        let mut group = group(criterion, &format!("stream/{level:?}"));
        level.force(|| {
            group.bench_function("bits", |b| b.iter(|| stream.fill_bits(0, black_box(&mut bits))));
            group.bench_function("uniform", |b| {
                b.iter(|| stream.fill_uniform(0, black_box(&mut out)));
            });
            group.bench_function("normal", |b| {
                b.iter(|| stream.fill_normal(0, black_box(&mut out)));
            });
            group.bench_function("bernoulli", |b| {
                b.iter(|| stream.fill_bernoulli(0, 0.1, black_box(&mut out)));
            });
        });
    }
}

fn gaussians(criterion: &mut Criterion) {
    let stream = Stream::new(1, Purpose::Weights);
    let [mut mean, mut rho, mut out, mut grad_mean, mut grad_rho] =
        [0; 5].map(|_| vec![0.0f32; ELEMENTS]);
    stream.at_tensor(1).fill_normal(0, &mut mean);
    stream.at_tensor(2).fill_normal(0, &mut rho);
    rho.iter_mut().for_each(|rho| *rho -= 4.0);
    let priors = [
        ("normal", Prior::Normal { mean: 0.0, std: 1.0 }),
        ("mixture", Prior::ScaleMixture { weight: 0.5, std_wide: 1.0, std_narrow: 0.1 }),
    ];
    for level in Level::available() {
        for scale in [Scale::Exp, Scale::Softplus] {
            let mut group = group(criterion, &format!("gaussian/{level:?}/{scale:?}"));
            level.force(|| {
                group.bench_function("sample", |b| {
                    b.iter(|| sample(&stream, 0, scale, &mean, &rho, black_box(&mut out)));
                });
                group.bench_function("sample_backward", |b| {
                    b.iter(|| sample_backward(&stream, 0, scale, &rho, &mean, black_box(&mut out)));
                });
                group.bench_function("kl_normal", |b| {
                    b.iter(|| {
                        let (by_mean, by_rho) = (&mut grad_mean, &mut grad_rho);
                        kl_normal(scale, &mean, &rho, 0.0, 1.0, 1e-6, by_mean, by_rho)
                    });
                });
                for (name, prior) in &priors {
                    group.bench_function(format!("kl_monte_carlo/{name}"), |b| {
                        b.iter(|| {
                            let (by_mean, by_rho) = (&mut grad_mean, &mut grad_rho);
                            kl_monte_carlo(
                                &stream, 0, scale, &mean, &rho, prior, 1e-6, by_mean, by_rho,
                            )
                        });
                    });
                }
            });
        }
    }
}

criterion_group!(benches, streams, gaussians);
criterion_main!(benches);
