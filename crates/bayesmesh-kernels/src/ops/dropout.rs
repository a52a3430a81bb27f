//! Dropout whose mask comes from a stream.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, TensorData};

use super::flex;
use super::fused::{self, Fused};
use crate::simd::{Kernel, dispatch};
use crate::stream::fill::Chunk;
use crate::stream::{Stream, unit};

/// Inverted dropout: `y = x·m/(1−p)` with `m_i ~ Bernoulli(1−p)`, element `start + i` of the
/// stream.
///
/// Its own transpose, so the backward pass applies the same mask, computed again, to the gradient:
/// the graph keeps nothing. A probability of zero returns the input.
pub fn dropout<const D: usize>(x: Tensor<D>, mask: Mask) -> Tensor<D> {
    if mask.probability == 0.0 {
        return x;
    }
    if !flex::is_flex(&x.device()) {
        return dropout_composed(x, mask);
    }
    fused::run(StreamDropout(mask), [x.into_dispatch()])
}

/// Which mask: the address of its numbers and the share that is zero.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// The numbers of the first draw.
    pub stream: Stream,
    /// How many draws are stacked along the first axis of `x`, each with a mask of its own.
    pub draws: u32,
    /// Where in the mask of the whole batch the rows of `x` begin.
    pub start: u64,
    /// The share that is dropped, p.
    pub probability: f32,
}

impl Mask {
    /// `1/(1−p)`, by which what is kept grows.
    pub(super) fn factor(&self) -> f32 {
        1.0 / (1.0 - self.probability)
    }

    /// Multiplies by `m/(1−p)`.
    pub(super) fn apply(&self, values: &mut [f32]) {
        let block = values.len() / self.draws.max(1) as usize;
        for (draw, values) in values.chunks_mut(block.max(1)).enumerate() {
            let stream = self.stream.skip_draws(draw as u32);
            stream.check_range(self.start, values.len());
            dispatch(Apply { mask: *self, stream, values });
        }
    }
}

/// [`Mask::apply`] for one draw.
struct Apply<'a> {
    mask: Mask,
    stream: Stream,
    values: &'a mut [f32],
}

impl Kernel for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { mask, stream, mut values } = self;
        let (keep, factor) = (1.0 - mask.probability, mask.factor());
        let scale = |word| if unit(word) < keep { factor } else { 0.0 };
        let mut chunk = Chunk::default();
        let mut element = mask.start;
        while !values.is_empty() {
            let scales = chunk.generate(&stream, element, values.len(), |[a, b, c, d]| {
                [scale(a), scale(b), scale(c), scale(d)]
            });
            let (now, rest) = values.split_at_mut(scales.len());
            for (value, scale) in now.iter_mut().zip(scales) {
                *value *= scale;
            }
            element += now.len() as u64;
            values = rest;
        }
    }
}

/// [`dropout`] from Burn's own operations, for devices without an implementation of their own.
pub fn dropout_composed<const D: usize>(x: Tensor<D>, mask: Mask) -> Tensor<D> {
    let shape = x.shape();
    let mut values = vec![1.0; shape.num_elements()];
    mask.apply(&mut values);
    x.clone() * Tensor::<D>::from_data(TensorData::new(values, shape), &x.device())
}

#[derive(Debug)]
struct StreamDropout(Mask);

impl Fused for StreamDropout {
    fn forward(&self, inputs: &[FlexTensor], _saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let mut values = flex::values(&inputs[0]).to_vec();
        self.0.apply(&mut values);
        flex::from_vec(values, inputs[0].layout().shape().clone())
    }

    fn backward(
        &self,
        _saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let mut grad = flex::into_values(grad);
        self.0.apply(grad.storage_mut::<f32>());
        vec![Some(grad)]
    }
}
