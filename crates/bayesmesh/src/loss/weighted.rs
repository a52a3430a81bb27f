//! Losses whose outputs count differently.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::{Cells, Combine, Loss, Reading};
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
    /// The terms, from what [`Loss::value`] takes; by default its columns. Losses that combine by
    /// [`Combine::Transpose`] have theirs from [`Loss::cells`].
    ///
    /// # Shapes
    ///
    /// - result: `[rows, outputs]`
    fn terms(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<2> {
        let _ = (draws, target);
        combined
    }

    /// The loss of a row from its terms: by default their mean.
    fn over_outputs(&self, terms: Tensor<2>) -> Tensor<1> {
        terms.mean_dim(1).squeeze_dim(1)
    }
}

/// The same loss with weights for its outputs: `L = mean_k w_k·L_k`, or `Σ_k w_k·L_k` where the
/// loss is a sum over outputs ([`GaussianOfDraws`](super::GaussianOfDraws)).
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

    fn cells(&self, cells: &Cells<'_>, values: &mut [f32], gradient: &mut [f32]) -> Result<()> {
        self.loss.cells(cells, values, gradient)?;
        let count = values.len();
        let weights = self.weights.as_slice();
        for (row, start) in cells.rows() {
            let of_draws = gradient.chunks_exact_mut(count).map(|draw| &mut draw[row.clone()]);
            for part in std::iter::once(&mut values[row.clone()]).chain(of_draws) {
                part.iter_mut().zip(&weights[start..]).for_each(|(term, weight)| *term *= weight);
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::super::testing::{evaluate, tensor};
    use super::super::{
        EnsembleCrps, ExpectedSquaredError, GaussianOfDraws, SquaredErrorOfMean, ValueLoss,
    };
    use super::*;

    fn draws() -> Vec<Vec<f32>> {
        // Two rows of three outputs, no two numbers of a cell alike.
        let value = |i: usize| ((i * 37 % 23) as f32 - 11.0) / 8.0 + i as f32 / 1024.0;
        (0..4).map(|s| (0..6).map(|k| value(7 * s + 3 * k)).collect()).collect()
    }

    const TARGET: [f32; 6] = [0.3, -0.6, 0.1, 1.1, 0.7, -0.2];

    fn weights() -> OutputWeights {
        OutputWeights::new(vec![1.0, 4.0, 0.0]).unwrap()
    }

    fn value(loss: &dyn Loss<Target = Tensor<2>>, draws: &[Vec<f32>]) -> f64 {
        let (value, _) = evaluate(loss, draws, 0..4, &tensor(&TARGET, 2), None).unwrap();
        value.into()
    }

    fn losses() -> [Arc<dyn Loss<Target = Tensor<2>>>; 4] {
        [
            Arc::new(Weighted::new(EnsembleCrps::almost_fair(0.95).unwrap(), weights())),
            Arc::new(Weighted::new(GaussianOfDraws::default(), weights())),
            Arc::new(Weighted::new(SquaredErrorOfMean, weights())),
            Arc::new(Weighted::new(ExpectedSquaredError, weights())),
        ]
    }

    #[test]
    fn the_gradient_is_that_of_differences() {
        for (index, loss) in losses().into_iter().enumerate() {
            let (_, gradient) =
                evaluate(&*loss, &draws(), 0..4, &tensor(&TARGET, 2), None).unwrap();
            for s in 0..4 {
                for k in 0..6 {
                    let moved = |by: f32| {
                        let mut draws = draws();
                        draws[s][k] += by;
                        value(&*loss, &draws)
                    };
                    let difference = (moved(1e-3) - moved(-1e-3)) / 2e-3;
                    let found = f64::from(gradient[s][k]);
                    let near = (found - difference).abs() < 2e-3 * (1.0 + found.abs());
                    assert!(near, "loss {index}, draw {s}, cell {k}: {found} {difference}");
                    assert!(k % 3 != 2 || found == 0.0, "an output of weight 0 counts");
                }
            }
        }
    }

    /// The weighted loss is the weighted mean of those of single outputs, or their sum.
    #[test]
    fn the_loss_is_that_of_single_outputs_weighted() {
        let plain: [Arc<dyn Loss<Target = Tensor<2>>>; 4] = [
            Arc::new(EnsembleCrps::almost_fair(0.95).unwrap()),
            Arc::new(GaussianOfDraws::default()),
            Arc::new(SquaredErrorOfMean),
            Arc::new(ExpectedSquaredError),
        ];
        for (index, (weighted, plain)) in losses().into_iter().zip(plain).enumerate() {
            let of_output = |k: usize| {
                let column = |values: &[f32]| vec![values[k], values[3 + k]];
                let draws: Vec<_> = draws().iter().map(|draw| column(draw)).collect();
                let target = tensor(&column(&TARGET), 2);
                f64::from(evaluate(&*plain, &draws, 0..4, &target, None).unwrap().0)
            };
            let sum: f64 = weights()
                .as_slice()
                .iter()
                .enumerate()
                .map(|(k, w)| f64::from(*w) * of_output(k))
                .sum();
            let expected = if index == 1 { sum } else { sum / 3.0 };
            let found = value(&*weighted, &draws());
            assert!((found - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{found} {expected}");
            assert_eq!(weighted.least_draws(), plain.least_draws());
            assert_eq!(weighted.leaves_noise_open(), plain.leaves_noise_open());
        }
    }

    /// scoringrules 0.10.0: `crps_ensemble(truth, draws, estimator="fair")` and `"nrg"`; gradients
    /// and the Gaussian by torch 2.9.0 and numpy in double precision; `scripts/golden_fields.py`.
    #[test]
    fn crps_and_gaussian_are_those_of_scoringrules_and_torch() {
        let golden = include_str!("../../tests/golden/fields.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        let alpha = golden["alpha"].as_f64().unwrap() as f32;
        for case in golden["cases"].as_array().unwrap() {
            let numbers = |name: &str| -> Vec<f32> {
                let list = case[name]["data"].as_array().unwrap();
                list.iter().map(|x| x.as_f64().unwrap() as f32).collect()
            };
            let sizes = case["draws"]["shape"].as_array().unwrap();
            let [members, rows] = [0, 1].map(|axis| sizes[axis].as_u64().unwrap() as usize);
            let all = numbers("draws");
            let draws: Vec<_> = all.chunks(all.len() / members).map(<[f32]>::to_vec).collect();
            let target = tensor(&numbers("truth"), rows);
            let weights = OutputWeights::new(numbers("output_weights")).unwrap();
            let almost = EnsembleCrps::almost_fair(alpha).unwrap();
            let cases: [(&str, Arc<dyn Loss<Target = Tensor<2>>>); 5] = [
                ("crps_plain", Arc::new(EnsembleCrps::default())),
                ("crps_fair", Arc::new(EnsembleCrps::fair())),
                ("crps_almost_fair", Arc::new(almost)),
                ("gaussian_weighted", {
                    Arc::new(Weighted::new(GaussianOfDraws::default(), weights.clone()))
                }),
                ("crps_almost_fair_weighted", Arc::new(Weighted::new(almost, weights))),
            ];
            for (name, loss) in cases {
                let (value, gradient) =
                    evaluate(&*loss, &draws, 0..members, &target, None).unwrap();
                let expected = case[name].as_f64().unwrap();
                let error = (f64::from(value) - expected).abs() / expected.abs().max(1.0);
                assert!(error < 1e-6, "{name}: {value} is not {expected}");
                if name == "crps_almost_fair_weighted" {
                    for (found, expected) in gradient.concat().iter().zip(numbers("gradient")) {
                        assert!((found - expected).abs() < 1e-7, "{found} is not {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn weights_have_the_mean_one() {
        assert_eq!(weights().as_slice(), [0.6, 2.4, 0.0]);
        let fields = OutputWeights::of_fields(&[1.0, 3.0], &[1.0, 3.0]).unwrap();
        assert_eq!(fields.as_slice(), [0.25, 0.75, 0.75, 2.25]);
        let told = |weights: Result<OutputWeights>| weights.unwrap_err().to_string();
        assert_eq!(
            told(OutputWeights::new(vec![1.0, f32::NAN])),
            "a weight of NaN for output 1 is not possible; choose zero or a positive number"
        );
        assert_eq!(
            told(OutputWeights::new(vec![0.0; 2])),
            "2 weights of outputs sum to zero; at least one must be positive"
        );
        assert!(told(OutputWeights::new(Vec::new())).contains("0 weights"));
        assert!(told(OutputWeights::of_fields(&[-1.0], &[-1.0])).contains("a weight of -1"));
    }

    #[test]
    fn what_cannot_be_weighted_is_refused() {
        let target = tensor(&[0.0; 4], 1);
        let error = Weighted::new(SquaredErrorOfMean, weights()).check(4, &target).unwrap_err();
        assert_eq!(
            error.to_string(),
            "3 weights of outputs, but the targets have 4 values for an example; give one weight \
             for each"
        );
        let error = ValueLoss::GaussianMixture.init_weighted(weights()).err().unwrap().to_string();
        assert_eq!(
            error,
            "the loss `gaussian-mixture` cannot weigh its outputs; use `crps`, \
             `gaussian-of-draws`, `squared-error-of-mean` or `expected-squared-error`"
        );
        assert!(ValueLoss::SquaredErrorOfMean.init_weighted(weights()).is_ok());
    }
}
