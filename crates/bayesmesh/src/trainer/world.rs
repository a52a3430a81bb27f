//! How the ranks of a run come together.

use std::any::type_name;
use std::sync::{Arc, Mutex};

use bayesmesh_comm::{Communicator, RunError, agree, threads};

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
