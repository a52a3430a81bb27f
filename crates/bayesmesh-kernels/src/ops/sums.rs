//! Sums in an order that is fixed and still vectorises.

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
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] += f(chunk[i]);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane += f(value);
    }
    fold(lanes)
}

/// `Σ a·(b − shift)`.
#[inline(always)]
pub(super) fn dot_shifted(a: &[f32], b: &[f32], shift: f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for i in 0..LANES {
            lanes[i] += a[i] * (b[i] - shift);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(rest) {
        *lane += a * (b - shift);
    }
    fold(lanes)
}

/// The largest value; what is not a number is passed over.
#[inline(always)]
pub(super) fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] = if chunk[i] > lanes[i] { chunk[i] } else { lanes[i] };
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = if value > *lane { value } else { *lane };
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, |max, v| if v > max { v } else { max })
}

/// Adds one vector to another.
#[inline(always)]
pub(super) fn add_into(sum: &mut [f32], values: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += value;
    }
}
