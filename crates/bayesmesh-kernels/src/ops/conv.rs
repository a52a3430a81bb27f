//! A convolution: on an image, or on the globe.

use std::ops::Range;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::dense::{Grid, turned};
use super::flex;
use super::fused::{self, Fused};
use super::matrix::{Matrix, Onto};
use super::sums::add_into;
use crate::simd::parallel;

/// Numbers of a patch that are multiplied at a time.
const BLOCK: usize = 1 << 17;
/// Sums for the weights that are made side by side and then added in order: fixed, so that they are
/// the same on any number of threads.
const SUMS: usize = 16;

/// What a convolution sees beyond the edges of its grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// Zeros, as in an image.
    Zeros,
    /// Columns go round; beyond the first and the last row there is the same row again.
    Globe,
}

/// Which tokens of a grid of rows and columns a convolution looks at: a square around every
/// `stride`-th token in every `stride`-th row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Rows and columns of tokens.
    pub grid: [usize; 2],
    /// Rows and columns of the square, an odd number.
    pub side: usize,
    /// How many tokens apart the squares are.
    pub stride: usize,
    /// How many tokens apart those within a square are.
    pub dilation: usize,
    /// What is beyond the edges.
    pub border: Border,
}

impl Window {
    /// Squares on an image, zeros around it.
    pub fn image(grid: [usize; 2], side: usize, stride: usize) -> Self {
        Self { grid, side, stride, dilation: 1, border: Border::Zeros }
    }

    /// A token of the globe and its eight neighbours, which are so many tokens apart.
    pub fn globe(grid: [usize; 2], dilation: usize) -> Self {
        Self { grid, side: 3, stride: 1, dilation, border: Border::Globe }
    }

    /// Rows and columns of what comes out: `⌈rows/stride⌉` and `⌈columns/stride⌉`.
    pub fn output(self) -> [usize; 2] {
        self.grid.map(|size| size.div_ceil(self.stride))
    }

    /// The grid, where squares of three by three stand side by side on an image.
    fn dense(self) -> Option<Grid> {
        let [rows, columns] = self.grid;
        let dense = self == Self::image(self.grid, 3, 1);
        dense.then_some(Grid { rows, columns })
    }

    /// Tokens in a square.
    fn taps(self) -> usize {
        self.side * self.side
    }

    /// The row of the grid that a row of the output sees through row `tap` of its square; nothing
    /// where that is beyond the edge.
    fn row(self, row: usize, tap: usize) -> Option<usize> {
        let (at, before) = self.place(row, tap);
        match self.border {
            Border::Zeros => at.checked_sub(before).filter(|&row| row < self.grid[0]),
            Border::Globe => Some(at.saturating_sub(before).min(self.grid[0] - 1)),
        }
    }

    /// The same for columns.
    fn column(self, column: usize, tap: usize) -> Option<usize> {
        let (at, before) = self.place(column, tap);
        let columns = self.grid[1];
        match self.border {
            Border::Zeros => at.checked_sub(before).filter(|&column| column < columns),
            Border::Globe => Some((at + columns - before % columns) % columns),
        }
    }

    /// A place on an axis that starts before the edge, and how far before.
    fn place(self, place: usize, tap: usize) -> (usize, usize) {
        (place * self.stride + tap * self.dilation, self.side / 2 * self.dilation)
    }

    /// Calls `visit` for every token that the squares of some rows of the output see: with the
    /// place of its first number among all tokens, nothing beyond the edge, and with that among the
    /// patches of these rows.
    fn for_each(
        self,
        rows: Range<usize>,
        width: usize,
        mut visit: impl FnMut(Option<usize>, usize),
    ) {
        let (columns, taps) = (self.output()[1], self.taps());
        let places: Vec<Option<usize>> = (0..self.side)
            .flat_map(|across| (0..columns).map(move |column| self.column(column, across)))
            .collect();
        for (index, row) in rows.enumerate() {
            for down in 0..self.side {
                let from = self.row(row, down).map(|row| row * self.grid[1]);
                for (across, places) in places.chunks_exact(columns).enumerate() {
                    let tap = self.side * down + across;
                    for (column, place) in places.iter().enumerate() {
                        let patch = (index * columns + column) * taps + tap;
                        let token = from.zip(*place).map(|(from, place)| (from + place) * width);
                        visit(token, patch * width);
                    }
                }
            }
        }
    }

    /// The rows of the output that are multiplied at a time.
    fn rows_at_a_time(self, width: usize) -> usize {
        let [rows, columns] = self.output();
        (BLOCK / (columns * self.taps() * width).max(1)).clamp(1, rows)
    }
}

/// A convolution over the tokens of a [window](Window): `y = P W + b` with the patch P of a token,
/// the tokens of its square row by row, one after the other.
///
/// Gradients, with `h = ∂L/∂y`: `∂L/∂W = Pᵀ h`, `∂L/∂b = Σ_tokens h`, and `h Wᵀ` goes back to where
/// the numbers of P came from. Patches are made for a few rows at a time and never kept; for
/// squares of three by three that stand side by side on an image, none are made at all
/// (`dense.rs`).
///
/// # Shapes
///
/// - `x`: `[rows, tokens, width]`
/// - `weight`: `[side²·width, units]`
/// - `bias`: `[units]`
/// - output: `[rows, tokens of the output, units]`
///
/// # Panics
///
/// If the shapes do not fit the grid and each other, the side is even, or the stride or the
/// dilation is 0.
pub fn conv(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>, window: Window) -> Tensor<3> {
    let ([_, tokens, width], [inputs, units]) = (x.dims(), weight.dims());
    let Window { grid: [rows, columns], side, stride, dilation, .. } = window;
    assert!(
        tokens == rows * columns && tokens > 0 && side % 2 == 1 && stride * dilation > 0,
        "{tokens} tokens for a grid of {rows} x {columns} with squares of {side}, {stride} apart, \
         of tokens {dilation} apart"
    );
    assert!(
        inputs == window.taps() * width && bias.dims() == [units],
        "a weight of {inputs} x {units} and {} biases for tokens of {width}",
        bias.dims()[0]
    );
    match flex::is_flex(&x.device()) {
        true => fused::run(
            Conv(window),
            [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()],
        ),
        false => conv_composed(x, weight, bias, window),
    }
}

/// [`conv`] from Burn's own operations, for devices without an implementation of their own.
pub fn conv_composed(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    window: Window,
) -> Tensor<3> {
    let [batch, _, width] = x.dims();
    let ([rows, columns], [down, across]) = (window.grid, window.output());
    let fields: Tensor<4> = x.reshape([batch, rows, columns, width]);
    // One line of tokens after the other, zeros for those beyond the edge.
    let lines = |from: &Tensor<4>, axis: usize, places: Vec<Option<usize>>| -> Tensor<4> {
        let lines = places.into_iter().map(|place| match place {
            Some(place) => from.clone().narrow(axis, place, 1),
            None => from.clone().narrow(axis, 0, 1).zeros_like(),
        });
        Tensor::cat(lines.collect(), axis)
    };
    let mut parts = Vec::with_capacity(window.taps());
    for tap in 0..window.side {
        let fields = lines(&fields, 1, (0..down).map(|row| window.row(row, tap)).collect());
        for tap in 0..window.side {
            let places = (0..across).map(|column| window.column(column, tap)).collect();
            parts.push(lines(&fields, 2, places));
        }
    }
    let patches = Tensor::cat(parts, 3).reshape([batch, down * across, window.taps() * width]);
    patches.matmul(weight.unsqueeze()) + bias.unsqueeze()
}

#[derive(Debug)]
struct Conv(Window);

impl Conv {
    /// Calls `visit` for some rows of the output at a time, with the first of their tokens and with
    /// their patches.
    fn for_patches(&self, x: &[f32], width: usize, mut visit: impl FnMut(usize, &mut [f32])) {
        let [rows, columns] = self.0.output();
        let size = columns * self.0.taps() * width;
        let step = self.0.rows_at_a_time(width);
        let mut patches = flex::scratch(step * size);
        for first in (0..rows).step_by(step) {
            let last = rows.min(first + step);
            let patches = &mut patches[..(last - first) * size];
            self.0.for_each(first..last, width, |from, to| {
                let patch = &mut patches[to..to + width];
                match from {
                    Some(from) => patch.copy_from_slice(&x[from..from + width]),
                    None => patch.fill(0.0),
                }
            });
            visit(first * columns, patches);
        }
    }

    /// Tokens of the output of an example.
    fn tokens(&self) -> usize {
        self.0.output().iter().product()
    }
}

impl Fused for Conv {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let [x, weight, bias] = inputs else { unreachable!("three inputs") };
        let [rows, tokens, width] = x.layout().shape().dims();
        let [inner, units] = weight.layout().shape().dims();
        let out = self.tokens();
        let output = flex::build(Shape::new([rows, out, units]), |output| {
            let examples = flex::values(x).par_chunks(tokens * width);
            let examples = examples.zip(output.par_chunks_mut((out * units).max(1)));
            parallel(examples, |(x, output)| {
                let bias = flex::values(bias);
                output.chunks_exact_mut(units).for_each(|token| token.copy_from_slice(bias));
                if let Some(grid) = self.0.dense() {
                    return grid.forward(x, flex::values(weight), output, units);
                }
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
        let (size, out, columns) = (inner * units, self.tokens(), self.0.output()[1]);
        let dense = self.0.dense();
        let turned =
            (dense.is_some() && wanted[0]).then(|| turned(flex::values(weight), width, units));
        // Of a few examples at a time the sums for W and b, which are then added in order.
        let few = rows.div_ceil(SUMS).max(1);
        let mut partial = vec![0.0; rows.div_ceil(few) * (size + units)];
        let grad_x = flex::build(x.layout().shape().clone(), |grad_x| {
            grad_x.fill(0.0);
            let inputs = flex::values(x).par_chunks(few * tokens * width);
            let inputs = inputs.zip(flex::values(&grad).par_chunks(few * out * units));
            let outputs = grad_x.par_chunks_mut(few * tokens * width);
            let outputs = outputs.zip(partial.par_chunks_mut(size + units));
            parallel(inputs.zip(outputs), |((x, grad), (grad_x, sums))| {
                let (of_weight, of_bias) = sums.split_at_mut(size);
                let examples = x.chunks_exact(tokens * width).zip(grad.chunks_exact(out * units));
                let examples = examples.zip(grad_x.chunks_exact_mut(tokens * width));
                for ((x, grad), grad_x) in examples {
                    grad.chunks_exact(units).for_each(|token| add_into(of_bias, token));
                    if let Some(grid) = dense {
                        grid.backward(x, grad, of_weight, turned.as_deref(), grad_x);
                        continue;
                    }
                    self.for_patches(x, width, |first, patches| {
                        let count = patches.len() / inner;
                        let grad = &grad[first * units..][..count * units];
                        let slopes = Matrix::new(grad, count, units);
                        let transposed = Matrix::new(patches, count, inner).transposed();
                        transposed.times_onto(slopes, 1.0, Onto::Sum, of_weight, units);
                        if wanted[0] {
                            let weight = Matrix::new(flex::values(weight), inner, units);
                            slopes.times_onto(
                                weight.transposed(),
                                1.0,
                                Onto::Nothing,
                                patches,
                                inner,
                            );
                            let rows = first / columns..(first + count) / columns;
                            self.0.for_each(rows, width, |to, from| {
                                if let Some(to) = to {
                                    let patch = &patches[from..from + width];
                                    add_into(&mut grad_x[to..to + width], patch);
                                }
                            });
                        }
                    });
                }
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
