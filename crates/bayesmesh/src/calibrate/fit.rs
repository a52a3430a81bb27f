//! Learning a calibration from validation data, on all ranks together.

use burn::tensor::Device;

use super::classes::TemperatureSearch;
use super::correlation::NoiseCorrelation;
use super::values::{MOST_OUTPUTS, RESIDUALS, Residuals};
use super::{CalibrateConfig, Calibration, ClassCalibration, Learned, Method, ValueCalibration};
use crate::data::{Dataset, Moment, Target as _, Truth};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{Predictive, Predictor};

/// The most numbers that are looked at; of larger data some examples are.
const MOST_CELLS: usize = 1 << 24;
/// The most examples for the correlation of the noise.
const MOST_PAIRS: usize = 4000;

impl<P: Posterior> Predictor<P> {
    /// Learns from labelled examples that were not trained on how predictions with `draws` draws
    /// are to be calibrated; nothing where the configuration says so. Collective in a job, and the
    /// same on any number of ranks.
    ///
    /// [`Trainer::calibrate`](crate::Trainer::calibrate) keeps it for all predictions.
    pub fn fit_calibration<D>(
        &self,
        valid: &D,
        config: CalibrateConfig,
        draws: usize,
    ) -> Result<Option<Calibration>>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let classes = self.reads_classes();
        let series = valid.len() > 0 && valid.moment(0).is_some();
        let Some(method) = config.method(classes, series)? else { return Ok(None) };
        refuse_too_few(valid.len())?;
        let raw = self.uncalibrated();
        let (learned, examples) = match method {
            Method::Temperature(sets) => {
                let search = TemperatureSearch::new();
                let search = raw.score_with(valid, draws, search, TemperatureSearch::add)?;
                let temperature = search.best() as f32;
                let mut classes = ClassCalibration { temperature, sets, thresholds: Vec::new() };
                let scores =
                    raw.tabulate_with_truth(valid, draws, 1, |rows, prediction, truth| {
                        scores_of_labels(&classes, rows, prediction, truth)
                    })?;
                classes.learn(scores);
                (Learned::Classes(classes), valid.len())
            }
            _ => {
                let outputs = raw.outputs_of(valid)?;
                let every = (valid.len() * outputs * RESIDUALS).div_ceil(MOST_CELLS);
                let some = Thinned { data: valid, every };
                let values = raw.fit_values(&some, method, outputs, draws)?;
                (Learned::Values(values), some.len())
            }
        };
        Ok(Some(Calibration { method, examples, learned }))
    }

    fn fit_values<D>(
        &self,
        valid: &D,
        method: Method,
        outputs: usize,
        draws: usize,
    ) -> Result<ValueCalibration>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let mut values = ValueCalibration::start(method);
        let reading = self.reading();
        refuse_stretched_counts(method, reading.predicts_counts())?;
        if reading.is_of_values_alone() {
            values.use_kernel(draws * reading.values_per_draw());
        }
        if method == Method::Variance {
            let residuals = self.residuals(valid, outputs, draws, &values)?;
            values.learn_stretch(&residuals);
        }
        values.learn(method, &self.residuals(valid, outputs, draws, &values)?);
        if (2..=MOST_OUTPUTS).contains(&outputs) {
            let some = Thinned { data: valid, every: valid.len().div_ceil(MOST_PAIRS) };
            let pairs = NoiseCorrelation::new(outputs);
            let pairs = self.score_with(&some, draws, pairs, |pairs, prediction, truth| {
                add_pairs(pairs, &values.widened(prediction.clone()), truth)
            })?;
            values.learn_root(&pairs.root());
        }
        Ok(values)
    }

    fn residuals<D>(
        &self,
        valid: &D,
        outputs: usize,
        draws: usize,
        values: &ValueCalibration,
    ) -> Result<Residuals>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let columns = outputs * RESIDUALS;
        let cells =
            self.tabulate_with_truth(valid, draws, columns, |rows, prediction, truth| {
                residuals_of(&values.widened(prediction.clone()), rows, truth)
            })?;
        Ok(Residuals { outputs, cells })
    }
}

impl Calibration {
    /// Learns from predictions that have been made, of examples that were not trained on, and their
    /// truth; of examples without an order in time. Nothing where the configuration says so.
    ///
    /// ```
    /// # use bayesmesh::{CalibrateConfig, Calibration, Predictive, data::Truth};
    /// // The deviation that is predicted is a tenth of the true one.
    /// let truth: Vec<f32> = (0..99).map(|i| (i as f32 * 0.7).sin()).collect();
    /// let narrow = |rows| Predictive::of_gaussians(1, rows, vec![0.0; rows], vec![0.005; rows]);
    /// let values = Truth::Values(truth);
    /// let config = CalibrateConfig::Auto;
    /// let calibration = Calibration::learn(&narrow(99)?, &values, config)?.unwrap();
    /// let ends = calibration.apply(narrow(1)?)?.quantiles(&[0.05, 0.95])?;
    /// assert!(ends[1][0] > 0.9);
    /// # Ok::<(), bayesmesh::Error>(())
    /// ```
    pub fn learn(
        prediction: &Predictive,
        truth: &Truth,
        config: CalibrateConfig,
    ) -> Result<Option<Self>> {
        let Some(method) = config.method(prediction.predicts_classes(), false)? else {
            return Ok(None);
        };
        let examples = prediction.rows();
        refuse_too_few(examples)?;
        if let Method::Temperature(sets) = method {
            let mut search = TemperatureSearch::new();
            search.add(prediction, truth)?;
            let temperature = search.best() as f32;
            let mut classes = ClassCalibration { temperature, sets, thresholds: Vec::new() };
            let rows: Vec<usize> = (0..examples).collect();
            classes.learn(scores_of_labels(&classes, &rows, prediction, truth)?);
            return Ok(Some(Self { method, examples, learned: Learned::Classes(classes) }));
        }
        let outputs = prediction.outputs();
        let mut values = ValueCalibration::start(method);
        refuse_stretched_counts(method, prediction.predicts_counts())?;
        if !prediction.has_noise() {
            values.use_kernel(prediction.draws());
        }
        let residuals = |values: &ValueCalibration| -> Result<Residuals> {
            let rows: Vec<usize> = (0..examples).collect();
            let cells = residuals_of(&values.widened(prediction.clone()), &rows, truth)?;
            Ok(Residuals { outputs, cells })
        };
        if method == Method::Variance {
            values.learn_stretch(&residuals(&values)?);
        }
        values.learn(method, &residuals(&values)?);
        if (2..=MOST_OUTPUTS).contains(&outputs) {
            let mut pairs = NoiseCorrelation::new(outputs);
            add_pairs(&mut pairs, &values.widened(prediction.clone()), truth)?;
            values.learn_root(&pairs.root());
        }
        Ok(Some(Self { method, examples, learned: Learned::Values(values) }))
    }
}

/// Counts have no deviations to multiply.
fn refuse_stretched_counts(method: Method, counts: bool) -> Result<()> {
    match counts && method == Method::Variance {
        false => Ok(()),
        true => Err(Error::Setting(
            "counts are calibrated by levels, not by a factor on deviations; use `conformal`"
                .to_owned(),
        )),
    }
}

fn refuse_too_few(examples: usize) -> Result<()> {
    if examples >= Calibration::LEAST_EXAMPLES {
        return Ok(());
    }
    Err(Error::Data(format!(
        "{examples} examples are too few to calibrate with; set at least {} of them aside for \
         validation, or do not calibrate (`calibrate.kind = \"none\"`)",
        Calibration::LEAST_EXAMPLES
    )))
}

/// Adds the rows of a prediction to what the correlation of the noise is estimated from.
fn add_pairs(pairs: &mut NoiseCorrelation, prediction: &Predictive, truth: &Truth) -> Result<()> {
    let rows: Vec<usize> = (0..prediction.rows()).collect();
    let cells = residuals_of(prediction, &rows, truth)?;
    for (row, cells) in cells.chunks_exact(prediction.outputs() * RESIDUALS).enumerate() {
        let errors = cells.iter().skip(1).step_by(RESIDUALS);
        pairs.add(prediction, row, &errors.copied().collect::<Vec<_>>());
    }
    Ok(())
}

/// How far out each value lies, its error in predicted deviations, and the predicted deviation:
/// `[rows, outputs, 3]`.
fn residuals_of(prediction: &Predictive, rows: &[usize], truth: &Truth) -> Result<Vec<f64>> {
    let Truth::Values(truth) = truth else {
        return Err(Error::Setting("intervals are of values, and these are classes".to_owned()));
    };
    if let Some(index) = truth.iter().position(|value| !value.is_finite()) {
        return Err(Error::Data(format!(
            "a true value of {} (value {index}) cannot be calibrated with; remove it",
            truth[index]
        )));
    }
    let examples: Vec<u64> = rows.iter().map(|&row| row as u64).collect();
    let deviations = prediction.deviations(truth, &examples)?;
    let (mean, variance) = prediction.mean_and_variance();
    let cells = deviations.iter().enumerate().flat_map(|(cell, deviation)| {
        let std = variance[cell].sqrt();
        let error = f64::from(truth[cell]) - mean[cell];
        [*deviation, if std > 0.0 { error / std } else { 0.0 }, std]
    });
    Ok(cells.collect())
}

/// The score of the right class of each row, by which sets are made.
fn scores_of_labels(
    classes: &ClassCalibration,
    rows: &[usize],
    prediction: &Predictive,
    truth: &Truth,
) -> Result<Vec<f64>> {
    let Truth::Labels(labels) = truth else {
        return Err(Error::Setting("sets are of classes, and these are values".to_owned()));
    };
    let prediction = prediction.clone().tempered(classes.temperature());
    // Refuses labels that are none.
    prediction.log_probability(labels)?;
    let mean = prediction.mean();
    let examples = mean.chunks_exact(prediction.outputs()).zip(labels).zip(rows);
    // Not the numbers of examples that are predicted later.
    let scores = |row: &[f32], example: usize| classes.scores(row, !(example as u64));
    Ok(examples.map(|((row, &label), &example)| scores(row, example)[label]).collect())
}

/// Every so many of the examples.
struct Thinned<'a, D> {
    data: &'a D,
    every: usize,
}

impl<D: Dataset> Dataset for Thinned<'_, D> {
    type Input = D::Input;
    type Target = D::Target;

    fn len(&self) -> usize {
        self.data.len().div_ceil(self.every.max(1))
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(D::Input, D::Target)> {
        let rows: Vec<usize> = rows.iter().map(|row| row * self.every.max(1)).collect();
        self.data.batch(&rows, device)
    }

    fn checksum(&self) -> Option<String> {
        Some(format!("{} every {}", self.data.checksum()?, self.every))
    }

    fn moment(&self, row: usize) -> Option<Moment> {
        self.data.moment(row * self.every.max(1))
    }
}

impl<P: Posterior> Predictor<P> {
    /// How many values an example has.
    fn outputs_of<D>(&self, data: &D) -> Result<usize>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        match data.batch(&[0], &self.device())?.1.truth() {
            Truth::Values(values) => Ok(values.len()),
            Truth::Labels(_) => {
                let message = "the loss reads outputs as values, but the targets are class labels";
                Err(Error::Setting(message.to_owned()))
            }
        }
    }
}
