//! Training on any mesh.
//!
//! Each rank evaluates its share of the draws on its shard of the batch and adds up
//! `[gradient | running statistics | loss]` over its draws; the sum over all ranks is the serial
//! gradient. The closed-form KL is added once after it, the norm clipped, and every rank takes the
//! same optimiser step, so that the parameters stay equal without being sent.

mod callback;
mod draw_sum;
mod fit;
mod loader;
mod node_feed;
mod objective;
mod optimizer;
mod overlap;
mod part;
mod rank;
mod schedule;
mod scoring;
mod settings;
mod world;

pub use callback::{Callback, EpochReport, Flow, StepReport, Time};
pub use objective::Memory;
pub use optimizer::OptimizerConfig;
pub use schedule::Schedule;
pub use settings::{Augment, Length, Settings};

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bayesmesh_comm::{Communicator, MeshComm, node_processors};

use crate::checkpoint::{Checkpoint, Group, NamedTensor};
use crate::data::{Checksum, Dataset, Rows as _};
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{Predictive, predict_on};

use optimizer::{Optimizer, OptimizerState};
use world::{on_threads, with_threads};

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
    /// The job this trainer is one rank of; otherwise ranks are threads.
    world: Option<Arc<dyn Communicator>>,
    posterior: P,
    loss: L,
    settings: Settings,
    optimizer: Optimizer,
    step: usize,
    time: Time,
    /// What checkpoints say beside the state.
    notes: BTreeMap<String, String>,
    callbacks: Vec<Box<dyn Callback>>,
}

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// A trainer at step zero.
    pub fn new(posterior: P, loss: L, settings: Settings) -> Self {
        Self {
            world: None,
            posterior,
            loss,
            optimizer: settings.optimizer.build(),
            settings,
            step: 0,
            time: Time::default(),
            notes: BTreeMap::new(),
            callbacks: Vec::new(),
        }
    }

    /// Makes the trainer one rank of the job that `world` connects. Collective, as from then on are
    /// [`fit`](Self::fit), [`predict`](Self::predict), [`evaluate`](Self::evaluate) and
    /// [`on_mesh`](Self::on_mesh): every rank calls them with equal settings, state and data, and
    /// does its part of the work. An error of one rank must end the job, as it does where the rank
    /// returns it from the body of `threads::run` or `mpi::run`.
    ///
    /// The rank works on as many threads as the settings say, by default on its part of the
    /// processors of its node.
    pub fn with_world(mut self, world: Arc<dyn Communicator>) -> Result<Self> {
        let processors = node_processors(&*world)?;
        self.settings.threads.get_or_insert(processors.each());
        self.world = Some(world);
        Ok(self)
    }

    /// Adds something that [`metadata`](Checkpoint::metadata) of every checkpoint will say, e.g.
    /// what the run is trained on.
    #[must_use]
    pub fn with_note(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.notes.insert(key.into(), value.into());
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

    /// The posterior as trained so far.
    pub fn posterior(&self) -> &P {
        &self.posterior
    }

    /// The posterior, when training is over.
    pub fn into_posterior(self) -> P {
        self.posterior
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
        self.step
    }

    /// How long the steps took that this trainer has done, and of that waiting and communicating on
    /// the ranks that did most of each.
    pub fn time(&self) -> Time {
        self.time
    }

    /// A copy of everything the run needs to go on as if it had never stopped, on any number of
    /// ranks.
    pub fn checkpoint(&self) -> Checkpoint {
        let parameters = self.posterior.parameters();
        let OptimizerState { tensors, counters } = self.optimizer.state();
        let flat = |(name, values): (String, Vec<f32>)| NamedTensor {
            name,
            shape: vec![values.len()],
            values,
        };
        Checkpoint {
            step: self.step as u64,
            seed: self.settings.seed,
            parameters: parameters.named_values(),
            buffers: parameters.named_buffers(),
            optimizer: tensors.into_iter().map(flat).collect(),
            counters,
            metadata: self.notes.clone(),
        }
    }

    /// The [digest](Checkpoint::digest) of a checkpoint, without making the rest of it.
    pub fn digest(&self) -> String {
        let parameters = self.posterior.parameters().named_values();
        Checkpoint { parameters, ..Checkpoint::default() }.digest()
    }

    /// Continues from a checkpoint, read from `path` as messages say. Refuses one of another
    /// network, posterior, optimiser or seed, and is then unchanged.
    pub fn restore(&mut self, checkpoint: &Checkpoint, path: impl AsRef<Path>) -> Result<()> {
        if checkpoint.seed != self.settings.seed {
            return Err(Error::Setting(format!(
                "{} is of a run with seed {}, this one has {}; a run continues with its own seed",
                path.as_ref().display(),
                checkpoint.seed,
                self.settings.seed
            )));
        }
        let parameters = self.posterior.parameters_mut();
        let groups = [
            (Group::Parameters, parameters.named_values()),
            (Group::Buffers, parameters.named_buffers()),
        ];
        for (group, tensors) in groups {
            let expected: Vec<_> = tensors.iter().map(|t| (&t.name, &t.shape)).collect();
            checkpoint.expect(&path, group, &expected)?;
        }
        let state = OptimizerState {
            tensors: checkpoint
                .optimizer
                .iter()
                .map(|t| (t.name.clone(), t.values.clone()))
                .collect(),
            counters: checkpoint.counters.clone(),
        };
        let mut optimizer = self.settings.optimizer.build();
        let device = parameters.device().clone();
        optimizer.restore(state, parameters.values().len(), &device)?;
        let flat = |tensors: &[NamedTensor]| -> Vec<f32> {
            tensors.iter().flat_map(|tensor| &tensor.values).copied().collect()
        };
        parameters.restore(&flat(&checkpoint.parameters), &flat(&checkpoint.buffers))?;
        self.optimizer = optimizer;
        self.step = checkpoint.step as usize;
        Ok(())
    }

    /// Trains until the run has had the given length, with scores on validation data, if there is
    /// any, after every epoch: on threads of this process, one for every rank of the mesh, or as
    /// one rank of a [job](Self::with_world).
    ///
    /// Ranks of a job that differ in settings, state or data are refused, on all ranks and by the
    /// first difference. On an error the trainer stands at the last complete step. If a rank failed
    /// while the optimiser was divided ([`Settings::shard_optimizer`]), its state is lost, and a
    /// checkpoint has to be restored before training goes on.
    pub fn fit<D>(&mut self, train: &D, valid: Option<&D>, length: Length) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        match self.world.clone() {
            Some(world) => self.fit_in_job(world, train, valid, length),
            None => self.fit_on_threads(train, valid, length),
        }
    }

    /// Predicts with `draws` draws, spread over the ranks.
    pub fn predict(
        &self,
        input: &<P::Network as Network>::Input,
        draws: usize,
    ) -> Result<Predictive> {
        let (reading, seed) = (self.loss.reading(), self.settings.seed);
        let threads = self.settings.threads_per_rank();
        if let Some(world) = &self.world {
            let mut words = Vec::new();
            input.pack(&mut words);
            self.agree_on(&**world, "inputs", Checksum::default().floats(&words).text())?;
            let (posterior, input) = (self.posterior.clone(), input.clone());
            return with_threads(threads, move || {
                predict_on(&**world, &posterior, reading, &input, draws, seed)
            });
        }
        let size = self.settings.mesh.size().min(draws).max(1);
        let mut ranks = vec![(self.posterior.clone(), input.clone()); size];
        on_threads(threads, ranks.iter_mut().collect(), |world, (posterior, input)| {
            predict_on(&*world, posterior, reading, input, draws, seed)
        })
    }

    /// Runs `body` on every rank of the mesh, each with a copy of this trainer. On threads the
    /// result is that of rank 0; each rank of a job gets its own.
    pub fn on_mesh<T: Send>(
        &self,
        body: impl Fn(&MeshComm, &Self) -> Result<T> + Sync,
    ) -> Result<T> {
        let mesh = self.settings.mesh;
        let threads = self.settings.threads_per_rank();
        if let Some(world) = &self.world {
            let (mesh, rank) = (MeshComm::new(mesh, world.clone())?, self.reader());
            let body = &body;
            return with_threads(threads, move || body(&mesh, &rank));
        }
        let mut ranks: Vec<Self> = (0..mesh.size()).map(|_| self.reader()).collect();
        on_threads(threads, ranks.iter_mut().collect(), |world, rank: &mut Self| {
            body(&MeshComm::new(mesh, world)?, rank)
        })
    }

    fn check(&self, world: usize, examples: usize) -> Result<()> {
        if !self.optimizer.is_whole() {
            return Err(Error::Setting(
                "a run with `shard_optimizer` failed and the optimiser's state with it; restore a \
                 checkpoint before training goes on"
                    .to_owned(),
            ));
        }
        self.settings.check(world, examples, self.loss.least_draws(), self.loss.combine())
    }

    /// The same trainer for another rank on threads, of which only rank 0 has callbacks.
    fn fork(&self) -> Self {
        Self { optimizer: self.optimizer.clone(), ..self.reader() }
    }

    /// The same trainer for a rank that does not train.
    fn reader(&self) -> Self {
        Self {
            world: None,
            posterior: self.posterior.clone(),
            loss: self.loss.clone(),
            settings: self.settings.clone(),
            optimizer: self.settings.optimizer.build(),
            step: self.step,
            time: self.time,
            notes: self.notes.clone(),
            callbacks: Vec::new(),
        }
    }
}
