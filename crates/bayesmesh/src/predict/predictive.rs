//! What many draws predict together.

use std::ops::Range;

use rayon::prelude::*;

use super::{Scorer, Scoring, Standardize};
use crate::calibrate::{Lens, deviation_of_tail, uniform};
use crate::data::Truth;
use crate::error::{Error, Result};
use crate::loss::{NegativeBinomial, Quantiles, Reading};
use crate::metrics::quantile::quantile;
use crate::metrics::uncertainty::ClassUncertainty;
use crate::metrics::{
    Evaluation, MixtureBatch, NormalTable, Stairs, integrals, log_probability, normal,
};

/// What S draws predict for a batch, kept draw by draw.
///
/// For classes a draw gives probabilities `softmax(ŷ_s)`, and together they predict the mean of
/// them. For regression a draw gives values `ŷ_s`, with a noise variance `v_s` where the loss has
/// one, and together they predict the mixture `F = 1/S Σ_s N(ŷ_s, v_s)`; without noise a component
/// is a step. Densities, quantiles and scores are those of F. Of counts a draw gives a mean and a
/// variance, which make a Poisson or a negative binomial distribution, and F is their mixture. A
/// draw that gives quantiles counts as that many draws, each a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictive {
    /// Whether the values are probabilities of classes.
    classes: bool,
    /// Whether values and variances are those of counts.
    counts: bool,
    draws: usize,
    rows: usize,
    outputs: usize,
    /// `[draws, rows, outputs]`
    values: Vec<f32>,
    /// `[draws, rows, outputs]`, or empty where the network has none
    noise_variances: Vec<f32>,
    /// How levels are calibrated, for values.
    lens: Option<Lens>,
}

impl Predictive {
    /// From raw outputs `[draws, rows, columns]` of a network.
    pub(super) fn new(
        reading: Reading,
        draws: usize,
        rows: usize,
        columns: usize,
        raw: Vec<f32>,
    ) -> Self {
        let mut draws = draws;
        let (outputs, values, noise_variances) = match reading {
            Reading::Logits | Reading::Values => (columns, raw, Vec::new()),
            Reading::LogRate => {
                let rates: Vec<f32> = raw.into_iter().map(rate).collect();
                (columns, rates.clone(), rates)
            }
            Reading::LogMeanAndLogDispersion => {
                let outputs = columns / 2;
                let (mut means, mut variances) = (Vec::new(), Vec::new());
                for row in raw.chunks_exact(columns.max(1)) {
                    let (logs, dispersions) = row.split_at(outputs);
                    for (log, dispersion) in logs.iter().zip(dispersions) {
                        let mean = rate(*log);
                        means.push(mean);
                        let dispersion = NegativeBinomial::dispersion(*dispersion);
                        variances.push((mean + dispersion * mean * mean).min(f32::MAX));
                    }
                }
                (outputs, means, variances)
            }
            Reading::Quantiles { count } => {
                let outputs = columns / count;
                let cells = rows * outputs;
                let mut values = vec![0.0; draws * count * cells];
                let mut own = vec![0.0; count];
                for (index, row) in raw.chunks_exact(columns.max(1)).enumerate() {
                    let (draw, row_of) = (index / rows.max(1), index % rows.max(1));
                    for output in 0..outputs {
                        let numbers = row.iter().skip(output).step_by(outputs);
                        own.iter_mut().zip(numbers).for_each(|(own, number)| *own = *number);
                        Quantiles::place(&mut own);
                        for (k, value) in own.iter().enumerate() {
                            let place = row_of * outputs + output;
                            values[(draw * count + k) * cells + place] = *value;
                        }
                    }
                }
                draws *= count;
                (outputs, values, Vec::new())
            }
            Reading::ValuesWithNoise { std } => {
                let variances = vec![std * std; raw.len()];
                (columns, raw, variances)
            }
            Reading::MeanAndLogVariance => {
                let outputs = columns / 2;
                let halves = raw.chunks_exact(columns.max(1)).map(|row| row.split_at(outputs));
                let (means, logs): (Vec<&[f32]>, Vec<&[f32]>) = halves.unzip();
                let variances = logs.concat().into_iter().map(f32::exp).collect();
                (outputs, means.concat(), variances)
            }
        };
        let (classes, counts) = (reading == Reading::Logits, reading.predicts_counts());
        Self { classes, counts, draws, rows, outputs, values, noise_variances, lens: None }
    }

    /// From values without noise, `[draws, rows, outputs]`, row-major.
    pub fn of_values(draws: usize, rows: usize, values: Vec<f32>) -> Result<Self> {
        let outputs = outputs_of(draws, rows, values.len())?;
        let (classes, counts, noise_variances) = (false, false, Vec::new());
        Ok(Self { classes, counts, draws, rows, outputs, values, noise_variances, lens: None })
    }

    /// From Gaussians: means and noise variances, both `[draws, rows, outputs]`, row-major.
    pub fn of_gaussians(
        draws: usize,
        rows: usize,
        means: Vec<f32>,
        variances: Vec<f32>,
    ) -> Result<Self> {
        if variances.len() != means.len() {
            let (means, variances) = (means.len(), variances.len());
            return Err(Error::Mismatch(format!("{variances} variances for {means} means")));
        }
        if let Some(variance) = variances.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
            return Err(Error::Setting(format!("a noise variance of {variance} is not possible")));
        }
        Ok(Self { noise_variances: variances, ..Self::of_values(draws, rows, means)? })
    }

    /// From counts: means and variances, both `[draws, rows, outputs]`, row-major. A draw whose
    /// variance is its mean is a Poisson distribution, one with a larger variance a negative
    /// binomial.
    pub fn of_counts(
        draws: usize,
        rows: usize,
        means: Vec<f32>,
        variances: Vec<f32>,
    ) -> Result<Self> {
        let wrong = means.iter().zip(&variances).find(|(mean, variance)| {
            // Single precision may leave a little less than the mean.
            !(**mean > 0.0 && **variance >= 0.999 * **mean)
        });
        if let Some((mean, variance)) = wrong {
            return Err(Error::Setting(format!(
                "counts with a mean of {mean} and a variance of {variance} are not possible: means \
                 are above 0 and variances at least as large"
            )));
        }
        Ok(Self { counts: true, ..Self::of_gaussians(draws, rows, means, variances)? })
    }

    /// From probabilities of classes, `[draws, rows, classes]`, row-major.
    pub fn of_probabilities(draws: usize, rows: usize, probabilities: Vec<f32>) -> Result<Self> {
        Ok(Self { classes: true, ..Self::of_values(draws, rows, probabilities)? })
    }

    /// The prediction for some of the rows.
    pub fn of_rows(&self, rows: Range<usize>) -> Self {
        let part = |values: &[f32]| -> Vec<f32> {
            let draws = values.chunks_exact(self.cells().max(1));
            let own = rows.start * self.outputs..rows.end * self.outputs;
            let parts: Vec<&[f32]> = draws.map(|draw| &draw[own.clone()]).collect();
            parts.concat()
        };
        Self {
            values: part(&self.values),
            noise_variances: part(&self.noise_variances),
            lens: self.lens.as_ref().map(|lens| lens.of_rows(rows.clone(), self.outputs)),
            rows: rows.len(),
            ..*self
        }
    }

    /// The prediction without some of its draws, as a jackknife needs it; at least one must be
    /// left.
    pub fn without_draws(&self, left_out: Range<usize>) -> Self {
        let rest = |values: &[f32]| -> Vec<f32> {
            let draws = values.chunks_exact(self.cells().max(1)).enumerate();
            let kept = draws.filter(|(draw, _)| !left_out.contains(draw));
            kept.flat_map(|(_, values)| values).copied().collect()
        };
        Self {
            values: rest(&self.values),
            noise_variances: rest(&self.noise_variances),
            draws: self.draws - left_out.len(),
            lens: self.lens.clone(),
            ..*self
        }
    }

    /// How many draws.
    pub fn draws(&self) -> usize {
        self.draws
    }

    /// How many examples.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many outputs or classes an example has.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// What each draw says, `[draws, rows, outputs]`: probabilities of classes, or values.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The noise variance of each draw, `[draws, rows, outputs]`; empty where there is none.
    pub fn noise_variances(&self) -> &[f32] {
        &self.noise_variances
    }

    /// Whether classes are predicted.
    pub fn predicts_classes(&self) -> bool {
        self.classes
    }

    /// Whether counts are predicted.
    pub fn predicts_counts(&self) -> bool {
        self.counts
    }

    /// Whether the predicted values have noise.
    pub fn has_noise(&self) -> bool {
        self.noise_variances.iter().any(|variance| *variance > 0.0)
    }

    /// The number of (row, output) pairs.
    fn cells(&self) -> usize {
        self.rows * self.outputs
    }

    /// Mean and variance over draws of each (row, output) pair, `[rows, outputs]`.
    fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let mean = mean_over_draws(&self.values, self.cells(), |_, value| value);
        let variance =
            mean_over_draws(&self.values, self.cells(), |cell, value| (value - mean[cell]).powi(2));
        let bessel = self.draws as f64 / (self.draws as f64 - 1.0).max(1.0);
        let variance = variance.into_iter().map(|variance| variance * bessel).collect();
        (mean, variance)
    }

    /// The mean over draws, `[rows, outputs]`: class probabilities or predicted values.
    pub fn mean(&self) -> Vec<f32> {
        let mean = mean_over_draws(&self.values, self.cells(), |_, value| value);
        mean.into_iter().map(|mean| mean as f32).collect()
    }

    /// The standard deviation over draws (unbiased), `[rows, outputs]`: what the model does not
    /// know. Zero for a single draw. Of a calibrated prediction its part of the calibrated
    /// variance, in proportion.
    pub fn epistemic_std(&self) -> Vec<f32> {
        Self::calibrated_stds(&self.moments().1, self.variance_ratios().as_deref())
    }

    /// The standard deviation of the prediction, `[rows, outputs]`: spread over draws and, where
    /// the network predicts it, noise: `√(Var_s ŷ_s + mean_s v_s)`. Of a calibrated prediction that
    /// of the calibrated distribution.
    pub fn std(&self) -> Vec<f32> {
        Self::calibrated_stds(&self.mean_and_variance().1, self.variance_ratios().as_deref())
    }

    /// What calibration multiplies the variance of each mixture by; nothing where it is as it was.
    fn variance_ratios(&self) -> Option<Vec<f64>> {
        let lens = self.lens.as_ref().filter(|_| self.has_noise())?;
        let ratio = |cell: usize| {
            let (means, noise) = self.mixture(cell);
            let map = lens.map(cell);
            let found = match self.counts {
                true => self.stairs(cell).say(0.0, Some(map), None).variance,
                false => integrals((&means, &noise), &[], map, (0.0, 0.5)).0.variance,
            };
            let count = means.len() as f64;
            let mean = means.iter().sum::<f64>() / count;
            let spread: f64 = means.iter().map(|x| (x - mean).powi(2)).sum();
            let variance = (spread + noise.iter().sum::<f64>()) / count;
            if variance > 0.0 { found / variance } else { 1.0 }
        };
        Some((0..self.cells()).into_par_iter().map(ratio).collect())
    }

    /// Deviations of variances, calibrated.
    fn calibrated_stds(variances: &[f64], ratios: Option<&[f64]>) -> Vec<f32> {
        let ratio = |cell: usize| ratios.map_or(1.0, |ratios| ratios[cell]);
        let cells = variances.iter().enumerate();
        cells.map(|(cell, variance)| (variance * ratio(cell)).sqrt() as f32).collect()
    }

    /// The [deviation](Self::std) of the prediction and its two parts, [of the
    /// draws](Self::epistemic_std) and [of the noise](Self::noise_std), with less work than one by
    /// one. The squares of the parts add up to that of the whole.
    pub fn stds(&self) -> [Vec<f32>; 3] {
        let epistemic = self.moments().1;
        let mut noise = self.noise();
        noise.resize(self.cells(), 0.0);
        let all: Vec<f64> = epistemic.iter().zip(&noise).map(|(a, b)| a + b).collect();
        let ratios = self.variance_ratios();
        [all, epistemic, noise].map(|own| Self::calibrated_stds(&own, ratios.as_deref()))
    }

    pub(super) fn lens(&self) -> Option<&Lens> {
        self.lens.as_ref()
    }

    /// Means and variances of the components of a (row, output) pair.
    pub(super) fn mixture(&self, cell: usize) -> (Vec<f64>, Vec<f64>) {
        let cells = self.cells();
        let means = over_draws(&self.values, cells, cell).map(f64::from).collect();
        (means, over_draws(&self.noise_variances, cells, cell).map(f64::from).collect())
    }

    /// The mixture of counts of a (row, output) pair.
    pub(super) fn stairs(&self, cell: usize) -> Stairs {
        let (means, variances) = self.mixture(cell);
        Stairs::new(&means, &variances, std::slice::from_ref(&(0..means.len())), 0.0)
    }

    /// Mean and variance, noise included, `[rows, outputs]`.
    pub(crate) fn mean_and_variance(&self) -> (Vec<f64>, Vec<f64>) {
        let (mean, mut variance) = self.moments();
        variance.iter_mut().zip(self.noise()).for_each(|(variance, noise)| *variance += noise);
        (mean, variance)
    }

    /// The mean noise variance, `[rows, outputs]`; empty where there is none.
    fn noise(&self) -> Vec<f64> {
        mean_over_draws(&self.noise_variances, self.cells(), |_, value| value)
    }

    /// The standard deviation of the noise, `√(mean_s v_s)`, `[rows, outputs]`: what no model could
    /// know. Zeros where neither the loss nor [`with_noise`](Self::with_noise) has brought any. Of
    /// a calibrated prediction its part of the calibrated variance, in proportion.
    pub fn noise_std(&self) -> Vec<f32> {
        let mut noise = self.noise();
        noise.resize(self.cells(), 0.0);
        Self::calibrated_stds(&noise, self.variance_ratios().as_deref())
    }

    /// Quantiles of the prediction at the given levels, each `[rows, outputs]`. Without a noise
    /// variance those of the draws, linearly interpolated; with one, those of the mixture of
    /// Gaussians. Of counts the least ones with at least so much at or below them.
    pub fn quantiles(&self, levels: &[f64]) -> Result<Vec<Vec<f32>>> {
        if let Some(level) = levels.iter().find(|level| !(**level > 0.0 && **level < 1.0)) {
            return Err(Error::Setting(format!(
                "a quantile level of {level} is not possible; choose one between 0 and 1"
            )));
        }
        let cells = self.cells();
        let found: Vec<Vec<f32>> = (0..cells)
            .into_par_iter()
            .map(|cell| {
                // What is outside on the side of the level, twice, before calibration.
                let tail = |level: &f64| {
                    let tail = 2.0 * level.min(1.0 - level);
                    let raw = self.lens.as_ref().map_or(tail, |lens| lens.map(cell).raw_tail(tail));
                    (raw, *level > 0.5)
                };
                self.quantiles_of(cell, levels.iter().map(tail))
            })
            .collect();
        let level = |index: usize| found.iter().map(|cell| cell[index]).collect();
        Ok((0..levels.len()).map(level).collect())
    }

    /// Quantiles of the mixture of a (row, output) pair, whatever calibration makes of it: of tails
    /// as [`MixtureBatch::raw_tails`] has them, below or above.
    fn quantiles_of(&self, cell: usize, tails: impl Iterator<Item = (f64, bool)>) -> Vec<f32> {
        if self.counts {
            let stairs = self.stairs(cell);
            return tails.map(|(tail, above)| stairs.quantile(tail, above) as f32).collect();
        }
        let cells = self.cells();
        let mut draws: Vec<f32> = over_draws(&self.values, cells, cell).collect();
        let (means, variances) = self.mixture(cell);
        if variances.iter().all(|variance| *variance == 0.0) {
            draws.sort_unstable_by(f32::total_cmp);
            let level = |(tail, above)| if above { 1.0 - 0.5 * tail } else { 0.5 * tail };
            return tails.map(|tail| quantile(&draws, level(tail)) as f32).collect();
        }
        let mixture = Components::new(&means, &variances);
        tails.map(|tail| mixture.quantile(tail, f64::NAN) as f32).collect()
    }

    /// Bands that hold all outputs of an example at once with the given probability, as lower and
    /// upper ends, each `[rows, outputs]`: central intervals of a level that validation data have
    /// shown to be high enough. An error where the prediction is not calibrated.
    pub fn band(&self, level: f64) -> Result<[Vec<f32>; 2]> {
        let unknown = || {
            Error::Setting(
                "a band of whole vectors needs a calibration; see `Trainer::calibrate`".to_owned(),
            )
        };
        let lens = self.lens.as_ref().ok_or_else(unknown)?;
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::Setting(format!(
                "a band of level {level} is not possible; choose one between 0 and 1"
            )));
        }
        let cells = (0..self.cells()).into_par_iter();
        let ends: Option<Vec<[f32; 2]>> = cells
            .map(|cell| {
                let band = lens.band(cell / self.outputs)?;
                let tail = lens.map(cell).raw_tail(band.raw_tail(1.0 - level));
                let ends = self.quantiles_of(cell, [(tail, false), (tail, true)].into_iter());
                Some([ends[0], ends[1]])
            })
            .collect();
        let ends = ends.ok_or_else(unknown)?;
        Ok([0, 1].map(|end| ends.iter().map(|ends| ends[end]).collect()))
    }

    /// The same prediction with noise of the given deviation added, one for each output: for losses
    /// that say nothing of the noise.
    /// [`Trainer::calibrate_noise`](crate::Trainer::calibrate_noise) finds it.
    pub fn with_noise(mut self, std: &[f64]) -> Result<Self> {
        self.expect_values("noise is added to")?;
        self.refuse_counts("have their own noise; no other is added to them")?;
        if std.len() != self.outputs {
            return Err(Error::Mismatch(format!(
                "{} deviations of the noise for {} outputs; give one for each",
                std.len(),
                self.outputs
            )));
        }
        if let Some(std) = std.iter().find(|std| !(std.is_finite() && **std >= 0.0)) {
            return Err(Error::Setting(format!(
                "a noise of {std} is not possible; choose zero or a positive number"
            )));
        }
        if std.iter().any(|std| *std > 0.0) {
            self.noise_variances.resize(self.values.len(), 0.0);
        }
        for (cell, variance) in self.noise_variances.iter_mut().enumerate() {
            *variance += std[cell % self.outputs].powi(2) as f32;
        }
        Ok(self)
    }

    /// The prediction in the units of the user, where the network was trained on standardised
    /// targets: values `mean + std·ŷ`, noise variances `std²·v`.
    pub fn scaled(&self, scale: &Standardize) -> Result<Self> {
        self.expect_values("units are those of")?;
        self.refuse_counts("have no other units; do not standardise targets that are counts")?;
        let values = scale.invert(&self.values, self.outputs)?;
        let variances = self.noise_variances.iter().enumerate().map(|(cell, &variance)| {
            (f64::from(variance) * scale.std_of(cell % self.outputs).powi(2)) as f32
        });
        let lens = self.lens.clone();
        Ok(Self { values, noise_variances: variances.collect(), lens, ..*self })
    }

    /// The same draws, their levels calibrated.
    pub(crate) fn seen_through(self, lens: Lens) -> Self {
        Self { lens: Some(lens), ..self }
    }

    /// Where there is no noise, the same draws with a Gaussian kernel around each, so many
    /// deviations of the draws wide: a distribution that does not end at the outermost draws.
    pub(crate) fn with_kernel(mut self, width: f64) -> Self {
        let cells = self.cells();
        let mut noise = self.noise();
        noise.resize(cells, 0.0);
        if noise.contains(&0.0) {
            let spread = self.moments().1;
            self.noise_variances.resize(self.values.len(), 0.0);
            for (index, variance) in self.noise_variances.iter_mut().enumerate() {
                let cell = index % cells;
                if noise[cell] == 0.0 {
                    *variance = (spread[cell] * width * width) as f32;
                }
            }
        }
        self
    }

    /// The prediction with deviations multiplied by a factor for each output, or one for all: draws
    /// move away from their mean, and the deviation of the noise grows.
    pub(crate) fn stretched(mut self, factors: &[f64]) -> Self {
        let (mean, cells) = (self.moments().0, self.cells());
        let factor = |index: usize| factors[index % cells % self.outputs % factors.len()];
        for (index, value) in self.values.iter_mut().enumerate() {
            let mean = mean[index % cells];
            *value = (mean + factor(index) * (f64::from(*value) - mean)) as f32;
        }
        for (index, variance) in self.noise_variances.iter_mut().enumerate() {
            *variance = (f64::from(*variance) * factor(index).powi(2)) as f32;
        }
        self
    }

    /// Classes with logits divided by a temperature: `p ∝ p^(1/T)` of each draw.
    #[must_use]
    pub fn tempered(mut self, temperature: f64) -> Self {
        let power = 1.0 / temperature;
        for row in self.values.chunks_exact_mut(self.outputs.max(1)) {
            // The largest is one, so that none is lost to rounding.
            let most = row.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
            row.iter_mut().for_each(|p| *p = (f64::from(*p / most).powf(power)) as f32);
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= sum);
        }
        self
    }

    /// The covariance of the draws of a row (unbiased), `[outputs, outputs]`, and the variance of
    /// its noise.
    pub(crate) fn covariance_of_row(&self, row: usize) -> (Vec<f64>, Vec<f64>) {
        let own = self.of_rows(row..row + 1);
        let (mean, outputs) = (own.moments().0, self.outputs);
        let mut covariance = vec![0.0; outputs * outputs];
        for draw in own.values.chunks_exact(outputs) {
            let away: Vec<f64> = draw.iter().zip(&mean).map(|(&x, m)| f64::from(x) - m).collect();
            for (i, a) in away.iter().enumerate() {
                let row = covariance[i * outputs..][..outputs].iter_mut();
                row.zip(&away).for_each(|(sum, b)| *sum += a * b);
            }
        }
        let count = (self.draws as f64 - 1.0).max(1.0);
        covariance.iter_mut().for_each(|sum| *sum /= count);
        let mut noise = own.noise();
        noise.resize(outputs, 0.0);
        (covariance, noise)
    }

    /// How far out each truth lies in its prediction, whatever calibration makes of it, in
    /// deviations of a normal distribution, `[rows, outputs]`; not a number where the truth is not
    /// known.
    ///
    /// A true count is a quantile at many levels. It lies at one of them by chance, made from the
    /// number of its example: so levels are uniform if the predicted distribution is right, and
    /// calibration leaves it as it is.
    pub fn deviations(&self, truth: &[f32], examples: &[u64]) -> Result<Vec<f64>> {
        if examples.len() != self.rows {
            return Err(Error::Mismatch(format!(
                "the numbers of {} examples for a prediction of {} rows",
                examples.len(),
                self.rows
            )));
        }
        // A truth that is not known may be any number.
        let known: Vec<f32> = truth.iter().map(|y| if y.is_nan() { 0.0 } else { *y }).collect();
        let mixtures = self.mixtures(&known)?;
        let tails = match self.counts {
            false => mixtures.raw_tails(),
            true => {
                let outputs = self.outputs as u64;
                let chances = examples.iter().flat_map(|example| {
                    let first = example.wrapping_mul(outputs);
                    (0..outputs).map(move |output| uniform(first.wrapping_add(output)))
                });
                let tail = |([below, at], chance): ([f64; 2], f64)| {
                    let level = below + chance * (at - below);
                    2.0 * level.min(1.0 - level)
                };
                mixtures.raw_steps().into_iter().zip(chances).map(tail).collect()
            }
        };
        let deviation = |(tail, y): (&f64, &f32)| match y.is_nan() {
            true => f64::NAN,
            false => deviation_of_tail(*tail),
        };
        Ok(tails.iter().zip(truth).map(deviation).collect())
    }

    /// The mixtures of this prediction with the truth, `[rows, outputs]`, as metrics take them.
    pub fn mixtures<'a>(&'a self, truth: &'a [f32]) -> Result<MixtureBatch<'a>> {
        self.expect_values("this score is for")?;
        if truth.len() != self.cells() {
            return Err(Error::Mismatch(format!(
                "{} true values for a prediction of {} rows and {} outputs",
                truth.len(),
                self.rows,
                self.outputs
            )));
        }
        let (values, noise) = (&self.values, &self.noise_variances);
        let mixtures = MixtureBatch::new(values, noise, truth, self.draws, self.outputs)?;
        let mixtures = if self.counts { mixtures.of_counts() } else { mixtures };
        Ok(mixtures.through(self.lens.as_ref()))
    }

    /// The logarithm of the predictive density at the truth, in nats, `[rows, outputs]`:
    /// `ln 1/S Σ_s N(y; ŷ_s, v_s)`. An error where the prediction has no noise, for then it has no
    /// density.
    pub fn log_density(&self, truth: &[f32]) -> Result<Vec<f64>> {
        let mixtures = self.mixtures(truth)?;
        if !self.has_noise() {
            return Err(Error::Setting(
                "a prediction without noise has no density; train with a loss that has noise, such \
                 as `Expected(Gaussian)` or `Expected(Gaussian::fixed(σ)?)`, or add the noise that \
                 `Trainer::calibrate_noise` finds by `Predictive::with_noise`"
                    .to_owned(),
            ));
        }
        Ok(mixtures.log_density())
    }

    /// The logarithm of the predicted probability of each label, in nats, `[rows]`:
    /// `ln 1/S Σ_s p_s(y)`. Classes only.
    pub fn log_probability(&self, labels: &[usize]) -> Result<Vec<f64>> {
        self.expect_classes("probabilities of labels")?;
        if labels.len() != self.rows {
            let (labels, rows) = (labels.len(), self.rows);
            return Err(Error::Mismatch(format!(
                "{labels} labels for a prediction of {rows} rows"
            )));
        }
        let mean = self.mean();
        let rows = mean.chunks_exact(self.outputs.max(1)).zip(labels);
        rows.map(|(row, &label)| match row.get(label) {
            Some(&p) => Ok(log_probability(p)),
            None => Err(Error::Mismatch(format!(
                "a label of {label} is not one of {} classes, which count from 0",
                self.outputs
            ))),
        })
        .collect()
    }

    /// The continuous ranked probability score of the mixture, `∫ (F(x) − [x ≥ y])² dx`,
    /// `[rows, outputs]`, in the units of the values. Exact.
    pub fn crps(&self, truth: &[f32]) -> Result<Vec<f64>> {
        Ok(self.mixtures(truth)?.crps())
    }

    /// The probability that the prediction gives to values below the truth, `F(y)`, for each (row,
    /// output) pair: uniform if the predicted distribution is right. With noise it is within
    /// `(1 ± L)/2` exactly when the central interval of level L holds the truth. Without noise it
    /// is the share of draws below the truth, ties counting half, while
    /// [quantiles](Self::quantiles) interpolate between draws.
    pub fn pit(&self, truth: &[f32]) -> Result<Vec<f64>> {
        Ok(self.mixtures(truth)?.pit())
    }

    /// All scores of this prediction, each with its standard errors over draws and over examples.
    pub fn score(&self, truth: &Truth) -> Result<Evaluation> {
        let scoring = Scoring::new(self.draws);
        let mut scorer = Scorer::new(&scoring, self.classes);
        scorer.add(&[], self, truth)?;
        scorer.evaluation()
    }

    /// The entropy of the mean probabilities of each row, in nats. Classes only.
    pub fn entropy(&self) -> Result<Vec<f64>> {
        Ok(self.uncertainty()?.predictive_entropy)
    }

    /// The mean over draws of each row's entropy, in nats: what no model could know. Classes only.
    pub fn expected_entropy(&self) -> Result<Vec<f64>> {
        Ok(self.uncertainty()?.expected_entropy)
    }

    /// The difference of the two, the mutual information of label and weights: what this model
    /// does not know. Classes only.
    pub fn mutual_information(&self) -> Result<Vec<f64>> {
        Ok(self.uncertainty()?.mutual_information)
    }

    fn uncertainty(&self) -> Result<ClassUncertainty> {
        self.expect_classes("entropies")?;
        Ok(ClassUncertainty::from_draws(&self.values, self.draws, self.outputs)?)
    }

    fn expect_classes(&self, what: &str) -> Result<()> {
        if self.classes {
            return Ok(());
        }
        Err(Error::Setting(format!(
            "{what} are defined for class probabilities; this network predicts values"
        )))
    }

    fn refuse_counts(&self, why: &str) -> Result<()> {
        match self.counts {
            false => Ok(()),
            true => Err(Error::Setting(format!("counts {why}"))),
        }
    }

    fn expect_values(&self, what: &str) -> Result<()> {
        if !self.classes {
            return Ok(());
        }
        Err(Error::Setting(format!("{what} values; this network predicts classes")))
    }
}

/// The rate of its logarithm, always a number that can be counted with.
fn rate(log: f32) -> f32 {
    log.clamp(-40.0, 40.0).exp()
}

/// Outputs of an example, from the number of all values.
fn outputs_of(draws: usize, rows: usize, values: usize) -> Result<usize> {
    let each = draws * rows;
    if each == 0 || values == 0 || !values.is_multiple_of(each) {
        return Err(Error::Mismatch(format!(
            "{values} values are not those of {draws} draws for {rows} rows; give as many for each"
        )));
    }
    Ok(values / each)
}

/// The mean over draws of a function of each (row, output) pair and its value, from
/// `[draws, cells]`. Empty without draws.
fn mean_over_draws(values: &[f32], cells: usize, f: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    let draws = values.len() / cells.max(1);
    if draws == 0 {
        return Vec::new();
    }
    let mut sum = vec![0.0; cells];
    for draw in values.chunks_exact(cells) {
        for (cell, (sum, &value)) in sum.iter_mut().zip(draw).enumerate() {
            *sum += f(cell, f64::from(value));
        }
    }
    sum.iter_mut().for_each(|sum| *sum /= draws as f64);
    sum
}

/// What the draws say of one (row, output) pair, from `[draws, cells]`.
fn over_draws(values: &[f32], cells: usize, cell: usize) -> impl Iterator<Item = f32> {
    values.iter().skip(cell).step_by(cells).copied()
}

/// The mixture `1/S Σ N(m_s, v_s)`; a component without variance is a step.
pub(super) struct Components<'a> {
    means: &'a [f64],
    stds: Vec<f64>,
}

impl<'a> Components<'a> {
    pub fn new(means: &'a [f64], variances: &[f64]) -> Self {
        Self { means, stds: variances.iter().map(|variance| variance.sqrt()).collect() }
    }

    /// What is below x, or above it, and the density.
    fn at(&self, x: f64, above: bool) -> (f64, f64) {
        let table = NormalTable::get();
        let (mut outside, mut density) = (0.0, 0.0);
        for (mean, std) in self.means.iter().zip(&self.stds) {
            let error = if above { mean - x } else { x - mean };
            if *std == 0.0 {
                outside += f64::from(u8::from(error >= 0.0));
                continue;
            }
            let z = error / std;
            // Far out the table has no digits left.
            outside += if z.abs() < 5.0 { table.cdf(z) } else { normal::cdf(z) };
            density += normal::pdf(z) / std;
        }
        let draws = self.means.len() as f64;
        (outside / draws, density / draws)
    }

    /// `2 min(F(x), 1 − F(x))`, and whether x is above the median.
    pub fn tail(&self, x: f64) -> (f64, bool) {
        let (below, _) = self.at(x, false);
        match below < 0.5 {
            true => (2.0 * below, false),
            false => (2.0 * self.at(x, true).0, true),
        }
    }

    /// The place below or above which half a tail lies, sooner if a place near it is known. By
    /// Newton's steps within an interval that shrinks, and by halving it where they lead out.
    pub fn quantile(&self, (tail, above): (f64, bool), guess: f64) -> f64 {
        let wanted = 0.5 * tail;
        let sign = if above { -1.0 } else { 1.0 };
        let z = sign * normal::quantile(wanted.max(f64::MIN_POSITIVE));
        let ends = self.means.iter().zip(&self.stds).map(|(mean, std)| mean + std * z);
        // The quantile lies between the smallest and the largest of the components'.
        let mut low = ends.clone().fold(f64::INFINITY, f64::min);
        let mut high = ends.fold(f64::NEG_INFINITY, f64::max);
        let width = high - low;
        let mut x = if guess > low && guess < high { guess } else { 0.5 * (low + high) };
        for _ in 0..100 {
            let (outside, density) = self.at(x, above);
            // Whether x is too far to the left.
            if (outside < wanted) != above {
                low = x;
            } else {
                high = x;
            }
            let next = x + sign * (wanted - outside) / density;
            let inside = next > low && next < high;
            let closer = if inside { next } else { 0.5 * (low + high) };
            if (closer - x).abs() <= 1e-10 * width || high - low <= 1e-10 * width {
                return closer;
            }
            x = closer;
        }
        x
    }
}
