//! Training on any mesh.
//!
//! A [`Trainer`] is what you hold. When it trains, a worker on every rank of the mesh (`rank`)
//! evaluates its share of the draws on its shard of the batch and adds up
//! `[gradient | running statistics | loss]` over its draws; the sum over ranks is the serial
//! gradient. The penalty is added once after it, the norm clipped, and ranks that have the same
//! numbers take the same step, so that these stay equal without being sent.

mod callbacks;
mod course;
mod footprint;
mod loading;
pub(crate) mod members;
mod optimizer;
mod place;
mod plan;
mod probe;
mod rank;
mod schedule;
mod scoring;
mod settings;
mod state;

pub use callbacks::{
    Best, BestCheckpoint, Callback, EarlyStopping, EpochReport, Flow, Kept, Progress, StepReport,
    Time,
};
pub use course::{Course, Length};
pub use footprint::{Footprint, Sizes};
pub(crate) use optimizer::Optimizer;
pub use optimizer::OptimizerConfig;
pub use place::Place;
pub use plan::Plan;
pub use schedule::Schedule;
pub use settings::{Augment, Memory, Settings};
pub(crate) use state::State;

use std::any::type_name;
use std::path::Path;
use std::sync::Arc;

use bayesmesh_comm::{MeshComm, node_processors};
use bayesmesh_kernels::process_memory;

use crate::checkpoint::{Checkpoint, broadcast};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{Readout, describe};
use callbacks::Answers;
use loading::Feeds;
use members::Members;
use rank::Rank;

/// Trains a posterior.
///
/// ```
/// # use bayesmesh::{Draw, MeanField, Mesh, Network, Posterior, Prior, TensorDataset};
/// # use bayesmesh::loss::ExpectedSquaredError;
/// # use bayesmesh::trainer::{Length, OptimizerConfig, Schedule, Settings, Trainer};
/// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
/// # #[derive(Module, Debug)]
/// # struct Line { linear: Linear }
/// # impl Network for Line {
/// #     type Input = Tensor<2>;
/// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
/// # }
/// let device = Device::default();
/// let x = Tensor::<1>::from_floats([0.0, 1.0, 2.0, 3.0], &device).unsqueeze_dim::<2>(1);
/// let data = TensorDataset::new(x.clone(), x * 2.0 + 1.0)?;
/// let network = Line { linear: LinearConfig::new(1, 1).init(&device) };
/// let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?;
///
/// let settings = Settings {
///     samples: 4,
///     batch: 4,
///     mesh: Mesh::samples(2)?, // two draws on each of two threads
///     schedule: Schedule::Constant { rate: 0.05 },
///     ..Settings::default()
/// };
/// let mut trainer = Trainer::new(posterior, ExpectedSquaredError, settings);
/// trainer.fit(&data, None, Length::Steps(200))?;
/// let slope = trainer.posterior().parameters().values()[0];
/// assert!((slope - 2.0).abs() < 0.3, "{slope}");
/// # Ok::<(), bayesmesh::Error>(())
/// ```
pub struct Trainer<P, L> {
    place: Place,
    state: State<P>,
    loss: Arc<L>,
    settings: Settings,
    readout: Readout,
    time: Time,
    callbacks: Vec<Box<dyn Callback>>,
}

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// A trainer at step zero, whose ranks are threads of this process.
    pub fn new(posterior: P, loss: L, settings: Settings) -> Self {
        Self::build(Place::Threads, posterior, loss, settings)
    }

    /// A trainer at step zero whose ranks are at some [`Place`]. Collective in a job.
    ///
    /// In a job the trainer is one rank, and [`fit`](Self::fit), [`predict`](Self::predict) and
    /// [`evaluate`](Self::evaluate) are collective: every rank calls them with equal settings,
    /// state and data, and does its part of the work. An error of one rank must end the job, as it
    /// does where the rank returns it from the body of `threads::run` or `mpi::run`. The rank works
    /// on as many threads as the settings say, by default on its part of the processors of its
    /// node.
    pub fn at(place: Place, posterior: P, loss: L, mut settings: Settings) -> Result<Self> {
        if let Place::Job(world) = &place {
            let processors = node_processors(&**world)?;
            settings.threads.get_or_insert(processors.each());
            settings.mesh.validate(world.size(), settings.samples, settings.batch)?;
        }
        Ok(Self::build(place, posterior, loss, settings))
    }

    fn build(place: Place, posterior: P, loss: L, settings: Settings) -> Self {
        let Settings { samples, seed, optimizer, mesh, precision, .. } = settings;
        let rank = match &place {
            Place::Threads => None,
            Place::Job(world) => Some((mesh, world.rank())),
        };
        let readout = Readout { precision, ..Readout::new(loss.reading(), seed, settings.batch) };
        let description = describe(&posterior);
        let mut state = State::new(Members::new(posterior, samples, seed, optimizer, rank), seed);
        readout.write(&mut state.notes);
        let optimizer = (state::OPTIMIZER.to_owned(), optimizer.name().to_owned());
        state.notes.extend([description, optimizer]);
        let (time, callbacks) = (Time::default(), Vec::new());
        Self { place, state, loss: Arc::new(loss), settings, readout, time, callbacks }
    }

    /// Adds something that [`metadata`](Checkpoint::metadata) of every checkpoint will say, e.g.
    /// what the run is trained on.
    #[must_use]
    pub fn with_note(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.state.notes.insert(key.into(), value.into());
        self
    }

    /// Adds something that follows the run; in a job, on the rank that adds it.
    #[must_use]
    pub fn with_callback(mut self, callback: impl Callback + 'static) -> Self {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// Ends what follows the run, e.g. a progress bar.
    #[must_use]
    pub fn without_callbacks(mut self) -> Self {
        self.callbacks.clear();
        self
    }

    /// The posterior as trained so far. Of one whose draws have numbers of their own, the first
    /// member here; [`members`](Self::members) has all.
    pub fn posterior(&self) -> &P {
        self.state.members.any()
    }

    /// The members that are here: one for all draws, or one for each draw of the ranks in this
    /// process ([`Ownership`](crate::posterior::Ownership)).
    pub fn members(&self) -> impl Iterator<Item = &P> {
        self.state.members.iter().map(|member| &member.posterior)
    }

    /// The posterior, when training is over; of one whose draws have numbers of their own, the
    /// first member here.
    pub fn into_posterior(self) -> P {
        dyn_clone::clone(self.state.members.any())
    }

    /// The loss.
    pub fn loss(&self) -> &L {
        &self.loss
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Steps done so far.
    pub fn step(&self) -> usize {
        self.state.step
    }

    /// How long the steps took that this trainer has done, and of that waiting and communicating on
    /// the ranks that did most of each.
    pub fn time(&self) -> Time {
        self.time
    }

    /// A copy of everything the run needs to go on as if it had never stopped, on any number of
    /// ranks: of all members that are here, which in a job may be a part
    /// ([`checkpoint_on`](Self::checkpoint_on) has all).
    pub fn checkpoint(&self) -> Checkpoint {
        self.state.checkpoint()
    }

    /// The [`checkpoint`](Self::checkpoint) of all members, on the ranks that `keep` it. Refuses a
    /// state that a failed run has left in pieces. Collective in a job.
    pub fn checkpoint_on(&self, keep: bool) -> Result<Option<Checkpoint>> {
        self.check_whole()?;
        match &self.place {
            Place::Job(world) if !self.state.members.are_all_here() => {
                let mesh = MeshComm::new(self.settings.mesh, world.clone())?;
                self.state.gathered(&*mesh.samples, keep)
            }
            _ => Ok(keep.then(|| self.checkpoint())),
        }
    }

    /// The [digest](Checkpoint::digest) of a [`checkpoint`](Self::checkpoint), without making the
    /// rest of it.
    pub fn digest(&self) -> String {
        self.state.digest()
    }

    /// Continues from a checkpoint, read from `path` as messages say. Refuses one of another
    /// network, posterior, optimiser or seed, and is then unchanged.
    pub fn restore(&mut self, checkpoint: &Checkpoint, path: impl AsRef<Path>) -> Result<()> {
        self.restore_owned(checkpoint.clone(), path.as_ref())
    }

    /// Continues on every rank of a job from the checkpoint that the first one brings; so one
    /// process reads it, and not all of them. Collective.
    pub fn restore_from_first(
        &mut self,
        checkpoint: Option<Checkpoint>,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        let checkpoint = match &self.place {
            Place::Job(world) => broadcast(&**world, checkpoint, 0)?,
            Place::Threads => checkpoint,
        };
        let nothing =
            || Error::Setting("the first rank brings no checkpoint to restore".to_owned());
        self.restore_owned(checkpoint.ok_or_else(nothing)?, path.as_ref())
    }

    fn restore_owned(&mut self, checkpoint: Checkpoint, path: &Path) -> Result<()> {
        // The units are those of the checkpoint; a scale that was given by hand stays if it has
        // none.
        let mut readout = Readout { noise: Vec::new(), calibration: None, ..self.readout.clone() };
        readout.read_units(&checkpoint.metadata)?;
        self.state.restore(checkpoint, path, Some(self.settings.optimizer))?;
        self.readout = readout;
        self.readout.write(&mut self.state.notes);
        Ok(())
    }

    /// Refuses a state that a failed run has left in pieces.
    fn check_whole(&self) -> Result<()> {
        let divided = self.state.members.iter().any(|member| !member.optimizer.is_whole());
        match self.state.torn || divided {
            false => Ok(()),
            true => Err(Error::Setting(
                "a run failed and a part of its state with it; restore a checkpoint before \
                 training goes on"
                    .to_owned(),
            )),
        }
    }

    /// The run of this length on these data, with everything checked that can be before it begins:
    /// settings against each other, the ranks, the loss and the data; one example against the
    /// network; and in a job that all ranks are about to do the same run. Collective in a job.
    pub fn plan<D>(&self, train: &D, valid: Option<&D>, length: Length) -> Result<Plan>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.place.agree(|| self.identity(train, valid, length))?;
        self.check_whole()?;
        if let Some(draws) = self.settings.validation_draws
            && self.state.members.are_per_draw()
            && draws > self.state.members.total()
        {
            return Err(Error::Setting(format!(
                "{draws} validation draws of a posterior that has {}, one for each of its members; \
                 use at most as many",
                self.state.members.total()
            )));
        }
        let ranks = self.place.size(self.settings.mesh);
        self.settings.check(ranks, self.loss.least_draws(), self.loss.combine())?;
        let course = Course::new(length, train.len(), self.settings.batch)?;
        Ok(Plan::new(self.settings.clone(), course, self.probe(train)?))
    }

    /// Trains until the run has had the given length, with scores on validation data, if there is
    /// any, after every epoch. Refuses a length that the run has already had.
    ///
    /// First the first example goes through the network, so that data that do not fit it are
    /// refused in words. (A panic of the network is caught and not printed then, for which a panic
    /// hook is set.) Ranks of a job that differ in settings, state or data are refused, on all
    /// ranks and by the first difference. On an error the trainer stands at the last complete step.
    /// If a rank failed while the state was divided among ranks ([`Settings::shard_optimizer`], or
    /// [members](crate::posterior::Ownership) of their own), its part is lost, and a checkpoint has
    /// to be restored before training goes on.
    pub fn fit<D>(&mut self, train: &D, valid: Option<&D>, length: Length) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let plan = self.plan(train, valid, length)?;
        let (step, steps) = (self.state.step, plan.course().steps());
        if step >= steps {
            return Err(Error::Setting(format!(
                "the run has had {step} steps, and {length:?} ends after {steps}: a length counts \
                 from the beginning of the run; to go on, ask for more"
            )));
        }
        // What was learned of other weights.
        self.readout.calibration = None;
        if self.loss.leaves_noise_open() {
            self.readout.noise.clear();
        }
        self.readout.write(&mut self.state.notes);
        let device = self.posterior().parameters().device().clone();
        let feeds = Feeds::new(&self.place, &plan, train, &device, step)?;
        let (mesh, threads) = (self.settings.mesh, self.settings.threads_per_rank());
        let mut ranks = self.ranks(&plan);
        process_memory::give_back_freed();
        let mut outcome = feeds.while_loading(|| {
            self.place.run(mesh, threads, &mut ranks, |mesh, rank| {
                rank.run(mesh, feeds.of(mesh.world.rank()), train, valid)
            })
        });
        // A callback that failed has stopped the run in good order, on all ranks.
        if outcome.is_ok() {
            let failures = ranks.iter_mut().filter_map(|rank| rank.answers.failure.take());
            outcome = failures.reduce(|first, _| first).map_or(Ok(()), Err);
        }
        self.take_back(ranks);
        process_memory::give_back_freed();
        outcome
    }

    /// What must be the same on all ranks of a job: it is the same run.
    fn identity<D: Dataset>(
        &self,
        train: &D,
        valid: Option<&D>,
        length: Length,
    ) -> Vec<(&'static str, String)> {
        let checksum = |data: Option<&D>| data.and_then(D::checksum).unwrap_or_default();
        let mut values = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("kind of posterior and loss", type_name::<(P, L)>().to_owned()),
        ];
        values.extend(self.settings.agreed());
        let whole = self.state.members.iter().all(|member| member.optimizer.is_whole());
        values.extend([
            ("number of training examples", train.len().to_string()),
            ("checksum of the training examples", checksum(Some(train))),
            ("number of validation examples", valid.map_or(0, D::len).to_string()),
            ("checksum of the validation examples", checksum(valid)),
            ("length of the run", format!("{length:?}")),
            ("step to start from", self.state.step.to_string()),
            ("digest of the parameters", self.state.members.common_digest()),
            ("presence of the optimiser's state", whole.to_string()),
        ]);
        values
    }

    /// The ranks of this process, each with what it has of the state. The first one follows the run
    /// for the callbacks.
    fn ranks(&mut self, plan: &Plan) -> Vec<Rank<P, L>> {
        let mesh = self.settings.mesh;
        let members = std::mem::take(&mut self.state.members);
        let holders = self.holders(members.are_per_draw());
        let mut members = members.divide(mesh, self.place.ranks(mesh));
        // Here, one after another: ranks that did so at once would all make a copy.
        let divided = self.settings.shard_optimizer;
        members.iter_mut().for_each(|members| members.unshare(divided));
        let mut ranks: Vec<Rank<P, L>> = members
            .into_iter()
            .enumerate()
            .map(|(rank, members)| Rank {
                state: State { members, ..self.state.clone() },
                is_kept: rank < holders,
                loss: Arc::clone(&self.loss),
                plan: plan.clone(),
                readout: self.readout.clone(),
                time: self.time,
                callbacks: Vec::new(),
                answers: Answers::default(),
            })
            .collect();
        ranks[0].callbacks = std::mem::take(&mut self.callbacks);
        ranks
    }

    /// How many ranks of this process have all members, each once: those of one data shard.
    fn holders(&self, per_draw: bool) -> usize {
        if per_draw { self.settings.mesh.samples_size() } else { 1 }
    }

    /// Takes the state back from the ranks of this process.
    fn take_back(&mut self, ranks: Vec<Rank<P, L>>) {
        let first = &ranks[0].state;
        let per_draw = first.members.are_per_draw();
        let apart = per_draw && ranks.iter().any(|rank| rank.state.step != first.step);
        self.state.torn =
            apart || ranks.iter().any(|rank| per_draw && rank.state.torn) || first.torn;
        self.state.step = first.step;
        self.time = ranks[0].time;
        let holders = self.holders(per_draw);
        let mut members = Vec::new();
        for rank in ranks {
            self.callbacks.extend(rank.callbacks);
            members.push(rank.state.members);
        }
        self.state.members = Members::collect(members.into_iter().take(holders));
    }
}
