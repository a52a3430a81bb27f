//! The continuous ranked probability score of the ensemble of draws.

use bayesmesh_schema::Keys;
use burn::tensor::Tensor;
use serde::Deserialize;

use super::likelihood::{assert_columns, check_columns};
use super::{ByOutput, Combine, Loss};
use crate::error::Result;

/// CRPS in energy form, mean over outputs:
/// `L = 1/S Σ_s |ŷ_s − y| − 1/(2D) Σ_s Σ_t |ŷ_s − ŷ_t|` with `D = S²`, or `S(S−1)` for the fair
/// version, which does not reward small ensembles for being narrow.
///
/// Pairs of draws meet, so the outputs of all draws are gathered.
#[derive(Clone, Copy, Debug, Default, Keys, Deserialize)]
pub struct EnsembleCrps {
    /// Divides by S(S − 1) pairs instead of S², so that few draws gain nothing by being close
    /// together.
    #[key(default = false)]
    fair: bool,
}

impl EnsembleCrps {
    /// The fair version.
    pub fn fair() -> Self {
        Self { fair: true }
    }
}

impl Loss for EnsembleCrps {
    type Target = Tensor<2>;
    fn combine(&self) -> Combine {
        Combine::Gather
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        assert_columns(&output, target.dims()[1], "values");
        output
    }

    fn value(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        self.over_outputs(self.terms(combined, draws, target))
    }

    fn least_draws(&self) -> usize {
        if self.fair { 2 } else { 1 }
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], "values")
    }
}

impl ByOutput for EnsembleCrps {
    fn terms(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<2> {
        let [rows, columns] = target.dims();
        let device = combined.device();
        let ensemble = combined.reshape([rows, draws, columns]);
        let target = target.clone().unsqueeze_dim::<3>(1);
        let skill = (ensemble.clone() - target).abs().mean_dim(1);
        if draws == 1 {
            return skill.reshape([rows, columns]);
        }
        // ½ Σ_s Σ_t |x_s − x_t| = Σ_i (2i − S + 1)·x_(i) over the sorted draws, i from 0.
        let weights: Vec<f32> = (0..draws).map(|i| 2.0 * i as f32 + 1.0 - draws as f32).collect();
        let weights = Tensor::<1>::from_floats(&weights[..], &device).reshape([1, draws, 1]);
        let pairs = match self.fair {
            true => draws * (draws - 1),
            false => draws * draws,
        };
        let spread = (ensemble.sort(1) * weights).sum_dim(1) / pairs as f32;
        (skill - spread).reshape([rows, columns])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};

    const DRAWS: [[f64; 2]; 5] = [[0.3, -1.0], [1.2, 0.4], [-0.7, 2.0], [0.9, 0.1], [0.31, -0.2]];
    const TARGET: [f64; 2] = [0.5, 0.25];

    /// Every pair, in double precision.
    fn by_pairs(draws: &[[f64; 2]; 5], fair: bool) -> f64 {
        let s = draws.len() as f64;
        let pairs = if fair { s * (s - 1.0) } else { s * s };
        let of_output = |k: usize| {
            let skill: f64 = draws.iter().map(|d| (d[k] - TARGET[k]).abs()).sum::<f64>() / s;
            let spread: f64 =
                draws.iter().flat_map(|a| draws.iter().map(move |b| (a[k] - b[k]).abs())).sum();
            skill - spread / (2.0 * pairs)
        };
        (of_output(0) + of_output(1)) / 2.0
    }

    #[test]
    fn value_and_gradient_are_those_of_all_pairs() {
        let device = Device::default().autodiff();
        let flat: Vec<f32> = DRAWS.iter().flatten().map(|&v| v as f32).collect();
        for (crps, fair) in [(EnsembleCrps::default(), false), (EnsembleCrps::fair(), true)] {
            let draws = TensorData::new(flat.clone(), [1, 10]);
            let draws = Tensor::<2>::from_data(draws, &device).require_grad();
            let target = Tensor::<2>::from_data([TARGET.map(|t| t as f32)], &device);
            let value = crps.value(draws.clone(), 5, &target).sum();
            let gradient = draws.grad(&value.backward()).unwrap();
            let gradient: Vec<f32> = gradient.into_data().try_into_vec().unwrap();
            let exact = by_pairs(&DRAWS, fair);
            assert!((f64::from(value.into_scalar::<f32>()) - exact).abs() < 1e-6);
            for (cell, gradient) in gradient.iter().enumerate() {
                let moved = |by: f64| {
                    let mut draws = DRAWS;
                    draws[cell / 2][cell % 2] += by;
                    by_pairs(&draws, fair)
                };
                let difference = (moved(1e-4) - moved(-1e-4)) / 2e-4;
                assert!((f64::from(*gradient) - difference).abs() < 1e-5, "{cell}");
            }
        }
    }
}
