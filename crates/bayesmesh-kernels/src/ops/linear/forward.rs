//! The forward pass of a linear layer.

use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, Shape};
use half::bf16;
use rayon::iter::IntoParallelIterator;

use super::saved::{Saved, SavedNorm};
use super::{Activation, Linear};
use crate::ops::flex::{self, Wide, enter, row_step};
use crate::ops::gelu::gelu_of;
use crate::ops::layer_norm::Normalise;
use crate::precision::Precision;
use crate::product::{Element, Left, PIECE, Packed, Sink, WIDTH, product, row_of, write_row};
use crate::simd::{dispatch, parallel};

/// The inputs of a layer.
struct Inputs<'a> {
    x: &'a FlexTensor,
    weight: &'a FlexTensor,
    norm: Option<[&'a FlexTensor; 2]>,
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
}

/// Rows that go through the layer together.
struct Piece<'a, E, O> {
    first: usize,
    rows: usize,
    y: &'a mut [O],
    /// Derivatives of the activation; empty where none are kept.
    slopes: &'a mut [E],
    /// x as it enters the product; empty where it does so as it is, or is normalised before.
    entering: &'a mut [E],
    /// Of the normalisation; empty where there is none.
    moments: &'a mut [f32],
}

/// The numbers of a tensor, where they may enter a product as they are.
pub(super) fn as_they_are<E: Element>(tensor: &FlexTensor, width: usize) -> Option<&[E]> {
    let fits = tensor.dtype() == E::dtype() && width == row_step::<E>(width);
    fits.then(|| flex::of(tensor))
}

impl Linear {
    fn inputs<'a>(&self, inputs: &'a [FlexTensor]) -> Inputs<'a> {
        let [x, weight, rest @ ..] = inputs else { unreachable!("x and a weight") };
        let mut rest = rest.iter();
        let mut next = || rest.next().expect("as many as the fields say");
        let norm = self.norm.map(|_| [next(), next()]);
        let bias = self.bias.then(|| flex::values(next()));
        let residual = self.residual.then(|| flex::values(next()));
        Inputs { x, weight, norm, bias, residual }
    }

    /// The output, and what the backward pass needs where there will be one.
    pub(super) fn forward_pass(
        &self,
        inputs: &[FlexTensor],
        saved: Option<&mut Vec<FlexTensor>>,
    ) -> FlexTensor {
        let [_, units] = inputs[1].layout().shape().dims();
        match (self.precision, self.is_narrow(units)) {
            (Precision::F32, _) => self.forward_in::<f32, f32>(inputs, saved),
            (Precision::Bf16, false) => self.forward_in::<bf16, f32>(inputs, saved),
            (Precision::Bf16, true) => self.forward_in::<bf16, bf16>(inputs, saved),
        }
    }

    /// With products of E and an output of O.
    fn forward_in<E: Element, O: Element>(
        &self,
        inputs: &[FlexTensor],
        saved: Option<&mut Vec<FlexTensor>>,
    ) -> FlexTensor {
        let Inputs { x, weight, norm, bias, residual } = self.inputs(inputs);
        let (activation, wide) = (self.epilogue.activation, Wide::of(weight));
        let [width, units]: [usize; 2] = weight.layout().shape().dims();
        let (rows, _) = flex::rows(x);
        let step = row_step::<E>(width);
        let right = Packed::<E>::of(&wide, width, units, units);

        let ready = as_they_are::<E>(x, width).filter(|_| norm.is_none());
        let keeps_slopes = activation == Activation::Gelu && saved.is_some();
        let of = |wanted: bool, count: usize| if wanted { rows * count } else { 0 };
        let mut y = flex::scratch::<O>(rows * units);
        let mut slopes = flex::scratch::<E>(of(keeps_slopes, units));
        let mut entering = flex::scratch::<E>(of(ready.is_none() && norm.is_none(), step));
        let mut moments = flex::scratch::<f32>(of(norm.is_some(), 2));
        {
            let mut rest = (&mut y[..], &mut slopes[..], &mut entering[..], &mut moments[..]);
            let pieces = (0..rows).step_by(PIECE).map(|first| {
                let rows = PIECE.min(rows - first);
                Piece {
                    first,
                    rows,
                    y: take(&mut rest.0, rows * units),
                    slopes: take(&mut rest.1, rows * units),
                    entering: take(&mut rest.2, rows * step),
                    moments: take(&mut rest.3, rows * 2),
                }
            });
            let pieces: Vec<Piece<E, O>> = pieces.collect();
            parallel(pieces.into_par_iter(), |piece| {
                let Piece { first, rows, y, slopes, entering, moments } = piece;
                let all = first * width..(first + rows) * width;
                let normalised;
                let left: &[E] = match (ready, norm) {
                    (Some(x), _) => &x[all],
                    (None, None) => {
                        enter(&Wide::range(x, all), width, entering);
                        entering
                    }
                    (None, Some([gamma, beta])) => {
                        let [gamma, beta] = [gamma, beta].map(flex::values);
                        let (x, epsilon) = (&*Wide::range(x, all), self.norm.unwrap_or(0.0));
                        normalised = enter_by(rows, width, |y| {
                            let residual = None;
                            dispatch(Normalise { x, gamma, beta, residual, epsilon, y, moments });
                        });
                        &normalised
                    }
                };
                let left = Left::rows(left, rows, width, step);
                let residual = residual.map(|r| &r[first * units..][..rows * units]);
                let mut finish = Finish { y, bias, residual, slopes, activation, units };
                product(left, &right, &mut finish);
            });
        }
        let sums = rows * units;
        let output = self.repeat_and_drop(flex::from_vec(y, Shape::new([sums])));
        let mut shape = x.layout().shape().clone();
        let last = shape.num_dims() - 1;
        shape[0] *= self.epilogue.copies;
        shape[last] = units;
        let output = output.reshape(shape);
        if let Some(saved) = saved {
            let norm = norm.map(|[gamma, beta]| SavedNorm {
                gamma: gamma.clone(),
                beta: beta.clone(),
                moments: flex::from_vec(moments, Shape::new([rows, 2])),
            });
            let x_kept = match ready.is_some() || norm.is_some() {
                true => x.clone(),
                false => flex::from_vec(entering, Shape::new([rows, step])),
            };
            let kind = match x.dtype() {
                DType::BF16 => flex::from_vec(vec![bf16::ZERO], Shape::new([1])),
                _ => flex::from_vec(vec![0.0f32], Shape::new([1])),
            };
            let kept = match activation {
                Activation::Identity => None,
                Activation::Relu => Some(output.clone()),
                Activation::Gelu => Some(flex::from_vec(slopes, Shape::new([sums]))),
            };
            *saved = Saved { x: x_kept, weight: weight.clone(), kind, norm, kept }.into_vec();
        }
        output
    }

    /// The parts of the epilogue that come after the layer as a whole.
    fn repeat_and_drop(&self, y: FlexTensor) -> FlexTensor {
        if self.epilogue.copies == 1 && self.epilogue.mask.is_none() {
            return y;
        }
        let once = flex::values(&y);
        let mut y = Vec::with_capacity(once.len() * self.epilogue.copies);
        (0..self.epilogue.copies).for_each(|_| y.extend_from_slice(once));
        if let Some(mask) = self.epilogue.mask {
            mask.apply(&mut y);
        }
        let shape = Shape::new([y.len()]);
        flex::from_vec(y, shape)
    }
}

/// The beginning of a slice, which is taken off; nothing of one that is empty.
pub(super) fn take<'a, T>(rest: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let count = count.min(rest.len());
    rest.split_off_mut(..count).expect("no more than there are")
}

/// Rows that enter a product, from a kernel that writes them without gaps.
pub(super) fn enter_by<E: Element>(
    rows: usize,
    width: usize,
    write: impl FnOnce(&mut [E]),
) -> Vec<E> {
    let step = row_step::<E>(width);
    let mut entering = flex::scratch::<E>(rows * step);
    if step == width {
        write(&mut entering);
        return entering;
    }
    write(&mut entering[..rows * width]);
    // From the last row on, each to where it belongs.
    for row in (0..rows).rev() {
        entering.copy_within(row * width..(row + 1) * width, row * step);
        entering[row * step + width..(row + 1) * step].fill(E::default());
    }
    entering
}

/// Adds the bias, applies the activation, adds the residual and stores.
struct Finish<'a, E, O> {
    y: &'a mut [O],
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
    slopes: &'a mut [E],
    activation: Activation,
    units: usize,
}

impl<E: Element, O: Element> Sink for Finish<'_, E, O> {
    // Arrays of a known size, also where fewer columns count: loops over them are vectors.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn take(&mut self, row: usize, column: usize, tile: &mut [[f32; WIDTH]], columns: usize) {
        let bias = self.bias.map(|bias| row_of(&bias[column..], columns));
        for (index, sums) in tile.iter_mut().enumerate() {
            let first = (row + index) * self.units + column;
            if let Some(bias) = &bias {
                for i in 0..WIDTH {
                    sums[i] += bias[i];
                }
            }
            match self.activation {
                Activation::Identity => {}
                // Not `max`, which would turn what is not a number into a harmless zero.
                Activation::Relu => {
                    for i in 0..WIDTH {
                        sums[i] = if sums[i] < 0.0 { 0.0 } else { sums[i] };
                    }
                }
                Activation::Gelu => {
                    let mut slopes = [0.0; WIDTH];
                    for i in 0..WIDTH {
                        (sums[i], slopes[i]) = gelu_of(sums[i]);
                    }
                    if !self.slopes.is_empty() {
                        let to = &mut self.slopes[first..];
                        write_row!(to, columns, |i| E::of(slopes[i]));
                    }
                }
            }
            if let Some(residual) = self.residual {
                let residual = row_of(&residual[first..], columns);
                for i in 0..WIDTH {
                    sums[i] += residual[i];
                }
            }
            write_row!(&mut self.y[first..], columns, |i| O::of(sums[i]));
        }
    }
}
