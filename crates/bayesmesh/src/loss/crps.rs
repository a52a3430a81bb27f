//! The continuous ranked probability score of the ensemble of draws.

use bayesmesh_schema::Keys;
use burn::tensor::Tensor;
use serde::Deserialize;

use super::likelihood::{assert_columns, check_columns};
use super::{ByOutput, Cells, Combine, Loss};
use crate::error::{Error, Result};

/// The most draws whose pairs are compared one by one: a loop over cells without branches, which is
/// faster than sorting each cell.
const MOST_PAIRED: usize = 64;

/// CRPS in energy form, mean over outputs:
/// `L = 1/S Σ_s |ŷ_s − y| − D Σ_{s<t} |ŷ_s − ŷ_t|` with `D = 1/S²`, or `1/(S(S−1))` for the fair
/// version, which does not reward small ensembles for being narrow, or with α between them,
/// `D = α/(S(S−1)) + (1−α)/S²`, which is α times the fair and 1 − α times the plain one.
///
/// The fair one has a gap: where all draws but one agree with the truth, the last one changes
/// nothing. Almost fair, α = 0.95, closes it.
///
/// Pairs of draws meet, so that all draws of an output come together on one rank. The derivative of
/// |x| at 0 counts as 0: draws that agree do not push each other.
#[derive(Clone, Copy, Debug, Default, Keys, Deserialize)]
pub struct EnsembleCrps {
    /// How much of it is the fair CRPS, by which few draws gain nothing by being close together:
    /// 1 is fair, 0 plain, 0.95 almost fair.
    #[key(default = 0.0, at_least = 0, at_most = 1, also("fair", "almost_fair"))]
    alpha: f32,
}

impl EnsembleCrps {
    /// The fair version, α = 1.
    pub fn fair() -> Self {
        Self { alpha: 1.0 }
    }

    /// Between plain, α = 0, and fair, α = 1.
    pub fn almost_fair(alpha: f32) -> Result<Self> {
        Self { alpha }.checked()
    }

    /// Refuses what is out of range.
    pub(super) fn checked(self) -> Result<Self> {
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(Error::Setting(format!(
                "an alpha of {} is not possible; choose 0 for the plain CRPS, 1 for the fair one, \
                 or between",
                self.alpha
            )));
        }
        Ok(self)
    }

    /// The weight of a pair.
    fn per_pair(&self, draws: usize) -> f64 {
        let (alpha, s) = (f64::from(self.alpha), draws as f64);
        let fair = if draws > 1 { alpha / (s * (s - 1.0)) } else { 0.0 };
        fair + (1.0 - alpha) / (s * s)
    }
}

impl Loss for EnsembleCrps {
    type Target = Tensor<2>;

    fn combine(&self) -> Combine {
        Combine::Transpose
    }

    fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        assert_columns(&output, target.dims()[1], "values");
        output
    }

    fn cells(&self, cells: &Cells<'_>, values: &mut [f32], gradient: &mut [f32]) -> Result<()> {
        // Distances of pairs into `values`, ranks Σ_t sign(x_s − x_t) into `gradient`.
        match cells.draws <= MOST_PAIRED {
            true => compare_pairs(cells, values, gradient),
            false => compare_sorted(cells, values, gradient),
        }
        let (count, outputs) = (values.len(), cells.outputs as f64);
        let per_pair = (self.per_pair(cells.draws) / outputs) as f32;
        let per_draw = (1.0 / (cells.draws as f64 * outputs)) as f32;
        values.iter_mut().for_each(|value| *value *= -per_pair);
        for (index, gradient) in gradient.chunks_exact_mut(count).enumerate() {
            let places = values.iter_mut().zip(gradient);
            for ((value, gradient), (x, y)) in
                places.zip(cells.draw(index).iter().zip(cells.targets))
            {
                *value += per_draw * (x - y).abs();
                *gradient = per_draw * sign(x - y) - per_pair * *gradient;
            }
        }
        Ok(())
    }

    fn least_draws(&self) -> usize {
        if self.alpha > 0.0 { 2 } else { 1 }
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], "values")
    }
}

impl ByOutput for EnsembleCrps {}

/// −1, 0 or 1.
fn sign(x: f32) -> f32 {
    let above = if x > 0.0 { 1.0 } else { 0.0 };
    let below = if x < 0.0 { 1.0 } else { 0.0 };
    above - below
}

/// Adds `Σ_{s<t} |x_s − x_t|` to `distances` and `Σ_t sign(x_s − x_t)` to `ranks`, pair by pair.
fn compare_pairs(cells: &Cells<'_>, distances: &mut [f32], ranks: &mut [f32]) {
    let count = distances.len();
    for s in 1..cells.draws {
        let (before, own) = ranks.split_at_mut(s * count);
        let own = &mut own[..count];
        for (t, other) in before.chunks_exact_mut(count).enumerate() {
            let pairs = cells.draw(s).iter().zip(cells.draw(t));
            let places = distances.iter_mut().zip(own.iter_mut().zip(other));
            for ((x, y), (distance, (own, other))) in pairs.zip(places) {
                let apart = x - y;
                let sign = sign(apart);
                *distance += apart.abs();
                *own += sign;
                *other -= sign;
            }
        }
    }
}

/// The same from sorted draws: the distances are `Σ_i (2i − S + 1)·x_(i)`, i from 0, and a rank is
/// how many draws are below less how many are above.
fn compare_sorted(cells: &Cells<'_>, distances: &mut [f32], ranks: &mut [f32]) {
    let count = distances.len();
    let mut order: Vec<(f32, usize)> = Vec::with_capacity(cells.draws);
    for (c, distance) in distances.iter_mut().enumerate() {
        order.clear();
        order.extend((0..cells.draws).map(|s| (cells.draw(s)[c], s)));
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let weight = |i: usize| 2.0 * i as f64 + 1.0 - cells.draws as f64;
        let terms = order.iter().enumerate().map(|(i, (x, _))| weight(i) * f64::from(*x));
        *distance += terms.sum::<f64>() as f32;
        let mut below = 0;
        for level in order.chunk_by(|a, b| a.0 == b.0) {
            let above = cells.draws - below - level.len();
            for (_, s) in level {
                ranks[s * count + c] += below as f32 - above as f32;
            }
            below += level.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{evaluate, tensor};
    use super::*;

    /// Every pair, in double precision: mean over rows and outputs.
    fn by_pairs(draws: &[Vec<f32>], target: &[f32], alpha: f64) -> f64 {
        let s = draws.len() as f64;
        let pairs = |fair: f64| s * (s - fair);
        let of_cell = |k: usize| {
            let x = |draw: &Vec<f32>| f64::from(draw[k]);
            let skill: f64 = draws.iter().map(|d| (x(d) - f64::from(target[k])).abs()).sum();
            let spread: f64 =
                draws.iter().flat_map(|a| draws.iter().map(move |b| (x(a) - x(b)).abs())).sum();
            let fair = if s > 1.0 { alpha / pairs(1.0) } else { 0.0 };
            skill / s - 0.5 * spread * (fair + (1.0 - alpha) / pairs(0.0))
        };
        (0..target.len()).map(of_cell).sum::<f64>() / target.len() as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Values on a grid of eighths, so that differences of a sixteenth meet no kink.
        #[test]
        fn value_and_gradient_are_those_of_all_pairs(
            cells in prop::collection::vec(prop::collection::vec(-16i32..16, 6), 2..7),
            target in prop::collection::vec(-16i32..16, 6),
            alpha in prop::sample::select(vec![0.0f32, 0.5, 0.95, 1.0]),
        ) {
            // Draws and targets on odd and even sixteenths: none equals the target, some each
            // other.
            let grid = |values: &Vec<i32>, by: f32| -> Vec<f32> {
                values.iter().map(|v| *v as f32 / 4.0 + by).collect()
            };
            let draws: Vec<Vec<f32>> = cells.iter().map(|draw| grid(draw, 0.125)).collect();
            let target = grid(&target, 0.0);
            let loss = EnsembleCrps::almost_fair(alpha).unwrap();
            let (value, gradient) =
                evaluate(&loss, &draws, 0..draws.len(), &tensor(&target, 2), None).unwrap();
            let exact = by_pairs(&draws, &target, alpha.into());
            prop_assert!((f64::from(value) - exact).abs() < 1e-6, "{value} {exact}");
            for s in 0..draws.len() {
                for k in 0..target.len() {
                    // Of two draws that agree, either side has its own slope; the mean is that of
                    // 0.
                    let moved = |by: f32| {
                        let mut draws = draws.clone();
                        draws[s][k] += by;
                        by_pairs(&draws, &target, alpha.into())
                    };
                    let difference = (moved(0.03125) - moved(-0.03125)) / 0.0625;
                    let found = f64::from(gradient[s][k]);
                    prop_assert!((found - difference).abs() < 1e-6, "{found} {difference}");
                }
            }
        }

        /// Many draws are sorted, few are compared pair by pair: the same, with equal draws too.
        #[test]
        fn sorted_draws_give_what_pairs_give(
            members in prop::collection::vec(-8i32..8, 15),
        ) {
            let members: Vec<f32> = members.iter().map(|x| *x as f32 / 4.0).collect();
            let targets = [0.0; 3];
            let (members, targets) = (&members[..], &targets[..]);
            let cells = Cells { draws: 5, first: 0, outputs: 3, members, targets };
            let run = |compare: fn(&Cells<'_>, &mut [f32], &mut [f32])| {
                let (mut distances, mut ranks) = ([0.0; 3], [0.0; 15]);
                compare(&cells, &mut distances, &mut ranks);
                (distances, ranks)
            };
            prop_assert_eq!(run(compare_pairs), run(compare_sorted));
        }
    }

    #[test]
    fn one_draw_has_its_absolute_error() {
        let draws = [vec![1.0, -2.0]];
        let target = tensor(&[0.0, 1.0], 1);
        let (value, gradient) =
            evaluate(&EnsembleCrps::default(), &draws, 0..1, &target, None).unwrap();
        assert_eq!((value, &gradient[0][..]), (2.0, &[0.5, -0.5][..]));
        assert_eq!(EnsembleCrps::default().least_draws(), 1);
        assert_eq!(EnsembleCrps::almost_fair(0.1).unwrap().least_draws(), 2);
    }

    /// What is not a number is not hidden by the comparisons.
    #[test]
    fn what_is_not_a_number_shows() {
        let draws = [vec![f32::NAN], vec![1.0]];
        let (value, _) =
            evaluate(&EnsembleCrps::fair(), &draws, 0..2, &tensor(&[0.0], 1), None).unwrap();
        assert!(value.is_nan());
    }

    #[test]
    fn an_alpha_out_of_range_is_refused() {
        for alpha in [-0.1, 1.5, f32::NAN] {
            let error = EnsembleCrps::almost_fair(alpha).unwrap_err().to_string();
            assert!(error.contains("choose 0 for the plain CRPS"), "{error}");
        }
    }
}
