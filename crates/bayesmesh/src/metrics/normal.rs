//! The standard normal distribution in double precision.

use std::f64::consts::{PI, SQRT_2};

/// Beyond this |x| the tail's continued fraction converges faster than the series.
const TAIL: f64 = 3.0;
/// Steps of the continued fraction; at `x = TAIL` its error is then below rounding.
const TAIL_STEPS: usize = 50;

/// Density `φ(x) = exp(−x²/2) / √(2π)`.
pub fn pdf(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (SQRT_2 * PI.sqrt())
}

/// Distribution function `Φ(x) = ∫_{−∞}^{x} φ`, to 1e-15 absolutely, and for `x < 0` to 1e-12
/// relatively as far as `f64` reaches.
pub fn cdf(x: f64) -> f64 {
    if x < 0.0 { upper_tail(-x) } else { 1.0 - upper_tail(x) }
}

/// `1 − Φ(x)` for `x ≥ 0` (NaN for NaN).
///
/// Near the centre `Φ(x) = ½ + φ(x) Σ_k x^(2k+1) / (1·3·5 ⋯ (2k+1))`, a sum of positive terms;
/// in the tail Laplace's fraction `φ(x) / (x + 1/(x + 2/(x + 3/(x + …))))`.
pub(super) fn upper_tail(x: f64) -> f64 {
    if x >= TAIL {
        let fraction = (1..=TAIL_STEPS).rev().fold(x, |f, k| x + k as f64 / f);
        return pdf(x) / fraction;
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term > sum * 1e-17 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 - pdf(x) * sum
}

/// Quantile function `Φ⁻¹(p)`, to 1e-12: −∞ at 0, ∞ at 1, NaN outside `[0, 1]`.
///
/// A rational first guess in `√(−2 ln p)` of the nearer tail, good to 5e-4 (Abramowitz and Stegun
/// 26.2.23), then two of Halley's steps, each of which cubes the error.
pub fn quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    // 1 − p is exact where it is used, so the upper half is as good as the lower.
    let tail = p.min(1.0 - p);
    let sign = if p < 0.5 { -1.0 } else { 1.0 };
    if tail == 0.0 {
        return sign * f64::INFINITY;
    }
    let t = (-2.0 * tail.ln()).sqrt();
    let numerator = 2.515517 + t * (0.802853 + t * 0.010328);
    let denominator = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308));
    let mut x = (t - numerator / denominator).max(0.0);
    for _ in 0..2 {
        // Newton's step of Q(x) − tail, whose derivative is −φ(x), then Halley's correction.
        let step = (upper_tail(x) - tail) / pdf(x);
        x += step / (1.0 - 0.5 * x * step);
    }
    sign * x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Φ(b) − Φ(a) by composite Simpson's rule.
    fn integral(a: f64, b: f64) -> f64 {
        let n = 4000;
        let h = (b - a) / n as f64;
        let weight = |i: usize| match i {
            0 => 1.0,
            i if i == n => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (0..=n).map(|i| weight(i) * pdf(a + h * i as f64)).sum::<f64>() * h / 3.0
    }

    #[test]
    fn cdf_is_the_integral_of_the_density() {
        for i in -60..=60 {
            let x = f64::from(i) * 0.1;
            let expected = 0.5 + integral(0.0, x);
            assert!((cdf(x) - expected).abs() < 1e-13, "x {x}: {} vs {expected}", cdf(x));
        }
    }

    #[test]
    fn cdf_has_known_values() {
        // 0.5 * erfc(-x / sqrt(2)) of the C library, by Python's math.erfc.
        for (x, expected) in [
            (-1.0, 0.15865525393145707),
            (-2.999, 0.0013543365337271066),
            (-3.0, 0.0013498980316300957),
            (-10.0, 7.619853024160593e-24),
            (-37.0, 5.725571222525139e-300),
        ] {
            let ratio = cdf(x) / expected;
            assert!((ratio - 1.0).abs() < 1e-12, "x {x}: {}", cdf(x));
        }
        assert_eq!(cdf(0.0), 0.5);
        assert_eq!((cdf(f64::INFINITY), cdf(f64::NEG_INFINITY)), (1.0, 0.0));
        assert!(cdf(f64::NAN).is_nan());
    }

    #[test]
    fn quantile_has_known_values() {
        // statistics.NormalDist().inv_cdf of Python.
        for (p, expected) in [
            (0.75, 0.6744897501960817),
            (0.95, 1.6448536269514715),
            (0.975, 1.9599639845400536),
            (1e-10, -6.361340902404056),
        ] {
            assert!((quantile(p) - expected).abs() < 1e-12, "p {p}: {}", quantile(p));
        }
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(quantile(-0.1).is_nan() && quantile(1.1).is_nan() && quantile(f64::NAN).is_nan());
    }

    #[test]
    fn quantile_inverts_the_cdf() {
        for i in -370..=50 {
            let x = f64::from(i) * 0.1;
            // Above the centre, Φ itself is only known to 1e-16 / φ(x) in x.
            let tolerance = if x < 0.0 { 1e-11 } else { 1e-12 + 2e-16 / pdf(x) };
            let back = quantile(cdf(x));
            assert!((back - x).abs() < tolerance, "x {x}: {back}");
        }
    }
}
