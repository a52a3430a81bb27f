//! Layer normalisation.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::flex;
use super::fused::{self, Fused};
use super::sums::{add_into, dot_shifted, sum};
use crate::simd::{Kernel, dispatch, parallel};

/// Rows that are handled together: fixed, so that sums over rows are the same on any number of
/// threads.
const BLOCK: usize = 64;

/// Normalises every row and scales the result: `y = x̂·γ + β` with `x̂ = (x − m)/√(v + ε)`, where m
/// and v are the mean and the variance of the row.
///
/// Gradients, with `g = γ·∂L/∂y` and `⟨·⟩` the mean over a row:
/// `∂L/∂x = (g − ⟨g⟩ − x̂⟨g x̂⟩)/√(v + ε)`, `∂L/∂γ = Σ_rows x̂·∂L/∂y`, `∂L/∂β = Σ_rows ∂L/∂y`. The
/// graph keeps x and two numbers a row.
///
/// # Shapes
///
/// - `x`, output: `[..., width]`
/// - `gamma`, `beta`: `[width]`
pub fn layer_norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f32,
) -> Tensor<D> {
    if !flex::is_flex(&x.device()) {
        return layer_norm_composed(x, gamma, beta, epsilon);
    }
    let inputs = [x.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()];
    fused::run(LayerNorm { epsilon, residual: false }, inputs)
}

/// A normalisation with a residual connection: `y = r + x̂·γ + β`, in one pass. The gradient of r
/// is that of y.
///
/// # Shapes
///
/// - `x`, `residual`, output: `[..., width]`
/// - `gamma`, `beta`: `[width]`
pub fn layer_norm_residual<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f32,
    residual: Tensor<D>,
) -> Tensor<D> {
    if !flex::is_flex(&x.device()) {
        return layer_norm_composed(x, gamma, beta, epsilon) + residual;
    }
    let (gamma, beta) = (gamma.into_dispatch(), beta.into_dispatch());
    let inputs = [x.into_dispatch(), gamma, beta, residual.into_dispatch()];
    fused::run(LayerNorm { epsilon, residual: true }, inputs)
}

/// [`layer_norm`] from Burn's own operations, for devices without an implementation of their own.
pub fn layer_norm_composed<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f32,
) -> Tensor<D> {
    let centred = x.clone() - x.mean_dim(D - 1);
    let variance = centred.clone().square().mean_dim(D - 1);
    centred / (variance + epsilon).sqrt() * gamma.unsqueeze() + beta.unsqueeze()
}

/// The inputs are x, γ, β and, where the flag says so, a residual.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerNorm {
    pub epsilon: f32,
    pub residual: bool,
}

impl Fused for LayerNorm {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let [x, gamma, beta, residual @ ..] = inputs else { unreachable!("three inputs") };
        let (rows, width) = flex::rows(x);
        let mut moments = flex::scratch(2 * rows);
        let output = flex::build(x.layout().shape().clone(), |y| {
            let block = (BLOCK * width).max(1);
            let blocks = flex::values(x).par_chunks(block).zip(y.par_chunks_mut(block));
            let blocks = blocks.zip(moments.par_chunks_mut(2 * BLOCK)).enumerate();
            parallel(blocks, |(index, ((x, y), moments))| {
                let (gamma, beta) = (flex::values(gamma), flex::values(beta));
                let residual = residual.first().map(|r| &flex::values(r)[index * block..]);
                dispatch(Normalise { x, gamma, beta, residual, epsilon: self.epsilon, y, moments });
            });
        });
        if let Some(saved) = saved {
            let moments = flex::from_vec(moments, Shape::new([rows, 2]));
            saved.extend([x.clone(), gamma.clone(), moments]);
        }
        output
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let [x, gamma, moments] = &saved[..] else { unreachable!("what forward saved") };
        let residual = self.residual.then(|| wanted[3].then(|| grad.clone()));
        let (rows, width) = flex::rows(x);
        let blocks = rows.div_ceil(BLOCK);
        let block = (BLOCK * width).max(1);
        // For every block the sums for γ and β, which are then added in order.
        let mut partial = vec![0.0; blocks * 2 * width];
        let grad_x = flex::build(x.layout().shape().clone(), |grad_x| {
            let inputs =
                flex::values(x).par_chunks(block).zip(flex::values(&grad).par_chunks(block));
            let inputs = inputs.zip(flex::values(moments).par_chunks(2 * BLOCK));
            let outputs = grad_x.par_chunks_mut(block);
            let outputs = outputs.zip(partial.par_chunks_mut((2 * width).max(1)));
            parallel(inputs.zip(outputs), |(((x, grad), moments), (grad_x, partial))| {
                let gamma = flex::values(gamma);
                dispatch(NormaliseBackward { x, gamma, moments, grad, grad_x, partial });
            });
        });
        let mut sums = vec![0.0; 2 * width];
        for partial in partial.chunks_exact((2 * width).max(1)) {
            add_into(&mut sums, partial);
        }
        let half = |range: std::ops::Range<usize>| {
            Some(flex::from_vec(sums[range].to_vec(), Shape::new([width])))
        };
        let gradients = [wanted[0].then_some(grad_x), half(0..width), half(width..2 * width)];
        gradients.into_iter().chain(residual).collect()
    }
}

struct Normalise<'a> {
    x: &'a [f32],
    gamma: &'a [f32],
    beta: &'a [f32],
    /// Of these rows and perhaps more.
    residual: Option<&'a [f32]>,
    epsilon: f32,
    y: &'a mut [f32],
    /// The mean and one over the deviation of every row.
    moments: &'a mut [f32],
}

impl Kernel for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.gamma.len().max(1);
        let rows = self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width));
        for (row, ((x, y), moments)) in rows.zip(self.moments.chunks_exact_mut(2)).enumerate() {
            let mean = sum(x, |v| v) / width as f32;
            let variance = sum(x, |v| (v - mean) * (v - mean)) / width as f32;
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            for i in 0..width {
                y[i] = (x[i] - mean) * inverse * self.gamma[i] + self.beta[i];
            }
            if let Some(residual) = self.residual {
                add_into(y, &residual[row * width..][..width]);
            }
            moments.copy_from_slice(&[mean, inverse]);
        }
    }
}

struct NormaliseBackward<'a> {
    x: &'a [f32],
    gamma: &'a [f32],
    moments: &'a [f32],
    grad: &'a [f32],
    grad_x: &'a mut [f32],
    /// Sums for γ, then for β, zeros at first.
    partial: &'a mut [f32],
}

impl Kernel for NormaliseBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.gamma.len().max(1);
        let (grad_gamma, grad_beta) = self.partial.split_at_mut(width);
        let rows = self.x.chunks_exact(width).zip(self.grad.chunks_exact(width));
        let rows = rows.zip(self.grad_x.chunks_exact_mut(width));
        for (((x, grad), grad_x), moments) in rows.zip(self.moments.chunks_exact(2)) {
            let (mean, inverse) = (moments[0], moments[1]);
            // x̂ and g are needed three times and cheap: grad_x holds g, and x̂ is made again.
            for i in 0..width {
                let normalised = (x[i] - mean) * inverse;
                grad_gamma[i] += grad[i] * normalised;
                grad_beta[i] += grad[i];
                grad_x[i] = grad[i] * self.gamma[i];
            }
            let mean_g = sum(grad_x, |v| v) / width as f32;
            let mean_gx = dot_shifted(grad_x, x, mean) * inverse / width as f32;
            for i in 0..width {
                let normalised = (x[i] - mean) * inverse;
                grad_x[i] = (grad_x[i] - mean_g - normalised * mean_gx) * inverse;
            }
        }
    }
}
