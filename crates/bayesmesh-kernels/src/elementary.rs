//! Exponential and logarithm in single precision from additions, multiplications and integer
//! operations alone, so that they vectorise and give the same bits on every machine.
//!
//! The polynomials are minimax fits in the relative error of the whole function.

use std::f32::consts::{FRAC_1_SQRT_2, LN_2, LOG2_E};

/// `ln(1 + f)` for `f` in `[√½ − 1, √2 − 1]`; the error of the fit is 5.9e-9, relative.
#[inline(always)]
fn ln_1p_reduced(f: f32) -> f32 {
    let square = f * f;
    let mut tail = -0.076_364_39;
    tail = tail * f + 0.127_622_17;
    tail = tail * f - 0.131_596_1;
    tail = tail * f + 0.142_015_8;
    tail = tail * f - 0.166_234_09;
    tail = tail * f + 0.200_012_42;
    tail = tail * f - 0.250_008_2;
    tail = tail * f + 0.333_333_3;
    f + (square * f * tail - 0.5 * square)
}

/// `ln(x)` of a positive, normal, finite `x`.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // x = 2^exponent · mantissa with the mantissa in [√½, √2).
    let bits = x.to_bits() as i32;
    let exponent = bits.wrapping_sub(FRAC_1_SQRT_2.to_bits() as i32) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
    exponent as f32 * LN_2 + ln_1p_reduced(mantissa - 1.0)
}

/// `ln(1 + x)` for `x` in `[0, 1]`; a NaN passes.
#[inline(always)]
pub(crate) fn ln_1p_of_unit(x: f32) -> f32 {
    const SQRT_2_LESS_1: f32 = std::f32::consts::SQRT_2 - 1.0;
    let upper = x > SQRT_2_LESS_1;
    let f = if upper { 0.5 * (x - 1.0) } else { x };
    (if upper { LN_2 } else { 0.0 }) + ln_1p_reduced(f)
}

/// `exp(x)`: infinite above 88.73, subnormal and then 0 below -87.34; a NaN passes.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding this number rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    // Outside this range the result is 0 or infinite anyway; comparisons let a NaN pass.
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let rounded = x * LOG2_E + ROUND;
    let power = (rounded.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let whole = rounded - ROUND;
    let r = x - whole * LN_2_HIGH - whole * LN_2_LOW;
    let mut tail = 0.001_382_146_8;
    tail = tail * r + 0.008_368_663;
    tail = tail * r + 0.041_668_255;
    tail = tail * r + 0.166_665_21;
    tail = tail * r + 0.499_999_94;
    let mantissa = 1.0 + (r + r * r * tail);
    // 2^power is beyond the exponents of f32 at both ends, so it is applied in two halves.
    let half = power >> 1;
    mantissa * power_of_two(half) * power_of_two(power.wrapping_sub(half))
}

/// `(Φ(x), φ(x))`: distribution function and density of the standard normal; a NaN passes.
///
/// With `e = exp(-x²/2)` and `s = c|x| / (1 + c|x|)` the tail is `Φ(-|x|) = e·(½ + s·P(s))`, where
/// P is a minimax fit with an error of 2.5e-10. The error of Φ is below 1e-7, and in the lower tail
/// below 1e-5 of Φ down to -4.
#[inline(always)]
pub(crate) fn normal_cdf_pdf(x: f32) -> (f32, f32) {
    const C: f32 = 0.3;
    const FRAC_1_SQRT_2PI: f32 = 0.398_942_3;
    // Beyond 15 the density is zero; the limit keeps infinity from s.
    let a = x.abs();
    let a = if a > 15.0 { 15.0 } else { a };
    let density = exp(-0.5 * a * a);
    let scaled = C * a;
    let s = scaled / (1.0 + scaled);
    let mut tail = -0.051_979_89;
    tail = tail * s + 0.038_772_866;
    tail = tail * s + 0.148_203_75;
    tail = tail * s - 0.056_044_44;
    tail = tail * s - 0.699_451_5;
    tail = tail * s + 1.447_968_8;
    tail = tail * s - 1.329_807_5;
    let below = density * (0.5 + s * tail);
    (if x > 0.0 { 1.0 - below } else { below }, density * FRAC_1_SQRT_2PI)
}

/// `2^n` for `n` in `[-126, 127]`.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance between `value` and `exact` in units of the last place of `exact`.
    fn ulps(value: f32, exact: f64) -> f64 {
        let magnitude = (exact.abs() as f32).max(f32::MIN_POSITIVE);
        let ulp = f64::from(magnitude.next_up()) - f64::from(magnitude);
        (f64::from(value) - exact).abs() / ulp
    }

    #[test]
    fn ln_and_ln_1p_are_within_two_ulp() {
        let (mut worst_ln, mut worst_ln_1p) = (0.0f64, 0.0f64);
        for k in 0..1 << 22 {
            let bits = f32::MIN_POSITIVE.to_bits() + k * 507;
            let x = f32::from_bits(bits);
            assert!(x.is_finite());
            worst_ln = worst_ln.max(ulps(ln(x), f64::from(x).ln()));
            if x <= 1.0 {
                worst_ln_1p = worst_ln_1p.max(ulps(ln_1p_of_unit(x), f64::from(x).ln_1p()));
            }
        }
        for k in 0..1 << 22 {
            let x = k as f32 / (1 << 22) as f32;
            worst_ln_1p = worst_ln_1p.max(ulps(ln_1p_of_unit(x), f64::from(x).ln_1p()));
        }
        println!("ln: {worst_ln} ulp, ln_1p: {worst_ln_1p} ulp");
        assert!(worst_ln < 2.0, "{worst_ln} ulp");
        assert!(worst_ln_1p < 2.0, "{worst_ln_1p} ulp");
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(ln_1p_of_unit(0.0), 0.0);
        assert!(ln_1p_of_unit(f32::NAN).is_nan());
    }

    #[test]
    fn exp_is_within_two_ulp_over_the_whole_range() {
        let mut worst = 0.0f64;
        for k in -(1 << 22)..(1 << 22) {
            let x = k as f32 * (110.0 / (1 << 22) as f32);
            let exact = f64::from(x).exp();
            let value = exp(x);
            if exact > f64::from(f32::MAX) {
                assert_eq!(value, f32::INFINITY, "exp({x})");
            } else if exact < f64::from(f32::MIN_POSITIVE) {
                // Among the subnormal numbers a unit of the last place is 2^-149.
                let error = (f64::from(value) - exact).abs() * 2f64.powi(149);
                assert!(error < 1.01, "exp({x}) = {value}, {error} units of 2^-149 off");
            } else {
                worst = worst.max(ulps(value, exact));
            }
        }
        println!("exp: {worst} ulp");
        assert!(worst < 2.0, "{worst} ulp");
    }

    /// `Φ(x)` in double precision, by the series of Abramowitz and Stegun 26.2.11 where it
    /// converges fast and the continued fraction 26.2.14 beyond.
    fn exact_cdf(x: f64) -> f64 {
        let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let a = x.abs();
        if a < 3.0 {
            let (mut term, mut sum, mut n) = (x, x, 1.0);
            while term.abs() > 1e-18 {
                n += 2.0;
                term *= x * x / n;
                sum += term;
            }
            return 0.5 + density * sum;
        }
        let fraction = (1..200).rev().fold(a, |f, k| a + f64::from(k) / f);
        if x < 0.0 { density / fraction } else { 1.0 - density / fraction }
    }

    #[test]
    fn the_normal_distribution_is_within_a_ten_millionth() {
        let (mut worst, mut worst_density, mut worst_tail) = (0.0f64, 0.0f64, 0.0f64);
        for k in -(1 << 21)..(1 << 21) {
            let x = k as f32 * (20.0 / (1 << 21) as f32);
            let exact = exact_cdf(f64::from(x));
            let (cdf, pdf) = normal_cdf_pdf(x);
            worst = worst.max((f64::from(cdf) - exact).abs());
            let density = (-0.5 * f64::from(x).powi(2)).exp() / std::f64::consts::TAU.sqrt();
            worst_density = worst_density.max((f64::from(pdf) - density).abs());
            if (-4.0..0.0).contains(&x) {
                worst_tail = worst_tail.max((f64::from(cdf) / exact - 1.0).abs());
            }
        }
        println!("cdf: {worst:e}, pdf: {worst_density:e}, lower tail: {worst_tail:e} of it");
        assert!(worst < 1e-7 && worst_density < 1e-7, "{worst:e} {worst_density:e}");
        assert!(worst_tail < 1e-5, "{worst_tail:e}");
    }

    #[test]
    fn the_normal_distribution_of_the_special_values() {
        assert_eq!(normal_cdf_pdf(0.0).0, 0.5);
        assert_eq!(normal_cdf_pdf(f32::INFINITY), (1.0, 0.0));
        assert_eq!(normal_cdf_pdf(f32::NEG_INFINITY), (0.0, 0.0));
        let (cdf, pdf) = normal_cdf_pdf(f32::NAN);
        assert!(cdf.is_nan() && pdf.is_nan());
    }

    #[test]
    fn exp_of_the_special_values() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(f32::MAX), f32::INFINITY);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::MIN), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }
}
