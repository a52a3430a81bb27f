//! What a linear layer keeps between its passes.

use burn::backend::flex::FlexTensor;

use super::{Activation, Linear};

/// What the forward pass keeps for the backward pass, in this order.
#[derive(Debug)]
pub(super) struct Saved {
    /// x before the normalisation where there is one; else x as it enters the product, rows of
    /// whole groups.
    pub x: FlexTensor,
    pub weight: FlexTensor,
    /// One number of the kind that x had.
    pub kind: FlexTensor,
    pub norm: Option<SavedNorm>,
    /// y for ReLU, the derivatives for GELU.
    pub kept: Option<FlexTensor>,
}

#[derive(Debug)]
pub(super) struct SavedNorm {
    pub gamma: FlexTensor,
    pub beta: FlexTensor,
    /// Mean and one over the deviation of each row.
    pub moments: FlexTensor,
}

impl Saved {
    pub fn into_vec(self) -> Vec<FlexTensor> {
        let mut tensors = vec![self.x, self.weight, self.kind];
        tensors
            .extend(self.norm.into_iter().flat_map(|norm| [norm.gamma, norm.beta, norm.moments]));
        tensors.extend(self.kept);
        tensors
    }

    pub fn of(layer: &Linear, tensors: Vec<FlexTensor>) -> Self {
        let mut tensors = tensors.into_iter();
        let mut next = || tensors.next().expect("as many as were saved");
        let (x, weight, kind) = (next(), next(), next());
        let norm = layer.norm.map(|_| SavedNorm { gamma: next(), beta: next(), moments: next() });
        let kept = (layer.epilogue.activation != Activation::Identity).then(next);
        Self { x, weight, kind, norm, kept }
    }
}
