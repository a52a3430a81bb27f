//! Layer normalisation.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use half::bf16;

use super::flex::{self, Numbers, Wide, with_f32};
use super::fused::{self, Fused};
use super::sums::{add_into, dot_shifted, sum};
use crate::product::Element;
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
            let blocks = y.par_chunks_mut(block).zip(moments.par_chunks_mut(2 * BLOCK));
            parallel(blocks.enumerate(), |(index, (y, moments))| {
                let x = Wide::range(x, index * block..index * block + y.len());
                let (gamma, beta) = (flex::values(gamma), flex::values(beta));
                let residual = residual.first().map(|r| &flex::values(r)[index * block..]);
                let (x, epsilon) = (&*x, self.epsilon);
                dispatch(Normalise { x, gamma, beta, residual, epsilon, y, moments });
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
        let grad_x = match flex::numbers(x) {
            Numbers::F32(_) => backward_to::<f32>(x, gamma, moments, &grad),
            Numbers::Bf16(_) => backward_to::<bf16>(x, gamma, moments, &grad),
        };
        let (grad_x, [grad_gamma, grad_beta]) = grad_x;
        let gradients = [wanted[0].then_some(grad_x), Some(grad_gamma), Some(grad_beta)];
        gradients.into_iter().chain(residual).collect()
    }
}

/// The gradient of x, in numbers like those of x, and those of γ and β.
fn backward_to<E: Element>(
    x: &FlexTensor,
    gamma: &FlexTensor,
    moments: &FlexTensor,
    grad: &FlexTensor,
) -> (FlexTensor, [FlexTensor; 2]) {
    let (rows, width) = flex::rows(x);
    let block = (BLOCK * width).max(1);
    let mut partial = vec![0.0; rows.div_ceil(BLOCK) * 2 * width];
    let mut grad_x = flex::scratch::<E>(rows * width);
    let inputs = flex::values(grad).par_chunks(block);
    let inputs = inputs.zip(flex::values(moments).par_chunks(2 * BLOCK));
    let outputs = grad_x.par_chunks_mut(block).zip(partial.par_chunks_mut((2 * width).max(1)));
    let blocks = inputs.zip(outputs).enumerate();
    parallel(blocks, |(index, ((grad, moments), (grad_x, partial)))| {
        let x = &*Wide::range(x, index * block..index * block + grad.len());
        let gamma = flex::values(gamma);
        with_f32(grad_x, |grad_x| {
            dispatch(NormaliseBackward { x, gamma, moments, grad, grad_x, partial });
        });
    });
    (flex::from_vec(grad_x, x.layout().shape().clone()), of_scales(&partial, width))
}

/// The gradients of γ and β from those of blocks of rows, which are added in order.
pub(super) fn of_scales(partial: &[f32], width: usize) -> [FlexTensor; 2] {
    let mut sums = vec![0.0; 2 * width];
    for partial in partial.chunks_exact((2 * width).max(1)) {
        add_into(&mut sums, partial);
    }
    let half = |sums: &[f32]| flex::from_vec(sums.to_vec(), Shape::new([width]));
    [half(&sums[..width]), half(&sums[width..])]
}

/// Normalises rows and scales them; the output may be the input of a product, in its numbers.
pub(super) struct Normalise<'a, O> {
    pub x: &'a [f32],
    pub gamma: &'a [f32],
    pub beta: &'a [f32],
    /// Of these rows and perhaps more.
    pub residual: Option<&'a [f32]>,
    pub epsilon: f32,
    pub y: &'a mut [O],
    /// The mean and one over the deviation of every row.
    pub moments: &'a mut [f32],
}

impl<O: Element> Kernel for Normalise<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.gamma.len().max(1);
        let rows = self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width));
        for (row, ((x, y), moments)) in rows.zip(self.moments.chunks_exact_mut(2)).enumerate() {
            let mean = sum(x, |v| v) / width as f32;
            let variance = sum(x, |v| (v - mean) * (v - mean)) / width as f32;
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            let residual = self.residual.map(|residual| &residual[row * width..][..width]);
            let (gamma, beta) = (&self.gamma[..width], &self.beta[..width]);
            scale(x, [mean, inverse], gamma, beta, residual, y);
            moments.copy_from_slice(&[mean, inverse]);
        }
    }
}

/// Normalises rows of which the moments are known, to the same numbers as [`Normalise`].
pub(super) struct NormaliseAgain<'a, O> {
    pub x: &'a [f32],
    pub gamma: &'a [f32],
    pub beta: &'a [f32],
    pub y: &'a mut [O],
    pub moments: &'a [f32],
}

impl<O: Element> Kernel for NormaliseAgain<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.gamma.len().max(1);
        let rows = self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width));
        for ((x, y), moments) in rows.zip(self.moments.chunks_exact(2)) {
            let (gamma, beta) = (&self.gamma[..width], &self.beta[..width]);
            scale(x, [moments[0], moments[1]], gamma, beta, None, y);
        }
    }
}

/// A row from its moments.
#[inline(always)]
fn scale<O: Element>(
    x: &[f32],
    [mean, inverse]: [f32; 2],
    gamma: &[f32],
    beta: &[f32],
    residual: Option<&[f32]>,
    y: &mut [O],
) {
    let width = x.len();
    let (gamma, beta, y) = (&gamma[..width], &beta[..width], &mut y[..width]);
    match residual {
        None => {
            for i in 0..width {
                y[i] = O::of((x[i] - mean) * inverse * gamma[i] + beta[i]);
            }
        }
        Some(residual) => {
            let residual = &residual[..width];
            for i in 0..width {
                y[i] = O::of((x[i] - mean) * inverse * gamma[i] + beta[i] + residual[i]);
            }
        }
    }
}

pub(super) struct NormaliseBackward<'a> {
    pub x: &'a [f32],
    pub gamma: &'a [f32],
    pub moments: &'a [f32],
    pub grad: &'a [f32],
    pub grad_x: &'a mut [f32],
    /// Sums for γ, then for β, zeros at first.
    pub partial: &'a mut [f32],
}

impl Kernel for NormaliseBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.gamma.len().max(1);
        let (grad_gamma, grad_beta) = self.partial.split_at_mut(width);
        let rows = self.x.chunks_exact(width).zip(self.grad.chunks_exact(width));
        let rows = rows.zip(self.grad_x.chunks_exact_mut(width));
        let (gamma, grad_gamma) = (&self.gamma[..width], &mut grad_gamma[..width]);
        let grad_beta = &mut grad_beta[..width];
        for (((x, grad), grad_x), moments) in rows.zip(self.moments.chunks_exact(2)) {
            let (x, grad, grad_x) = (&x[..width], &grad[..width], &mut grad_x[..width]);
            let (mean, inverse) = (moments[0], moments[1]);
            // x̂ and g are needed three times and cheap: grad_x holds g, and x̂ is made again.
            for i in 0..width {
                let normalised = (x[i] - mean) * inverse;
                grad_gamma[i] += grad[i] * normalised;
                grad_beta[i] += grad[i];
                grad_x[i] = grad[i] * gamma[i];
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
