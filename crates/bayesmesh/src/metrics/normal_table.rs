//! Functions of the normal distribution that are needed a billion times: from a table.
//!
//! Both are smooth, so that a cubic on each of the intervals `[i/512, (i+1)/512]` of `[0, 8]` that
//! has their values and slopes at both ends is within 1e-13 of them.

use std::sync::LazyLock;

use super::normal;

/// Where the tables end. Beyond it, `E|z + N(0, 1)|` is z and Φ(z) is 1, to 1e-15.
const END: f64 = 8.0;
/// Intervals of a unit of length.
const PER_UNIT: f64 = 512.0;

/// Cubics on equal intervals of `[0, 8]`.
pub(crate) struct NormalTable {
    /// `g(z) = E|z + N(0, 1)| = 2φ(z) + z (2Φ(z) − 1)`; its slope is `2Φ(z) − 1`.
    absolute: Vec<[f64; 4]>,
    /// Φ(z), whose slope is φ(z).
    cdf: Vec<[f64; 4]>,
}

static TABLE: LazyLock<NormalTable> = LazyLock::new(|| NormalTable {
    absolute: cubics(
        |z| 2.0 * normal::pdf(z) + z * (1.0 - 2.0 * normal::upper_tail(z)),
        |z| 1.0 - 2.0 * normal::upper_tail(z),
    ),
    cdf: cubics(normal::cdf, normal::pdf),
});

/// On each interval the coefficients of the cubic with these values and slopes at its ends, in the
/// variable that runs from 0 to 1.
fn cubics(value: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64) -> Vec<[f64; 4]> {
    let nodes = 0..=(END * PER_UNIT) as usize;
    let nodes = nodes.map(|node| node as f64 / PER_UNIT).map(|z| (value(z), slope(z) / PER_UNIT));
    let nodes: Vec<(f64, f64)> = nodes.collect();
    let cubic = |ends: &[(f64, f64)]| {
        let ((left, rise), (right, last)) = (ends[0], ends[1]);
        let gain = right - left;
        [left, rise, 3.0 * gain - 2.0 * rise - last, rise + last - 2.0 * gain]
    };
    nodes.windows(2).map(cubic).collect()
}

/// The value at `z` of `[0, 8)`.
fn at(cubics: &[[f64; 4]], z: f64) -> f64 {
    let place = z * PER_UNIT;
    let interval = place as usize;
    let t = place - interval as f64;
    let [a, b, c, d] = cubics[interval];
    a + t * (b + t * (c + t * d))
}

impl NormalTable {
    /// The one table.
    pub fn get() -> &'static Self {
        &TABLE
    }

    /// `E|X|` of `X ~ N(μ, σ²)` from `|μ|` and `z = |μ|/σ`. A σ of zero is allowed: then z is
    /// infinite, or not a number where μ is zero too, and the result is |μ|.
    pub fn absolute(&self, distance: f64, z: f64, std: f64) -> f64 {
        if z < END { std * at(&self.absolute, z) } else { distance }
    }

    /// Φ(x).
    pub fn cdf(&self, x: f64) -> f64 {
        let upper = match x.abs() {
            z if z < END => at(&self.cdf, z),
            _ => 1.0,
        };
        if x < 0.0 { 1.0 - upper } else { upper }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes, middles of intervals, where the error is largest, and places between.
    fn places() -> impl Iterator<Item = f64> {
        (0..8 * 512 * 8).map(|i| f64::from(i) / (512.0 * 8.0))
    }

    #[test]
    fn the_mean_absolute_value_is_that_of_the_closed_form() {
        let table = NormalTable::get();
        for z in places().chain([8.0, 9.0, 40.0]) {
            let exact = 2.0 * normal::pdf(z) + z * (1.0 - 2.0 * normal::upper_tail(z));
            let found = table.absolute(z, z, 1.0);
            assert!((found - exact).abs() < 1e-13, "{z}: {found} is not {exact}");
        }
        // In other units, and without any noise.
        let (distance, std) = (1.7e5, 3.1e5);
        let exact = std * table.absolute(distance / std, distance / std, 1.0);
        assert!((table.absolute(distance, distance / std, std) / exact - 1.0).abs() < 1e-15);
        assert_eq!(table.absolute(2.5, f64::INFINITY, 0.0), 2.5);
        assert_eq!(table.absolute(0.0, f64::NAN, 0.0), 0.0);
    }

    #[test]
    fn the_distribution_function_is_that_of_the_series() {
        let table = NormalTable::get();
        for z in places().chain([8.0, 9.0, 40.0, f64::INFINITY]) {
            for x in [z, -z] {
                let (found, exact) = (table.cdf(x), normal::cdf(x));
                assert!((found - exact).abs() < 1e-13, "{x}: {found} is not {exact}");
            }
        }
    }
}
