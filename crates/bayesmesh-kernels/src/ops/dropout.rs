//! Dropout whose mask comes from a stream.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, unary};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};

use super::flex;
use crate::stream::Stream;

/// Inverted dropout: `y = x·m/(1−p)` with `m_i ~ Bernoulli(1−p)`, element `start + i` of the stream.
///
/// Its own transpose, so the backward pass applies the same mask, computed again, to the gradient:
/// the graph keeps nothing. `start` lets a shard of a batch use the part of the mask that the whole
/// batch would use. A probability of zero returns the input.
pub fn dropout<const D: usize>(
    x: Tensor<D>,
    stream: Stream,
    start: u64,
    probability: f32,
) -> Tensor<D> {
    if probability == 0.0 {
        return x;
    }
    if !flex::is_flex(&x.device()) {
        return dropout_composed(x, stream, start, probability);
    }
    Tensor::from_dispatch(<Dispatch as DropoutOps>::stream_dropout(
        x.into_dispatch(),
        stream,
        start,
        probability,
    ))
}

/// [`dropout`] from Burn's own operations, for devices without an implementation of their own.
pub fn dropout_composed<const D: usize>(
    x: Tensor<D>,
    stream: Stream,
    start: u64,
    probability: f32,
) -> Tensor<D> {
    let shape = x.shape();
    let mut mask = vec![0.0; shape.num_elements()];
    fill_mask(&stream, start, probability, &mut mask);
    let mask = Tensor::<D>::from_data(TensorData::new(mask, shape), &x.device());
    x * mask
}

fn fill_mask(stream: &Stream, start: u64, probability: f32, mask: &mut [f32]) {
    let keep = 1.0 - probability;
    stream.fill_bernoulli(start, keep, mask);
    let factor = 1.0 / keep;
    mask.iter_mut().for_each(|m| *m *= factor);
}

#[backend_extension(Autodiff, Flex)]
pub(crate) trait DropoutOps: Backend {
    fn stream_dropout(
        x: FloatTensor<Self>,
        stream: Stream,
        start: u64,
        probability: f32,
    ) -> FloatTensor<Self>;
}

impl DropoutOps for Flex {
    fn stream_dropout(
        x: FloatTensor<Self>,
        stream: Stream,
        start: u64,
        probability: f32,
    ) -> FloatTensor<Self> {
        let x = flex::contiguous(x);
        flex::build(x.shape(), |out| {
            fill_mask(&stream, start, probability, out);
            for (out, x) in out.iter_mut().zip(flex::values(&x)) {
                *out *= x;
            }
        })
    }
}

#[derive(Debug)]
struct StreamDropout {
    stream: Stream,
    start: u64,
    probability: f32,
}

impl Backward<Flex, 1> for StreamDropout {
    type State = ();

    fn backward(self, ops: Ops<(), 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        unary::<Flex, _>(ops.parents, ops.node, grads, |grad| {
            Flex::stream_dropout(grad, self.stream, self.start, self.probability)
        });
    }
}

impl<C: CheckpointStrategy> DropoutOps for Autodiff<Flex, C> {
    fn stream_dropout(
        x: FloatTensor<Self>,
        stream: Stream,
        start: u64,
        probability: f32,
    ) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        StreamDropout { stream, start, probability }
            .prepare::<C>([node])
            .compute_bound()
            .stateless(Flex::stream_dropout(x, stream, start, probability))
    }
}
