//! Sums in an order that is fixed and still vectorises.

// Loops over arrays and slices of one length by their index are what becomes vector instructions.
#![allow(clippy::needless_range_loop)]

/// Numbers that are added side by side.
const LANES: usize = 16;

/// Adds the lanes pairwise.
#[inline(always)]
fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// `Σ f(v)`.
#[inline(always)]
pub(super) fn sum(values: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] += f(chunk[i]);
        }
    }
    for i in 0..rest.len() {
        lanes[i] += f(rest[i]);
    }
    fold(lanes)
}

/// `Σ a·(b − shift)`.
#[inline(always)]
pub(super) fn dot_shifted(a: &[f32], b: &[f32], shift: f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let ((a_chunks, a_rest), (b_chunks, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for k in 0..a_chunks.len().min(b_chunks.len()) {
        let (a, b) = (&a_chunks[k], &b_chunks[k]);
        for i in 0..LANES {
            lanes[i] += a[i] * (b[i] - shift);
        }
    }
    for i in 0..a_rest.len().min(b_rest.len()) {
        lanes[i] += a_rest[i] * (b_rest[i] - shift);
    }
    fold(lanes)
}

/// The largest value; what is not a number is passed over.
#[inline(always)]
pub(super) fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = if chunk[i] > lanes[i] { chunk[i] } else { lanes[i] };
        }
    }
    for i in 0..rest.len() {
        lanes[i] = if rest[i] > lanes[i] { rest[i] } else { lanes[i] };
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, |max, v| if v > max { v } else { max })
}

/// Adds one vector to another.
#[inline(always)]
pub(super) fn add_into(sum: &mut [f32], values: &[f32]) {
    let length = sum.len().min(values.len());
    let (sum, values) = (&mut sum[..length], &values[..length]);
    for i in 0..length {
        sum[i] += values[i];
    }
}
