//! The Gaussian error linear unit.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::flex;
use super::fused::{self, Fused};
use crate::elementary::normal_cdf_pdf;
use crate::simd::{Kernel, dispatch, parallel};

/// Numbers that a thread handles at a time.
pub(super) const BLOCK: usize = 1 << 14;

/// `y = x·Φ(x)`, the exact form, with `∂y/∂x = Φ(x) + x·φ(x)`.
///
/// Φ and φ share an exponential, so the forward pass computes the derivative as well; the graph
/// keeps it in place of x, and the backward pass is one multiplication.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    match flex::is_flex(&x.device()) {
        true => fused::run(Gelu, [x.into_dispatch()]),
        false => gelu_composed(x),
    }
}

/// [`gelu`] by Burn's own operation, for devices without an implementation of their own.
pub fn gelu_composed<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::gelu(x)
}

#[derive(Debug)]
struct Gelu;

impl Fused for Gelu {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let x = flex::values(&inputs[0]);
        let shape = inputs[0].layout().shape();
        let Some(saved) = saved else {
            return flex::build(shape.clone(), |y| {
                let blocks = x.par_chunks(BLOCK).zip(y.par_chunks_mut(BLOCK));
                parallel(blocks, |(x, y)| {
                    y.copy_from_slice(x);
                    dispatch(Activate { values: y, derivative: None });
                });
            });
        };
        let mut derivative = flex::scratch(x.len());
        let output = flex::build(shape.clone(), |y| {
            let blocks = x.par_chunks(BLOCK).zip(y.par_chunks_mut(BLOCK));
            parallel(blocks.zip(derivative.par_chunks_mut(BLOCK)), |((x, y), derivative)| {
                y.copy_from_slice(x);
                dispatch(Activate { values: y, derivative: Some(derivative) });
            });
        });
        saved.push(flex::from_vec(derivative, shape.clone()));
        output
    }

    fn backward(
        &self,
        mut saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let mut derivative = flex::into_values(saved.pop().expect("what forward saved"));
        multiply(derivative.storage_mut::<f32>(), flex::values(&grad));
        vec![Some(derivative)]
    }
}

/// GELU of a number, and its derivative there.
#[inline(always)]
pub(super) fn gelu_of(x: f32) -> (f32, f32) {
    let (cdf, pdf) = normal_cdf_pdf(x);
    (x * cdf, cdf + x * pdf)
}

/// Replaces values by what GELU makes of them and writes the derivatives.
struct Activate<'a> {
    values: &'a mut [f32],
    derivative: Option<&'a mut [f32]>,
}

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.derivative {
            None => {
                for value in self.values {
                    *value = gelu_of(*value).0;
                }
            }
            Some(derivative) => {
                for (value, derivative) in self.values.iter_mut().zip(derivative) {
                    (*value, *derivative) = gelu_of(*value);
                }
            }
        }
    }
}

/// Multiplies element by element.
pub(super) fn multiply(values: &mut [f32], factors: &[f32]) {
    let blocks = values.par_chunks_mut(BLOCK).zip(factors.par_chunks(BLOCK));
    parallel(blocks, |(values, factors)| dispatch(Multiply { values, factors }));
}

struct Multiply<'a> {
    values: &'a mut [f32],
    factors: &'a [f32],
}

impl Kernel for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (value, factor) in self.values.iter_mut().zip(self.factors) {
            *value *= factor;
        }
    }
}
