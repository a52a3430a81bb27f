//! From uniform words to standard normal numbers, by the transformation of Box and Muller.

use std::f32::consts::{FRAC_PI_2, LN_2};

/// One over 2³².
const STEP: f32 = 1.0 / 4_294_967_296.0;

/// Four standard normal numbers from four words: the pairs (0, 1) and (2, 3) each give
/// `√(−2 ln u) · (cos 2πv, sin 2πv)` with `u = (x₀ + ½) / 2³²` and `v = x₁ / 2³²`.
///
/// `u` keeps all 32 bits, so the radius reaches `√(66 ln 2)` = 6.76.
#[inline(always)]
pub(crate) fn box_muller(words: [u32; 4]) -> [f32; 4] {
    let [x0, x1] = pair(words[0], words[1]);
    let [x2, x3] = pair(words[2], words[3]);
    [x0, x1, x2, x3]
}

#[inline(always)]
fn pair(first: u32, second: u32) -> [f32; 2] {
    let radius = minus_two_ln_of_unit(first).sqrt();
    let (cos, sin) = cos_sin_of_turn(second);
    [radius * cos, radius * sin]
}

/// `−2 ln u` of `u = (bits + ½) / 2³²`, strictly between 0 and 1, precise at both ends.
#[inline(always)]
fn minus_two_ln_of_unit(bits: u32) -> f32 {
    // With u = 2^e · (1 + f), f in [-½, 0], this is −2 ln(1 + f) − 2e ln 2. Read as a signed
    // number, the upper half of the words is u − 1, which is f: computed from a rounded u it would
    // have lost its digits near u = 1. The lower half of the words is u.
    let signed = bits as i32;
    let near = signed as f32 * STEP + 0.5 * STEP;
    let upper = (signed >> 31) as u32;
    let mantissa = f32::from_bits(near.to_bits() & 0x007F_FFFF | 0.5f32.to_bits());
    let exponent = (near.to_bits() >> 23) as i32 - 126;
    let f = select(upper, near, mantissa - 1.0);
    let exponent = exponent & !upper as i32;
    // A minimax fit in the relative error of −2 ln(1 + f), 4.6e-9.
    let square = f * f;
    let mut tail = 3.234_445_6;
    tail = tail * f + 4.366_575;
    tail = tail * f + 3.371_647_4;
    tail = tail * f + 0.883_685_23;
    tail = tail * f + 0.586_936_83;
    tail = tail * f - 0.368_860_48;
    tail = tail * f + 0.501_955_6;
    tail = tail * f - 0.666_619_8;
    exponent as f32 * (-2.0 * LN_2) + (-2.0 * f + (square + square * f * tail))
}

/// `(cos 2πv, sin 2πv)` of `v = bits / 2³²`.
#[inline(always)]
fn cos_sin_of_turn(bits: u32) -> (f32, f32) {
    const SIGN: u32 = 1 << 31;
    // Without its top two bits, and read as signed, the word is the angle from the nearest multiple
    // of a quarter turn, here in quarter turns, in [-½, ½]. The minimax fits have errors of 4.1e-9
    // and 4.1e-10.
    let t = (bits << 2) as i32 as f32 * STEP;
    let square = t * t;
    let mut tail = -4.622_954e-3;
    tail = tail * square + 7.968_988e-2;
    tail = tail * square - 0.645_964_8;
    let sin = t * FRAC_PI_2 + t * square * tail;
    let mut tail = 8.935_588e-4;
    tail = tail * square - 2.085_525_2e-2;
    tail = tail * square + 0.253_668_52;
    tail = tail * square - 1.233_700_5;
    let cos = 1.0 + square * tail;
    // Which multiple it was is in the top two bits: 0 (c, s), 1 (-s, c), 2 (-c, -s), 3 (s, -c).
    let quarter = bits.wrapping_add(1 << 29);
    let odd = quarter << 1;
    let swap = (odd as i32 >> 31) as u32;
    let (x, y) = (select(swap, sin, cos), select(swap, cos, sin));
    (
        f32::from_bits(x.to_bits() ^ ((quarter ^ odd) & SIGN)),
        f32::from_bits(y.to_bits() ^ (quarter & SIGN)),
    )
}

/// `yes` where `mask` is all ones, `no` where it is all zeros. An `if` may become a branch, and
/// then the loop around it is no longer vectorised.
#[inline(always)]
fn select(mask: u32, yes: f32, no: f32) -> f32 {
    f32::from_bits(yes.to_bits() & mask | no.to_bits() & !mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words at the ends and the middle of the range, and a walk over the rest.
    fn words() -> impl Iterator<Item = u32> {
        let edges = (0..8u32).flat_map(|octant| {
            (0..1 << 14).flat_map(move |k| [(octant << 29).wrapping_add(k), (octant << 29) ^ !k])
        });
        (0..1 << 22).map(|k: u32| k.wrapping_mul(0x9E37_79B1)).chain(edges)
    }

    #[test]
    fn the_logarithm_is_within_two_ulp() {
        let mut worst = 0.0f64;
        for word in words() {
            let u = (f64::from(word) + 0.5) / 4_294_967_296.0;
            // ln u = ln_1p(u - 1) keeps the reference itself precise near 1.
            let exact = -2.0 * if u > 0.5 { (u - 1.0).ln_1p() } else { u.ln() };
            let value = minus_two_ln_of_unit(word);
            let ulp = f64::from((exact as f32).next_up()) - f64::from(exact as f32);
            worst = worst.max((f64::from(value) - exact).abs() / ulp);
        }
        println!("-2 ln u: {worst} ulp");
        assert!(worst < 2.0, "{worst} ulp");
    }

    #[test]
    fn cos_and_sin_are_within_1e_7() {
        let mut worst = 0.0f64;
        for word in words() {
            let (exact_sin, exact_cos) =
                (f64::from(word) / 4_294_967_296.0 * std::f64::consts::TAU).sin_cos();
            let (cos, sin) = cos_sin_of_turn(word);
            worst = worst.max((f64::from(cos) - exact_cos).abs());
            worst = worst.max((f64::from(sin) - exact_sin).abs());
        }
        println!("cos, sin: {worst}");
        assert!(worst < 1e-7, "{worst}");
    }

    #[test]
    fn cos_and_sin_of_the_quarters_are_exact() {
        assert_eq!(cos_sin_of_turn(0), (1.0, 0.0));
        assert_eq!(cos_sin_of_turn(1 << 30), (0.0, 1.0));
        assert_eq!(cos_sin_of_turn(2 << 30), (-1.0, 0.0));
        assert_eq!(cos_sin_of_turn(3 << 30), (0.0, -1.0));
    }

    #[test]
    fn the_radius_is_precise_at_both_ends() {
        let radius = |word: u32| f64::from(box_muller([word, 0, word, 0])[0]);
        assert!((radius(0) - (66.0 * std::f64::consts::LN_2).sqrt()).abs() < 1e-6);
        // Near u = 1 the radius is √(2(1 - u)), here √(2 · (k + ½) / 2³²).
        for k in 0..1000u32 {
            let exact = ((f64::from(k) + 0.5) / 2_147_483_648.0).sqrt();
            assert!((radius(!k) / exact - 1.0).abs() < 1e-6, "{k}");
        }
    }

    /// The probability of a number above `bound` is the mean over the words of the radius of the
    /// share of the circle that is above it, arccos(bound / r) / π.
    #[test]
    fn the_tail_is_right_to_six_sigma() {
        // Standard normal tail probabilities.
        let tails = [(4.0, 3.167_124e-5), (5.0, 2.866_516e-7), (5.5, 1.898_956e-8)];
        for (bound, exact) in tails.into_iter().chain([(6.0, 9.865_876e-10)]) {
            let shares = (0..).map(|word| f64::from(minus_two_ln_of_unit(word)).sqrt());
            let shares = shares.take_while(|&radius| radius > bound);
            let sum: f64 =
                shares.map(|radius| (bound / radius).acos() / std::f64::consts::PI).sum();
            let probability = sum / 4_294_967_296.0;
            // What is left is that u comes in steps of 2^-32: 66 of them make the tail beyond 6.
            let tolerance = 4e-12 / exact;
            println!("tail beyond {bound}: {probability:e} for {exact:e}");
            assert!(
                (probability / exact - 1.0).abs() < tolerance.max(1e-5),
                "{bound}: {probability:e}"
            );
        }
    }
}
