//! Training on any mesh.
//!
//! Each rank evaluates its share of the draws on its shard of the batch and adds up
//! `[gradient | running statistics | loss]` over its draws; the sum over all ranks is the serial
//! gradient. The closed-form KL is added once after it, the norm clipped, and every rank takes the
//! same optimiser step, so that the parameters stay equal without being sent.

mod callback;
mod objective;
mod optimizer;
mod rank;
mod schedule;
mod settings;

pub use callback::{Callback, EpochReport, Flow, StepReport};
pub use objective::Memory;
pub use optimizer::{OptimizerConfig, OptimizerState};
pub use schedule::Schedule;
pub use settings::{Augment, Length, Settings};

use std::sync::{Arc, Mutex};

use bayesmesh_comm::{Communicator, MeshComm, RunError, threads};

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::metrics::Score;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{Predictive, evaluate_on, predict_on};
use optimizer::Optimizer;

/// Everything a run needs to go on as if it had never stopped, on any number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainState {
    /// Steps done.
    pub step: usize,
    /// The seed of all streams.
    pub seed: u64,
    /// The trainable numbers of the posterior.
    pub values: Vec<f32>,
    /// Running statistics of the network.
    pub buffers: Vec<f32>,
    /// The state of the optimiser.
    pub optimizer: OptimizerState,
}

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
    posterior: P,
    loss: L,
    settings: Settings,
    optimizer: Optimizer,
    step: usize,
    callbacks: Vec<Box<dyn Callback>>,
}

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// A trainer at step zero.
    pub fn new(posterior: P, loss: L, settings: Settings) -> Self {
        Self {
            posterior,
            loss,
            optimizer: settings.optimizer.build(),
            settings,
            step: 0,
            callbacks: Vec::new(),
        }
    }

    /// Adds something that follows the run.
    #[must_use]
    pub fn with_callback(mut self, callback: impl Callback + 'static) -> Self {
        self.callbacks.push(Box::new(callback));
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

    /// A copy of everything a resumed run needs.
    pub fn state(&self) -> TrainState {
        let parameters = self.posterior.parameters();
        TrainState {
            step: self.step,
            seed: self.settings.seed,
            values: parameters.values().to_vec(),
            buffers: parameters.buffers().to_vec(),
            optimizer: self.optimizer.state(),
        }
    }

    /// Continues from a saved state. Refuses one of another network, posterior, optimiser or seed,
    /// and is then unchanged.
    pub fn restore(&mut self, state: &TrainState) -> Result<()> {
        if state.seed != self.settings.seed {
            return Err(Error::Mismatch(format!(
                "the saved run has seed {}, this one {}; a run continues with its own seed",
                state.seed, self.settings.seed
            )));
        }
        let mut optimizer = self.settings.optimizer.build();
        let parameters = self.posterior.parameters_mut();
        let device = parameters.device().clone();
        optimizer.restore(&state.optimizer, parameters.values().len(), &device)?;
        parameters.restore(&state.values, &state.buffers)?;
        self.optimizer = optimizer;
        self.step = state.step;
        Ok(())
    }

    /// Trains on threads of this process, one for every rank of the mesh, until the run has had
    /// the given length; with scores on validation data, if there is any, after every epoch.
    ///
    /// On an error the trainer stands at the last complete step.
    pub fn fit<D>(&mut self, train: &D, valid: Option<&D>, length: Length) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let mesh = self.settings.mesh;
        self.check(mesh.size(), train.len())?;
        let mut forks: Vec<Self> = (1..mesh.size()).map(|_| self.fork()).collect();
        let ranks: Vec<Mutex<&mut Self>> =
            std::iter::once(self).chain(&mut forks).map(Mutex::new).collect();
        let outcome = threads::run(mesh.size(), |world| {
            let mut rank = ranks[world.rank()].lock().expect("each rank locks its own once");
            rank.fit_on(Arc::new(world.clone()), train, valid, length)
        });
        outcome.map(|_| ()).map_err(root_cause)
    }

    /// Trains as one rank of a job that `world` connects; every rank calls it with equal settings,
    /// state and data.
    pub fn fit_on<D>(
        &mut self,
        world: Arc<dyn Communicator>,
        train: &D,
        valid: Option<&D>,
        length: Length,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.check(world.size(), train.len())?;
        let mesh = MeshComm::new(self.settings.mesh, world)?;
        self.run(&mesh, train, valid, length)
    }

    /// Predicts with `draws` draws, spread over threads, one for every rank of the mesh.
    pub fn predict(
        &self,
        input: &<P::Network as Network>::Input,
        draws: usize,
    ) -> Result<Predictive> {
        let size = self.settings.mesh.size().min(draws).max(1);
        let ranks: Vec<Mutex<_>> =
            (0..size).map(|_| Mutex::new((self.posterior.clone(), input.clone()))).collect();
        let (reading, seed) = (self.loss.reading(), self.settings.seed);
        let outcome = threads::run(size, |world| {
            let rank = ranks[world.rank()].lock().expect("each rank locks its own once");
            let (posterior, input) = &*rank;
            predict_on(world, posterior, reading, input, draws, seed)
        });
        let predictions = outcome.map_err(root_cause)?;
        Ok(predictions.into_iter().next().expect("at least one rank"))
    }

    /// Scores predictions with `draws` draws on labelled data, on threads as [`fit`](Self::fit).
    pub fn evaluate<D>(&self, data: &D, draws: usize) -> Result<Vec<Score>>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let mesh = self.settings.mesh;
        let ranks: Vec<Mutex<Self>> = (0..mesh.size()).map(|_| Mutex::new(self.fork())).collect();
        let outcome = threads::run(mesh.size(), |world| {
            let rank = ranks[world.rank()].lock().expect("each rank locks its own once");
            let mesh = MeshComm::new(mesh, Arc::new(world.clone()))?;
            rank.evaluate_on(&mesh, data, draws)
        });
        let scores = outcome.map_err(root_cause)?;
        Ok(scores.into_iter().next().expect("at least one rank"))
    }

    /// [`evaluate`](Self::evaluate) as one rank of a job.
    pub fn evaluate_on<D>(&self, mesh: &MeshComm, data: &D, draws: usize) -> Result<Vec<Score>>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let chunk = self.settings.batch;
        let reading = self.loss.reading();
        evaluate_on(mesh, &self.posterior, reading, data, draws, self.settings.seed, chunk)
    }

    fn check(&self, world: usize, examples: usize) -> Result<()> {
        self.settings.check(world, examples, self.loss.least_draws(), self.loss.combine())
    }

    /// The same trainer for another rank; only rank 0 has callbacks.
    fn fork(&self) -> Self {
        Self {
            posterior: self.posterior.clone(),
            loss: self.loss.clone(),
            settings: self.settings.clone(),
            optimizer: self.optimizer.clone(),
            step: self.step,
            callbacks: Vec::new(),
        }
    }
}

/// The error of the rank that failed first.
fn root_cause(error: RunError<Error>) -> Error {
    match error {
        RunError::Failed { error, .. } => error,
        other => Error::Rank(other.to_string()),
    }
}
