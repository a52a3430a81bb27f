//! How what the draws say becomes one.

use std::ops::Range;

use bayesmesh_comm::{CommError, Communicator, Operation, Reduce, TreeFold};
use burn::tensor::{Tensor, TensorData};

/// How the summaries φ_s of S draws combine, element by element of `[rows, columns]`.
///
/// Each is associative, so that ranks combine their own draws first and then each other's. The
/// gradient needs `∂⊕/∂φ_s`, which each has in closed form from the combination and φ_s alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The loss is the mean over draws of `f(φ_s)`: nothing needs to be known of the other draws.
    Mean,
    /// `R = Σ φ_s`, `∂R/∂φ_s = 1`.
    Sum,
    /// `R = ln Σ exp φ_s`, `∂R/∂φ_s = exp(φ_s − R)`.
    LogSumExp,
    /// Mean and squared deviations. The combination has three times the columns, `[c | m | M₂]`:
    /// an anchor `c`, the first draw; `m = mean(φ) − c`; `M₂ = Σ(φ_s − mean)²`. Being relative to
    /// the anchor, m and M₂ keep their digits when the spread is a millionth of the mean.
    /// `∂m/∂φ_s = 1/S`, `∂M₂/∂φ_s = 2(φ_s − mean)`; c counts as a constant.
    Moments,
    /// All summaries side by side in draw order, `[rows, S·columns]`.
    Gather,
    /// All summaries of each cell, a column of a row, on one of the sample ranks, which divide the
    /// cells among them: for losses that are sums over cells. Such a loss gives value and gradient
    /// itself, by [`Loss::cells`](super::Loss::cells). A rank holds as many numbers as its own
    /// draws have, where `Gather` holds those of all.
    Transpose,
}

/// How a loss parallelises over draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// Averaging gradients over ranks is exact; draws stream one at a time.
    Linear,
    /// Exact after one small all-reduce of a summary.
    Summary,
    /// Exact after gathering the outputs of all draws.
    Gather,
    /// Exact after an exchange of outputs, after which each rank has those of all draws for its
    /// share of the cells.
    Transpose,
}

impl Combine {
    /// The class of losses that combine in this way.
    pub fn exactness(self) -> Exactness {
        match self {
            Self::Mean => Exactness::Linear,
            Self::Sum | Self::LogSumExp | Self::Moments => Exactness::Summary,
            Self::Gather => Exactness::Gather,
            Self::Transpose => Exactness::Transpose,
        }
    }

    /// One draw's summary as an element of the monoid.
    fn lift(self, summary: Vec<f32>) -> Vec<f32> {
        match self {
            Self::Moments => {
                // [count | c | m | M₂]
                let n = summary.len();
                let mut lifted = Vec::with_capacity(1 + 3 * n);
                lifted.push(1.0);
                lifted.extend(summary);
                lifted.resize(1 + 3 * n, 0.0);
                lifted
            }
            _ => summary,
        }
    }

    /// `left ← left ⊕ right`.
    fn merge(self, left: &mut [f32], right: &[f32]) {
        match self {
            Self::Mean | Self::Sum => left.iter_mut().zip(right).for_each(|(l, r)| *l += r),
            Self::LogSumExp => {
                left.iter_mut().zip(right).for_each(|(l, r)| *l = ln_add_exp(*l, *r));
            }
            Self::Moments => merge_moments(left, right),
            Self::Gather | Self::Transpose => {
                unreachable!("these summaries are kept as they are")
            }
        }
    }
}

fn ln_add_exp(a: f32, b: f32) -> f32 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == f32::NEG_INFINITY {
        return high;
    }
    high + (low - high).exp().ln_1p()
}

/// Chan's update, with the means relative to an anchor:
/// `δ = (c_r − c_l) + (m_r − m_l)`, `m = m_l + δ·n_r/n`, `M₂ = M₂_l + M₂_r + δ²·n_l·n_r/n`.
fn merge_moments(left: &mut [f32], right: &[f32]) {
    let (left_count, left) = left.split_first_mut().expect("a count");
    let (right_count, right) = right.split_first().expect("a count");
    let n = left.len() / 3;
    let total = *left_count + right_count;
    let share = right_count / total;
    let both = *left_count * share;
    for i in 0..n {
        let delta = (right[i] - left[i]) + (right[n + i] - left[n + i]);
        left[n + i] += delta * share;
        left[2 * n + i] += right[2 * n + i] + delta * delta * both;
    }
    *left_count = total;
}

/// Combines summaries as they come, by the fixed tree over the draw index.
pub(crate) struct Fold {
    combine: Combine,
    tree: TreeFold<Vec<f32>>,
    gathered: Vec<Vec<f32>>,
    shape: [usize; 2],
}

impl Fold {
    pub fn new(combine: Combine) -> Self {
        Self { combine, tree: TreeFold::new(), gathered: Vec::new(), shape: [0, 0] }
    }

    /// Adds the summaries of the next `draws` draws, stacked along the rows.
    pub fn push(&mut self, summary: Tensor<2>, draws: usize) {
        let [rows, columns] = summary.dims();
        self.shape = [rows / draws, columns];
        let values = crate::tensors::to_vec(summary);
        let combine = self.combine;
        for values in values.chunks_exact((values.len() / draws).max(1)).map(<[f32]>::to_vec) {
            match combine {
                Combine::Gather => self.gathered.push(values),
                _ => self.tree.push(combine.lift(values), |mut left, right| {
                    combine.merge(&mut left, &right);
                    left
                }),
            }
        }
    }

    /// The combination of all draws of the ranks of `others`, or of the local ones without.
    pub fn finish(
        self,
        others: Option<&dyn Communicator>,
        reduce: Reduce,
    ) -> Result<TensorData, CommError> {
        let Self { combine, tree, gathered, shape: [rows, columns] } = self;
        if combine == Combine::Gather {
            let mut all = gathered;
            if let Some(others) = others {
                let parts = others.all_gather(&all.concat())?.concat();
                all = parts.chunks_exact((rows * columns).max(1)).map(<[f32]>::to_vec).collect();
            }
            return Ok(side_by_side(&all, rows, columns));
        }
        let merge = |mut left: Vec<f32>, right: Vec<f32>| {
            combine.merge(&mut left, &right);
            left
        };
        let mut values = tree.finish(merge).expect("at least one draw a rank");
        if let Some(others) = others {
            match combine {
                Combine::Sum => others.all_reduce(&mut values, Operation::Sum, reduce)?,
                _ => others.tree_reduce(&mut values, &|left, right| combine.merge(left, right))?,
            }
        }
        Ok(match combine {
            Combine::Moments => side_by_side(
                &values[1..]
                    .chunks_exact((rows * columns).max(1))
                    .map(<[f32]>::to_vec)
                    .collect::<Vec<_>>(),
                rows,
                columns,
            ),
            _ => TensorData::new(values, [rows, columns]),
        })
    }
}

/// Blocks of `[rows, columns]` next to each other: `[rows, blocks·columns]`.
fn side_by_side(blocks: &[Vec<f32>], rows: usize, columns: usize) -> TensorData {
    let mut values: Vec<f32> = Vec::with_capacity(rows * columns * blocks.len());
    for row in 0..rows {
        for block in blocks {
            values.extend(&block[row * columns..][..columns]);
        }
    }
    TensorData::new(values, [rows, blocks.len() * columns])
}

/// `⟨∂L/∂R, ∂R/∂φ_s⟩`: the weight with which φ of each draw enters the loss, given
/// `gradient = ∂L/∂R` and the combination R of `draws` draws. `positions` are those of the draws of
/// `summary` among the combined ones.
///
/// # Shapes
///
/// - `gradient`, `combined`: `[rows, columns of R]`
/// - `summary`, result: `[positions·rows, columns]`
pub(crate) fn pullback(
    combine: Combine,
    gradient: Tensor<2>,
    combined: Tensor<2>,
    summary: Tensor<2>,
    positions: Range<usize>,
    draws: usize,
) -> Tensor<2> {
    let [_, columns] = summary.dims();
    let stacked = positions.len();
    let block =
        |tensor: &Tensor<2>, index: usize| tensor.clone().narrow(1, index * columns, columns);
    let for_all = |tensor: Tensor<2>| match stacked {
        1 => tensor,
        _ => tensor.repeat_dim(0, stacked),
    };
    match combine {
        Combine::Mean | Combine::Transpose => unreachable!("there is no combination"),
        Combine::Sum => for_all(gradient),
        Combine::LogSumExp => for_all(gradient) * (summary - for_all(combined)).exp(),
        Combine::Moments => {
            let (anchor, mean) = (block(&combined, 0), block(&combined, 1));
            let deviation = (summary - for_all(anchor)) - for_all(mean);
            for_all(block(&gradient, 1) / draws as f32)
                + for_all(block(&gradient, 2)) * deviation * 2.0
        }
        Combine::Gather => Tensor::cat(positions.map(|p| block(&gradient, p)).collect(), 0),
    }
}

#[cfg(test)]
mod tests {
    use bayesmesh_comm::threads;
    use burn::tensor::Device;
    use proptest::prelude::*;

    use super::*;

    fn fold(combine: Combine, draws: &[Vec<f32>]) -> Vec<f32> {
        let mut fold = Fold::new(combine);
        for draw in draws {
            let n = draw.len();
            let draw = TensorData::new(draw.clone(), [1, n]);
            fold.push(Tensor::from_data(draw, &Device::default()), 1);
        }
        let data = fold.finish(None, Reduce::Fast).unwrap();
        data.try_into_vec().unwrap()
    }

    #[test]
    fn log_sum_exp_survives_extremes() {
        let sum = fold(Combine::LogSumExp, &[vec![-1000.0], vec![-1000.0], vec![-2000.0]]);
        assert!((sum[0] - (-1000.0 + 2f32.ln())).abs() < 1e-4, "{sum:?}");
        let none = fold(Combine::LogSumExp, &[vec![f32::NEG_INFINITY], vec![f32::NEG_INFINITY]]);
        assert_eq!(none, [f32::NEG_INFINITY]);
        let nan = fold(Combine::LogSumExp, &[vec![f32::NAN], vec![0.0]]);
        assert!(nan[0].is_nan());
    }

    /// Seven draws whose spread is a millionth of their mean, against double precision.
    #[test]
    fn moments_keep_their_digits_when_the_spread_is_a_millionth_of_the_mean() {
        let draws: Vec<f32> = [3.0, -2.0, 5.0, 1.0, -4.0, 2.0, 0.5]
            .iter()
            .map(|z| 1234.5 * (1.0 + 1e-6 * z))
            .collect();
        let mean = draws.iter().map(|&x| x as f64).sum::<f64>() / draws.len() as f64;
        let m2 = draws.iter().map(|&x| (x as f64 - mean).powi(2)).sum::<f64>();

        let combined = fold(Combine::Moments, &draws.iter().map(|&x| vec![x]).collect::<Vec<_>>());

        let [anchor, offset, m2_fold] = combined[..] else { panic!("{combined:?}") };
        assert_eq!(anchor, draws[0]);
        assert!((m2_fold as f64 / m2 - 1.0).abs() < 1e-6, "{m2_fold} {m2}");
        let spread = (m2 / 6.0).sqrt();
        let error = (anchor as f64 + offset as f64 - mean).abs() / spread;
        assert!(error < 1e-6, "mean off by {error} standard deviations");

        // What the difference of plain sums would give.
        let naive = draws.iter().map(|x| x * x).sum::<f32>()
            - draws.iter().sum::<f32>().powi(2) / draws.len() as f32;
        assert!((naive as f64 / m2 - 1.0).abs() > 0.1, "the test would not notice: {naive}");
    }

    #[test]
    fn gathered_draws_stand_side_by_side() {
        let all = fold(Combine::Gather, &[vec![1.0, 2.0], vec![3.0, 4.0]]);
        assert_eq!(all, [1.0, 2.0, 3.0, 4.0]);
    }

    /// Combines draws that are divided among ranks of these sizes.
    fn fold_on_ranks(combine: Combine, draws: &[Vec<f32>], shares: &[usize]) -> Vec<Vec<f32>> {
        let outcome = threads::run(shares.len(), |samples| {
            let first = shares[..samples.rank()].iter().sum::<usize>();
            let mut fold = Fold::new(combine);
            for draw in &draws[first..][..shares[samples.rank()]] {
                let data = TensorData::new(draw.clone(), [1, draw.len()]);
                fold.push(Tensor::from_data(data, &Device::default()), 1);
            }
            let data = fold.finish(Some(samples), Reduce::Reproducible)?;
            Ok::<Vec<f32>, CommError>(data.try_into_vec().unwrap())
        });
        outcome.unwrap()
    }

    const COMBINATIONS: [Combine; 4] =
        [Combine::Sum, Combine::LogSumExp, Combine::Moments, Combine::Gather];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However draws are divided among ranks, they combine to what one rank gives: within the
        /// rounding of sums, and to the bit where the shares are equal blocks of 1, 2, 4, 8 …
        #[test]
        fn divided_draws_combine_as_on_one_rank(
            draws in prop::collection::vec(prop::collection::vec(-30f32..30.0, 3), 1..12),
            shares in prop::collection::vec(1usize..4, 1..4),
            block in 0u32..3,
            ranks in 1usize..4,
        ) {
            for combine in COMBINATIONS {
                let shares: Vec<usize> = shares.clone();
                let total = shares.iter().sum::<usize>();
                let some: Vec<Vec<f32>> = draws.iter().cycle().take(total).cloned().collect();
                let serial = fold(combine, &some);
                for other in fold_on_ranks(combine, &some, &shares) {
                    for (one, other) in serial.iter().zip(&other) {
                        let scale = 900.0f32.max(one.abs());
                        let near = (one - other).abs() <= 1e-5 * scale;
                        prop_assert!(near, "{combine:?}: {one} {other}");
                    }
                    prop_assert_eq!(other.len(), serial.len());
                }
                let shares = vec![1 << block; ranks];
                let some: Vec<Vec<f32>> =
                    draws.iter().cycle().take(ranks << block).cloned().collect();
                let serial = fold(combine, &some);
                for other in fold_on_ranks(combine, &some, &shares) {
                    prop_assert_eq!(&other, &serial, "{:?} in blocks of {}", combine, 1 << block);
                }
            }
        }

        /// The gradient of a combination that `pullback` gives in closed form, against differences.
        #[test]
        fn the_pullback_is_the_derivative(
            draws in prop::collection::vec(prop::collection::vec(-2f32..2.0, 2), 2..6),
            weights in prop::collection::vec(-1f32..1.0, 6),
        ) {
            let tensor = |values: &[f32]| {
                let data = TensorData::new(values.to_vec(), [1, values.len()]);
                Tensor::<2>::from_data(data, &Device::default())
            };
            for combine in COMBINATIONS {
                // L = ⟨weights, R⟩, but for the anchor of moments, which counts as a constant.
                let of = |combined: &[f32]| -> f64 {
                    let pairs = combined.iter().zip(weights.iter().cycle()).enumerate();
                    pairs.map(|(i, (r, w))| match combine {
                        Combine::Moments if i < 2 => 0.0,
                        // The mean is anchor + m.
                        Combine::Moments if i < 4 => f64::from(r + combined[i - 2]) * f64::from(*w),
                        _ => f64::from(*r) * f64::from(*w),
                    }).sum()
                };
                let combined = fold(combine, &draws);
                let gradient: Vec<f32> = (0..combined.len()).map(|i| match combine {
                    Combine::Moments if i < 2 => 0.0,
                    _ => weights[i % weights.len()],
                }).collect();
                for (s, draw) in draws.iter().enumerate() {
                    let pulled = pullback(
                        combine, tensor(&gradient), tensor(&combined), tensor(draw), s..s + 1,
                        draws.len(),
                    );
                    let pulled: Vec<f32> = pulled.into_data().try_into_vec().unwrap();
                    for (column, pulled) in pulled.iter().enumerate() {
                        let moved = |by: f32| {
                            let mut draws = draws.clone();
                            draws[s][column] += by;
                            of(&fold(combine, &draws))
                        };
                        let difference = (moved(0.02) - moved(-0.02)) / 0.04;
                        let error = (f64::from(*pulled) - difference).abs();
                        let near = error < 2e-3 * (1.0 + difference.abs());
                        prop_assert!(near, "{combine:?}: {pulled} {difference}");
                    }
                }
            }
        }
    }
}
