//! What many draws predict together.

use std::ops::Range;

use super::{Scorer, Scoring, Standardize};
use crate::data::Truth;
use crate::error::{Error, Result};
use crate::loss::Reading;
use crate::metrics::quantile::quantile;
use crate::metrics::uncertainty::ClassUncertainty;
use crate::metrics::{Evaluation, MixtureBatch, log_probability, normal};

/// What S draws predict for a batch, kept draw by draw.
///
/// For classes a draw gives probabilities `softmax(ŷ_s)`, and together they predict the mean of
/// them. For regression a draw gives values `ŷ_s`, with a noise variance `v_s` where the loss has
/// one, and together they predict the mixture `F = 1/S Σ_s N(ŷ_s, v_s)`; without noise a component
/// is a step. Densities, quantiles and scores are those of F.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictive {
    /// Whether the values are probabilities of classes.
    classes: bool,
    draws: usize,
    rows: usize,
    outputs: usize,
    /// `[draws, rows, outputs]`
    values: Vec<f32>,
    /// `[draws, rows, outputs]`, or empty where the network has none
    noise_variances: Vec<f32>,
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
        let (outputs, values, noise_variances) = match reading {
            Reading::Logits | Reading::Values => (columns, raw, Vec::new()),
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
        let classes = reading == Reading::Logits;
        Self { classes, draws, rows, outputs, values, noise_variances }
    }

    /// From values without noise, `[draws, rows, outputs]`, row-major.
    pub fn of_values(draws: usize, rows: usize, values: Vec<f32>) -> Result<Self> {
        let outputs = outputs_of(draws, rows, values.len())?;
        let noise_variances = Vec::new();
        Ok(Self { classes: false, draws, rows, outputs, values, noise_variances })
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

    /// From probabilities of classes, `[draws, rows, classes]`, row-major.
    pub fn of_probabilities(draws: usize, rows: usize, probabilities: Vec<f32>) -> Result<Self> {
        Ok(Self { classes: true, ..Self::of_values(draws, rows, probabilities)? })
    }

    /// The prediction for some of the rows.
    pub(super) fn of_rows(&self, rows: Range<usize>) -> Self {
        let part = |values: &[f32]| -> Vec<f32> {
            let draws = values.chunks_exact(self.cells().max(1));
            let own = rows.start * self.outputs..rows.end * self.outputs;
            draws.flat_map(|draw| &draw[own.clone()]).copied().collect()
        };
        Self {
            rows: rows.len(),
            values: part(&self.values),
            noise_variances: part(&self.noise_variances),
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

    /// Whether classes are predicted.
    pub fn predicts_classes(&self) -> bool {
        self.classes
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
        self.moments().0.into_iter().map(|mean| mean as f32).collect()
    }

    /// The standard deviation over draws (unbiased), `[rows, outputs]`: what the model does not
    /// know. Zero for a single draw.
    pub fn epistemic_std(&self) -> Vec<f32> {
        self.moments().1.into_iter().map(|variance| variance.sqrt() as f32).collect()
    }

    /// The standard deviation of the prediction, `[rows, outputs]`: spread over draws and, where
    /// the network predicts it, noise: `√(Var_s ŷ_s + mean_s v_s)`.
    pub fn std(&self) -> Vec<f32> {
        self.mean_and_variance().1.into_iter().map(|variance| variance.sqrt() as f32).collect()
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
    /// know. Zeros where neither the loss nor [`with_noise`](Self::with_noise) has brought any.
    pub fn noise_std(&self) -> Vec<f32> {
        let mut std: Vec<f32> = self.noise().iter().map(|noise| noise.sqrt() as f32).collect();
        std.resize(self.cells(), 0.0);
        std
    }

    /// Quantiles of the prediction at the given levels, each `[rows, outputs]`. Without a noise
    /// variance those of the draws, linearly interpolated; with one, those of the mixture of
    /// Gaussians.
    pub fn quantiles(&self, levels: &[f64]) -> Result<Vec<Vec<f32>>> {
        if let Some(level) = levels.iter().find(|level| !(**level > 0.0 && **level < 1.0)) {
            return Err(Error::Setting(format!(
                "a quantile level of {level} is not possible; choose one between 0 and 1"
            )));
        }
        let cells = self.cells();
        let mut quantiles = vec![vec![0.0; cells]; levels.len()];
        for cell in 0..cells {
            let mut draws: Vec<f32> = over_draws(&self.values, cells, cell).collect();
            let noise: Vec<f32> = over_draws(&self.noise_variances, cells, cell).collect();
            let certain = noise.iter().all(|variance| *variance == 0.0);
            if certain {
                draws.sort_unstable_by(f32::total_cmp);
            }
            for (level, out) in levels.iter().zip(&mut quantiles) {
                out[cell] = match certain {
                    true => quantile(&draws, *level),
                    false => mixture_quantile(&draws, &noise, *level),
                } as f32;
            }
        }
        Ok(quantiles)
    }

    /// The same prediction with noise of the given deviation added, one for each output: for losses
    /// that say nothing of the noise.
    /// [`Trainer::calibrate_noise`](crate::Trainer::calibrate_noise) finds it.
    pub fn with_noise(mut self, std: &[f64]) -> Result<Self> {
        self.expect_values("noise is added to")?;
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
        let values = scale.invert(&self.values, self.outputs)?;
        let variances = self.noise_variances.iter().enumerate().map(|(cell, &variance)| {
            (f64::from(variance) * scale.std_of(cell % self.outputs).powi(2)) as f32
        });
        Ok(Self { values, noise_variances: variances.collect(), ..*self })
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
        Ok(MixtureBatch::new(values, noise, truth, self.draws, self.outputs)?)
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
        scorer.add(self, truth)?;
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

    fn expect_values(&self, what: &str) -> Result<()> {
        if !self.classes {
            return Ok(());
        }
        Err(Error::Setting(format!("{what} values; this network predicts classes")))
    }
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

/// The quantile of `1/S Σ N(m_s, v_s)` by bisection of its distribution function.
fn mixture_quantile(means: &[f32], variances: &[f32], level: f64) -> f64 {
    let z = normal::quantile(level);
    let components = || {
        let pairs = means.iter().zip(variances);
        pairs.map(|(&mean, &variance)| (f64::from(mean), f64::from(variance).sqrt()))
    };
    let ends = components().map(|(mean, std)| mean + std * z);
    // The quantile lies between the smallest and the largest of the components'.
    let mut low = ends.clone().fold(f64::INFINITY, f64::min);
    let mut high = ends.fold(f64::NEG_INFINITY, f64::max);
    let cdf = |x: f64| {
        let below = |(mean, std): (f64, f64)| match std {
            0.0 => f64::from(u8::from(mean <= x)),
            std => normal::cdf((x - mean) / std),
        };
        components().map(below).sum::<f64>() / means.len() as f64
    };
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match cdf(middle) < level {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}
