//! The weights of a draw on the tape, and what their gradients mean for the trainable numbers.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bayesmesh_kernels::ops::TapeId;
use bayesmesh_kernels::stream::Stream;
use burn::tensor::{Gradients, Tensor, TensorData};

use super::family::Family;

/// A weight tensor of any rank as a leaf of the tape.
pub(crate) trait Leaf: Debug + Send + Sync {
    /// Takes its gradient out. A tensor that the forward pass did not use has none: zero.
    fn take(&self, gradients: &mut Gradients) -> Option<TensorData>;

    /// By which a watched backward pass names it, where it can be watched.
    fn id(&self) -> Option<TapeId>;
}

impl<const D: usize> Leaf for Tensor<D> {
    fn take(&self, gradients: &mut Gradients) -> Option<TensorData> {
        self.grad_remove(gradients).map(Tensor::into_data)
    }

    fn id(&self) -> Option<TapeId> {
        TapeId::of(self)
    }
}

/// The backward pass of sampling, in the closed form that each [`Family`] has. It owns what it
/// needs, so that it can go along with a backward pass.
#[derive(Clone, Debug)]
pub(crate) struct SamplingBackward {
    /// All trainable numbers.
    pub values: Arc<Vec<f32>>,
    pub slots: Vec<SampledSlot>,
}

/// A slot in a draw.
#[derive(Clone, Debug)]
pub(crate) struct SampledSlot {
    /// Where its trainable numbers are.
    pub range: Range<usize>,
    pub family: Arc<dyn Family>,
    /// The noise of its weights.
    pub noise: Stream,
}

impl SamplingBackward {
    /// Adds what the gradient of a slot's weights means to a flat vector laid out like the
    /// parameters.
    pub fn add(&self, slot: usize, gradient: &[f32], into: &mut [f32]) {
        let SampledSlot { range, family, noise } = &self.slots[slot];
        let numbers = &self.values[range.clone()];
        family.pull_back(noise, numbers, gradient, &mut into[range.clone()]);
    }
}

/// The numbers of a gradient, in row-major order.
pub(crate) fn numbers(gradient: &TensorData) -> &[f32] {
    gradient.as_slice::<f32>().expect("gradients are single precision")
}
