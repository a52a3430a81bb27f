//! How the ranks of a run come together.

use std::any::type_name;
use std::sync::{Arc, Mutex};

use bayesmesh_comm::{Communicator, RunError, agree, gather_texts, threads};

use super::optimizer::OptimizerState;
use super::{Length, Trainer};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::posterior::Posterior;

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// An error on every rank, the same one, unless all are about to do the same run.
    pub(super) fn agree<D: Dataset>(
        &self,
        world: &dyn Communicator,
        train: &D,
        valid: Option<&D>,
        length: Length,
    ) -> Result<()> {
        if world.size() == 1 {
            return Ok(());
        }
        let checksum = |data: Option<&D>| data.and_then(D::checksum).unwrap_or_default();
        let mut values = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("kind of posterior and loss", type_name::<(P, L)>().to_owned()),
        ];
        values.extend(self.settings.agreed());
        values.extend([
            ("number of training examples", train.len().to_string()),
            ("checksum of the training examples", checksum(Some(train))),
            ("number of validation examples", valid.map_or(0, D::len).to_string()),
            ("checksum of the validation examples", checksum(valid)),
            ("length of the run", format!("{length:?}")),
            ("step to start from", self.step.to_string()),
            ("digest of the parameters", self.digest()),
            ("presence of the optimiser's state", self.optimizer.is_whole().to_string()),
        ]);
        Ok(agree(world, &values)?)
    }

    /// The same for what is predicted or scored by the posterior as it is.
    pub(super) fn agree_on(
        &self,
        world: &dyn Communicator,
        what: &str,
        checksum: String,
    ) -> Result<()> {
        let values = [
            ("digest of the parameters".to_owned(), self.digest()),
            (format!("checksum of the {what}"), checksum),
        ];
        Ok(agree(world, &values)?)
    }
}

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// Gives every rank of a job the state of the first: parameters, running statistics, optimiser
    /// and step. One process reads a checkpoint then, and not all of them. Collective.
    pub fn follow_first(&mut self) -> Result<()> {
        let Some(world) = self.world.clone() else { return Ok(()) };
        let leads = world.rank() == 0;
        let fresh = self.settings.optimizer.build();
        let mut state = match std::mem::replace(&mut self.optimizer, fresh) {
            own if leads => own.into_state(),
            _ => OptimizerState::default(),
        };
        if leads {
            state.counters.insert(STEP.to_owned(), self.step as u64);
        }
        // The names of vectors, then those of counters with their numbers.
        let tensors: Vec<String> = state.tensors.keys().cloned().collect();
        let counters = state.counters.iter().map(|(name, count)| format!("{count} {name}"));
        let tensors = gather_texts(&*world, &tensors)?.swap_remove(0);
        let counters = gather_texts(&*world, &counters.collect::<Vec<_>>())?.swap_remove(0);

        let length = self.posterior.parameters().values().len();
        for name in tensors {
            let values = state.tensors.entry(name).or_insert_with(|| vec![0.0; length]);
            broadcast(&*world, values)?;
        }
        state.counters = counters.iter().filter_map(|text| named_count(text)).collect();
        self.step = state.counters.remove(STEP).unwrap_or_default() as usize;
        let parameters = self.posterior.parameters_mut();
        broadcast(&*world, parameters.values_mut())?;
        broadcast(&*world, parameters.buffers_mut())?;
        let device = parameters.device().clone();
        self.optimizer.restore(state, length, &device)
    }
}

/// What the step is called among the optimiser's counters on its way to other ranks.
const STEP: &str = "step of the trainer";

/// A counter as [`Trainer::follow_first`] sends it.
fn named_count(text: &str) -> Option<(String, u64)> {
    let (count, name) = text.split_once(' ')?;
    Some((name.to_owned(), count.parse().ok()?))
}

/// Sends a long vector of the first rank to all, a piece at a time: MPI counts no further than
/// 2^31.
fn broadcast(world: &dyn Communicator, values: &mut [f32]) -> Result<()> {
    const PIECE: usize = 1 << 24;
    values.chunks_mut(PIECE).try_for_each(|piece| Ok(world.broadcast(piece, 0)?))
}

/// Runs `body` on a thread for every rank, with the communicator of the world and the rank's own
/// state; the result of rank 0. Each rank has a thread pool of its own: with a shared one, ranks
/// would wait for each other's work.
pub(super) fn on_threads<S: Send, T: Send>(
    threads: usize,
    ranks: Vec<&mut S>,
    body: impl Fn(Arc<dyn Communicator>, &mut S) -> Result<T> + Sync,
) -> Result<T> {
    let ranks: Vec<Mutex<&mut S>> = ranks.into_iter().map(Mutex::new).collect();
    let outcome = threads::run(ranks.len(), |world| {
        with_threads(threads, || {
            let mut rank = ranks[world.rank()].lock().expect("each rank locks its own once");
            body(Arc::new(world.clone()), &mut rank)
        })
    });
    match outcome {
        Ok(results) => Ok(results.into_iter().next().expect("at least one rank")),
        // The error of the rank that failed first.
        Err(RunError::Failed { error, .. }) => Err(error),
        Err(other) => Err(Error::Rank(other.to_string())),
    }
}

/// Runs `body` in a pool of so many threads.
pub(super) fn with_threads<T: Send>(
    threads: usize,
    body: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Rank(format!("could not start threads: {error}")))?;
    pool.install(body)
}
