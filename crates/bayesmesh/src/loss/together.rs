//! What the draws of a step say together, and what each contributes to the loss.

use std::ops::Range;

use bayesmesh_comm::{Communicator, Reduce};
use burn::tensor::{Device, Tensor};

use super::combine::{Fold, pullback};
use super::transpose::{Transpose, Transposed};
use super::{Combine, Loss};
use crate::error::Result;

/// Which draws are combined, and how much they count.
pub(crate) struct Scope<'a> {
    /// The ranks whose draws are combined; without, the local ones are.
    pub others: Option<&'a dyn Communicator>,
    pub reduce: Reduce,
    /// How many draws are combined.
    pub draws: usize,
    /// Those of this rank among them.
    pub own: Range<usize>,
    /// What the sum over rows is multiplied by.
    pub weight: f64,
    /// What the gradient is multiplied by beyond that.
    pub factor: f64,
    /// Where summaries are, without autodiff.
    pub device: Device,
}

/// Collects the summaries of the draws of a rank.
pub(crate) struct Together<'a> {
    scope: Scope<'a>,
    parts: Parts,
}

enum Parts {
    Fold(Fold),
    Transpose(Transpose),
}

/// The loss of all draws, and what a summary contributes to it.
pub(crate) struct Joint<'a> {
    /// The loss.
    pub value: f32,
    scope: Scope<'a>,
    gradient: Gradient,
}

enum Gradient {
    Combined(Box<Combined>),
    Transposed(Transposed),
}

struct Combined {
    combine: Combine,
    /// ∂L/∂R.
    gradient: Tensor<2>,
    /// R.
    combined: Tensor<2>,
}

impl<'a> Together<'a> {
    pub fn new(combine: Combine, scope: Scope<'a>) -> Self {
        let parts = match combine {
            Combine::Transpose => {
                let ranks = scope.others.map_or(1, |others| others.size());
                Parts::Transpose(Transpose::new(scope.own.len(), ranks))
            }
            _ => Parts::Fold(Fold::new(combine)),
        };
        Self { scope, parts }
    }

    /// Adds the summaries of the next `draws` draws, stacked along the rows.
    pub fn push(&mut self, summary: Tensor<2>, draws: usize) {
        match &mut self.parts {
            Parts::Fold(fold) => fold.push(summary, draws),
            Parts::Transpose(transpose) => transpose.push(summary, draws),
        }
    }

    /// The loss of all draws. Collective.
    pub fn finish<L: Loss + ?Sized>(self, loss: &L, target: &L::Target) -> Result<Joint<'a>> {
        let Self { scope, parts } = self;
        let Scope { others, reduce, draws, weight, factor, .. } = scope;
        match parts {
            Parts::Transpose(transpose) => {
                let gradient_weight = (weight * factor) as f32;
                let found = transpose.finish(loss, target, others, draws, gradient_weight)?;
                let value = (found.value * weight) as f32;
                Ok(Joint { value, scope, gradient: Gradient::Transposed(found) })
            }
            Parts::Fold(fold) => {
                let combine = loss.combine();
                let combined = fold.finish(others, reduce)?;
                let combined = Tensor::<2>::from_data(combined, &scope.device);
                let leaf = combined.clone().autodiff().require_grad();
                let rows = loss.value(leaf.clone(), draws, target);
                let scalar = rows.sum() * weight as f32;
                let value = scalar.clone().into_scalar::<f32>();
                let gradient = leaf.grad(&scalar.backward());
                let gradient = gradient.unwrap_or_else(|| combined.zeros_like());
                let gradient = if factor == 1.0 { gradient } else { gradient * factor as f32 };
                let found = Box::new(Combined { combine, gradient, combined });
                let gradient = Gradient::Combined(found);
                Ok(Joint { value, scope, gradient })
            }
        }
    }
}

impl Joint<'_> {
    /// The weights with which the summaries of some draws of this rank, numbered as in
    /// [`Scope::own`], enter the loss: `⟨∂L/∂R, ∂R/∂φ_s⟩`, stacked as the summaries are.
    pub fn weights(&self, draws: Range<usize>, summary: Tensor<2>) -> Tensor<2> {
        match &self.gradient {
            Gradient::Combined(found) => pullback(
                found.combine,
                found.gradient.clone(),
                found.combined.clone(),
                summary,
                draws,
                self.scope.draws,
            ),
            Gradient::Transposed(found) => {
                let first = self.scope.own.start;
                found.gradient(draws.start - first..draws.end - first, &self.scope.device)
            }
        }
    }
}
