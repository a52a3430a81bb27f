//! A trained posterior, for predictions.

use std::path::Path;
use std::sync::Arc;

use bayesmesh_comm::{Mesh, MeshComm};
use bayesmesh_kernels::Precision;
use burn::tensor::Device;
use serde_json::{Value, json};

use super::readout::Readout;
use super::scoring::{Scorer, merge_set};
use super::table::Table;
use super::{Predictive, Scoring};
use crate::calibrate::Calibration;
use crate::checkpoint::{Checkpoint, NamedTensor};
use crate::data::{Checksum, Dataset, Rows as _, Truth};
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::loss::Reading;
use crate::metrics::{Evaluation, FieldLayout, MetricSet};
use crate::network::Network;
use crate::posterior::{Family, Ownership, Parameters, Posterior, family};
use crate::trainer::members::Members;
use crate::trainer::{Place, State};

/// A trained posterior and how its outputs are read: everything that predictions and their scores
/// need. [`Trainer::predictor`](crate::Trainer::predictor) gives one, and [`load`](Self::load)
/// reads what [`Trainer::save`](crate::Trainer::save) wrote.
///
/// ```
/// # use bayesmesh::{Draw, Length, MeanField, Network, Predictor, Prior, Settings};
/// # use bayesmesh::{TensorDataset, Trainer};
/// # use bayesmesh::loss::{Expected, Gaussian};
/// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
/// # #[derive(Module, Debug)]
/// # struct Line { linear: Linear }
/// # impl Network for Line {
/// #     type Input = Tensor<2>;
/// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
/// # }
/// # let device = Device::default();
/// # let network = || Line { linear: LinearConfig::new(1, 1).init(&device) };
/// # let x = Tensor::<1>::from_floats([0.0, 1.0, 2.0, 3.0], &device).unsqueeze_dim::<2>(1);
/// # let data = TensorDataset::new(x.clone(), x.clone() * 2.0)?;
/// # let posterior = MeanField::new(network(), Prior::normal(0.0, 1.0))?;
/// # let settings = Settings { batch: 4, ..Settings::default() };
/// # let mut trainer = Trainer::new(posterior, Expected(Gaussian::fixed(0.1)?), settings);
/// # trainer.fit(&data, None, Length::Steps(3))?;
/// # let folder = std::env::temp_dir().join(format!("bayesmesh-predictor-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).expect("a folder");
/// # let path = folder.join("line.safetensors");
/// trainer.save(&path)?;
///
/// // Elsewhere: only the network is needed.
/// let predictor = Predictor::load(&path, network())?;
/// assert_eq!(predictor.predict(&x, 16)?, trainer.predict(&x, 16)?);
/// # std::fs::remove_dir_all(&folder).expect("a folder");
/// # Ok::<(), bayesmesh::Error>(())
/// ```
pub struct Predictor<P> {
    pub(super) place: Place,
    pub(super) mesh: Mesh,
    pub(super) threads: usize,
    pub(super) members: Members<P>,
    pub(super) readout: Readout,
}

/// What the metadata of a checkpoint call the description of a posterior.
const POSTERIOR: &str = "bayesmesh.posterior";

/// What a checkpoint must say of a posterior for [`Predictor::load`].
pub(crate) fn describe<P: Posterior>(posterior: &P) -> (String, String) {
    let slots = posterior.parameters().slots().iter();
    let draw = posterior.adapt(Draw::for_prediction(0, 0));
    let mut text = json!({
        "families": slots.map(|slot| slot.family.id()).collect::<Vec<_>>(),
        "dropout": draw.drops_out(),
        "per_draw": posterior.ownership() == Ownership::PerDraw,
    });
    if draw.has_latent() {
        text["latent"] = true.into();
    }
    (POSTERIOR.to_owned(), text.to_string())
}

/// The posterior of a saved run, for predictions.
#[derive(Clone, Debug)]
pub struct Restored<N> {
    parameters: Parameters<N>,
    dropout: bool,
    latent: bool,
    ownership: Ownership,
}

impl<N: Network> Posterior for Restored<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.parameters
    }

    fn ownership(&self) -> Ownership {
        self.ownership
    }

    fn adapt(&self, draw: Draw) -> Draw {
        let draw = if self.dropout { draw } else { draw.without_dropout() };
        if self.latent { draw.with_latent() } else { draw }
    }

    /// Draws are made from the numbers alone.
    fn restore_state(&mut self, _state: Vec<NamedTensor>) -> Result<()> {
        Ok(())
    }
}

impl<N: Network> Predictor<Restored<N>> {
    /// Reads a saved run, whatever its posterior and loss were; `network` says what its tensors
    /// are, their values are replaced. Ranks are threads, one for each processor.
    ///
    /// Weights of a [`Family`] that is not the library's are refused:
    /// [`load_as`](Predictor::load_as) takes the posterior that has them.
    pub fn load(path: impl AsRef<Path>, network: N) -> Result<Self> {
        let path = path.as_ref();
        let checkpoint = Checkpoint::load(path)?;
        let text = checkpoint.metadata.get(POSTERIOR).ok_or_else(|| not_described(path))?;
        let described: Value = serde_json::from_str(text).map_err(|_| not_described(path))?;
        let ids: Vec<&str> = described["families"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let parameters = Parameters::new(network);
        if ids.len() != parameters.slots().len() {
            return Err(Error::Mismatch(format!(
                "{} has {} tensors of weights, the network {}; it belongs to another network",
                path.display(),
                ids.len(),
                parameters.slots().len()
            )));
        }
        let mut families: Vec<Arc<dyn Family>> = Vec::new();
        for id in ids {
            families.push(family::by_id(id).ok_or_else(|| {
                Error::Mismatch(format!(
                    "{} has weights of the family `{id}`, which is not the library's; use \
                     `Predictor::load_as` with the posterior that has it",
                    path.display()
                ))
            })?);
        }
        let names: Vec<String> = parameters.slots().iter().map(|slot| slot.name.clone()).collect();
        let parameters = parameters.with_families(|slot| {
            let index = names.iter().position(|name| *name == slot.name)?;
            let family = Arc::clone(&families[index]);
            let starts = vec![0.0; family.names().len() - 1];
            Some((family, starts))
        });
        let ownership = match described["per_draw"].as_bool() {
            Some(true) => Ownership::PerDraw,
            _ => Ownership::Shared,
        };
        let dropout = described["dropout"].as_bool().unwrap_or(true);
        let latent = described["latent"].as_bool().unwrap_or(false);
        Self::of(Restored { parameters, dropout, latent, ownership }, checkpoint, path)
    }
}

fn not_described(path: &Path) -> Error {
    Error::Mismatch(format!(
        "{} does not say what posterior it is of; use `Predictor::load_as` with that posterior, or \
         write it anew by `Trainer::save`",
        path.display()
    ))
}

impl<P: Posterior> Predictor<P> {
    /// Reads a saved run of a posterior like this one, whose numbers are replaced.
    pub fn load_as(path: impl AsRef<Path>, posterior: P) -> Result<Self> {
        let path = path.as_ref();
        Self::of(posterior, Checkpoint::load(path)?, path)
    }

    fn of(posterior: P, checkpoint: Checkpoint, path: &Path) -> Result<Self> {
        const CHUNK: usize = 256;
        let readout = Readout::read(&checkpoint.metadata, checkpoint.seed, CHUNK)?;
        let readout = readout.ok_or_else(|| not_described(path))?;
        let per_draw = posterior.ownership() == Ownership::PerDraw;
        let members = if per_draw { members_in(&checkpoint) } else { 1 };
        let mut state = State::new(Members::of(posterior, members), checkpoint.seed);
        state.restore(checkpoint, path, None)?;
        let draws = if per_draw { members } else { usize::MAX };
        let mesh = Place::Threads.default_mesh(draws, CHUNK)?;
        Ok(Self { place: Place::Threads, mesh, threads: 1, members: state.members, readout })
    }

    pub(crate) fn new(
        place: Place,
        mesh: Mesh,
        threads: usize,
        members: Members<P>,
        readout: Readout,
    ) -> Self {
        Self { place, mesh, threads, members, readout }
    }

    /// What makes predictions as they are before calibration.
    pub fn uncalibrated(&self) -> Self {
        let readout = Readout { calibration: None, ..self.readout.clone() };
        let (place, members) = (self.place.clone(), self.members.clone());
        Self { place, mesh: self.mesh, threads: self.threads, members, readout }
    }

    /// Makes products in this precision; by default in that of the training.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Self {
        self.readout.precision = precision;
        self
    }

    /// Scores predictions as fields: weighted, and each field in its units
    /// ([`Evaluation::fields`]).
    #[must_use]
    pub fn with_fields(mut self, layout: FieldLayout) -> Self {
        self.readout.fields = Some(layout);
        self
    }

    /// How predictions are calibrated, if they are.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.readout.calibration.as_ref()
    }

    /// Whether outputs are read as classes.
    pub(crate) fn reads_classes(&self) -> bool {
        self.readout.reading == Reading::Logits
    }

    /// How outputs are read.
    pub(crate) fn reading(&self) -> Reading {
        self.readout.reading
    }

    pub(crate) fn device(&self) -> Device {
        self.members.any().parameters().device().clone()
    }

    /// Predicts with `draws` draws, spread over the ranks. Collective in a job.
    pub fn predict(
        &self,
        input: &<P::Network as Network>::Input,
        draws: usize,
    ) -> Result<Predictive> {
        self.agree_on("inputs", || {
            let mut words = Vec::new();
            input.pack(&mut words);
            Checksum::default().floats(&words).text()
        })?;
        self.check()?;
        let mesh = self.mesh_of_draws(draws)?;
        let ranks = self.place.ranks(mesh).map(|rank| self.members.of_rank(mesh, rank));
        let mut ranks: Vec<_> = ranks.map(|members| (members, input.clone())).collect();
        let readout = &self.readout;
        self.place.run(mesh, self.threads, &mut ranks, |mesh, (members, input)| {
            readout.predict(&*mesh.samples, members, input, 0, draws)
        })
    }

    /// Scores predictions with `draws` draws on labelled data, each score with its standard errors.
    /// Collective in a job.
    pub fn evaluate<D>(&self, data: &D, draws: usize) -> Result<Evaluation>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        self.evaluate_as(data, &Scoring::new(draws))
    }

    /// [`evaluate`](Self::evaluate) with noise that is added, intervals of other levels, and so on.
    ///
    /// Where predictions are calibrated, the scores are those of the calibrated ones, and
    /// [`Evaluation::raw`] has the others. A calibration that follows series learns from each
    /// example when its values would have become known, for which the data are predicted twice.
    pub fn evaluate_as<D>(&self, data: &D, scoring: &Scoring) -> Result<Evaluation>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        Ok(self.evaluate_and_tabulate(data, scoring, 0, |_, _, _| Ok(Vec::new()))?.0)
    }

    /// [`evaluate_as`](Self::evaluate_as) and [`tabulate`](Self::tabulate) in one pass over the
    /// data; `row` gets the numbers of the examples and the truth too.
    pub fn evaluate_and_tabulate<D>(
        &self,
        data: &D,
        scoring: &Scoring,
        columns: usize,
        row: impl Fn(&[usize], &Predictive, &Truth) -> Result<Vec<f64>> + Sync,
    ) -> Result<(Evaluation, Vec<f64>)>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let (readout, calibration) = (&self.readout, self.calibration());
        let classes = self.reads_classes();
        self.on_mesh(data, |mesh, members| {
            let scorer = || {
                Scorer::new(scoring, classes)
                    .of_fields(readout.fields.as_ref())
                    .with_values_per_draw(readout.reading.values_per_draw())
            };
            let (mut raw, mut calibrated) = (
                scorer().with_spreads(calibration),
                calibration.map(|calibration| scorer().calibrated(calibration)),
            );
            let mut table = Table::new(data.len(), columns);
            readout.visit_both(
                mesh,
                members,
                data,
                scoring,
                |rows, prediction, before, truth| {
                    raw.add(rows, before, truth)?;
                    if let Some(calibrated) = &mut calibrated {
                        calibrated.add(rows, prediction, truth)?;
                    }
                    table.fill(rows, row(rows, prediction, truth)?)
                },
            )?;
            raw.merge_on(&*mesh.world)?;
            let evaluation = match calibrated {
                Some(mut calibrated) => {
                    calibrated.merge_on(&*mesh.world)?;
                    calibrated.evaluation()?.with_raw(raw.evaluation()?)
                }
                None => raw.evaluation()?,
            };
            Ok((evaluation, table.merged_on(mesh)?))
        })
    }

    /// Gathers `columns` numbers of each example, made from its prediction with `draws` draws, as
    /// `[examples, columns]` on all ranks. Collective in a job.
    ///
    /// `row` gets predictions of a few examples at a time and gives `[rows, columns]`, row-major;
    /// it runs on the rank that has them.
    pub fn tabulate<D>(
        &self,
        data: &D,
        draws: usize,
        columns: usize,
        row: impl Fn(&Predictive) -> Result<Vec<f64>> + Sync,
    ) -> Result<Vec<f64>>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        self.tabulate_with_truth(data, draws, columns, |_, prediction, _| row(prediction))
    }

    /// The same; `row` gets the numbers of the examples and the truth too.
    pub fn tabulate_with_truth<D>(
        &self,
        data: &D,
        draws: usize,
        columns: usize,
        row: impl Fn(&[usize], &Predictive, &Truth) -> Result<Vec<f64>> + Sync,
    ) -> Result<Vec<f64>>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let (readout, scoring) = (&self.readout, Scoring::new(draws));
        self.on_mesh(data, |mesh, members| {
            let mut table = Table::new(data.len(), columns);
            readout.visit_both(mesh, members, data, &scoring, |rows, prediction, _, truth| {
                table.fill(rows, row(rows, prediction, truth)?)
            })?;
            table.merged_on(mesh)
        })
    }

    /// Predicts a data set with `draws` draws and hands every prediction with its truth to `add`,
    /// which puts it into a set of your own metrics; the sets of all ranks are then merged.
    /// Collective in a job.
    ///
    /// Each example is added once, on one of the ranks, each of which begins with a copy of `set`.
    pub fn score_with<D, M>(
        &self,
        data: &D,
        draws: usize,
        set: M,
        add: impl Fn(&mut M, &Predictive, &Truth) -> Result<()> + Sync,
    ) -> Result<M>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
        M: MetricSet + Clone + Send + Sync,
    {
        let (readout, scoring) = (&self.readout, Scoring::new(draws));
        self.on_mesh(data, |mesh, members| {
            let mut own = set.clone();
            own.reset();
            readout.visit_both(mesh, members, data, &scoring, |_, prediction, _, truth| {
                add(&mut own, prediction, truth)
            })?;
            merge_set(&mut own, &*mesh.world)?;
            Ok(own)
        })
    }

    /// Runs `body` on all ranks of the mesh, each with the members that it has. The ranks of a job
    /// must be about to score the same. Collective in a job.
    pub(super) fn on_mesh<D: Dataset, T: Send>(
        &self,
        data: &D,
        body: impl Fn(&MeshComm, &Members<P>) -> Result<T> + Sync,
    ) -> Result<T> {
        self.agree_on("examples", || data.checksum().unwrap_or_default())?;
        self.check()?;
        let ranks = self.place.ranks(self.mesh);
        let mut ranks: Vec<_> = ranks.map(|rank| self.members.of_rank(self.mesh, rank)).collect();
        self.place.run(self.mesh, self.threads, &mut ranks, |mesh, members| body(mesh, members))
    }

    /// The ranks that make the draws of one prediction together. Members stay on their sample
    /// ranks; other draws can be made anywhere.
    pub(super) fn mesh_of_draws(&self, draws: usize) -> Result<Mesh> {
        Ok(match (self.members.are_per_draw(), &self.place) {
            (true, _) => self.mesh,
            (false, Place::Job(world)) => Mesh::samples(world.size())?,
            (false, Place::Threads) => Mesh::samples(self.mesh.size().min(draws).max(1))?,
        })
    }

    /// Refuses a mesh that has more sample ranks than there are members, or other ranks than a job.
    pub(super) fn check(&self) -> Result<()> {
        let draws = match self.members.are_per_draw() {
            true => self.members.total(),
            false => usize::MAX,
        };
        Ok(self.mesh.validate(self.place.size(self.mesh), draws, usize::MAX)?)
    }

    /// Refuses ranks of a job with other parameters or data. Collective.
    pub(super) fn agree_on(&self, what: &str, checksum: impl FnOnce() -> String) -> Result<()> {
        self.place.agree(|| {
            vec![
                ("digest of the parameters".to_owned(), self.members.common_digest()),
                (format!("checksum of the {what}"), checksum()),
            ]
        })
    }
}

/// How many members a checkpoint has.
fn members_in(checkpoint: &Checkpoint) -> usize {
    let index = |name: &str| name.strip_prefix("member.")?.split('.').next()?.parse().ok();
    let indices = checkpoint.parameters.iter().filter_map(|tensor| index(&tensor.name));
    indices.max().map_or(1, |last: usize| last + 1)
}
