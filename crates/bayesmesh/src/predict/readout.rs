//! From the outputs of draws to predictions, which the ranks of a mesh make together.

use std::collections::BTreeMap;
use std::ops::Range;

use bayesmesh_comm::{Communicator, MeshComm, Operation, share};
use bayesmesh_kernels::Precision;
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use serde_json::Value;

use super::{Predictive, Scorer, Scoring, Standardize};
use crate::calibrate::Calibration;
use crate::data::{Dataset, Rows, Target, Truth};
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::loss::Reading;
use crate::metrics::{Evaluation, FieldLayout};
use crate::network::Network;
use crate::posterior::{Posterior, Snapshot, Tape};
use crate::tensors::to_vec;
use crate::trainer::members::Members;

/// How outputs become predictions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Readout {
    pub reading: Reading,
    /// The seed of the draws.
    pub seed: u64,
    /// The numbers of products.
    pub precision: Precision,
    /// Rows that are predicted at a time unless asked otherwise.
    pub chunk: usize,
    /// From the units that the network was trained in to those of the user.
    pub scale: Option<Standardize>,
    /// Deviation of noise that the loss says nothing of, for each output, in the units of the user;
    /// none where it is empty.
    pub noise: Vec<f64>,
    /// How predictions are calibrated.
    pub calibration: Option<Calibration>,
    /// How outputs are fields, where they are; checkpoints do not have it.
    pub fields: Option<FieldLayout>,
}

/// What the metadata of a checkpoint call the parts of a readout.
const READING: &str = "bayesmesh.reading";
const SCALE: &str = "bayesmesh.target_scale";
const NOISE: &str = "bayesmesh.noise";
const CALIBRATION: &str = "bayesmesh.calibration";
/// Not there for single precision.
const PRECISION: &str = "bayesmesh.precision";
const BF16: &str = "bf16";

fn unknown(text: &str) -> Error {
    Error::Mismatch(format!("outputs that are read as `{text}`: not known to this version"))
}

impl Readout {
    pub fn new(reading: Reading, seed: u64, chunk: usize) -> Self {
        let (scale, noise, calibration, fields) = (None, Vec::new(), None, None);
        let precision = Precision::default();
        Self { reading, seed, precision, chunk, scale, noise, calibration, fields }
    }

    /// What a checkpoint must say for predictions to be made from it elsewhere.
    pub fn write(&self, notes: &mut BTreeMap<String, String>) {
        let reading = match self.reading {
            Reading::Logits => "logits".to_owned(),
            Reading::Values => "values".to_owned(),
            Reading::ValuesWithNoise { std } => format!("values with noise {std}"),
            Reading::MeanAndLogVariance => "means and log-variances".to_owned(),
            Reading::LogRate => "log-rates".to_owned(),
            Reading::LogMeanAndLogDispersion => "log-means and log-dispersions".to_owned(),
            Reading::Quantiles { count } => format!("quantiles, {count}"),
        };
        notes.insert(READING.to_owned(), reading);
        if let Some(scale) = &self.scale {
            notes.insert(SCALE.to_owned(), scale.to_text());
        }
        match self.precision {
            Precision::Bf16 => notes.insert(PRECISION.to_owned(), BF16.to_owned()),
            Precision::F32 => notes.remove(PRECISION),
        };
        match self.noise.is_empty() {
            false => notes.insert(NOISE.to_owned(), Value::from(self.noise.clone()).to_string()),
            true => notes.remove(NOISE),
        };
        match &self.calibration {
            Some(calibration) => notes.insert(CALIBRATION.to_owned(), calibration.to_text()),
            None => notes.remove(CALIBRATION),
        };
    }

    /// What [`write`](Self::write) wrote; nothing where it did not.
    pub fn read(notes: &BTreeMap<String, String>, seed: u64, chunk: usize) -> Result<Option<Self>> {
        let Some(text) = notes.get(READING) else { return Ok(None) };
        let reading = match (text.as_str(), text.strip_prefix("values with noise ")) {
            ("logits", _) => Reading::Logits,
            ("values", _) => Reading::Values,
            ("means and log-variances", _) => Reading::MeanAndLogVariance,
            ("log-rates", _) => Reading::LogRate,
            ("log-means and log-dispersions", _) => Reading::LogMeanAndLogDispersion,
            (other, None) if other.starts_with("quantiles, ") => {
                let count = other.trim_start_matches("quantiles, ").parse();
                let count = count.ok().filter(|count| *count > 1);
                Reading::Quantiles { count: count.ok_or_else(|| unknown(text))? }
            }
            (_, Some(std)) if std.parse::<f32>().is_ok() => {
                Reading::ValuesWithNoise { std: std.parse().expect("just parsed") }
            }
            _ => return Err(unknown(text)),
        };
        let mut readout = Self::new(reading, seed, chunk);
        readout.precision = match notes.get(PRECISION).map(String::as_str) {
            None => Precision::F32,
            Some(BF16) => Precision::Bf16,
            Some(other) => {
                return Err(Error::Mismatch(format!(
                    "products in `{other}`: not known to this version"
                )));
            }
        };
        readout.read_units(notes)?;
        Ok(Some(readout))
    }

    /// Takes the scale, the noise and the calibration that a checkpoint has.
    pub fn read_units(&mut self, notes: &BTreeMap<String, String>) -> Result<()> {
        if let Some(text) = notes.get(SCALE) {
            self.scale = Some(Standardize::from_text(text)?);
        }
        if let Some(text) = notes.get(NOISE) {
            let noise: Option<Vec<f64>> = serde_json::from_str::<Value>(text)
                .ok()
                .and_then(|list| list.as_array()?.iter().map(Value::as_f64).collect());
            let wrong = || Error::Mismatch(format!("noise of `{text}` is not a list of numbers"));
            self.noise = noise.ok_or_else(wrong)?;
        }
        if let Some(text) = notes.get(CALIBRATION) {
            self.calibration = Some(Calibration::from_text(text)?);
        }
        Ok(())
    }

    /// [`predict_raw`](Self::predict_raw), calibrated. Collective.
    pub fn predict<P: Posterior>(
        &self,
        samples: &dyn Communicator,
        members: &Members<P>,
        input: &<P::Network as Network>::Input,
        first_row: usize,
        draws: usize,
    ) -> Result<Predictive> {
        let prediction = self.predict_raw(samples, members, input, first_row, draws)?;
        match &self.calibration {
            Some(calibration) => calibration.apply(prediction),
            None => Ok(prediction),
        }
    }

    /// Predicts with `draws` draws spread over the ranks of `samples`; the same result on all.
    /// Collective.
    pub fn predict_raw<P: Posterior>(
        &self,
        samples: &dyn Communicator,
        members: &Members<P>,
        input: &<P::Network as Network>::Input,
        first_row: usize,
        draws: usize,
    ) -> Result<Predictive> {
        if draws == 0 {
            return Err(Error::Setting("a prediction needs at least one draw".to_owned()));
        }
        if draws > u32::MAX as usize {
            return Err(Error::Setting(format!(
                "{draws} draws are more than the {} that streams can address; predict with fewer",
                u32::MAX
            )));
        }
        let own = members.draws_of(draws, samples)?;
        let snapshot = |draw: usize| members.of_draw(draw).parameters().snapshot();
        // One for all draws that share their numbers.
        let shared = (!members.are_per_draw()).then(|| snapshot(0));
        let mut local = Vec::new();
        let mut shape = [0; 2];
        for index in own.clone() {
            let draw = Draw::for_prediction(self.seed, index as u32);
            let draw = draw.with_rows(first_row..first_row + input.rows());
            let draw = members.of_draw(index).adapt(draw);
            let output = match &shared {
                Some(snapshot) => self.output(snapshot, &draw, input.clone()),
                None => self.output(&snapshot(index), &draw, input.clone()),
            };
            shape = output.dims();
            let values = to_vec(output);
            if local.is_empty() {
                local.reserve_exact(own.len() * values.len());
            }
            local.extend(values);
        }
        // A rank without draws learns the shape from the others.
        let mut dims = shape.map(|n| n as u64);
        samples.all_reduce_u64(&mut dims, Operation::Max)?;
        let [rows, columns] = dims.map(|n| n as usize);
        let raw = match samples.size() {
            1 => local,
            _ => {
                let mut parts = samples.all_gather(&local)?.into_iter();
                // Part by part, so that there are not three of everything: fields are large.
                drop(local);
                let mut raw = parts.next().expect("at least one rank");
                raw.reserve_exact(draws * rows * columns - raw.len());
                parts.for_each(|part| raw.extend(part));
                raw
            }
        };
        let mut prediction = Predictive::new(self.reading, draws, rows, columns, raw);
        if let Some(scale) = &self.scale {
            prediction = prediction.scaled(scale)?;
        }
        match self.noise.is_empty() {
            true => Ok(prediction),
            false => prediction.with_noise(&self.noise),
        }
    }

    /// The outputs of one draw, which a network makes from an input of the draw's own.
    pub fn output_of<P: Posterior>(
        &self,
        members: &Members<P>,
        draw: Draw,
        input: <P::Network as Network>::Input,
    ) -> Vec<f32> {
        let member = members.of_draw(draw.index());
        let draw = member.adapt(draw);
        to_vec(self.output(&member.parameters().snapshot(), &draw, input))
    }

    /// The outputs of one draw as they enter a prediction: probabilities, or raw values.
    fn output<N: Network>(
        &self,
        snapshot: &Snapshot<'_, N>,
        draw: &Draw,
        input: N::Input,
    ) -> Tensor<2> {
        let network = snapshot.draw(draw, Tape::Off).network;
        let output = self.precision.scope(|| network.forward(input, draw));
        match self.reading {
            Reading::Logits => softmax(output, 1),
            Reading::Values
            | Reading::ValuesWithNoise { .. }
            | Reading::MeanAndLogVariance
            | Reading::LogRate
            | Reading::LogMeanAndLogDispersion
            | Reading::Quantiles { .. } => output,
        }
    }

    /// Predicts a data set chunk by chunk and hands each prediction, as it is before calibration,
    /// with its truth to `visit`. Rows are spread over the data axis and draws over the sample
    /// axis; a prediction then has all its draws, and the ranks that made it together divide its
    /// rows. So **each row is visited once, by one rank**, and whatever adds over rows is summed
    /// over the whole world. Collective.
    pub fn visit<P, D>(
        &self,
        mesh: &MeshComm,
        members: &Members<P>,
        data: &D,
        scoring: &Scoring,
        mut visit: impl FnMut(&[usize], &Predictive, &Truth) -> Result<()>,
    ) -> Result<()>
    where
        P: Posterior,
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let device = members.any().parameters().device().clone();
        let rows = share(data.len(), mesh.mesh.data_size(), mesh.coordinates.data);
        let rows: Vec<usize> = rows.collect();
        for rows in rows.chunks(scoring.chunk.unwrap_or(self.chunk).max(1)) {
            let (input, target) = data.batch(rows, &device)?;
            let samples = &*mesh.samples;
            let prediction = self.predict_raw(samples, members, &input, rows[0], scoring.draws)?;
            let own = share(rows.len(), samples.size(), samples.rank());
            if !own.is_empty() {
                let truth = self.truth(target.truth(), rows.len(), own.clone())?;
                let part;
                let prediction = match own.len() == rows.len() {
                    true => &prediction,
                    false => {
                        part = prediction.of_rows(own.clone());
                        &part
                    }
                };
                visit(&rows[own], prediction, &truth)?;
            }
        }
        Ok(())
    }

    /// Some rows of the targets of so many, in the units of the user.
    fn truth(&self, truth: Truth, rows: usize, own: Range<usize>) -> Result<Truth> {
        Ok(match truth {
            Truth::Labels(labels) => Truth::Labels(labels[own].to_vec()),
            Truth::Values(values) => {
                let outputs = values.len() / rows;
                let values = &values[own.start * outputs..own.end * outputs];
                Truth::Values(match &self.scale {
                    Some(scale) => scale.invert(values, outputs)?,
                    None => values.to_vec(),
                })
            }
        })
    }

    /// Scores predictions as they are before calibration on labelled data, averaged over **all**
    /// draws before they are scored; the same result on all ranks. Collective.
    pub fn evaluate<P, D>(
        &self,
        mesh: &MeshComm,
        members: &Members<P>,
        data: &D,
        scoring: &Scoring,
    ) -> Result<Evaluation>
    where
        P: Posterior,
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let scorer = Scorer::new(scoring, self.reading == Reading::Logits);
        let scorer = scorer.with_values_per_draw(self.reading.values_per_draw());
        let mut scorer = scorer.of_fields(self.fields.as_ref());
        self.visit(mesh, members, data, scoring, |rows, prediction, truth| {
            scorer.add(rows, prediction, truth)
        })?;
        scorer.merge_on(&*mesh.world)?;
        scorer.evaluation()
    }
}
