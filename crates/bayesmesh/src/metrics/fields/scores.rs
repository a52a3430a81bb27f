//! Scores of ensembles.

use super::{BLOCK, FieldLayout, mean_over_examples};
use crate::error::Error;
use crate::metrics::batch::{check_count, check_finite};
use crate::metrics::row_mean::{Estimate, standard_error};
use crate::metrics::{Metric, MetricError, MetricSet, Score, statistics_field};
use crate::predict::Predictive;

/// The most draws whose pairs are compared one by one. That is a loop over cells without branches,
/// and faster than sorting each cell.
const MOST_PAIRED: usize = 64;

/// Scores of predicted fields; the module `metrics::fields` has the formulas.
///
/// A [`MetricSet`], so that [`Predictor::score_with`](crate::Predictor::score_with) makes them on
/// any mesh:
///
/// ```
/// use bayesmesh::Predictive;
/// use bayesmesh::metrics::{FieldLayout, FieldScores};
///
/// // Two draws of two fields with three cells, of which the middle one is as large as the others
/// // together.
/// let draws = vec![0.0, 1.0, 2.0, 5.0, 5.0, 5.0, 2.0, 1.0, 0.0, 7.0, 7.0, 7.0];
/// let prediction = Predictive::of_values(2, 1, draws)?;
/// let layout = FieldLayout::new(2, &[0.5, 1.0, 0.5])?.with_scales(vec![1.0, 10.0])?;
/// let mut scores = FieldScores::new(layout, 2)?;
/// scores.add(&prediction, &[1.0, 2.0, 1.0, 6.0, 6.0, 6.0])?;
/// let fields = scores.fields();
/// assert_eq!(fields[0].rmse.value, 0.5f64.sqrt());
/// assert_eq!(fields[1].spread.value, 10.0 * 2f64.sqrt());
/// assert_eq!(fields[1].rank_histogram, [0.0, 1.0, 0.0]);
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FieldScores {
    layout: FieldLayout,
    members: usize,
    /// Examples, then for each field [`SUMS`] sums over examples and the rank histogram.
    statistics: Vec<f64>,
}

/// Scores of one field, in its units. Standard errors are those over examples.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldScore {
    /// Root mean square error of the mean of the draws, `√e`.
    pub rmse: Score,
    /// Mean absolute error of the mean of the draws, `a`.
    pub mae: Score,
    /// The fair CRPS, `c`.
    pub crps: Score,
    /// Root mean square deviation of the draws from their mean, `√v`.
    pub spread: Score,
    /// `√( v / (e − v/S) )`, WeatherBench-X's `UnbiasedSpreadSkillRatio`: 1 if truth and draws are
    /// alike, below 1 if the ensemble is too narrow. e − v/S is the squared error that the mean of
    /// infinitely many draws would have, without bias; NaN where it comes out negative.
    pub spread_skill: Score,
    /// How often the truth has each rank among the draws, S + 1 weighted shares that sum to 1. A
    /// truth that equals draws counts in equal parts for each rank that it could have.
    pub rank_histogram: Vec<f64>,
}

/// Sums over examples of a field: Σ and Σ² of e, a, c and v, and Σ e·v.
const SUMS: usize = 9;

/// Sums over cells.
struct CellSums {
    /// Of e, a, c and v.
    terms: [f64; 4],
    ranks: Vec<f64>,
}

impl FieldScores {
    /// For such fields and so many draws, at least two.
    pub fn new(layout: FieldLayout, members: usize) -> Result<Self, MetricError> {
        if members < 2 {
            let (setting, expected) = ("number of draws of a field", "at least 2");
            return Err(MetricError::Setting { setting, expected, actual: members.to_string() });
        }
        let statistics = vec![0.0; 1 + layout.fields * (SUMS + members + 1)];
        Ok(Self { layout, members, statistics })
    }

    /// Outputs of an example.
    pub(crate) fn outputs(&self) -> usize {
        self.layout.outputs()
    }

    /// How many examples have been added.
    pub fn examples(&self) -> usize {
        self.statistics[0] as usize
    }

    /// Adds predictions `[draws, rows, fields·cells]` and the truth `[rows, fields·cells]`; changes
    /// nothing if they do not fit.
    pub fn add(&mut self, prediction: &Predictive, truth: &[f32]) -> crate::Result<()> {
        if prediction.predicts_classes() || prediction.has_noise() {
            return Err(Error::Setting(
                "scores of fields are those of draws of values without noise; predict with a loss \
                 of the draws themselves, such as `crps`"
                    .to_owned(),
            ));
        }
        let (rows, outputs) = (prediction.rows(), self.layout.outputs());
        check_count("draws of fields", prediction.draws(), self.members)?;
        check_count("outputs of fields", prediction.outputs(), outputs)?;
        check_count("true values of fields", truth.len(), rows * outputs)?;
        let values = prediction.values();
        let sums = self.layout.sums(
            rows,
            |first, weights| score_cells(values, rows * outputs, first, truth, weights),
            |mut left, right| {
                left.terms.iter_mut().zip(right.terms).for_each(|(l, r)| *l += r);
                left.ranks.iter_mut().zip(right.ranks).for_each(|(l, r)| *l += r);
                left
            },
        );
        if sums.iter().any(|sums| sums.terms.iter().any(|term| !term.is_finite())) {
            check_finite("predictions", values)?;
            check_finite("true values", truth)?;
        }
        let cells = self.layout.weights.len() as f64;
        self.statistics[0] += rows as f64;
        for (index, sums) in sums.into_iter().enumerate() {
            let length = SUMS + self.members + 1;
            let own = &mut self.statistics[1 + index % self.layout.fields * length..][..length];
            let terms = sums.terms.map(|term| term / cells);
            for (pair, term) in own.chunks_exact_mut(2).zip(terms) {
                pair[0] += term;
                pair[1] += term * term;
            }
            own[SUMS - 1] += terms[0] * terms[3];
            own[SUMS..].iter_mut().zip(sums.ranks).for_each(|(sum, share)| *sum += share);
        }
        Ok(())
    }

    /// The scores of each field; NaN where there are no examples.
    pub fn fields(&self) -> Vec<FieldScore> {
        let all = self.statistics[1..].chunks_exact(SUMS + self.members + 1);
        all.zip(&self.layout.scales).map(|(sums, scale)| self.field(sums, *scale)).collect()
    }

    /// The scores of all fields together, each in units of its scale: `rmse` and `spread` are roots
    /// of mean squares, `mae` and `crps` means, and `spread_skill` is that of the mean squares.
    pub fn together(&self) -> Vec<Score> {
        let length = SUMS + self.members + 1;
        let mut sums = [0.0; SUMS];
        for field in self.statistics[1..].chunks_exact(length) {
            sums.iter_mut().zip(field).for_each(|(sum, more)| *sum += more);
        }
        let fields = self.layout.fields as f64;
        let mean = |index: usize| sums[2 * index] / self.statistics[0] / fields;
        let [mse, mae, crps, variance] = [0, 1, 2, 3].map(mean);
        let skill = mse - variance / self.members as f64;
        vec![
            Score::new("rmse", mse.sqrt()),
            Score::new("mae", mae),
            Score::new("crps", crps),
            Score::new("spread", variance.sqrt()),
            Score::new("spread_skill", (variance / skill).sqrt()),
        ]
    }

    fn field(&self, sums: &[f64], scale: f64) -> FieldScore {
        let examples = self.statistics[0];
        let mean = |index: usize| mean_over_examples(examples, &sums[2 * index..]);
        let score = |name, estimate: Estimate| estimate.named(name).in_unit(name, scale);
        let [mse, mae, crps, variance] = [0, 1, 2, 3].map(mean);
        let total: f64 = sums[SUMS..].iter().sum();
        FieldScore {
            rmse: score("rmse", mse.sqrt()),
            mae: score("mae", mae),
            crps: score("crps", crps),
            spread: score("spread", variance.sqrt()),
            spread_skill: self.spread_skill(sums, mse.value, variance.value),
            rank_histogram: sums[SUMS..].iter().map(|sum| sum / total).collect(),
        }
    }

    /// The ratio r, with the error of `ln r = ½ ln v − ½ ln (e − v/S)` by its first derivatives:
    /// half the deviation of `v_i/v − (e_i − v_i/S)/(e − v/S)`.
    fn spread_skill(&self, sums: &[f64], mse: f64, variance: f64) -> Score {
        let (examples, members) = (self.statistics[0], self.members as f64);
        let skill = mse - variance / members;
        let ratio = if skill > 0.0 { (variance / skill).sqrt() } else { f64::NAN };
        let (of_variance, of_error) = (1.0 / variance + 1.0 / (members * skill), -1.0 / skill);
        let sum = of_variance * sums[6] + of_error * sums[0];
        let squares = of_variance * of_variance * sums[7]
            + of_error * of_error * sums[1]
            + 2.0 * of_variance * of_error * sums[SUMS - 1];
        let error = 0.5 * ratio * standard_error(examples, sum, squares);
        Estimate { value: ratio, error }.named("spread_skill")
    }
}

/// Sums over the cells from `first` on, as many as there are weights, of draws that are `stride`
/// apart. Draw by draw, so that the inner loops run along the cells.
fn score_cells(
    values: &[f32],
    stride: usize,
    first: usize,
    truth: &[f32],
    weights: &[f32],
) -> CellSums {
    let count = weights.len();
    let truth = &truth[first..][..count];
    let draw = |index: usize| &values[index * stride + first..][..count];
    let members = values.len() / stride;
    let mut mean = [0.0f64; BLOCK];
    let mut distance = [0.0f64; BLOCK];
    let (mut below, mut level) = ([0u32; BLOCK], [0u32; BLOCK]);
    for index in 0..members {
        for (c, (x, y)) in draw(index).iter().zip(truth).enumerate() {
            mean[c] += f64::from(*x);
            distance[c] += f64::from((x - y).abs());
            below[c] += u32::from(x < y);
            level[c] += u32::from(x == y);
        }
    }
    mean[..count].iter_mut().for_each(|mean| *mean /= members as f64);
    let mut squares = [0.0f64; BLOCK];
    for index in 0..members {
        for (c, x) in draw(index).iter().enumerate() {
            let deviation = f64::from(*x) - mean[c];
            squares[c] += deviation * deviation;
        }
    }
    let pairs = pairs_of_cells(draw, members, count);

    let mut sums = CellSums { terms: [0.0; 4], ranks: vec![0.0; members + 1] };
    let (s, per_pair) = (members as f64, 1.0 / (members * (members - 1)) as f64);
    for c in 0..count {
        let weight = f64::from(weights[c]);
        let error = mean[c] - f64::from(truth[c]);
        sums.terms[0] += weight * error * error;
        sums.terms[1] += weight * error.abs();
        sums.terms[2] += weight * (distance[c] / s - pairs[c] * per_pair);
        sums.terms[3] += weight * squares[c] / (s - 1.0);
        let (lowest, ties) = (below[c] as usize, level[c] as usize);
        let share = weight / (ties + 1) as f64;
        sums.ranks[lowest..=lowest + ties].iter_mut().for_each(|sum| *sum += share);
    }
    sums
}

/// `Σ_{s<t} |x_s − x_t|` of each cell.
fn pairs_of_cells<'a>(
    draw: impl Fn(usize) -> &'a [f32],
    members: usize,
    count: usize,
) -> [f64; BLOCK] {
    let mut pairs = [0.0f64; BLOCK];
    if members > MOST_PAIRED {
        // Σ_{s<t} |x_s − x_t| = Σ_i (2i − S + 1)·x_(i) over the sorted draws, i from 0.
        let mut sorted = vec![0.0; members];
        for (c, pairs) in pairs[..count].iter_mut().enumerate() {
            sorted.iter_mut().enumerate().for_each(|(index, x)| *x = draw(index)[c]);
            sorted.sort_unstable_by(f32::total_cmp);
            let weight = |i: usize| 2.0 * i as f64 + 1.0 - members as f64;
            *pairs = sorted.iter().enumerate().map(|(i, x)| weight(i) * f64::from(*x)).sum();
        }
        return pairs;
    }
    for s in 1..members {
        let mut own = [0.0f32; BLOCK];
        for t in 0..s {
            for (sum, (x, other)) in own.iter_mut().zip(draw(s).iter().zip(draw(t))) {
                *sum += (x - other).abs();
            }
        }
        pairs[..count].iter_mut().zip(own).for_each(|(pairs, own)| *pairs += f64::from(own));
    }
    pairs
}

impl Metric for FieldScores {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let named = |(field, of): (usize, FieldScore)| {
            let scores = [of.rmse, of.mae, of.crps, of.spread, of.spread_skill];
            scores.map(|score| score.in_unit(format!("field_{field}.{}", score.name), 1.0))
        };
        self.fields().into_iter().enumerate().flat_map(named).collect()
    }
}

impl MetricSet for FieldScores {
    fn metrics(&self) -> Vec<&dyn Metric> {
        vec![self]
    }

    fn metrics_mut(&mut self) -> Vec<&mut dyn Metric> {
        vec![self]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::layout;
    use super::*;
    use crate::metrics::testing::{Lcg, assert_close};

    /// Draws around the truth, `[members, outputs]`, and the truth of one example.
    fn example(lcg: &mut Lcg, members: usize, outputs: usize) -> (Predictive, Vec<f32>) {
        let centre: Vec<f64> = (0..outputs).map(|_| lcg.normal()).collect();
        let truth = centre.iter().map(|c| (c + lcg.normal()) as f32).collect();
        let draws = (0..members * outputs).map(|i| (centre[i % outputs] + lcg.normal()) as f32);
        (Predictive::of_values(members, 1, draws.collect()).unwrap(), truth)
    }

    fn weights(cells: usize) -> Vec<f32> {
        (0..cells).map(|cell| 0.5 + (cell % 7) as f32).collect()
    }

    #[test]
    fn a_perfect_ensemble_has_a_ratio_of_one_and_a_flat_histogram() {
        for members in [2, 8] {
            let mut scores = FieldScores::new(layout(1, &[1.0; 100]), members).unwrap();
            let mut lcg = Lcg(3);
            for _ in 0..200 {
                let (prediction, truth) = example(&mut lcg, members, 100);
                scores.add(&prediction, &truth).unwrap();
            }
            let field = &scores.fields()[0];
            let ratio = &field.spread_skill;
            assert!((ratio.value - 1.0).abs() < 4.0 * ratio.se_examples, "{ratio:?}");
            assert!(ratio.se_examples < 0.02, "{ratio:?}");
            assert_close(field.spread.value, 1.0, 0.02);
            // E|Z − Z'| = 2/√π, and half of it is left of a perfect forecast.
            assert_close(field.crps.value, 1.0 / std::f64::consts::PI.sqrt(), 0.02);
            let even = 1.0 / (members + 1) as f64;
            assert!(field.rank_histogram.iter().all(|share| (share - even).abs() < 0.01));
        }
    }

    /// The error of the ratio, by its derivatives, is how much it varies between experiments.
    #[test]
    fn the_error_of_the_ratio_is_its_deviation_between_experiments() {
        let mut lcg = Lcg(8);
        let (mut ratios, mut errors) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            let mut scores = FieldScores::new(layout(1, &[1.0; 20]), 4).unwrap();
            for _ in 0..40 {
                let (prediction, truth) = example(&mut lcg, 4, 20);
                scores.add(&prediction, &truth).unwrap();
            }
            let ratio = &scores.fields()[0].spread_skill;
            ratios.push(ratio.value);
            errors.push(ratio.se_examples);
        }
        let count = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / count;
        let deviation = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let error = errors.iter().sum::<f64>() / count;
        assert_close(error / deviation.sqrt(), 1.0, 0.12);
    }

    /// Many draws are sorted, few are compared pair by pair.
    #[test]
    fn sorted_draws_have_the_same_pairs() {
        let mut lcg = Lcg(5);
        let members = MOST_PAIRED + 3;
        let draws: Vec<Vec<f32>> =
            (0..members).map(|_| vec![lcg.normal() as f32, lcg.normal() as f32]).collect();
        let sorted = pairs_of_cells(|index| &draws[index][..], members, 2);
        for cell in 0..2 {
            let all = draws.iter().flat_map(|a| draws.iter().map(move |b| (a[cell], b[cell])));
            let sum: f64 = all.map(|(a, b)| f64::from((a - b).abs())).sum();
            assert_close(sorted[cell], sum / 2.0, 1e-4);
        }
    }

    /// Cells in several blocks, fields with scales, examples on two ranks.
    #[test]
    fn parts_merge_and_units_scale() {
        let (fields, cells, members) = (2, 3 * BLOCK + 5, 3);
        let layout = layout(fields, &weights(cells));
        let new = || FieldScores::new(layout.clone(), members).unwrap();
        let mut lcg = Lcg(6);
        let examples: Vec<_> = (0..4).map(|_| example(&mut lcg, members, fields * cells)).collect();
        let scaled = layout.clone().with_scales(vec![2.0, 1.0]).unwrap();
        let (mut all, mut here, mut there) =
            (new(), new(), FieldScores::new(scaled, members).unwrap());
        for (index, (prediction, truth)) in examples.iter().enumerate() {
            all.add(prediction, truth).unwrap();
            if index < 1 { &mut here } else { &mut there }.add(prediction, truth).unwrap();
        }
        MetricSet::merge(&mut there, &here).unwrap();
        assert_eq!((all.examples(), there.examples()), (4, 4));
        let (one, two) = (all.fields(), there.fields());
        assert_close(2.0 * one[0].crps.value, two[0].crps.value, 1e-12);
        assert_close(2.0 * one[0].rmse.se_examples, two[0].rmse.se_examples, 1e-12);
        assert_close(one[0].spread_skill.value, two[0].spread_skill.value, 1e-12);
        assert_close(one[1].mae.value, two[1].mae.value, 1e-12);
        let total: f64 = two[1].rank_histogram.iter().sum();
        assert_close(total, 1.0, 1e-12);
        // All examples at once, as one prediction of four rows.
        let draw = |index: usize| {
            let own = index * fields * cells..(index + 1) * fields * cells;
            examples.iter().flat_map(move |(prediction, _)| &prediction.values()[own.clone()])
        };
        let draws: Vec<f32> = (0..members).flat_map(draw).copied().collect();
        let truth: Vec<f32> = examples.iter().flat_map(|(_, truth)| truth).copied().collect();
        let mut at_once = new();
        at_once.add(&Predictive::of_values(members, 4, draws).unwrap(), &truth).unwrap();
        assert_eq!(at_once.statistics, all.statistics);
    }

    #[test]
    fn the_bits_do_not_depend_on_the_threads() {
        let (prediction, truth) = example(&mut Lcg(7), 4, 2 * 5000);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut scores = FieldScores::new(layout(2, &weights(5000)), 4).unwrap();
            pool.install(|| scores.add(&prediction, &truth)).unwrap();
            scores.statistics
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let setting = |result: Result<FieldLayout, MetricError>| result.unwrap_err().to_string();
        assert_eq!(
            setting(FieldLayout::new(1, &[1.0, -1.0])),
            "weights of cells must be zero or positive, and not all zero, not -1"
        );
        assert_eq!(
            setting(FieldLayout::new(1, &[])),
            "weights of cells must be zero or positive, and not all zero, not 0 numbers that sum \
             to zero"
        );
        assert_eq!(
            FieldScores::new(layout(1, &[1.0]), 1).unwrap_err().to_string(),
            "number of draws of a field must be at least 2, not 1"
        );
        assert!(FieldLayout::new(0, &[1.0]).is_err());
        let three_cells = layout(1, &[1.0; 3]);
        assert!(three_cells.clone().with_scales(vec![1.0, 2.0]).is_err());
        assert!(three_cells.clone().with_scales(vec![0.0]).is_err());
        let new = || FieldScores::new(three_cells.clone(), 2).unwrap();

        let mut scores = new();
        let fields = |values: Vec<f32>| Predictive::of_values(2, 1, values).unwrap();
        let told = |result: crate::Result<()>| result.unwrap_err().to_string();
        let three = Predictive::of_values(3, 1, vec![0.0; 9]).unwrap();
        let text = told(scores.add(&three, &[0.0; 3]));
        assert!(text.contains("draws of fields: 3 given, 2 expected"), "{text}");
        let text = told(scores.add(&fields(vec![0.0; 8]), &[0.0; 4]));
        assert!(text.contains("outputs of fields: 4 given, 3 expected"), "{text}");
        let text = told(scores.add(&fields(vec![0.0; 6]), &[0.0; 2]));
        assert!(text.contains("true values of fields: 2 given, 3 expected"), "{text}");
        let text = told(scores.add(&fields(vec![0.0; 6]), &[0.0, f32::NAN, 0.0]));
        assert!(text.contains("true values NaN at index 1 is not finite"), "{text}");
        let noisy = fields(vec![0.0; 6]).with_noise(&[1.0; 3]).unwrap();
        assert!(told(scores.add(&noisy, &[0.0; 3])).contains("without noise"));
        assert!(scores.statistics.iter().all(|sum| *sum == 0.0));
    }
}
