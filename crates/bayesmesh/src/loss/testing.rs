//! What tests of losses have in common.

use bayesmesh_comm::{Communicator, Reduce};
use burn::tensor::{Device, Tensor, TensorData};

use super::{Combine, Loss, Scope, Together};
use crate::error::Result;

pub fn tensor(values: &[f32], rows: usize) -> Tensor<2> {
    let data = TensorData::new(values.to_vec(), [rows, values.len() / rows]);
    Tensor::from_data(data, &Device::default())
}

/// The loss of a batch and its gradient for each of the draws `own`, as the trainer makes them;
/// `others` have the other draws.
pub fn evaluate<L: Loss<Target = Tensor<2>> + ?Sized>(
    loss: &L,
    draws: &[Vec<f32>],
    own: std::ops::Range<usize>,
    target: &Tensor<2>,
    others: Option<&dyn Communicator>,
) -> Result<(f32, Vec<Vec<f32>>)> {
    let [rows, _] = target.dims();
    let to_vec = |tensor: Tensor<2>| crate::tensors::to_vec(tensor);
    let of = |draw: &Vec<f32>| tensor(draw, rows).autodiff().require_grad();
    if loss.combine() == Combine::Mean {
        let leaves: Vec<_> = draws.iter().map(of).collect();
        let each = leaves.iter().map(|leaf| {
            let summary = loss.summary(leaf.clone(), target);
            loss.value(summary, 1, target).sum() / (rows * draws.len()) as f32
        });
        let value = each.reduce(|sum, one| sum + one).unwrap();
        let gradients = value.backward();
        let gradients = leaves.iter().map(|leaf| to_vec(leaf.grad(&gradients).unwrap()));
        return Ok((value.into_scalar::<f32>(), gradients.collect()));
    }
    let scope = Scope {
        others,
        reduce: Reduce::Reproducible,
        draws: draws.len(),
        own: own.clone(),
        weight: 1.0 / rows as f64,
        factor: 1.0,
        device: Device::default(),
    };
    let summaries = draws[own.clone()].iter().map(|draw| loss.summary(tensor(draw, rows), target));
    let summaries: Vec<_> = summaries.collect();
    let mut together = Together::new(loss.combine(), scope);
    summaries.iter().for_each(|summary| together.push(summary.clone(), 1));
    let joint = together.finish(loss, target)?;
    // φ is the output itself in losses of values that are not means.
    let gradient = |(s, summary): (usize, &Tensor<2>)| {
        let draw = own.start + s;
        to_vec(joint.weights(draw..draw + 1, summary.clone()))
    };
    let gradients = summaries.iter().enumerate().map(gradient).collect();
    Ok((joint.value, gradients))
}
