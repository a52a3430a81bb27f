//! The backward pass of a linear layer.

use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, Shape};
use half::bf16;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::forward::{as_they_are, enter_by, take};
use super::saved::{Saved, SavedNorm};
use super::{Activation, Linear};
use crate::ops::dropout::Mask;
use crate::ops::flex::{self, Wide, enter, row_step};
use crate::ops::layer_norm::{NormaliseAgain, NormaliseBackward, of_scales};
use crate::ops::sums::add_into;
use crate::precision::Precision;
use crate::product::{AddTo, Element, Left, PIECE, Packed, Store, WIDTH, product};
use crate::simd::{Kernel, dispatch, parallel};

/// Rows whose part of the gradient of the weight is added at once: so few that what is made of them
/// stays in the cache, so many that the sums are seldom read and written. Fixed, so that they are
/// the same on any number of threads.
const BLOCK: usize = 2 * PIECE;

impl Linear {
    /// The gradients of the inputs that are wanted.
    pub(super) fn backward_pass(
        &self,
        saved: Saved,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        match (self.precision, saved.kind.dtype()) {
            (Precision::F32, DType::BF16) => self.backward_in::<f32, bf16>(saved, grad, wanted),
            (Precision::F32, _) => self.backward_in::<f32, f32>(saved, grad, wanted),
            (Precision::Bf16, DType::BF16) => self.backward_in::<bf16, bf16>(saved, grad, wanted),
            (Precision::Bf16, _) => self.backward_in::<bf16, f32>(saved, grad, wanted),
        }
    }

    /// With products of E, and the gradient of x in X.
    fn backward_in<E: Element, X: Element>(
        &self,
        saved: Saved,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let Saved { x, weight, norm, kept, .. } = saved;
        let [width, units]: [usize; 2] = weight.layout().shape().dims();
        let mut shape = grad.layout().shape().clone();
        let last = shape.num_dims() - 1;
        (shape[0], shape[last]) = (shape[0] / self.epilogue.copies, width);

        let residual = (self.residual && wanted[wanted.len() - 1]).then(|| grad.clone());
        let (grad, slopes) = self.before_epilogue(grad, kept);
        let rows = shape.num_elements() / width.max(1);
        let [wants_x, wants_weight] = [wanted[0], wanted[1]];
        let wants_bias = self.bias && wanted[if norm.is_some() { 4 } else { 2 }];
        let wants_norm = norm.is_some() && (wants_x || wanted[2] || wanted[3]);

        let wide = Wide::of(&weight);
        let turned =
            (wants_x || wants_norm).then(|| Packed::<E>::of_transposed(&wide, units, width, units));
        let mut grad_x = flex::scratch::<X>(if wants_x || wants_norm { rows * width } else { 0 });
        let mut grad_weight = vec![0.0; if wants_weight { width * units } else { 0 }];
        let mut grad_bias = vec![0.0; units];
        let pieces = if wants_norm { rows.div_ceil(PIECE) } else { 0 };
        let mut scales = vec![0.0; pieces * 2 * width];
        let mut rest = (&mut grad_x[..], &mut scales[..]);

        let step = row_step::<E>(units);
        let as_it_is = as_they_are::<E>(&grad, units).filter(|_| slopes.is_none());
        let mut made = flex::scratch::<E>(match as_it_is {
            Some(_) => 0,
            None => BLOCK.min(rows) * step,
        });
        for first in (0..rows).step_by(BLOCK) {
            let count = BLOCK.min(rows - first);
            let block = Block { first, count, width, units };
            // h as it enters products.
            let h = match as_it_is {
                Some(grad) => &grad[first * units..][..count * units],
                None => {
                    block.make_h(&grad, slopes.as_ref(), &mut made);
                    &made[..count * step]
                }
            };
            if wants_bias {
                add_into(&mut grad_bias, &sum_rows(h, step, units));
            }
            if let Some(turned) = &turned {
                let grad_x = take(&mut rest.0, count * width);
                let scales = take(&mut rest.1, count.div_ceil(PIECE) * 2 * width);
                block.grad_x(h, turned, norm.as_ref().map(|norm| (norm, &x)), grad_x, scales);
            }
            if wants_weight {
                let entering = block.entering::<E>(&x, norm.as_ref());
                let inner = row_step::<E>(width);
                let left = Packed::<E>::of(&entering, count, width, inner);
                let right = Packed::<E>::of(h, count, units, step);
                add_product(&left, &right, &mut grad_weight, units);
            }
        }
        let mut gradients = vec![
            wants_x.then(|| flex::from_vec(grad_x, shape)),
            wants_weight.then(|| flex::from_vec(grad_weight, Shape::new([width, units]))),
        ];
        if norm.is_some() {
            let [gamma, beta] = of_scales(&scales, width);
            gradients.extend([wanted[2].then_some(gamma), wanted[3].then_some(beta)]);
        }
        if self.bias {
            gradients.push(wants_bias.then(|| flex::from_vec(grad_bias, Shape::new([units]))));
        }
        if self.residual {
            gradients.push(residual);
        }
        gradients
    }

    /// `h` from the gradient of y and what the activation kept; where that are slopes, `h` is still
    /// to be multiplied by them.
    fn before_epilogue(
        &self,
        grad: FlexTensor,
        kept: Option<FlexTensor>,
    ) -> (FlexTensor, Option<FlexTensor>) {
        let copies = self.epilogue.copies;
        let mask: Option<Mask> = self.epilogue.mask;
        let is_relu = self.epilogue.activation == Activation::Relu;
        if !is_relu && mask.is_none() && copies == 1 {
            return (grad, kept);
        }
        let grad = flex::converted::<f32>(grad);
        let shape = Shape::new([flex::values(&grad).len() / copies]);
        if is_relu {
            let output = kept.expect("y is kept for ReLU");
            let factor = mask.map_or(1.0, |mask| mask.factor());
            let before = flex::build(shape, |before| {
                before.fill(0.0);
                let (grad, output) = (flex::values(&grad), flex::values(&output));
                dispatch(PassBack { grad, output, factor, before });
            });
            return (before, None);
        }
        let mut grad = grad;
        if let Some(mask) = mask {
            grad = flex::into_values(grad);
            mask.apply(grad.storage_mut::<f32>());
        }
        if copies > 1 {
            let units = shape[0];
            grad = flex::from_vec(sum_rows(flex::values(&grad), units, units), shape);
        }
        (grad, kept)
    }
}

/// Some rows of a layer.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    count: usize,
    width: usize,
    units: usize,
}

impl Block {
    /// h from the gradient of y, times the slopes where there are some.
    fn make_h<E: Element>(&self, grad: &FlexTensor, slopes: Option<&FlexTensor>, h: &mut [E]) {
        let Block { first, count, units, .. } = *self;
        let step = row_step::<E>(units);
        let pieces = h[..count * step].par_chunks_mut((PIECE * step).max(1));
        parallel(pieces.enumerate(), |(piece, h)| {
            let rows = h.len() / step.max(1);
            let from = (first + piece * PIECE) * units;
            let grad = Wide::range(grad, from..from + rows * units);
            let Some(slopes) = slopes else {
                return enter(&grad, units, h);
            };
            let slopes = &flex::of::<E>(slopes)[from..][..rows * units];
            let whole = enter_by(rows, units, |h: &mut [E]| {
                dispatch(Multiply { grad: &grad, slopes, h });
            });
            h.copy_from_slice(&whole);
        });
    }

    /// The rows of x as they enter products.
    fn entering<'a, E: Element>(
        &self,
        x: &'a FlexTensor,
        norm: Option<&SavedNorm>,
    ) -> std::borrow::Cow<'a, [E]> {
        let Block { first, count, width, .. } = *self;
        let Some(norm) = norm else {
            let step = row_step::<E>(width);
            return flex::of::<E>(x)[first * step..][..count * step].into();
        };
        let [gamma, beta] = [&norm.gamma, &norm.beta].map(flex::values);
        let normalised = enter_by(count, width, |y: &mut [E]| {
            let pieces = y[..count * width].par_chunks_mut((PIECE * width).max(1));
            parallel(pieces.enumerate(), |(piece, y)| {
                let from = first + piece * PIECE;
                let x = &flex::values(x)[from * width..][..y.len()];
                let moments = &flex::values(&norm.moments)[from * 2..];
                dispatch(NormaliseAgain { x, gamma, beta, y, moments });
            });
        });
        normalised.into()
    }

    /// The gradient of x, through the normalisation where there is one.
    fn grad_x<E: Element, X: Element>(
        &self,
        h: &[E],
        turned: &Packed<E>,
        norm: Option<(&SavedNorm, &FlexTensor)>,
        grad_x: &mut [X],
        scales: &mut [f32],
    ) {
        let Block { first, width, units, .. } = *self;
        let step = row_step::<E>(units);
        let mut scales = scales.chunks_exact_mut((2 * width).max(1));
        let pieces = grad_x.chunks_mut((PIECE * width).max(1)).enumerate();
        let pieces: Vec<_> = pieces.map(|piece| (piece, scales.next())).collect();
        parallel(pieces.into_par_iter(), |((piece, grad_x), scales)| {
            let rows = grad_x.len() / width.max(1);
            let left = Left::rows(&h[piece * PIECE * step..][..rows * step], rows, units, step);
            let Some((norm, x)) = norm else {
                let mut store = Store { to: grad_x, step: width, factor: 1.0 };
                return product(left, turned, &mut store);
            };
            let mut grad = flex::scratch::<f32>(rows * width);
            product(left, turned, &mut Store { to: &mut grad[..], step: width, factor: 1.0 });
            let from = first + piece * PIECE;
            let (x, gamma) = (&flex::values(x)[from * width..][..rows * width], &norm.gamma);
            let (gamma, moments) = (flex::values(gamma), &flex::values(&norm.moments)[2 * from..]);
            let partial = scales.expect("one for each piece");
            flex::with_f32(grad_x, |grad_x| {
                let grad = &grad[..];
                dispatch(NormaliseBackward { x, gamma, moments, grad, grad_x, partial });
            });
        });
    }
}

/// Adds `leftᵀ · right` to the gradient of a weight, each thread to rows of its own.
fn add_product<E: Element>(
    left: &Packed<E>,
    right: &Packed<E>,
    grad_weight: &mut [f32],
    units: usize,
) {
    // Half a panel where there are threads to share them: a layer may have few panels.
    let rows = if rayon::current_num_threads() > 1 { WIDTH / 2 } else { WIDTH };
    let parts = grad_weight.par_chunks_mut((rows * units).max(1));
    parallel(parts.enumerate(), |(part, sums)| {
        let first = part * rows;
        let count = sums.len() / units.max(1);
        let left = left.transposed(first / WIDTH, first % WIDTH, count);
        product(left, right, &mut AddTo { sums, columns: units });
    });
}

/// The sum of rows of so many numbers that begin so many apart, in blocks of a fixed size.
fn sum_rows<E: Element>(values: &[E], step: usize, units: usize) -> Vec<f32> {
    const ROWS: usize = 128;
    let blocks = values.par_chunks((ROWS * step).max(1));
    let mut partial = vec![0.0; blocks.len() * units];
    parallel(blocks.zip(partial.par_chunks_mut(units.max(1))), |(values, sum)| {
        dispatch(SumRows { values, step, sum });
    });
    let mut sum = vec![0.0; units];
    partial.chunks_exact(units.max(1)).for_each(|partial| add_into(&mut sum, partial));
    sum
}

/// `h = ∂L/∂y ∘ slopes`, rounded to what enters products.
struct Multiply<'a, E> {
    grad: &'a [f32],
    slopes: &'a [E],
    h: &'a mut [E],
}

impl<E: Element> Kernel for Multiply<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((h, grad), slope) in self.h.iter_mut().zip(self.grad).zip(self.slopes) {
            *h = E::of(grad * slope.single());
        }
    }
}

/// `h`, the gradient before ReLU and dropout, summed over the copies.
struct PassBack<'a> {
    /// The gradient of y, for all copies.
    grad: &'a [f32],
    /// y, whose sign says what passed.
    output: &'a [f32],
    /// What dropout multiplied by.
    factor: f32,
    /// For one copy, zeros at first.
    before: &'a mut [f32],
}

impl Kernel for PassBack<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.before.len().max(1);
        for (grad, output) in self.grad.chunks_exact(n).zip(self.output.chunks_exact(n)) {
            for ((before, grad), output) in self.before.iter_mut().zip(grad).zip(output) {
                *before += if *output <= 0.0 { 0.0 } else { grad * self.factor };
            }
        }
    }
}

/// The sum of the rows, onto zeros.
struct SumRows<'a, E> {
    values: &'a [E],
    step: usize,
    sum: &'a mut [f32],
}

impl<E: Element> Kernel for SumRows<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.values.chunks_exact(self.step.max(1)) {
            for (sum, value) in self.sum.iter_mut().zip(row) {
                *sum += value.single();
            }
        }
    }
}
