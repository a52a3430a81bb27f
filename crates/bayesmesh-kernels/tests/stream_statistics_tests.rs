//! The promises of the random streams about their distributions and their independence.
//!
//! Seeds are fixed, so a test here either always passes or always fails. The bounds are those a
//! right generator keeps with a probability above 99.9 % per comparison.

use bayesmesh_kernels::stream::{Purpose, Stream};

const PURPOSES: [Purpose; 6] = [
    Purpose::Weights,
    Purpose::Dropout,
    Purpose::Augmentation,
    Purpose::Shuffle,
    Purpose::Initialisation,
    Purpose::Synthesis,
];

fn uniforms(stream: &Stream, length: usize) -> Vec<f32> {
    let mut out = vec![0.0; length];
    stream.fill_uniform(0, &mut out);
    out
}

fn normals(stream: &Stream, length: usize) -> Vec<f32> {
    let mut out = vec![0.0; length];
    stream.fill_normal(0, &mut out);
    out
}

/// Mean, variance, skewness and excess kurtosis.
fn moments(values: &[f32]) -> [f64; 4] {
    let n = values.len() as f64;
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let central = |power| values.iter().map(|&x| (f64::from(x) - mean).powi(power)).sum::<f64>();
    let variance = central(2) / n;
    [
        mean,
        variance,
        central(3) / n / variance.powf(1.5),
        central(4) / n / (variance * variance) - 3.0,
    ]
}

#[test]
fn moments_are_right() {
    let n = 1 << 22;
    let root = (n as f64).sqrt();
    for seed in 0..4 {
        // Standard errors over √n. Uniform: σ, √(μ₄ − σ⁴), and for skewness and kurtosis the delta
        // method from the central moments up to the eighth. Normal: 1, √2, √6, √24.
        let uniform = moments(&uniforms(&Stream::new(seed, Purpose::Synthesis), n));
        let expected = [(0.5, 0.288_675), (1.0 / 12.0, 0.074_536), (0.0, 1.43427), (-1.2, 1.14742)];
        for (value, (exact, error)) in uniform.into_iter().zip(expected) {
            assert!((value - exact).abs() < 4.0 * error / root, "{seed}: {value} for {exact}");
        }
        let normal = moments(&normals(&Stream::new(seed, Purpose::Weights), n));
        let expected = [(0.0, 1.0), (1.0, 2f64.sqrt()), (0.0, 6f64.sqrt()), (0.0, 24f64.sqrt())];
        for (value, (exact, error)) in normal.into_iter().zip(expected) {
            assert!((value - exact).abs() < 4.0 * error / root, "{seed}: {value} for {exact}");
        }
    }
}

/// The standard normal distribution function, by Marsaglia's series.
fn phi(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// √n times the largest distance between the empirical distribution and `cdf`.
fn kolmogorov_smirnov(mut values: Vec<f32>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f32::total_cmp);
    let n = values.len() as f64;
    let distance = values.iter().enumerate().fold(0.0f64, |worst, (i, &x)| {
        let p = cdf(f64::from(x));
        worst.max(p - i as f64 / n).max((i + 1) as f64 / n - p)
    });
    distance * n.sqrt()
}

#[test]
fn kolmogorov_smirnov_accepts_uniform_and_normal() {
    let n = 1 << 20;
    for seed in 0..4 {
        // 2.23 is exceeded with probability 1e-4; below 0.37 with probability 1e-3.
        let uniform = uniforms(&Stream::new(seed, Purpose::Shuffle), n);
        assert!(uniform.iter().all(|u| (0.0..1.0).contains(u)));
        let statistic = kolmogorov_smirnov(uniform, |x| x);
        assert!((0.37..2.23).contains(&statistic), "uniform, seed {seed}: {statistic}");
        let statistic = kolmogorov_smirnov(normals(&Stream::new(seed, Purpose::Weights), n), phi);
        assert!((0.37..2.23).contains(&statistic), "normal, seed {seed}: {statistic}");
    }
}

#[test]
fn tails_are_right_to_five_and_a_half_sigma() {
    const BOUNDS: [f32; 5] = [1.0, 3.0, 4.0, 5.0, 5.5];
    let mut above = [0u32; 5];
    let mut below = [0u32; 5];
    let mut chunk = vec![0.0f32; 1 << 16];
    let chunks = 1 << 13;
    for index in 0..chunks {
        let stream = Stream::new(5, Purpose::Weights);
        stream.fill_normal(index << 16, &mut chunk);
        for (k, bound) in BOUNDS.into_iter().enumerate() {
            above[k] += chunk.iter().map(|&z| u32::from(z > bound)).sum::<u32>();
            below[k] += chunk.iter().map(|&z| u32::from(z < -bound)).sum::<u32>();
        }
    }
    for (k, bound) in BOUNDS.into_iter().enumerate() {
        let expected = phi(-f64::from(bound)) * (chunks << 16) as f64;
        for count in [above[k], below[k]] {
            let off = (f64::from(count) - expected) / expected.sqrt();
            println!("beyond {bound}: {count}, expected {expected:.1}");
            assert!(off.abs() < 4.0, "beyond {bound}: {count} for {expected}");
        }
    }
}

/// Two columns that must be independent, with what they are.
fn pairs() -> Vec<(&'static str, Stream, Stream)> {
    let base = Stream::new(77, Purpose::Weights).at_step(10).at_draw(20).at_tensor(30);
    let mut pairs = vec![
        ("steps", base, base.at_step(11)),
        ("draws", base, base.at_draw(21)),
        ("tensors", base, base.at_tensor(31)),
        ("steps for draws", base.at_step(20).at_draw(10), base),
    ];
    for purposes in PURPOSES.windows(2) {
        pairs.push(("purposes", Stream::new(77, purposes[0]), Stream::new(77, purposes[1])));
    }
    for bit in [0, 1, 31, 32, 63] {
        let (a, b) = (Stream::new(0, Purpose::Weights), Stream::new(1 << bit, Purpose::Weights));
        pairs.push(("seeds", a, b));
    }
    pairs
}

fn correlation(a: &[f32], b: &[f32]) -> f64 {
    let ([mean_a, variance_a, ..], [mean_b, variance_b, ..]) = (moments(a), moments(b));
    let product = |(&a, &b): (&f32, &f32)| (f64::from(a) - mean_a) * (f64::from(b) - mean_b);
    a.iter().zip(b).map(product).sum::<f64>() / a.len() as f64 / (variance_a * variance_b).sqrt()
}

/// The deviations of the χ² of 32 × 32 joint bins of two uniform columns from its expectation.
fn joint_chi_square(a: &[f32], b: &[f32]) -> f64 {
    let mut counts = vec![0u32; 1024];
    for (a, b) in a.iter().zip(b) {
        counts[(a * 32.0) as usize * 32 + (b * 32.0) as usize] += 1;
    }
    let chi_square = chi_square(&counts);
    (chi_square - 1023.0) / 2046f64.sqrt()
}

fn chi_square(counts: &[u32]) -> f64 {
    let expected = counts.iter().sum::<u32>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum()
}

fn assert_independent(what: &str, a: &Stream, b: &Stream, lag: usize) {
    let n = 1 << 20;
    let (u, v) = (uniforms(a, n), &uniforms(b, n + lag)[lag..]);
    let deviations = joint_chi_square(&u, v);
    assert!(deviations.abs() < 4.0, "{what}: χ² is {deviations} deviations off");
    let (z, w) = (normals(a, n), &normals(b, n + lag)[lag..]);
    let squares = |values: &[f32]| values.iter().map(|x| x * x).collect::<Vec<_>>();
    let correlations =
        [correlation(&u, v), correlation(&z, w), correlation(&squares(&z), &squares(w))];
    for correlation in correlations {
        let deviations = correlation * (n as f64).sqrt();
        assert!(deviations.abs() < 4.0, "{what}: correlation {deviations} deviations off");
    }
}

#[test]
fn neighbouring_streams_are_independent() {
    for (what, a, b) in pairs() {
        assert_independent(what, &a, &b, 0);
    }
}

#[test]
fn neighbouring_elements_are_independent() {
    let stream = Stream::new(78, Purpose::Weights);
    for lag in [1, 2, 3, 4, 8, 128] {
        assert_independent(&format!("lag {lag}"), &stream, &stream, lag);
    }
}

#[test]
fn bernoulli_has_its_rate() {
    let n = 1 << 20;
    let mut out = vec![0.0; n];
    for (draw, probability) in [0.001, 0.1, 0.5, 0.9].into_iter().enumerate() {
        let stream = Stream::new(3, Purpose::Dropout).at_draw(draw as u32);
        stream.fill_bernoulli(0, probability, &mut out);
        assert!(out.iter().all(|&x| x == 0.0 || x == 1.0));
        let p = f64::from(probability);
        let off =
            (out.iter().sum::<f32>() as f64 - n as f64 * p) / (n as f64 * p * (1.0 - p)).sqrt();
        assert!(off.abs() < 4.0, "{probability}: {off} deviations off");
    }
    for (probability, value) in [(0.0, 0.0), (-1.0, 0.0), (f32::NAN, 0.0), (1.0, 1.0), (2.0, 1.0)] {
        Stream::new(3, Purpose::Dropout).fill_bernoulli(0, probability, &mut out);
        assert!(out.iter().all(|&x| x == value), "{probability}");
    }
}

#[test]
fn below_is_uniform_and_below() {
    let stream = Stream::new(4, Purpose::Augmentation);
    for bound in [1u32, 2, 3, 7, 10, 9] {
        let mut counts = vec![0u32; bound as usize];
        for element in 0..100_000 {
            counts[stream.below(element, bound) as usize] += 1;
        }
        let freedom = f64::from(bound - 1);
        let limit = freedom + 4.0 * (2.0 * freedom).sqrt() + 8.0;
        assert!(chi_square(&counts) < limit, "{bound}: {counts:?}");
    }
    assert!((0..10_000).all(|e| stream.below(e, u32::MAX) < u32::MAX));
    assert!((0..10_000).any(|e| stream.below(e, u32::MAX) > u32::MAX / 10 * 9));
    assert_eq!(stream.below(0, 0), 0);
}

#[test]
fn all_permutations_are_equally_likely() {
    let mut counts = [0u32; 120];
    for step in 0..120_000 {
        let order = Stream::new(7, Purpose::Shuffle).at_step(step).permutation(5);
        // The number of the permutation in the factorial system.
        let rank = (0..5).fold(0, |rank, i| {
            rank * (5 - i) + order[i + 1..].iter().filter(|&&later| later < order[i]).count()
        });
        counts[rank] += 1;
    }
    let deviations = (chi_square(&counts) - 119.0) / 238f64.sqrt();
    assert!(deviations.abs() < 4.0, "χ² is {deviations} deviations off");
}
