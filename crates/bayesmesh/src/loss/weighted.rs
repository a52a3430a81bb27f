//! Losses whose outputs count differently.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::{Combine, Loss, Reading};
use crate::error::{Error, Result};

/// How much each output counts: as many numbers as outputs, of mean 1.
///
/// For fields: by the area of a cell, by variable and level. What is given is scaled to the mean 1,
/// so that only ratios matter and a weighted loss has the size of the plain one. Clones share the
/// numbers.
///
/// ```
/// use bayesmesh::loss::{EnsembleCrps, OutputWeights, Weighted};
///
/// // Two fields of three cells; the second counts half as much.
/// let weights = OutputWeights::of_fields(&[1.0, 0.5], &[0.5, 1.0, 0.5])?;
/// assert_eq!(weights.as_slice(), [1.0, 2.0, 1.0, 0.5, 1.0, 0.5]);
/// let loss = Weighted::new(EnsembleCrps::fair(), weights);
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OutputWeights(Arc<[f32]>);

impl OutputWeights {
    /// One number for each output; refuses what is negative or not finite, and zeros alone.
    pub fn new(mut weights: Vec<f32>) -> Result<Self> {
        if let Some(output) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            return Err(Error::Setting(format!(
                "a weight of {} for output {output} is not possible; choose zero or a positive \
                 number",
                weights[output]
            )));
        }
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        if sum == 0.0 {
            return Err(Error::Setting(format!(
                "{} weights of outputs sum to zero; at least one must be positive",
                weights.len()
            )));
        }
        let factor = weights.len() as f64 / sum;
        weights.iter_mut().for_each(|w| *w = (f64::from(*w) * factor) as f32);
        Ok(Self(weights.into()))
    }

    /// For outputs in the order (field, cell): the product of a number for each field and one for
    /// each cell, which all fields share.
    pub fn of_fields(fields: &[f32], cells: &[f32]) -> Result<Self> {
        let of_field = |field: &f32| {
            let field = *field;
            cells.iter().map(move |cell| field * cell)
        };
        // Two negative factors would pass as a product.
        if let Some(factor) = fields.iter().chain(cells).find(|w| **w < 0.0) {
            return Err(Error::Setting(format!(
                "a weight of {factor} for a field or a cell is not possible; choose zero or a \
                 positive number"
            )));
        }
        Self::new(fields.iter().flat_map(of_field).collect())
    }

    /// The numbers, of mean 1.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// As a row, to multiply `[rows, outputs]` by.
    fn row(&self, device: &Device) -> Tensor<2> {
        Tensor::from_data(TensorData::new(self.0.to_vec(), [1, self.0.len()]), device)
    }
}

/// A loss that is a mean or a sum over outputs of one term for each, and can thus be [`Weighted`].
pub trait ByOutput: Loss<Target = Tensor<2>> {
    /// The terms, from what [`Loss::value`] takes.
    ///
    /// # Shapes
    ///
    /// - result: `[rows, outputs]`
    fn terms(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<2>;

    /// The loss of a row from its terms: by default their mean.
    fn over_outputs(&self, terms: Tensor<2>) -> Tensor<1> {
        terms.mean_dim(1).squeeze_dim(1)
    }
}

/// The same loss with weights for its outputs: `L = mean_k w_k·L_k`, or `Σ_k w_k·L_k` where the loss
/// is a sum over outputs ([`GaussianOfDraws`](super::GaussianOfDraws)).
///
/// Weights are constants: summaries, their combination and ∂R/∂φ_s are those of the plain loss, so
/// that it is exact on every mesh on which that is.
#[derive(Clone, Debug)]
pub struct Weighted<L> {
    loss: L,
    weights: OutputWeights,
}

impl<L: ByOutput> Weighted<L> {
    /// With these weights.
    pub fn new(loss: L, weights: OutputWeights) -> Self {
        Self { loss, weights }
    }
}

impl<L: ByOutput> Loss for Weighted<L> {
    type Target = Tensor<2>;

    fn combine(&self) -> Combine {
        self.loss.combine()
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        self.loss.summary(output, target)
    }

    fn value(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        let terms = self.loss.terms(combined, draws, target);
        let weights = self.weights.row(&terms.device());
        self.loss.over_outputs(terms * weights)
    }

    fn reading(&self) -> Reading {
        self.loss.reading()
    }

    fn least_draws(&self) -> usize {
        self.loss.least_draws()
    }

    fn leaves_noise_open(&self) -> bool {
        self.loss.leaves_noise_open()
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        self.loss.check(outputs, target)?;
        let (weights, values) = (self.weights.0.len(), target.dims()[1]);
        if weights != values {
            return Err(Error::Mismatch(format!(
                "{weights} weights of outputs, but the targets have {values} values for an \
                 example; give one weight for each"
            )));
        }
        Ok(())
    }
}
