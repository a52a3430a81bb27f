//! Softmax over the last axis.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::flex;
use super::fused::{self, Fused};
use super::sums::{dot_shifted, max, sum};
use crate::elementary::{exp, ln};
use crate::simd::{Kernel, dispatch, parallel};

/// Rows that a thread handles at a time.
const BLOCK: usize = 64;

/// `y_i = exp(x_i) / Σ_j exp(x_j)` over the last axis, with `∂L/∂x = y∘(g − Σ g∘y)` for
/// `g = ∂L/∂y`. The graph keeps y.
pub fn softmax<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    match flex::is_flex(&x.device()) {
        true => fused::run(LastAxis, [x.into_dispatch()]),
        false => softmax_composed(x),
    }
}

/// [`softmax`] by Burn's own operation, for devices without an implementation of their own.
pub fn softmax_composed<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::softmax(x, D - 1)
}

#[derive(Debug)]
struct LastAxis;

impl Fused for LastAxis {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let (_, width) = flex::rows(&inputs[0]);
        let block = (BLOCK * width).max(1);
        let output = flex::build(inputs[0].layout().shape().clone(), |y| {
            let blocks = flex::values(&inputs[0]).par_chunks(block).zip(y.par_chunks_mut(block));
            parallel(blocks, |(x, y)| {
                y.copy_from_slice(x);
                dispatch(Softmax { rows: y, logs: None, width });
            });
        });
        saved.into_iter().for_each(|saved| saved.push(output.clone()));
        output
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let (_, width) = flex::rows(&grad);
        let block = (BLOCK * width).max(1);
        let mut grad = flex::into_values(grad);
        let output = flex::values(&saved[0]).par_chunks(block);
        let blocks = grad.storage_mut::<f32>().par_chunks_mut(block).zip(output);
        parallel(blocks, |(grad, output)| dispatch(SoftmaxBackward { grad, output, width }));
        vec![Some(grad)]
    }
}

/// Replaces every row by its softmax, and writes `ℓ = ln Σ exp(row)` where it is wanted.
pub(super) struct Softmax<'a> {
    pub rows: &'a mut [f32],
    pub logs: Option<&'a mut [f32]>,
    pub width: usize,
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let mut logs = self.logs;
        for (index, row) in self.rows.chunks_exact_mut(self.width.max(1)).enumerate() {
            let largest = max(row);
            for value in row.iter_mut() {
                *value = exp(*value - largest);
            }
            let total = sum(row, |v| v);
            let inverse = 1.0 / total;
            for value in row.iter_mut() {
                *value *= inverse;
            }
            if let Some(logs) = &mut logs {
                // `ln` takes positive numbers only.
                logs[index] = if total > 0.0 { largest + ln(total) } else { f32::NAN };
            }
        }
    }
}

struct SoftmaxBackward<'a> {
    grad: &'a mut [f32],
    output: &'a [f32],
    width: usize,
}

impl Kernel for SoftmaxBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let width = self.width.max(1);
        for (grad, y) in self.grad.chunks_exact_mut(width).zip(self.output.chunks_exact(width)) {
            let mean = dot_shifted(grad, y, 0.0);
            for (grad, y) in grad.iter_mut().zip(y) {
                *grad = y * (*grad - mean);
            }
        }
    }
}
