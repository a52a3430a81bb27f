//! The weights of a draw on the tape, and what their gradients mean for the trainable numbers.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bayesmesh_kernels::gaussian;
use bayesmesh_kernels::ops::TapeId;
use bayesmesh_kernels::stream::Stream;
use burn::tensor::{Gradients, Tensor, TensorData};

use super::slot::Family;

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

/// The backward pass of sampling in closed form: with `g = ∂L/∂w`, g for points and means and
/// `g·ε·σ'(ρ)` for ρ. It owns what it needs, so that it can go along with a backward pass.
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
    /// How many weights it has.
    pub len: usize,
    pub family: Family,
    /// The noise of its weights.
    pub noise: Stream,
}

impl SamplingBackward {
    /// Adds what the gradient of a slot's weights means to a flat vector laid out like the
    /// parameters.
    pub fn add(&self, slot: usize, gradient: &[f32], into: &mut [f32]) {
        let SampledSlot { range, len, family, noise } = &self.slots[slot];
        let (mean, rho) = into[range.clone()].split_at_mut(*len);
        match family {
            Family::Point => mean.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g),
            Family::Gaussian(scale) => {
                let at = &self.values[range.start + len..range.end];
                gaussian::add_sample_backward(noise, 0, *scale, at, gradient, mean, rho);
            }
        }
    }
}

/// The numbers of a gradient, in row-major order.
pub(crate) fn numbers(gradient: &TensorData) -> &[f32] {
    gradient.as_slice::<f32>().expect("gradients are single precision")
}
