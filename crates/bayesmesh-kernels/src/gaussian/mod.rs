//! Slice kernels of the mean-field Gaussian: drawing weights, the gradient of a draw, and the
//! divergence from a prior.
//!
//! A weight is `w = μ + σ(ρ)·ε` with standard normal `ε`. The noise is never stored: every kernel
//! that needs it computes it again from the [`Stream`], a chunk at a time on the stack. All results
//! are the same bits at every [`simd`](crate::simd) level; sums run in double precision in
//! an order that depends on nothing but the range.

mod divergence;
mod prior;
mod scale;

pub use divergence::{kl_monte_carlo, kl_normal};
pub use prior::Prior;
pub use scale::Scale;

use crate::simd::{Kernel, dispatch, parallel};
use std::ops::Range;

use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use crate::stream::Stream;
use crate::stream::fill::Chunk;
use crate::stream::normal::box_muller;

/// Numbers that a thread handles at a time.
const PIECE: usize = 1 << 15;

/// Draws weights: `out[i] = mean[i] + σ(rho[i]) · ε(start + i)`, where `ε` is what
/// [`Stream::fill_normal`] gives.
///
/// # Panics
///
/// If the slices differ in length or the range passes [`Stream::ELEMENTS`].
pub fn sample(
    stream: &Stream,
    start: u64,
    scale: Scale,
    mean: &[f32],
    rho: &[f32],
    out: &mut [f32],
) {
    check_lengths(&[mean.len(), rho.len(), out.len()]);
    stream.check_range(start, mean.len());
    let pieces = mean.par_chunks(PIECE).zip(rho.par_chunks(PIECE)).zip(out.par_chunks_mut(PIECE));
    parallel(pieces.enumerate(), |(piece, ((mean, rho), out))| {
        let start = start + (piece * PIECE) as u64;
        dispatch(Sample { stream, start, scale, mean, rho, out });
    });
}

/// The gradient of [`sample`]: `grad_rho[i] = grad[i] · ε(start + i) · σ'(rho[i])`, where `grad` is
/// the gradient of the drawn weights. The gradient of the mean is `grad` itself.
///
/// # Panics
///
/// If the slices differ in length or the range passes [`Stream::ELEMENTS`].
pub fn sample_backward(
    stream: &Stream,
    start: u64,
    scale: Scale,
    rho: &[f32],
    grad: &[f32],
    grad_rho: &mut [f32],
) {
    check_lengths(&[rho.len(), grad.len(), grad_rho.len()]);
    stream.check_range(start, rho.len());
    dispatch(SampleBackward { stream, start, scale, rho, grad, grad_rho });
}

/// Adds the gradient of [`sample`] to sums: `sum_mean[i] += grad[i]` and
/// `sum_rho[i] += grad[i] · ε(start + i) · σ'(rho[i])`, in one pass.
///
/// # Panics
///
/// If the slices differ in length or the range passes [`Stream::ELEMENTS`].
pub fn add_sample_backward(
    stream: &Stream,
    start: u64,
    scale: Scale,
    rho: &[f32],
    grad: &[f32],
    sum_mean: &mut [f32],
    sum_rho: &mut [f32],
) {
    check_lengths(&[rho.len(), grad.len(), sum_mean.len(), sum_rho.len()]);
    stream.check_range(start, rho.len());
    let pieces = rho.par_chunks(PIECE).zip(grad.par_chunks(PIECE));
    let sums = sum_mean.par_chunks_mut(PIECE).zip(sum_rho.par_chunks_mut(PIECE));
    parallel(pieces.zip(sums).enumerate(), |(piece, ((rho, grad), (sum_mean, sum_rho)))| {
        let start = start + (piece * PIECE) as u64;
        dispatch(AddSampleBackward { stream, start, scale, rho, grad, sum_mean, sum_rho });
    });
}

/// Panics unless all lengths are the same.
fn check_lengths(lengths: &[usize]) {
    assert!(
        lengths.iter().all(|length| *length == lengths[0]),
        "the slices of a Gaussian kernel differ in length: {lengths:?}"
    );
}

/// The noise of a range of numbers, a chunk at a time. Not a function that calls a closure for
/// each, which would not be compiled for the level.
struct Noise<'a> {
    stream: &'a Stream,
    start: u64,
    len: usize,
    done: usize,
    chunk: Chunk<f32>,
}

impl<'a> Noise<'a> {
    #[inline(always)]
    fn new(stream: &'a Stream, start: u64, len: usize) -> Self {
        Self { stream, start, len, done: 0, chunk: Chunk::default() }
    }

    /// Where the next chunk is, and its noise.
    #[inline(always)]
    fn next(&mut self) -> Option<(Range<usize>, &[f32])> {
        if self.done == self.len {
            return None;
        }
        // A copy, which no write can change: the key schedule stays where it is.
        let stream = *self.stream;
        let (element, left) = (self.start + self.done as u64, self.len - self.done);
        let noise = self.chunk.generate(&stream, element, left, box_muller);
        let first = self.done;
        self.done += noise.len();
        Some((first..self.done, noise))
    }
}

struct Sample<'a> {
    stream: &'a Stream,
    start: u64,
    scale: Scale,
    mean: &'a [f32],
    rho: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Sample<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // With a literal scale the loops are compiled for it.
        match self.scale {
            Scale::Exp => self.run_with(Scale::Exp),
            Scale::Softplus => self.run_with(Scale::Softplus),
        }
    }
}

impl Sample<'_> {
    #[inline(always)]
    fn run_with(self, scale: Scale) {
        let Self { stream, start, mean, rho, out, .. } = self;
        let mut noise = Noise::new(stream, start, out.len());
        while let Some((range, noise)) = noise.next() {
            let (mean, rho) = (&mean[range.clone()], &rho[range.clone()]);
            let out = &mut out[range];
            for i in 0..noise.len() {
                out[i] = mean[i] + scale.apply(rho[i]) * noise[i];
            }
        }
    }
}

struct SampleBackward<'a> {
    stream: &'a Stream,
    start: u64,
    scale: Scale,
    rho: &'a [f32],
    grad: &'a [f32],
    grad_rho: &'a mut [f32],
}

impl Kernel for SampleBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.scale {
            Scale::Exp => self.run_with(Scale::Exp),
            Scale::Softplus => self.run_with(Scale::Softplus),
        }
    }
}

impl SampleBackward<'_> {
    #[inline(always)]
    fn run_with(self, scale: Scale) {
        let Self { stream, start, rho, grad, grad_rho, .. } = self;
        let mut noise = Noise::new(stream, start, grad.len());
        while let Some((range, noise)) = noise.next() {
            let (rho, grad) = (&rho[range.clone()], &grad[range.clone()]);
            let grad_rho = &mut grad_rho[range];
            for i in 0..noise.len() {
                grad_rho[i] = grad[i] * noise[i] * scale.derivative(rho[i]);
            }
        }
    }
}

struct AddSampleBackward<'a> {
    stream: &'a Stream,
    start: u64,
    scale: Scale,
    rho: &'a [f32],
    grad: &'a [f32],
    sum_mean: &'a mut [f32],
    sum_rho: &'a mut [f32],
}

impl Kernel for AddSampleBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.scale {
            Scale::Exp => self.run_with(Scale::Exp),
            Scale::Softplus => self.run_with(Scale::Softplus),
        }
    }
}

impl AddSampleBackward<'_> {
    #[inline(always)]
    fn run_with(self, scale: Scale) {
        let Self { stream, start, rho, grad, sum_mean, sum_rho, .. } = self;
        let mut noise = Noise::new(stream, start, grad.len());
        while let Some((range, noise)) = noise.next() {
            let (rho, grad) = (&rho[range.clone()], &grad[range.clone()]);
            let (sum_mean, sum_rho) = (&mut sum_mean[range.clone()], &mut sum_rho[range]);
            for i in 0..noise.len() {
                sum_mean[i] += grad[i];
                sum_rho[i] += grad[i] * noise[i] * scale.derivative(rho[i]);
            }
        }
    }
}
