//! Predictions from many draws.

use bayesmesh_comm::{Communicator, MeshComm, Operation, Reduce, share};
use burn::tensor::Tensor;
use burn::tensor::activation::softmax;

use crate::data::{Dataset, Rows, Target, Truth};
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::loss::Reading;
use crate::metrics::quantile::quantile;
use crate::metrics::uncertainty::ClassUncertainty;
use crate::metrics::{ClassificationScores, MetricSet, RegressionScores, Score, normal};
use crate::network::Network;
use crate::posterior::{Posterior, Snapshot, Tape};
use crate::tensors::to_vec;
use crate::trainer::members::Members;

/// What S draws predict for a batch, kept draw by draw.
///
/// For classes a draw gives probabilities `softmax(ŷ_s)`; for regression, values `ŷ_s`, with a noise
/// variance where the network has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictive {
    reading: Reading,
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
    fn new(reading: Reading, draws: usize, rows: usize, columns: usize, raw: Vec<f32>) -> Self {
        let (outputs, values, noise_variances) = match reading {
            Reading::Logits | Reading::Values => (columns, raw, Vec::new()),
            Reading::MeanAndLogVariance => {
                let outputs = columns / 2;
                let halves = raw.chunks_exact(columns.max(1)).map(|row| row.split_at(outputs));
                let (means, logs): (Vec<&[f32]>, Vec<&[f32]>) = halves.unzip();
                let variances = logs.concat().into_iter().map(f32::exp).collect();
                (outputs, means.concat(), variances)
            }
        };
        Self { reading, draws, rows, outputs, values, noise_variances }
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
        let (_, mut variance) = self.moments();
        let noise = mean_over_draws(&self.noise_variances, self.cells(), |_, value| value);
        variance.iter_mut().zip(noise).for_each(|(variance, noise)| *variance += noise);
        variance.into_iter().map(|variance| variance.sqrt() as f32).collect()
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
            if noise.is_empty() {
                draws.sort_unstable_by(f32::total_cmp);
            }
            for (level, out) in levels.iter().zip(&mut quantiles) {
                out[cell] = match noise.is_empty() {
                    true => quantile(&draws, *level),
                    false => mixture_quantile(&draws, &noise, *level),
                } as f32;
            }
        }
        Ok(quantiles)
    }

    /// The same prediction with noise of the given deviation added, one for each output: for
    /// networks that do not predict it themselves.
    #[must_use]
    pub fn with_noise(mut self, std: &[f64]) -> Self {
        assert_eq!(std.len(), self.outputs, "one deviation for each output");
        self.noise_variances.resize(self.values.len(), 0.0);
        for (cell, variance) in self.noise_variances.iter_mut().enumerate() {
            *variance += std[cell % self.outputs].powi(2) as f32;
        }
        self
    }

    /// The probability that the prediction gives to values below the truth, for each (row, output)
    /// pair: uniform if the predicted distribution is right, and within `(1 ± L)/2` exactly when the
    /// central interval of level L holds the truth. From the mixture `1/S Σ_s N(ŷ_s, v_s)`, or
    /// without noise from the share of draws below the truth, ties counting half.
    pub fn pit(&self, truth: &[f32]) -> Vec<f64> {
        let cells = self.cells();
        assert_eq!(truth.len(), cells, "one true value for each row and output");
        let below = |value: f32, truth: f32| match value.partial_cmp(&truth) {
            Some(std::cmp::Ordering::Less) => 1.0,
            Some(std::cmp::Ordering::Equal) => 0.5,
            _ => 0.0,
        };
        if self.noise_variances.is_empty() {
            return mean_over_draws(&self.values, cells, |cell, v| below(v as f32, truth[cell]));
        }
        let mut sum = vec![0.0; cells];
        let draws = self.values.chunks_exact(cells.max(1));
        for (values, variances) in draws.zip(self.noise_variances.chunks_exact(cells.max(1))) {
            for (cell, sum) in sum.iter_mut().enumerate() {
                let error = f64::from(truth[cell] - values[cell]);
                *sum += match f64::from(variances[cell]).sqrt() {
                    0.0 => below(values[cell], truth[cell]),
                    std => normal::cdf(error / std),
                };
            }
        }
        sum.iter_mut().for_each(|sum| *sum /= self.draws as f64);
        sum
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
        if self.reading != Reading::Logits {
            return Err(Error::Setting(
                "entropies are defined for class probabilities; this network predicts values"
                    .to_owned(),
            ));
        }
        Ok(ClassUncertainty::from_draws(&self.values, self.draws, self.outputs)?)
    }
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
        let sum: f64 = components().map(|(mean, std)| normal::cdf((x - mean) / std)).sum();
        sum / means.len() as f64
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

/// The outputs of one draw as they enter a prediction: probabilities, or raw values.
fn read_output<N: Network>(
    snapshot: &Snapshot<'_, N>,
    reading: Reading,
    draw: &Draw,
    input: N::Input,
) -> Tensor<2> {
    let output = snapshot.draw(draw, Tape::Off).network.forward(input, draw);
    match reading {
        Reading::Logits => softmax(output, 1),
        Reading::Values | Reading::MeanAndLogVariance => output,
    }
}

/// Predicts with `draws` draws spread over the ranks of `comm`; collective, the same result on all.
pub(crate) fn predict_on<P: Posterior>(
    comm: &dyn Communicator,
    members: &Members<P>,
    reading: Reading,
    input: &<P::Network as Network>::Input,
    draws: usize,
    seed: u64,
) -> Result<Predictive> {
    predict_rows(comm, members, reading, input, 0, draws, seed)
}

fn predict_rows<P: Posterior>(
    comm: &dyn Communicator,
    members: &Members<P>,
    reading: Reading,
    input: &<P::Network as Network>::Input,
    first_row: usize,
    draws: usize,
    seed: u64,
) -> Result<Predictive> {
    if draws == 0 {
        return Err(Error::Setting("a prediction needs at least one draw".to_owned()));
    }
    let own = members.draws_of(draws, comm)?;
    let shared = (!members.are_per_draw()).then(|| members.any().parameters().snapshot());
    let mut local = Vec::new();
    let mut shape = [0; 2];
    for index in own {
        let posterior = members.of_draw(index);
        let own = (shared.is_none()).then(|| posterior.parameters().snapshot());
        let snapshot = shared.as_ref().or(own.as_ref()).expect("one of the two");
        let draw =
            Draw::for_prediction(seed, index as u32).with_rows(first_row..first_row + input.rows());
        let output = read_output(snapshot, reading, &posterior.adapt(draw), input.clone());
        shape = output.dims();
        local.extend(to_vec(output));
    }
    // A rank without draws learns the shape from the others.
    let mut dims = shape.map(|n| n as f64);
    comm.all_reduce_f64(&mut dims, Operation::Max, Reduce::Fast)?;
    let [rows, columns] = dims.map(|n| n as usize);
    let raw = comm.all_gather(&local)?.concat();
    Ok(Predictive::new(reading, draws, rows, columns, raw))
}

/// Predicts a data set chunk by chunk and hands each prediction with its truth to `visit`: rows
/// spread over the data axis, draws over the sample axis. Collective; the ranks that share a shard
/// see the same. `chunk` rows are predicted at a time.
#[allow(clippy::too_many_arguments)] // a collective call, said in full
pub(crate) fn visit_members<P, D>(
    mesh: &MeshComm,
    members: &Members<P>,
    reading: Reading,
    data: &D,
    draws: usize,
    seed: u64,
    chunk: usize,
    mut visit: impl FnMut(&[usize], &Predictive, Truth) -> Result<()>,
) -> Result<()>
where
    P: Posterior,
    D: Dataset<Input = <P::Network as Network>::Input>,
{
    let device = members.any().parameters().device().clone();
    let rows = share(data.len(), mesh.mesh.data_size(), mesh.coordinates.data);
    let rows: Vec<usize> = rows.collect();
    for rows in rows.chunks(chunk.max(1)) {
        let (input, target) = data.batch(rows, &device)?;
        let samples = &*mesh.samples;
        let prediction = predict_rows(samples, members, reading, &input, rows[0], draws, seed)?;
        visit(rows, &prediction, target.truth())?;
    }
    Ok(())
}

/// Scores predictions with `draws` draws on labelled data, averaged over **all** draws before they
/// are scored. Collective, the same result on all ranks; see [`visit_on`].
pub(crate) fn evaluate_on<P, D>(
    mesh: &MeshComm,
    members: &Members<P>,
    reading: Reading,
    data: &D,
    draws: usize,
    seed: u64,
    chunk: usize,
) -> Result<Vec<Score>>
where
    P: Posterior,
    D: Dataset<Input = <P::Network as Network>::Input>,
{
    let mut classification: Option<ClassificationScores> = None;
    let mut regression = RegressionScores::new(draws);
    let mut classes = 0;
    visit_members(mesh, members, reading, data, draws, seed, chunk, |_, prediction, truth| {
        classes = prediction.outputs();
        match (truth, reading) {
            (Truth::Labels(labels), Reading::Logits) => {
                let scores =
                    classification.get_or_insert_with(|| ClassificationScores::new(classes));
                scores.add(&prediction.mean(), &labels)?;
            }
            (Truth::Values(values), Reading::Values | Reading::MeanAndLogVariance) => {
                let (mean, std) = (prediction.mean(), prediction.std());
                regression.add(&mean, &std, &values, prediction.values())?;
            }
            (truth, _) => {
                let found = match truth {
                    Truth::Labels(_) => "class labels",
                    Truth::Values(_) => "values",
                };
                return Err(Error::Setting(format!(
                    "the loss reads outputs as {reading:?}, but the targets are {found}"
                )));
            }
        }
        Ok(())
    })?;
    // A data rank without rows learns the number of classes from the others.
    let mut known = [classes as f64];
    mesh.world.all_reduce_f64(&mut known, Operation::Max, Reduce::Fast)?;
    let mut scores: Box<dyn MetricSet> = match reading {
        Reading::Logits => {
            Box::new(classification.unwrap_or_else(|| ClassificationScores::new(known[0] as usize)))
        }
        Reading::Values | Reading::MeanAndLogVariance => Box::new(regression),
    };
    // The sample ranks of a shard hold the same statistics, so only the data axis is summed.
    let mut statistics = scores.statistics();
    mesh.data.all_reduce_f64(&mut statistics, Operation::Sum, Reduce::Reproducible)?;
    scores.set_statistics(&statistics)?;
    Ok(scores.scores())
}

/// Until the program scores by the library.
#[allow(clippy::too_many_arguments, missing_docs)]
pub fn visit_on<P, D>(
    mesh: &MeshComm,
    posterior: &P,
    reading: Reading,
    data: &D,
    draws: usize,
    seed: u64,
    chunk: usize,
    visit: impl FnMut(&[usize], &Predictive, Truth) -> Result<()>,
) -> Result<()>
where
    P: Posterior,
    D: Dataset<Input = <P::Network as Network>::Input>,
{
    let members = Members::of(vec![posterior.clone()], crate::posterior::Ownership::Shared);
    visit_members(mesh, &members, reading, data, draws, seed, chunk, visit)
}
