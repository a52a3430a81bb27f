//! Dropout whose mask comes from a stream.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, unary};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};

use super::flex;
use crate::stream::fill::Chunk;
use crate::stream::simd::{Kernel, dispatch};
use crate::stream::{Stream, unit};

/// Inverted dropout: `y = x·m/(1−p)` with `m_i ~ Bernoulli(1−p)`, element `start + i` of the stream.
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
    Tensor::from_dispatch(<Dispatch as DropoutOps>::stream_dropout(x.into_dispatch(), mask))
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

#[backend_extension(Autodiff, Flex)]
pub(crate) trait DropoutOps: Backend {
    fn stream_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self>;
}

impl DropoutOps for Flex {
    fn stream_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        let x = flex::contiguous(x);
        let mut values = flex::values(&x).to_vec();
        mask.apply(&mut values);
        flex::from_vec(values, x.shape())
    }
}

#[derive(Debug)]
struct StreamDropout(Mask);

impl Backward<Flex, 1> for StreamDropout {
    type State = ();

    fn backward(self, ops: Ops<(), 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| Flex::stream_dropout(grad, self.0));
    }
}

impl<C: CheckpointStrategy> DropoutOps for Autodiff<Flex, C> {
    fn stream_dropout(x: FloatTensor<Self>, mask: Mask) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        StreamDropout(mask)
            .prepare::<C>([node])
            .compute_bound()
            .stateless(Flex::stream_dropout(x, mask))
    }
}
