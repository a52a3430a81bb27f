//! The continuous ranked probability score of the ensemble of draws.

use burn::tensor::Tensor;

use super::{Combine, Loss};

/// CRPS in energy form, mean over outputs:
/// `L = 1/S Σ_s |ŷ_s − y| − 1/(2D) Σ_s Σ_t |ŷ_s − ŷ_t|` with `D = S²`, or `S(S−1)` for the fair
/// version, which does not reward small ensembles for being narrow.
///
/// Pairs of draws meet, so the outputs of all draws are gathered.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnsembleCrps {
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

    fn summary(&self, output: Tensor<2>, _target: &Tensor<2>) -> Tensor<2> {
        output
    }

    fn value(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        let [rows, columns] = target.dims();
        let device = combined.device();
        let ensemble = combined.reshape([rows, draws, columns]);
        let target = target.clone().unsqueeze_dim::<3>(1);
        let skill = (ensemble.clone() - target).abs().mean_dim(1);
        if draws == 1 {
            return skill.reshape([rows, columns]).mean_dim(1).squeeze_dim(1);
        }
        // ½ Σ_s Σ_t |x_s − x_t| = Σ_i (2i − S + 1)·x_(i) over the sorted draws, i from 0.
        let weights: Vec<f32> = (0..draws).map(|i| 2.0 * i as f32 + 1.0 - draws as f32).collect();
        let weights = Tensor::<1>::from_floats(&weights[..], &device).reshape([1, draws, 1]);
        let pairs = match self.fair {
            true => draws * (draws - 1),
            false => draws * draws,
        };
        let spread = (ensemble.sort(1) * weights).sum_dim(1) / pairs as f32;
        (skill - spread).reshape([rows, columns]).mean_dim(1).squeeze_dim(1)
    }

    fn least_draws(&self) -> usize {
        if self.fair { 2 } else { 1 }
    }
}
