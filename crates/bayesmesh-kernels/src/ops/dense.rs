//! Convolutions of three by three tokens, side by side, without patches.
//!
//! An example gets a border of zeros. Then the three tokens that a square has in one of its rows
//! are neighbours in memory, and those of the next square begin one token later: a matrix whose
//! rows overlap, which a product can read where it stands. Three products, one for each row of the
//! square, make the convolution. Squares that would begin in the last two columns of the border are
//! computed too and thrown away.
//!
//! The gradient of the input is such a convolution itself: of the gradient of the output, with the
//! taps the other way round.

use super::flex;
use super::matrix::{Matrix, Onto};
use super::sums::add_into;

/// Rows and columns of tokens without their border.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub rows: usize,
    pub columns: usize,
}

impl Grid {
    /// Columns with the border.
    fn stride(self) -> usize {
        self.columns + 2
    }

    /// Squares from the first to the last one, those that are thrown away included.
    fn squares(self) -> usize {
        self.rows * self.stride() - 2
    }

    /// Tokens of `width` numbers with a border of zeros.
    fn padded(self, tokens: &[f32], width: usize) -> Vec<f32> {
        let mut padded = vec![0.0; (self.rows + 2) * self.stride() * width];
        for (row, line) in tokens.chunks_exact(self.columns * width).enumerate() {
            let first = ((row + 1) * self.stride() + 1) * width;
            padded[first..first + line.len()].copy_from_slice(line);
        }
        padded
    }

    /// The row `down` of all squares: `[squares, 3·width]`.
    fn windows(self, padded: &[f32], width: usize, down: usize) -> Matrix<'_> {
        let first = down * self.stride() * width;
        Matrix::windows(&padded[first..], self.squares(), 3 * width, width)
    }

    /// A convolution of padded tokens with a weight `[9·width, units]`, handed on line by line.
    fn convolve(
        self,
        padded: &[f32],
        width: usize,
        weight: &[f32],
        units: usize,
        mut line: impl FnMut(usize, &[f32]),
    ) {
        let mut wide = flex::scratch(self.squares() * units);
        for (down, weight) in weight.chunks_exact(3 * width * units).enumerate() {
            let weight = Matrix::new(weight, 3 * width, units);
            let onto = if down == 0 { Onto::Nothing } else { Onto::Sum };
            self.windows(padded, width, down).times_onto(weight, 1.0, onto, &mut wide, units);
        }
        for row in 0..self.rows {
            line(row, &wide[row * self.stride() * units..][..self.columns * units]);
        }
    }

    /// Adds the convolution of an example to `output`.
    pub fn forward(self, x: &[f32], weight: &[f32], output: &mut [f32], units: usize) {
        let width = x.len() / (self.rows * self.columns);
        let padded = self.padded(x, width);
        let length = self.columns * units;
        self.convolve(&padded, width, weight, units, |row, line| {
            add_into(&mut output[row * length..][..length], line);
        });
    }

    /// Adds the gradient of the weight, from an example and the gradient of its output; writes that
    /// of the example, where the [turned](turned) weight for it is given.
    pub fn backward(
        self,
        x: &[f32],
        grad: &[f32],
        of_weight: &mut [f32],
        turned: Option<&[f32]>,
        grad_x: &mut [f32],
    ) {
        let tokens = self.rows * self.columns;
        let (width, units) = (x.len() / tokens, grad.len() / tokens);
        let (padded, slopes) = (self.padded(x, width), self.padded(grad, units));
        // From the first token on: what is thrown away meets the zeros of the border.
        let first = (self.stride() + 1) * units;
        let aligned = &slopes[first..][..self.squares() * units];
        for (down, of_weight) in of_weight.chunks_exact_mut(3 * width * units).enumerate() {
            let windows = self.windows(&padded, width, down).transposed();
            let slopes = Matrix::new(aligned, self.squares(), units);
            windows.times_onto(slopes, 1.0, Onto::Sum, of_weight, units);
        }
        if let Some(turned) = turned {
            let length = self.columns * width;
            self.convolve(&slopes, units, turned, width, |row, line| {
                grad_x[row * length..][..length].copy_from_slice(line);
            });
        }
    }
}

/// The weight that takes gradients back: `[9·width, units]` becomes `[9·units, width]`, taps from
/// the last to the first.
pub(super) fn turned(weight: &[f32], width: usize, units: usize) -> Vec<f32> {
    let mut turned = Vec::with_capacity(weight.len());
    for tap in weight.chunks_exact(width * units).rev() {
        for unit in 0..units {
            turned.extend(tap.iter().skip(unit).step_by(units));
        }
    }
    turned
}
