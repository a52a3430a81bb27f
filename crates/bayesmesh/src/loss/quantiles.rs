//! Several quantiles at once.

use bayesmesh_schema::Keys;
use burn::tensor::{Tensor, activation};
use serde::Deserialize;

use super::likelihood::{assert_columns, check_columns};
use super::{Combine, Loss, Reading};
use crate::error::{Error, Result};

/// The spread of the quantiles of a network whose outputs are all zero, in units of the target: of
/// the order of one.
const SPREAD: f32 = 4.0;

/// K quantiles of each value by the pinball loss, averaged over levels and draws:
/// `L = 1/S Σ_s 2/K Σ_k ρ_{τ_k}(y − q_sk)` with `τ_k = (k − ½)/K` and
/// `ρ_τ(u) = u·(τ − 1[u<0])`.
///
/// Quantiles at these levels are K equally likely values, and L is the continuous ranked
/// probability score of them, up to what K values cannot say. A draw predicts that distribution,
/// and all draws together the mixture: `S·K` equally likely values.
///
/// They cannot cross: the network gives their mean m and gaps,
/// `q_k = m + c_k − mean(c)`, `c_k = 4/K·Σ_{j<k} softplus(d_j)`, outputs `[m | d_1 | … | d_{K−1}]`.
/// Linear in the draws, so that averaging gradients is exact.
#[derive(Clone, Copy, Debug, PartialEq, Keys, Deserialize)]
pub struct Quantiles {
    /// How many quantiles, at the levels (k − ½)/count; 20 reach from 2.5 % to 97.5 %.
    #[key(default = 20, at_least = 2, at_most = 1000, also("quantiles", "number"))]
    count: usize,
}

impl Quantiles {
    /// So many quantiles, at least two.
    pub fn new(count: usize) -> Result<Self> {
        Self { count }.checked()
    }

    /// Refuses what is out of range.
    pub(super) fn checked(self) -> Result<Self> {
        match (2..=1000).contains(&self.count) {
            true => Ok(self),
            false => Err(Error::Setting(format!(
                "{} quantiles are not possible; choose from 2 to 1000",
                self.count
            ))),
        }
    }

    /// The quantiles of one value from the outputs of the network for it, `[m, d_1, …]`.
    pub(crate) fn place(outputs: &mut [f32]) {
        let count = outputs.len();
        let centre = f64::from(outputs[0]);
        let mut sum = 0.0;
        let mut total = 0.0;
        let gap = |d: f32| {
            let d = f64::from(d);
            d.max(0.0) + (-d.abs()).exp().ln_1p()
        };
        let mut places = vec![0.0; count];
        for k in 1..count {
            sum += f64::from(SPREAD) / count as f64 * gap(outputs[k]);
            places[k] = sum;
            total += sum;
        }
        let mean = total / count as f64;
        let values = outputs.iter_mut().zip(&places);
        values.for_each(|(output, place)| *output = (centre + place - mean) as f32);
    }
}

impl Default for Quantiles {
    fn default() -> Self {
        Self { count: 20 }
    }
}

impl Loss for Quantiles {
    type Target = Tensor<2>;

    fn combine(&self) -> Combine {
        Combine::Mean
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        let [rows, values] = target.dims();
        let count = self.count;
        assert_columns(&output, count * values, "a mean and gaps of quantiles");
        let centre = output.clone().narrow(1, 0, values);
        let gaps = activation::softplus(output.narrow(1, values, (count - 1) * values), 1.0);
        // The k-th quantile is Σ_j w_kj gap_j from the mean: each gap lifts those above it, less
        // what it lifts the mean by.
        let step = SPREAD / count as f32;
        let mut loss = Tensor::<2>::zeros([rows, values], &target.device());
        let mut mean = Tensor::<2>::zeros([rows, values], &target.device());
        let mut places = Vec::with_capacity(count);
        let mut place = Tensor::<2>::zeros([rows, values], &target.device());
        places.push(place.clone());
        for k in 1..count {
            place = place + gaps.clone().narrow(1, (k - 1) * values, values) * step;
            mean = mean + place.clone();
            places.push(place.clone());
        }
        let base = centre - mean / count as f32;
        for (k, place) in places.into_iter().enumerate() {
            let level = (k as f32 + 0.5) / count as f32;
            let error = target.clone() - (base.clone() + place);
            // ρ_τ(u) = ½|u| + (τ − ½)u
            loss = loss + error.clone().abs() * 0.5 + error * (level - 0.5);
        }
        (loss * (2.0 / count as f32)).sum_dim(1)
    }

    fn reading(&self) -> Reading {
        Reading::Quantiles { count: self.count }
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, self.count * target.dims()[1], "a mean and gaps of quantiles")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::to_vec;
    use burn::tensor::Device;

    /// The loss is that of quantiles that do not cross, and its gradient that of differences.
    #[test]
    fn quantiles_do_not_cross_and_have_the_pinball_loss() {
        let device = Device::default().autodiff();
        let loss = Quantiles::new(5).unwrap();
        // Of two values: means, then four gaps of each.
        let raw = [0.3f32, -1.0, 0.1, -2.0, 3.0, 0.5, -0.7, 1.0, 0.2, -4.0];
        let target = Tensor::<2>::from_floats([[0.9, -1.4]], &device);
        let value = |raw: &[f32]| {
            let mut sum = 0.0;
            for (v, y) in [0.9f32, -1.4].into_iter().enumerate() {
                let mut own: Vec<f32> = raw.iter().skip(v).step_by(2).copied().collect();
                Quantiles::place(&mut own);
                assert!(own.is_sorted(), "{own:?}");
                let mean = own.iter().sum::<f32>() / 5.0;
                assert!((mean - raw[v]).abs() < 1e-5, "the first output is the mean");
                for (k, q) in own.iter().enumerate() {
                    let (u, level) = (y - q, (k as f32 + 0.5) / 5.0);
                    sum += 0.4 * if u < 0.0 { (level - 1.0) * u } else { level * u };
                }
            }
            sum
        };
        let output = Tensor::<1>::from_floats(raw, &device).unsqueeze_dim::<2>(0).require_grad();
        let found = loss.summary(output.clone(), &target);
        assert!((to_vec(found.clone())[0] - value(&raw)).abs() < 1e-5);
        let gradient = to_vec(output.grad(&found.sum().backward()).unwrap());
        for (i, gradient) in gradient.iter().enumerate() {
            let moved = |by: f32| {
                let mut raw = raw;
                raw[i] += by;
                value(&raw)
            };
            let difference = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            assert!((gradient - difference).abs() < 2e-3, "{i}: {gradient} {difference}");
        }
    }

    #[test]
    fn impossible_numbers_are_refused() {
        assert!(Quantiles::new(1).is_err() && Quantiles::new(1001).is_err());
        let target = Tensor::<2>::zeros([4, 3], &Device::default());
        assert!(Quantiles::new(5).unwrap().check(15, &target).is_ok());
        assert!(Quantiles::new(5).unwrap().check(14, &target).is_err());
    }
}
