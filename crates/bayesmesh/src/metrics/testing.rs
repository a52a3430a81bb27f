//! What the tests of this module share: numbers from a fixed generator, and how to compare.

use super::{Metric, normal};

/// Knuth's 64-bit linear congruential generator; its high bits are good enough for these tests.
pub struct Lcg(pub u64);

impl Lcg {
    /// Uniform in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        normal::quantile(self.uniform())
    }

    /// Probabilities `[rows, classes]` and labels drawn from them: perfectly calibrated.
    pub fn classification(&mut self, rows: usize, classes: usize) -> (Vec<f32>, Vec<usize>) {
        let (mut probabilities, mut labels) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let weights: Vec<f64> = (0..classes).map(|_| (2.0 * self.normal()).exp()).collect();
            let total: f64 = weights.iter().sum();
            let mut left = self.uniform() * total;
            let label = weights.iter().position(|w| {
                left -= w;
                left < 0.0
            });
            labels.push(label.unwrap_or(classes - 1));
            probabilities.extend(weights.iter().map(|w| (w / total) as f32));
        }
        (probabilities, labels)
    }

    /// Mean, std and a target drawn from that Gaussian: perfectly calibrated.
    pub fn regression(&mut self, rows: usize) -> [Vec<f32>; 3] {
        let mut columns = [const { Vec::new() }; 3];
        for _ in 0..rows {
            let (mean, std) = (self.normal(), 0.1 + self.uniform());
            let target = mean + std * self.normal();
            for (column, value) in columns.iter_mut().zip([mean, std, target]) {
                column.push(value as f32);
            }
        }
        columns
    }
}

/// The score of that name.
pub fn score(metric: &impl Metric, name: &str) -> f64 {
    let scores = metric.scores();
    let found = scores.iter().find(|s| s.name == name);
    found.unwrap_or_else(|| panic!("no score {name} in {scores:?}")).value
}

/// Fails unless the two differ by at most `tolerance`.
#[track_caller]
pub fn assert_close(actual: f64, expected: f64, tolerance: f64) {
    assert!((actual - expected).abs() <= tolerance, "{actual} is not {expected}");
}

/// Fails unless the metric of rows `0..n` is the merged metrics of two parts, and NaN before any.
#[track_caller]
pub fn assert_merges<M: Metric>(
    rows: usize,
    new: impl Fn() -> M,
    add: impl Fn(&mut M, std::ops::Range<usize>),
) {
    let (mut whole, mut left, mut right) = (new(), new(), new());
    assert!(whole.scores().iter().all(|s| s.value.is_nan()), "{:?}", whole.scores());
    add(&mut whole, 0..rows);
    add(&mut left, 0..rows / 3);
    add(&mut right, rows / 3..rows);
    left.merge(&right).unwrap();
    assert!(whole.statistics().iter().any(|&s| s != 0.0));
    for (a, b) in left.statistics().iter().zip(whole.statistics()) {
        assert_close(*a, *b, 1e-12 * b.abs().max(1.0));
    }
    for (a, b) in left.scores().iter().zip(whole.scores()) {
        assert_eq!(a.name, b.name);
        assert!(b.value.is_finite(), "{b:?}");
        assert_close(a.value, b.value, 1e-12 * b.value.abs().max(1.0));
    }
    // An empty batch is allowed and changes nothing.
    let before = whole.statistics().to_vec();
    add(&mut whole, 0..0);
    assert_eq!(whole.statistics(), before);
    whole.reset();
    assert!(whole.statistics().iter().all(|&s| s == 0.0));
}
