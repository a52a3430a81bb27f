//! A convolution on the globe.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::flex;
use super::fused::{self, Fused};
use super::matrix::{Matrix, Onto};
use super::sums::add_into;
use crate::simd::parallel;

/// Numbers of a patch that are multiplied at a time.
const BLOCK: usize = 1 << 17;
/// Neighbours of a token, itself included.
const TAPS: usize = 9;

/// The neighbours of the tokens of a globe: a grid of rows and columns, and how many tokens apart
/// neighbours are. Columns go round; beyond the first and the last row there is the same row again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Rows and columns of tokens.
    pub grid: [usize; 2],
    /// How many tokens apart.
    pub dilation: usize,
}

impl Neighbours {
    /// The row above, of itself or below: `tap` is 0, 1 or 2.
    fn row(self, row: usize, tap: usize) -> usize {
        (row + tap * self.dilation).saturating_sub(self.dilation).min(self.grid[0] - 1)
    }

    /// By how many columns the neighbours of a tap are to the east.
    fn east(self, tap: usize) -> usize {
        let columns = self.grid[1];
        (columns + tap * (self.dilation % columns) - self.dilation % columns) % columns
    }

    /// Calls `visit` for every neighbour of the tokens in some rows: with the place of its first
    /// number among all tokens, and with that among the patches of these rows.
    fn for_each(
        self,
        rows: std::ops::Range<usize>,
        width: usize,
        mut visit: impl FnMut(usize, usize),
    ) {
        let columns = self.grid[1];
        for (index, row) in rows.enumerate() {
            for down in 0..3 {
                let from = self.row(row, down) * columns;
                for across in 0..3 {
                    let (east, tap) = (self.east(across), 3 * down + across);
                    for column in 0..columns {
                        let at = column + east;
                        let at = if at >= columns { at - columns } else { at };
                        let patch = (index * columns + column) * TAPS + tap;
                        visit((from + at) * width, patch * width);
                    }
                }
            }
        }
    }

    /// The rows of tokens that are multiplied at a time.
    fn rows_at_a_time(self, width: usize) -> usize {
        (BLOCK / (self.grid[1] * TAPS * width).max(1)).clamp(1, self.grid[0])
    }
}

/// A convolution over a token and its eight [neighbours](Neighbours): `y = P W + b` with the patch
/// P of a token, its neighbours from north-west to south-east one after the other.
///
/// Gradients, with `h = ∂L/∂y`: `∂L/∂W = Pᵀ h`, `∂L/∂b = Σ_tokens h`, and `h Wᵀ` goes back to where
/// the numbers of P came from. Patches are made for a few rows at a time and never kept.
///
/// # Shapes
///
/// - `x`: `[rows, tokens, width]`
/// - `weight`: `[9·width, units]`
/// - `bias`: `[units]`
/// - output: `[rows, tokens, units]`
///
/// # Panics
///
/// If the shapes do not fit the grid and each other, or neighbours are no tokens apart.
pub fn globe_conv(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    neighbours: Neighbours,
) -> Tensor<3> {
    let ([_, tokens, width], [inputs, units]) = (x.dims(), weight.dims());
    let Neighbours { grid: [rows, columns], dilation } = neighbours;
    assert!(
        tokens == rows * columns && tokens > 0 && dilation > 0,
        "{tokens} tokens for a grid of {rows} x {columns}, neighbours {dilation} apart"
    );
    assert!(
        inputs == TAPS * width && bias.dims() == [units],
        "a weight of {inputs} x {units} and {} biases for tokens of {width}",
        bias.dims()[0]
    );
    match flex::is_flex(&x.device()) {
        true => fused::run(
            GlobeConv(neighbours),
            [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()],
        ),
        false => globe_conv_composed(x, weight, bias, neighbours),
    }
}

/// [`globe_conv`] from Burn's own operations, for devices without an implementation of their own.
pub fn globe_conv_composed(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    neighbours: Neighbours,
) -> Tensor<3> {
    let [batch, tokens, width] = x.dims();
    let [rows, columns] = neighbours.grid;
    let fields: Tensor<4> = x.reshape([batch, rows, columns, width]);
    let mut parts = Vec::with_capacity(TAPS);
    for down in 0..3 {
        let lines: Vec<Tensor<4>> =
            (0..rows).map(|row| fields.clone().narrow(1, neighbours.row(row, down), 1)).collect();
        let lines = Tensor::cat(lines, 1);
        for across in 0..3 {
            let east = neighbours.east(across);
            parts.push(match east {
                0 => lines.clone(),
                _ => Tensor::cat(
                    vec![
                        lines.clone().narrow(2, east, columns - east),
                        lines.clone().narrow(2, 0, east),
                    ],
                    2,
                ),
            });
        }
    }
    let patches = Tensor::cat(parts, 3).reshape([batch, tokens, TAPS * width]);
    patches.matmul(weight.unsqueeze()) + bias.unsqueeze()
}

#[derive(Debug)]
struct GlobeConv(Neighbours);

impl GlobeConv {
    /// Calls `visit` for some rows of tokens at a time, with the range of these rows and their
    /// patches.
    fn for_patches(&self, x: &[f32], width: usize, mut visit: impl FnMut(usize, &mut [f32])) {
        let [rows, columns] = self.0.grid;
        let step = self.0.rows_at_a_time(width);
        let mut patches = flex::scratch(step * columns * TAPS * width);
        for first in (0..rows).step_by(step) {
            let last = rows.min(first + step);
            let patches = &mut patches[..(last - first) * columns * TAPS * width];
            self.0.for_each(first..last, width, |from, to| {
                patches[to..to + width].copy_from_slice(&x[from..from + width]);
            });
            visit(first * columns, patches);
        }
    }
}

impl Fused for GlobeConv {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let [x, weight, bias] = inputs else { unreachable!("three inputs") };
        let [rows, tokens, width] = x.layout().shape().dims();
        let [inner, units] = weight.layout().shape().dims();
        let output = flex::build(Shape::new([rows, tokens, units]), |output| {
            let examples = flex::values(x).par_chunks(tokens * width);
            let examples = examples.zip(output.par_chunks_mut((tokens * units).max(1)));
            parallel(examples, |(x, output)| {
                let bias = flex::values(bias);
                output.chunks_exact_mut(units).for_each(|token| token.copy_from_slice(bias));
                self.for_patches(x, width, |first, patches| {
                    let count = patches.len() / inner;
                    let weight = Matrix::new(flex::values(weight), inner, units);
                    let output = &mut output[first * units..][..count * units];
                    let patches = Matrix::new(patches, count, inner);
                    patches.times_onto(weight, 1.0, Onto::Sum, output, units);
                });
            });
        });
        if let Some(saved) = saved {
            saved.extend([x.clone(), weight.clone()]);
        }
        output
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let [x, weight] = &saved[..] else { unreachable!("what forward saved") };
        let [rows, tokens, width] = x.layout().shape().dims();
        let [inner, units] = weight.layout().shape().dims();
        let (size, columns) = (inner * units, self.0.grid[1]);
        // Of every example the sums for W and b, which are then added in order.
        let mut partial = vec![0.0; rows * (size + units)];
        let grad_x = flex::build(x.layout().shape().clone(), |grad_x| {
            grad_x.fill(0.0);
            let inputs = flex::values(x).par_chunks(tokens * width);
            let inputs = inputs.zip(flex::values(&grad).par_chunks(tokens * units));
            let outputs = grad_x.par_chunks_mut(tokens * width);
            let outputs = outputs.zip(partial.par_chunks_mut(size + units));
            parallel(inputs.zip(outputs), |((x, grad), (grad_x, sums))| {
                let (of_weight, of_bias) = sums.split_at_mut(size);
                grad.chunks_exact(units).for_each(|token| add_into(of_bias, token));
                self.for_patches(x, width, |first, patches| {
                    let count = patches.len() / inner;
                    let grad = &grad[first * units..][..count * units];
                    let slopes = Matrix::new(grad, count, units);
                    let transposed = Matrix::new(patches, count, inner).transposed();
                    transposed.times_onto(slopes, 1.0, Onto::Sum, of_weight, units);
                    if wanted[0] {
                        let weight = Matrix::new(flex::values(weight), inner, units).transposed();
                        slopes.times_onto(weight, 1.0, Onto::Nothing, patches, inner);
                        let rows = first / columns..(first + count) / columns;
                        self.0.for_each(rows, width, |to, from| {
                            add_into(&mut grad_x[to..to + width], &patches[from..from + width]);
                        });
                    }
                });
            });
        });
        let mut sums = vec![0.0; size + units];
        partial.chunks_exact(size + units).for_each(|partial| add_into(&mut sums, partial));
        let of_bias = sums.split_off(size);
        vec![
            wanted[0].then_some(grad_x),
            Some(flex::from_vec(sums, Shape::new([inner, units]))),
            Some(flex::from_vec(of_bias, Shape::new([units]))),
        ]
    }
}
