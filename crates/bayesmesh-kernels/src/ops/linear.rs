//! A linear layer with what usually follows it.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor, activation};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::dropout::{Mask, dropout};
use super::flex;
use super::fused::{self, Fused};
use super::gelu::{self, gelu_of};
use super::matrix::{Matrix, Onto};
use super::sums::add_into;
use crate::simd::{Kernel, dispatch, parallel};

/// A function applied to the sums of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The sums themselves.
    #[default]
    Identity,
    /// `max(x, 0)`
    Relu,
    /// `x·Φ(x)`
    Gelu,
}

/// What follows the sums of a linear layer, in this order.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// What is applied to the sums.
    pub activation: Activation,
    /// How many times the rows are repeated, one copy after the other: once for every draw, where
    /// the draws differ only in the mask that follows.
    pub copies: usize,
    /// Dropout of the (repeated) units.
    pub mask: Option<Mask>,
}

impl Default for Epilogue {
    /// Nothing follows.
    fn default() -> Self {
        Self { activation: Activation::Identity, copies: 1, mask: None }
    }
}

/// A linear layer `y = dropout(a(x W + b))`, with the parts of the [`Epilogue`] that are wanted.
///
/// Gradients, with `h = ∂L/∂(x W + b)`: `∂L/∂x = h Wᵀ`, `∂L/∂W = xᵀ h`, `∂L/∂b = Σ_rows h`. The
/// graph keeps x, W and, for ReLU, y, which tells what passed: `y > 0` where a sum was positive and
/// not dropped; for GELU its derivative.
///
/// # Shapes
///
/// - `x`: `[rows, ..., inputs]`
/// - `weight`: `[inputs, units]`
/// - `bias`: `[units]`
/// - output: `[copies·rows, ..., units]`
pub fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    epilogue: Epilogue,
) -> Tensor<D> {
    if !flex::is_flex(&x.device()) {
        return linear_composed(x, weight, bias, epilogue);
    }
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    match bias {
        None => fused::run(Linear { epilogue, bias: false, residual: false }, [x, weight]),
        Some(bias) => {
            let operation = Linear { epilogue, bias: true, residual: false };
            fused::run(operation, [x, weight, bias.into_dispatch()])
        }
    }
}

/// [`linear`] from Burn's own operations, for devices without an implementation of their own.
pub fn linear_composed<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    epilogue: Epilogue,
) -> Tensor<D> {
    let mut y = x.matmul(weight.unsqueeze());
    if let Some(bias) = bias {
        y = y + bias.unsqueeze();
    }
    y = match epilogue.activation {
        Activation::Identity => y,
        Activation::Relu => activation::relu(y),
        Activation::Gelu => activation::gelu(y),
    };
    if epilogue.copies != 1 {
        y = y.repeat_dim(0, epilogue.copies);
    }
    match epilogue.mask {
        Some(mask) => dropout(y, mask),
        None => y,
    }
}

/// A linear layer with a residual connection: `y = r + x W + b`.
///
/// The product is added to r where it is made, without a pass of its own. The gradient of r is that
/// of y.
///
/// # Shapes
///
/// - `x`: `[rows, ..., inputs]`
/// - `weight`: `[inputs, units]`
/// - `bias`: `[units]`
/// - `residual`, output: `[rows, ..., units]`
pub fn linear_residual<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    residual: Tensor<D>,
) -> Tensor<D> {
    if !flex::is_flex(&x.device()) {
        return linear_composed(x, weight, bias, Epilogue::default()) + residual;
    }
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    let residual = residual.into_dispatch();
    let operation = Linear { epilogue: Epilogue::default(), bias: bias.is_some(), residual: true };
    match bias {
        None => fused::run(operation, [x, weight, residual]),
        Some(bias) => fused::run(operation, [x, weight, bias.into_dispatch(), residual]),
    }
}

/// The inputs are x, the weight and, where the flags say so, a bias and a residual.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub epilogue: Epilogue,
    pub bias: bool,
    pub residual: bool,
}

/// A weight as a matrix.
fn matrix(weight: &FlexTensor) -> Matrix<'_> {
    let [rows, columns] = weight.layout().shape().dims();
    Matrix::new(flex::values(weight), rows, columns)
}

/// Rows that go through all that is done with them before the next: so few that what is written is
/// still in the cache when it is read, so many that dividing the products costs them nothing. A
/// large layer overflows the cache anyhow, and its products gain by more rows. Fixed by the size of
/// the layer, so that sums over rows are the same on any number of threads.
fn block_rows(inputs: usize, units: usize) -> usize {
    if inputs.saturating_mul(units) < 1 << 18 { 512 } else { 2048 }
}

/// So many whole rows as are worth handing to a thread.
fn piece(units: usize) -> usize {
    (gelu::BLOCK / units.max(1)).max(1) * units.max(1)
}

/// Block number `index` of rows of so many numbers, as a matrix.
fn block(values: &[f32], index: usize, block: usize, units: usize) -> Matrix<'_> {
    let rows = values.len() / units.max(1);
    let rows = (index * block).min(rows)..((index + 1) * block).min(rows);
    Matrix::new(&values[rows.start * units..rows.end * units], rows.len(), units)
}

impl Fused for Linear {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let Epilogue { activation, copies, mask } = self.epilogue;
        let (x, weight) = (&inputs[0], &inputs[1]);
        let [_, units] = weight.layout().shape().dims();
        let bias = self.bias.then(|| flex::values(&inputs[2]));
        let residual = self.residual.then(|| flex::values(&inputs[inputs.len() - 1]));

        let (row_count, inputs_count) = flex::rows(x);
        let mut y = match residual {
            None => flex::scratch(row_count * units),
            Some(residual) => residual.to_vec(),
        };
        let onto = if residual.is_some() { Onto::Sum } else { Onto::Nothing };
        let mut slopes = match (activation, &saved) {
            (Activation::Gelu, Some(_)) => flex::scratch(y.len()),
            _ => Vec::new(),
        };
        let (weight_matrix, piece) = (matrix(weight), piece(units));
        let rows = block_rows(inputs_count, units);
        let mut slope_blocks = slopes.chunks_mut((rows * units).max(1));
        for (index, y) in y.chunks_mut((rows * units).max(1)).enumerate() {
            let x = block(flex::values(x), index, rows, inputs_count);
            x.times_onto(weight_matrix, 1.0, onto, y, units);
            if let Some(slopes) = slope_blocks.next() {
                let pieces = y.par_chunks_mut(piece).zip(slopes.par_chunks_mut(piece));
                parallel(pieces, |(sums, slopes)| {
                    dispatch(FinishGelu { sums, bias, slopes, units });
                });
            } else if bias.is_some() || activation != Activation::Identity {
                parallel(y.par_chunks_mut(piece), |sums| {
                    dispatch(Finish { sums, bias, activation, units });
                });
            }
        }
        let sums = y.len();
        for _ in 1..copies {
            y.extend_from_within(..sums);
        }
        if let Some(mask) = mask {
            mask.apply(&mut y);
        }
        let mut shape = x.layout().shape().clone();
        let last = shape.num_dims() - 1;
        shape[0] *= copies;
        shape[last] = units;
        let output = flex::from_vec(y, shape);
        if let Some(saved) = saved {
            saved.extend([x.clone(), weight.clone()]);
            match activation {
                Activation::Identity => {}
                Activation::Relu => saved.push(output.clone()),
                Activation::Gelu => saved.push(flex::from_vec(slopes, Shape::new([sums]))),
            }
        }
        output
    }

    fn backward(
        &self,
        mut saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let residual = (self.residual && wanted[wanted.len() - 1]).then(|| grad.clone());
        let kept = (saved.len() == 3).then(|| saved.pop()).flatten();
        let (grad, mut slopes) = self.before_epilogue(grad, kept);
        let (x, weight) = (&saved[0], &saved[1]);
        let [inputs, units] = weight.layout().shape().dims();
        let (grad, x_values) = (flex::values(&grad), flex::values(x));
        let mut grad_x = flex::scratch(if wanted[0] { x_values.len() } else { 0 });
        let mut grad_weight = flex::scratch(inputs * units);
        let mut grad_bias = vec![0.0; units];
        if grad.is_empty() {
            grad_weight.fill(0.0);
        }
        let rows = block_rows(inputs, units);
        for index in 0..grad.len().div_ceil((rows * units).max(1)) {
            let range = index * rows * units..((index + 1) * rows * units).min(grad.len());
            // h of the block: where there are slopes, in their place.
            let values = match &mut slopes {
                Some(slopes) => {
                    let slopes = &mut slopes.storage_mut::<f32>()[range.clone()];
                    gelu::multiply(slopes, &grad[range]);
                    &*slopes
                }
                None => &grad[range],
            };
            let h = Matrix::new(values, values.len() / units.max(1), units);
            if wanted[0] {
                let grad_x = &mut grad_x[index * rows * inputs..];
                h.times_onto(matrix(weight).transposed(), 1.0, Onto::Nothing, grad_x, inputs);
            }
            if wanted[1] {
                let x = block(x_values, index, rows, inputs).transposed();
                let onto = if index == 0 { Onto::Nothing } else { Onto::Sum };
                x.times_onto(h, 1.0, onto, &mut grad_weight, units);
            }
            if self.bias && wanted[2] {
                add_into(&mut grad_bias, &sum_rows(values, units));
            }
        }
        let grad_x = wanted[0].then(|| flex::from_vec(grad_x, x.layout().shape().clone()));
        let shape = weight.layout().shape().clone();
        let grad_weight = wanted[1].then(|| flex::from_vec(grad_weight, shape));
        let mut gradients = vec![grad_x, grad_weight];
        if self.bias {
            gradients.push(wanted[2].then(|| flex::from_vec(grad_bias, Shape::new([units]))));
        }
        if self.residual {
            gradients.push(residual);
        }
        gradients
    }
}

impl Linear {
    /// `h` from the gradient of y and what the activation kept; where that are slopes, `h` is still
    /// to be multiplied by them.
    fn before_epilogue(
        &self,
        grad: FlexTensor,
        kept: Option<FlexTensor>,
    ) -> (FlexTensor, Option<FlexTensor>) {
        let Epilogue { activation, copies, mask } = self.epilogue;
        let shape = Shape::new([flex::values(&grad).len() / copies]);
        if activation == Activation::Relu {
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
            grad = flex::from_vec(sum_rows(flex::values(&grad), units), shape);
        }
        (grad, kept.map(flex::into_values))
    }
}

/// The sum of rows of so many numbers, in blocks of a fixed size.
fn sum_rows(values: &[f32], units: usize) -> Vec<f32> {
    const ROWS: usize = 128;
    let units = units.max(1);
    let blocks = values.par_chunks(ROWS * units);
    let mut partial = vec![0.0; blocks.len() * units];
    parallel(blocks.zip(partial.par_chunks_mut(units)), |(values, sum)| {
        dispatch(SumRows { values, sum });
    });
    let mut sum = vec![0.0; units];
    partial.chunks_exact(units).for_each(|partial| add_into(&mut sum, partial));
    sum
}

/// Adds the bias to every row and applies the activation.
struct Finish<'a> {
    sums: &'a mut [f32],
    bias: Option<&'a [f32]>,
    activation: Activation,
    units: usize,
}

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.sums.chunks_exact_mut(self.units.max(1)) {
            if let Some(bias) = self.bias {
                add_into(row, bias);
            }
            match self.activation {
                Activation::Identity => {}
                // Not `max`, which would turn what is not a number into a harmless zero.
                Activation::Relu => {
                    row.iter_mut().for_each(|v| *v = if *v < 0.0 { 0.0 } else { *v });
                }
                Activation::Gelu => row.iter_mut().for_each(|v| *v = gelu_of(*v).0),
            }
        }
    }
}

/// Adds the bias to every row and applies GELU, whose derivatives are kept.
struct FinishGelu<'a> {
    sums: &'a mut [f32],
    bias: Option<&'a [f32]>,
    slopes: &'a mut [f32],
    units: usize,
}

impl Kernel for FinishGelu<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let units = self.units.max(1);
        let rows = self.sums.chunks_exact_mut(units).zip(self.slopes.chunks_exact_mut(units));
        for (row, slopes) in rows {
            if let Some(bias) = self.bias {
                add_into(row, bias);
            }
            for (value, slope) in row.iter_mut().zip(slopes) {
                (*value, *slope) = gelu_of(*value);
            }
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
struct SumRows<'a> {
    values: &'a [f32],
    sum: &'a mut [f32],
}

impl Kernel for SumRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.values.chunks_exact(self.sum.len().max(1)) {
            add_into(self.sum, row);
        }
    }
}
