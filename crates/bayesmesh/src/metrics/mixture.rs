//! What the predictive distribution of some draws says of the truth.
//!
//! Draw s predicts `N(m_s, v_s)`, and all S of them together the mixture `F = 1/S Σ_s N(m_s, v_s)`;
//! without noise a component is a step at m_s. Every score of numbers is that of F. Nothing is
//! approximated by a single Gaussian.
//!
//! The scores of the mixtures that lack one group of draws, from which
//! [`Jackknife`](super::Jackknife) takes its standard errors, come from sums over groups that are
//! known anyway, so that no density, no distribution function and no pair of draws is evaluated
//! twice.

use std::ops::Range;

use rayon::prelude::*;

use super::MetricError;
use super::batch::{check_count, check_finite};
use super::counts::{self, Stairs};
use super::crps::pairs;
use super::jackknife::{DRAW_GROUPS, draw_groups};
use super::normal;
use super::normal_table::NormalTable;
use super::quadrature::{Integrals, integrals};
use crate::calibrate::{Lens, LevelMap};

/// Cells that a thread takes at a time.
const BLOCK: usize = 64;

/// What a mixture says of one true value, for one (row, output) pair.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// Mean of the mixture minus truth.
    pub error: f64,
    /// Variance of the draws, unbiased; 0 for a single one.
    pub epistemic: f64,
    /// Mean variance of the noise; 0 where there is none.
    pub noise: f64,
    /// Deviation of the mixture before calibration.
    pub raw_std: f64,
    /// `ln 1/S Σ_s N(y; m_s, v_s)`; NaN where there is no noise.
    pub log_density: f64,
    /// `∫ (F(x) − [x ≥ y])² dx`.
    pub crps: f64,
    /// Unbiased estimate of the CRPS of infinitely many draws; NaN for one draw.
    pub crps_fair: f64,
    /// `F(y)`, the probability of values below the truth; ties with steps count half.
    pub pit: f64,
    /// The level by which intervals hold the truth or not: `F(y)`; of counts, where the truth is a
    /// quantile at many levels, the one next to the median.
    pub central: f64,
    /// Without noise: how many draws are below the truth, and how many are equal to it.
    pub rank: Option<[usize; 2]>,
}

impl Cell {
    /// Deviation of the mixture.
    pub fn std(&self) -> f64 {
        (self.epistemic + self.noise).sqrt()
    }
}

/// Draws of values with the noise of each, and the truth, known to be valid.
#[derive(Clone, Copy, Debug)]
pub struct MixtureBatch<'a> {
    means: &'a [f32],
    variances: &'a [f32],
    truth: &'a [f32],
    draws: usize,
    outputs: usize,
    lens: Option<&'a Lens>,
    /// The group of each row, or nothing.
    groups: &'a [usize],
    /// Whether components are distributions of counts.
    counts: bool,
}

impl<'a> MixtureBatch<'a> {
    /// Checks a batch.
    ///
    /// # Shapes
    ///
    /// - `means`: `[draws, rows, outputs]`, row-major
    /// - `variances`: the same, or empty where there is no noise
    /// - `truth`: `[rows, outputs]`
    pub fn new(
        means: &'a [f32],
        variances: &'a [f32],
        truth: &'a [f32],
        draws: usize,
        outputs: usize,
    ) -> Result<Self, MetricError> {
        if draws == 0 {
            let expected = "at least 1";
            return Err(MetricError::Setting { setting: "draws", expected, actual: "0".into() });
        }
        let rows = truth.len().checked_div(outputs).unwrap_or(0);
        check_count("true values of whole rows", truth.len(), rows * outputs)?;
        check_count("predicted values", means.len(), draws * truth.len())?;
        if !variances.is_empty() {
            check_count("noise variances", variances.len(), means.len())?;
        }
        check_finite("prediction", means)?;
        check_finite("true value", truth)?;
        if let Some(index) = variances.iter().position(|v| !(v.is_finite() && *v >= 0.0)) {
            return Err(MetricError::Variance { index, value: variances[index] });
        }
        let (lens, groups, counts) = (None, &[][..], false);
        Ok(Self { means, variances, truth, draws, outputs, lens, groups, counts })
    }

    /// The same means and variances as those of counts: Poisson where both are equal, else negative
    /// binomial.
    #[must_use]
    pub fn of_counts(self) -> Self {
        Self { counts: true, ..self }
    }

    /// The same mixtures as a calibration shows them. They must have noise.
    pub(crate) fn through(self, lens: Option<&'a Lens>) -> Self {
        Self { lens: lens.filter(|_| self.has_noise()), ..self }
    }

    /// The same with the group that each row belongs to.
    pub(crate) fn in_groups(self, groups: &'a [usize]) -> Self {
        Self { groups, ..self }
    }

    /// Number of draws.
    pub fn draws(&self) -> usize {
        self.draws
    }

    /// Number of examples.
    pub fn rows(&self) -> usize {
        self.truth.len().checked_div(self.outputs).unwrap_or(0)
    }

    /// Number of outputs of an example.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Whether any draw has noise.
    pub fn has_noise(&self) -> bool {
        self.variances.iter().any(|variance| *variance > 0.0)
    }

    /// `ln 1/S Σ_s N(y; m_s, v_s)` of each row and output; NaN where there is no noise.
    pub fn log_density(&self) -> Vec<f64> {
        self.each(|cell, value: &mut [f64]| {
            if cell.counts {
                let mut scored = [Cell::default()];
                cell.score_counts(&mut scored);
                value[0] = scored[0].log_density;
                return;
            }
            cell.log_density(value);
            if let Some(map) = cell.map {
                let mut pit = [0.0];
                cell.pit(&mut pit);
                value[0] += map.density(cell.calibrated_pit(map, pit[0]).0).ln();
            }
        })
    }

    /// `2 min(F(y), 1 − F(y))` of each row and output before calibration, also far out.
    pub(crate) fn raw_tails(&self) -> Vec<f64> {
        self.each(|cell, value: &mut [f64]| {
            cell.pit(value);
            value[0] = cell.far_tail(value[0]).unwrap_or(2.0 * value[0].min(1.0 - value[0]));
        })
    }

    /// Of counts `F(y − 1)` and `F(y)` of each row and output before calibration.
    pub(crate) fn raw_steps(&self) -> Vec<[f64; 2]> {
        self.each(|cell, value: &mut [[f64; 2]]| {
            let says = cell.stairs().say(cell.truth, None, None);
            value[0] = [says.raw_below, says.raw_at];
        })
    }

    /// `F(y)` of each row and output.
    pub fn pit(&self) -> Vec<f64> {
        self.each(|cell, value: &mut [f64]| {
            if cell.counts {
                value[0] = cell.stairs().say(cell.truth, cell.map, None).pit();
                return;
            }
            cell.pit(value);
            if let Some(map) = cell.map {
                value[0] = cell.calibrated_pit(map, value[0]).1;
            }
        })
    }

    /// The CRPS of each row and output.
    pub fn crps(&self) -> Vec<f64> {
        self.each(|cell, value: &mut [f64]| match cell.map {
            map if cell.counts => value[0] = cell.stairs().say(cell.truth, map, None).crps,
            None => value[0] = cell.crps(|_, _, _| ()).0,
            Some(map) => {
                cell.pit(value);
                let (_, pit) = cell.calibrated_pit(map, value[0]);
                value[0] = cell.integrals(map, pit, &[]).0.crps;
            }
        })
    }

    fn each<T: Clone + Default + Send>(
        &self,
        f: impl Fn(&mut Draws<'_>, &mut [T]) + Sync,
    ) -> Vec<T> {
        self.map(0..self.rows(), &[], 1, f)
    }

    /// All that is said of the truth, of these rows.
    pub(super) fn scored(&self, rows: Range<usize>) -> RegressionBatch {
        self.scored_without(rows, 0).swap_remove(0)
    }

    /// The same by all draws, and then without each of so many groups of them.
    pub(super) fn scored_without(&self, rows: Range<usize>, groups: usize) -> Vec<RegressionBatch> {
        let parts = draw_groups(self.draws, groups);
        let cells = self.map(rows.clone(), &parts, 1 + groups, |draws, cells| draws.score(cells));
        let batch = |mixture: usize| {
            let cells: Vec<Cell> =
                cells.iter().skip(mixture).step_by(1 + groups).copied().collect();
            RegressionBatch {
                outputs: self.outputs,
                draws: self.draws - mixture.checked_sub(1).map_or(0, |group| parts[group].len()),
                band_levels: self.band_levels(rows.start, &cells),
                groups: self.groups.get(rows.clone()).unwrap_or_default().to_vec(),
                cells,
            }
        };
        (0..=groups).map(batch).collect()
    }

    /// Of each row the level of the narrowest band that holds all of it; nothing where bands are
    /// not known.
    fn band_levels(&self, first_row: usize, cells: &[Cell]) -> Vec<f64> {
        let Some(lens) = self.lens else { return Vec::new() };
        let rows = cells.chunks_exact(self.outputs.max(1)).enumerate();
        rows.map_while(|(row, cells)| {
            let tails = cells.iter().map(|cell| 2.0 * cell.central.min(1.0 - cell.central));
            let band = lens.band(first_row + row)?;
            Some(1.0 - band.tail(tails.fold(1.0, f64::min)))
        })
        .collect()
    }

    /// Calls `f` for each cell of these rows with its draws and a place for `width` results. In
    /// parallel; a result does not depend on who computes it.
    fn map<T: Clone + Default + Send>(
        &self,
        rows: Range<usize>,
        groups: &[Range<usize>],
        width: usize,
        f: impl Fn(&mut Draws<'_>, &mut [T]) + Sync,
    ) -> Vec<T> {
        let all = self.truth.len();
        let cells = rows.start * self.outputs..rows.end * self.outputs;
        let mut results = vec![T::default(); width * cells.len()];
        let noise = self.has_noise();
        results.par_chunks_mut(width * BLOCK).enumerate().for_each(|(block, results)| {
            let mut draws = Draws::new(self.draws, groups, noise);
            draws.counts = self.counts;
            for (i, results) in results.chunks_exact_mut(width).enumerate() {
                let cell = cells.start + block * BLOCK + i;
                draws.truth = self.truth[cell].into();
                draws.map = self.lens.map(|lens| lens.map(cell));
                let column = |values: &[f32], column: &mut [f64]| {
                    let values = values.iter().skip(cell).step_by(all);
                    column.iter_mut().zip(values).for_each(|(x, value)| *x = (*value).into());
                };
                column(self.means, &mut draws.means);
                column(self.variances, &mut draws.variances);
                f(&mut draws, results);
            }
        });
        results
    }
}

/// What mixtures say of the truth: cells of whole rows.
#[derive(Clone, Debug)]
pub struct RegressionBatch {
    outputs: usize,
    draws: usize,
    cells: Vec<Cell>,
    band_levels: Vec<f64>,
    groups: Vec<usize>,
}

impl RegressionBatch {
    /// Each example as the cells of its outputs.
    pub fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells.chunks_exact(self.outputs.max(1))
    }

    /// The group of each example; empty where they have none.
    pub fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// Of each example the level of the narrowest band that holds all its outputs; empty where
    /// bands are not known.
    pub fn band_levels(&self) -> &[f64] {
        &self.band_levels
    }

    /// Draws of the mixture.
    pub fn draws(&self) -> usize {
        self.draws
    }

    /// Outputs of an example.
    pub fn outputs(&self) -> usize {
        self.outputs
    }
}

/// The probability with another tail, on the same side of the median.
fn on_side(pit: f64, tail: f64) -> f64 {
    if pit < 0.5 { 0.5 * tail } else { 1.0 - 0.5 * tail }
}

/// The draws of one cell, with room for what is computed from them.
struct Draws<'a> {
    truth: f64,
    /// What levels are calibrated to.
    map: Option<&'a LevelMap>,
    means: Vec<f64>,
    /// Zeros where there is no noise.
    variances: Vec<f64>,
    noise: bool,
    /// Whether they are of counts.
    counts: bool,
    /// The draws of each group that is left out in turn, one after the other.
    groups: &'a [Range<usize>],
    /// The groups by which pairs of draws are added up, also where none is left out: so that a
    /// score has the same bits with and without its standard error.
    parts: Vec<Range<usize>>,
    terms: Vec<f64>,
    room: [Vec<f64>; 2],
}

impl<'a> Draws<'a> {
    fn new(draws: usize, groups: &'a [Range<usize>], noise: bool) -> Self {
        let zeros = || vec![0.0; draws];
        let parts = match groups.is_empty() {
            true => draw_groups(draws, draws.min(DRAW_GROUPS)),
            false => groups.to_vec(),
        };
        let (means, variances, terms, room) = (zeros(), zeros(), zeros(), [zeros(), zeros()]);
        let (truth, map, counts) = (0.0, None, false);
        Self { truth, map, means, variances, noise, counts, groups, parts, terms, room }
    }

    /// Fills the cells of all draws and of those without each group.
    fn score(&mut self, cells: &mut [Cell]) {
        if self.counts {
            return self.score_counts(cells);
        }
        self.moments(cells);
        let mut values = vec![0.0; cells.len()];
        self.log_density(&mut values);
        cells.iter_mut().zip(&values).for_each(|(cell, value)| cell.log_density = *value);
        self.pit(&mut values);
        let pits = cells.iter_mut().zip(&values);
        pits.for_each(|(cell, value)| (cell.pit, cell.central) = (*value, *value));
        if let Some(map) = self.map {
            return self.calibrate(map, cells);
        }
        if !self.noise {
            let count = |is: fn(&f64, &f64) -> bool| {
                self.means.iter().filter(|mean| is(mean, &self.truth)).count()
            };
            cells[0].rank = Some([count(f64::lt), count(f64::eq)]);
        }
        let (crps, fair) = self.crps(|group, crps, fair| {
            (cells[1 + group].crps, cells[1 + group].crps_fair) = (crps, fair);
        });
        (cells[0].crps, cells[0].crps_fair) = (crps, fair);
    }

    /// The mixture of counts, with the groups that pairs are added up by.
    fn stairs(&self) -> Stairs {
        Stairs::new(&self.means, &self.variances, &self.parts, self.truth.floor())
    }

    /// The same for counts, whose sums over stairs give everything but log-densities: these are of
    /// probabilities, far out too.
    fn score_counts(&mut self, cells: &mut [Cell]) {
        self.moments(cells);
        let mut values = vec![0.0; cells.len()];
        self.log_density(&mut values);
        let stairs = self.stairs();
        let count = self.means.len() as f64;
        for (index, (cell, log_density)) in cells.iter_mut().zip(values).enumerate() {
            let without = index.checked_sub(1);
            let says = stairs.say(self.truth, self.map, without);
            let left = count - without.map_or(0.0, |group| self.groups[group].len() as f64);
            (cell.crps, cell.pit, cell.central) = (says.crps, says.pit(), says.nearest());
            cell.log_density = log_density;
            let Some(map) = self.map else {
                // Pairs: E|X − X'| of the mixture is 2 (E|X − y| − CRPS), and a draw with itself
                // has a share of it that infinitely many draws would not have.
                let pairs = 2.0 * left * left * (says.distance - says.crps);
                let fair = says.distance - 0.5 * (pairs - says.same) / (left * (left - 1.0));
                cell.crps_fair = fair;
                continue;
            };
            cell.crps_fair = f64::NAN;
            // What calibration leaves at the truth, in proportion; far out, where it has no digits,
            // as its density has it.
            let (raw, own) = (says.raw_at - says.raw_below, says.at - says.below);
            cell.log_density += match raw > 1e-9 && own > 0.0 {
                true => (own / raw).ln(),
                false => {
                    let level = says.raw_nearest();
                    // Farther out the staircase has no digits left.
                    map.density((2.0 * level.min(1.0 - level)).max(1e-9)).ln()
                }
            };
            let variance = cell.epistemic * (left - 1.0).max(1.0) / left + cell.noise;
            let ratio = if variance > 0.0 { says.variance / variance } else { 1.0 };
            cell.epistemic *= ratio;
            cell.noise *= ratio;
        }
    }

    /// What cells say once levels are calibrated.
    fn calibrate(&self, map: &LevelMap, cells: &mut [Cell]) {
        let far = self.far_tail(cells[0].pit);
        for cell in &mut *cells {
            // So far out all mixtures count as the first.
            let tail = far.unwrap_or(2.0 * cell.pit.min(1.0 - cell.pit));
            cell.log_density += map.density(tail).ln();
            cell.pit = on_side(cell.pit, map.tail(tail));
            cell.central = cell.pit;
            cell.crps_fair = f64::NAN;
        }
        let (whole, without) = self.integrals(map, cells[0].pit, self.groups);
        cells[0].crps = whole.crps;
        cells[1..].iter_mut().zip(without).for_each(|(cell, crps)| cell.crps = crps);
        // The variance of the mixture has that of its draws undivided by one less.
        let count = self.means.len() as f64;
        let variance = cells[0].epistemic * (count - 1.0).max(1.0) / count + cells[0].noise;
        let ratio = if variance > 0.0 { whole.variance / variance } else { 1.0 };
        for cell in cells {
            cell.epistemic *= ratio;
            cell.noise *= ratio;
        }
    }

    /// The tail of the truth, and its calibrated probability, from that of the mixture.
    fn calibrated_pit(&self, map: &LevelMap, pit: f64) -> (f64, f64) {
        let tail = self.far_tail(pit).unwrap_or(2.0 * pit.min(1.0 - pit));
        (tail, on_side(pit, map.tail(tail)))
    }

    /// Where the truth is so far out that the distribution function has no digits left to say how
    /// far, `2 min(F, 1 − F)` by itself; nothing elsewhere.
    fn far_tail(&self, pit: f64) -> Option<f64> {
        const FAR: f64 = 1e-8;
        let sign = if pit < 0.5 { 1.0 } else { -1.0 };
        (self.noise && pit.min(1.0 - pit) < FAR).then(|| {
            let components = self.means.iter().zip(&self.variances);
            let below = components.map(|(mean, variance)| {
                let error = sign * (self.truth - mean);
                match *variance {
                    0.0 => f64::from(u8::from(error > 0.0)),
                    variance => normal::cdf(error / variance.sqrt()),
                }
            });
            2.0 * below.sum::<f64>() / self.means.len() as f64
        })
    }

    fn integrals(
        &self,
        map: &LevelMap,
        pit: f64,
        groups: &[Range<usize>],
    ) -> (Integrals, Vec<f64>) {
        integrals((&self.means, &self.variances), groups, map, (self.truth, pit))
    }

    /// Mean of `terms` over all draws, then over the draws without each group.
    fn means_of_terms(&self, values: &mut [f64]) {
        let draws = self.terms.len() as f64;
        let sums = self.groups.iter().map(|group| self.terms[group.clone()].iter().sum::<f64>());
        let total: f64 = self.terms.iter().sum();
        values[0] = total / draws;
        for ((value, sum), group) in values[1..].iter_mut().zip(sums).zip(self.groups) {
            *value = (total - sum) / (draws - group.len() as f64);
        }
    }

    /// Errors and variances. Of the draws without a group from deviations d from the mean of all:
    /// their mean is `−Σ_g d / n`, and `M₂ = Σ d² − Σ_g d² − n·mean²`.
    fn moments(&self, cells: &mut [Cell]) {
        let draws = self.means.len() as f64;
        let mean = self.means.iter().sum::<f64>() / draws;
        let sums = |range: Range<usize>| {
            let deviations = self.means[range.clone()].iter().map(|x| x - mean);
            let (sum, squares) =
                deviations.fold((0.0, 0.0), |(sum, squares), d| (sum + d, squares + d * d));
            (sum, squares, self.variances[range].iter().sum::<f64>())
        };
        let (rest, squares, noise) = sums(0..self.means.len());
        let unbiased = |squares: f64, count: f64| squares.max(0.0) / (count - 1.0).max(1.0);
        cells[0].error = mean - self.truth;
        cells[0].epistemic = unbiased(squares, draws);
        cells[0].noise = noise / draws;
        cells[0].raw_std = cells[0].std();
        for (cell, group) in cells[1..].iter_mut().zip(self.groups) {
            let count = draws - group.len() as f64;
            let own = sums(group.clone());
            let shift = (rest - own.0) / count;
            cell.error = mean + shift - self.truth;
            cell.epistemic = unbiased(squares - own.1 - count * shift * shift, count);
            cell.noise = (noise - own.2) / count;
            cell.raw_std = cell.std();
        }
    }

    /// Log-densities, from `l_s = ln N(y; m_s, v_s)` by `max + ln Σ exp(l_s − max)`.
    fn log_density(&mut self, values: &mut [f64]) {
        if !self.noise {
            values.fill(f64::NAN);
            return;
        }
        let half_log_two_pi = 0.5 * std::f64::consts::TAU.ln();
        let components = self.means.iter().zip(&self.variances);
        // Draws often share a variance.
        let (mut known, mut log) = (f64::NAN, 0.0);
        for (term, (mean, &variance)) in self.terms.iter_mut().zip(components) {
            if self.counts {
                *term = counts::ln_probability(*mean, variance, self.truth);
                continue;
            }
            let error = self.truth - mean;
            if variance != known {
                (known, log) = (variance, variance.ln());
            }
            *term = match variance {
                // A step has no density but at its place.
                0.0 if error == 0.0 => f64::INFINITY,
                0.0 => f64::NEG_INFINITY,
                _ => -0.5 * (error * error / variance + log) - half_log_two_pi,
            };
        }
        let all = 0..self.terms.len();
        let log_sum = |ranges: [Range<usize>; 2]| {
            let terms = || ranges.clone().into_iter().flat_map(|range| &self.terms[range]);
            let max = terms().copied().fold(f64::NEG_INFINITY, f64::max);
            let count = terms().count() as f64;
            match max.is_finite() {
                true => max + (terms().map(|term| (term - max).exp()).sum::<f64>() / count).ln(),
                false => max,
            }
        };
        values[0] = log_sum([all.clone(), 0..0]);
        if self.groups.is_empty() {
            return;
        }
        // Where a group has nearly all of the density, the others are added up by themselves.
        let max = self.terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = |group: &Range<usize>| -> f64 {
            self.terms[group.clone()].iter().map(|term| (term - max).exp()).sum()
        };
        let sums = &mut self.room[0][..self.groups.len()];
        sums.iter_mut().zip(self.groups).for_each(|(sum_of, group)| *sum_of = sum(group));
        for (g, (value, group)) in values[1..].iter_mut().zip(self.groups).enumerate() {
            let others = sums[..g].iter().sum::<f64>() + sums[g + 1..].iter().sum::<f64>();
            let count = (all.len() - group.len()) as f64;
            *value = match others > 1e-200 && max.is_finite() {
                true => max + (others / count).ln(),
                false => log_sum([0..group.start, group.end..all.end]),
            };
        }
    }

    /// Probabilities of values below the truth.
    fn pit(&mut self, values: &mut [f64]) {
        let table = NormalTable::get();
        let components = self.means.iter().zip(&self.variances);
        for (term, (mean, variance)) in self.terms.iter_mut().zip(components) {
            let error = self.truth - mean;
            *term = match *variance {
                0.0 if error == 0.0 => 0.5,
                0.0 => f64::from(u8::from(error > 0.0)),
                variance => table.cdf(error / variance.sqrt()),
            };
        }
        self.means_of_terms(values);
    }

    /// CRPS and fair CRPS of all draws; those without each group are handed to `without`.
    ///
    /// With `A(μ, v) = E|N(μ, v)|`, the score is `mean_s A(y − m_s, v_s) − ½ mean_st A(m_s − m_t,
    /// v_s + v_t)`; the fair one leaves the pairs of a draw with itself out. The sum over the pairs
    /// without a group is that of all, minus twice those of the group with anyone, plus those
    /// within the group, which were subtracted twice.
    fn crps(&mut self, mut without: impl FnMut(usize, f64, f64)) -> (f64, f64) {
        let table = NormalTable::get();
        let components = self.means.iter().zip(&self.variances);
        for (term, (mean, variance)) in self.terms.iter_mut().zip(components) {
            let (distance, std) = ((self.truth - mean).abs(), variance.sqrt());
            *term = table.absolute(distance, distance / std, std);
        }
        let score = |count: f64, distance: f64, pairs: f64, same: f64| {
            let distance = distance / count;
            let fair = distance - 0.5 * (pairs - same) / (count * (count - 1.0));
            (distance - 0.5 * pairs / (count * count), fair)
        };
        let noise = if self.noise { &self.variances[..] } else { &[] };
        let pairs = pairs(&self.means, noise, &self.parts, &mut self.room);
        let draws = self.terms.len() as f64;
        let distance: f64 = self.terms.iter().sum();
        for (g, (group, own)) in self.groups.iter().zip(&pairs.groups).enumerate() {
            let count = draws - group.len() as f64;
            let distance = distance - self.terms[group.clone()].iter().sum::<f64>();
            let sum = pairs.sum - 2.0 * own.with_all + own.within;
            let (crps, fair) = score(count, distance, sum, pairs.same - own.same);
            without(g, crps, fair);
        }
        score(draws, distance, pairs.sum, pairs.same)
    }
}
