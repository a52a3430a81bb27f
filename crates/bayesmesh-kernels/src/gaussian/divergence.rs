//! The Kullback-Leibler divergence of the mean-field Gaussian from a prior, with its gradient.

use super::prior::{Density, HALF_LN_TAU, Prior};
use super::{Scale, check_lengths};
use crate::simd::{Kernel, dispatch};
use crate::stream::Stream;
use crate::stream::fill::{CHUNK, Chunk};
use crate::stream::normal::box_muller;

/// The sum over the slice of the divergence
/// `KL(N(μ, σ²) ‖ N(m, s²)) = ln(s / σ) + (σ² + (μ − m)²) / 2s² − ½`,
/// `m` and `s` being `prior_mean` and `prior_std`. Adds `weight` times its gradient,
/// `(μ − m) / s²` and `(σ² / s² − 1) · σ' / σ`, to `grad_mean` and `grad_rho`.
///
/// # Panics
///
/// If the slices differ in length.
#[expect(clippy::too_many_arguments, reason = "the slices of one operation")]
pub fn kl_normal(
    scale: Scale,
    mean: &[f32],
    rho: &[f32],
    prior_mean: f32,
    prior_std: f32,
    weight: f32,
    grad_mean: &mut [f32],
    grad_rho: &mut [f32],
) -> f64 {
    check_lengths(&[mean.len(), rho.len(), grad_mean.len(), grad_rho.len()]);
    let slices = Slices { mean, rho, grad_mean, grad_rho };
    dispatch(KlNormal { scale, prior_mean, prior_std, weight, slices })
}

/// The estimate of the divergence from any prior that the one draw `w = μ + σε` gives: the sum over
/// the slice of `ln q(w) − ln p(w)`. Adds `weight` times its gradient, `−(ln p)'(w)` and
/// `(−(ln p)'(w) · ε · σ − 1) · σ' / σ`, to `grad_mean` and `grad_rho`.
///
/// `w` is what [`sample`](super::sample) gives for the same stream and range.
///
/// # Panics
///
/// If the slices differ in length or the range passes [`Stream::ELEMENTS`].
#[expect(clippy::too_many_arguments, reason = "the slices of one operation")]
pub fn kl_monte_carlo(
    stream: &Stream,
    start: u64,
    scale: Scale,
    mean: &[f32],
    rho: &[f32],
    prior: &Prior,
    weight: f32,
    grad_mean: &mut [f32],
    grad_rho: &mut [f32],
) -> f64 {
    check_lengths(&[mean.len(), rho.len(), grad_mean.len(), grad_rho.len()]);
    stream.check_range(start, mean.len());
    let slices = Slices { mean, rho, grad_mean, grad_rho };
    dispatch(KlMonteCarlo { stream, start, scale, density: prior.density(), weight, slices })
}

/// The parameters of a posterior and where their gradients are added; all of one length.
struct Slices<'a> {
    mean: &'a [f32],
    rho: &'a [f32],
    grad_mean: &'a mut [f32],
    grad_rho: &'a mut [f32],
}

impl Slices<'_> {
    #[inline(always)]
    fn part(&mut self, from: usize, length: usize) -> Slices<'_> {
        Slices {
            mean: &self.mean[from..][..length],
            rho: &self.rho[from..][..length],
            grad_mean: &mut self.grad_mean[from..][..length],
            grad_rho: &mut self.grad_rho[from..][..length],
        }
    }
}

/// The sum of at most [`CHUNK`] numbers, in an order that fits vectors of up to eight.
#[inline(always)]
fn sum(terms: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (groups, rest) = terms.as_chunks::<8>();
    for group in groups {
        for (lane, term) in lanes.iter_mut().zip(group) {
            *lane += term;
        }
    }
    for (lane, term) in lanes.iter_mut().zip(rest) {
        *lane += term;
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

struct KlNormal<'a> {
    scale: Scale,
    prior_mean: f32,
    prior_std: f32,
    weight: f32,
    slices: Slices<'a>,
}

impl Kernel for KlNormal<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        // With a literal scale the loops are compiled for it.
        match self.scale {
            Scale::Exp => self.run_with(Scale::Exp),
            Scale::Softplus => self.run_with(Scale::Softplus),
        }
    }
}

impl KlNormal<'_> {
    #[inline(always)]
    fn run_with(mut self, scale: Scale) -> f64 {
        let (prior_mean, weight) = (self.prior_mean, self.weight);
        let prior_std = f64::from(self.prior_std);
        let log_prior_std = prior_std.ln();
        let precision = 1.0 / (prior_std * prior_std);
        let precision_single = precision as f32;
        let (mut sigma, mut log_sigma) = ([0.0f32; CHUNK], [0.0f32; CHUNK]);
        let mut terms = [0.0f64; CHUNK];
        let mut total = 0.0;
        let mut done = 0;
        while done < self.slices.mean.len() {
            let length = CHUNK.min(self.slices.mean.len() - done);
            let Slices { mean, rho, grad_mean, grad_rho } = self.slices.part(done, length);
            // Single precision in one loop and double in the next: a loop is as wide as its
            // widest numbers allow.
            for i in 0..length {
                sigma[i] = scale.apply(rho[i]);
                log_sigma[i] = scale.log(rho[i], sigma[i]);
                let excess = sigma[i] * sigma[i] * precision_single - 1.0;
                grad_rho[i] += weight * (excess * scale.log_derivative(rho[i], sigma[i]));
                grad_mean[i] += weight * ((mean[i] - prior_mean) * precision_single);
            }
            for i in 0..length {
                let sigma = f64::from(sigma[i]);
                let distance = f64::from(mean[i]) - f64::from(prior_mean);
                let second_moment = (sigma * sigma + distance * distance) * precision;
                terms[i] = (log_prior_std - f64::from(log_sigma[i])) + 0.5 * (second_moment - 1.0);
            }
            total += sum(&terms[..length]);
            done += length;
        }
        total
    }
}

struct KlMonteCarlo<'a> {
    stream: &'a Stream,
    start: u64,
    scale: Scale,
    density: Density,
    weight: f32,
    slices: Slices<'a>,
}

impl Kernel for KlMonteCarlo<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        match self.scale {
            Scale::Exp => self.run_with(Scale::Exp),
            Scale::Softplus => self.run_with(Scale::Softplus),
        }
    }
}

impl KlMonteCarlo<'_> {
    #[inline(always)]
    fn run_with(mut self, scale: Scale) -> f64 {
        let stream = *self.stream;
        let (density, weight) = (self.density, self.weight);
        let mut chunk = Chunk::default();
        let (mut sigma, mut log_sigma) = ([0.0f32; CHUNK], [0.0f32; CHUNK]);
        let (mut drawn, mut slope) = ([0.0f32; CHUNK], [0.0f32; CHUNK]);
        let mut terms = [0.0f64; CHUNK];
        let mut total = 0.0;
        let mut done = 0;
        while done < self.slices.mean.len() {
            let remaining = self.slices.mean.len() - done;
            let noise = chunk.generate(&stream, self.start + done as u64, remaining, box_muller);
            let length = noise.len();
            let Slices { mean, rho, grad_mean, grad_rho } = self.slices.part(done, length);
            for i in 0..length {
                sigma[i] = scale.apply(rho[i]);
                log_sigma[i] = scale.log(rho[i], sigma[i]);
                drawn[i] = mean[i] + sigma[i] * noise[i];
            }
            for i in 0..length {
                let noise = f64::from(noise[i]);
                let log_q = -0.5 * noise * noise - f64::from(log_sigma[i]) - HALF_LN_TAU;
                let (log_p, log_p_slope) = density.log_and_derivative(f64::from(drawn[i]));
                terms[i] = log_q - log_p;
                slope[i] = log_p_slope as f32;
            }
            for i in 0..length {
                let pull = -slope[i] * noise[i] * sigma[i] - 1.0;
                grad_rho[i] += weight * (pull * scale.log_derivative(rho[i], sigma[i]));
                grad_mean[i] -= weight * slope[i];
            }
            total += sum(&terms[..length]);
            done += length;
        }
        total
    }
}
