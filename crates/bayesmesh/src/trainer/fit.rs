//! How a run begins: who the ranks are, and where each gets its batches from.

use std::sync::Arc;
use std::time::Duration;

use bayesmesh_comm::{Communicator, MeshComm, NodeShared, share};

use super::loader::{Load, Loader, Portion, QUICK, while_loading};
use super::node_feed::NodeFeed;
use super::world::{on_threads, with_threads};
use super::{Length, Trainer};
use crate::data::{Batches, Dataset};
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::Posterior;

/// Where a run goes.
pub(super) struct Course {
    /// Steps of the whole run.
    pub steps: usize,
    pub batches: Batches,
}

impl<P: Posterior, L: Loss> Trainer<P, L> {
    /// Trains on threads of this process, one for every rank of the mesh.
    pub(super) fn fit_on_threads<D>(
        &mut self,
        train: &D,
        valid: Option<&D>,
        length: Length,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let mesh = self.settings.mesh;
        self.check(mesh.size(), train.len())?;
        let course = self.course(train.len(), length)?;
        // Ranks that share a shard are neighbours.
        let (sharing, loaders) = match self.settings.share_loading {
            true => (mesh.samples_size(), mesh.data_size()),
            false => (1, mesh.size()),
        };
        let loader = |index| {
            let shard = mesh.coordinates(index * sharing).data;
            self.loader(train, &course, shard, Portion::All, sharing)
        };
        let loaders: Vec<_> = (0..loaders).map(loader).collect();
        let threads = self.settings.threads_per_rank();
        let mut forks: Vec<Self> = (1..mesh.size()).map(|_| self.fork()).collect();
        let ranks = std::iter::once(self).chain(&mut forks).collect();
        while_loading(&loaders, || {
            on_threads(threads, ranks, |world, rank: &mut Self| {
                let loader = &loaders[world.rank() / sharing];
                rank.run(&MeshComm::new(mesh, world)?, loader, train, valid, &course)
            })
        })
    }

    /// Trains as one rank of a job.
    pub(super) fn fit_in_job<D>(
        &mut self,
        world: Arc<dyn Communicator>,
        train: &D,
        valid: Option<&D>,
        length: Length,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        self.agree(&*world, train, valid, length)?;
        self.check(world.size(), train.len())?;
        let course = self.course(train.len(), length)?;
        let threads = self.settings.threads_per_rank();
        let mesh = MeshComm::new(self.settings.mesh, world)?;
        let feed = self.node_feed(&mesh, train, &course)?;
        while_loading(feed.loaders(), || {
            with_threads(threads, || self.run(&mesh, &feed, train, valid, &course))
        })
    }

    /// The length of a run in steps.
    fn course(&self, examples: usize, length: Length) -> Result<Course> {
        let batches = Batches::new(self.settings.seed, examples, self.settings.batch)?;
        let steps = match length {
            Length::Epochs(epochs) => epochs * batches.steps_per_epoch(),
            Length::Steps(steps) => steps,
        };
        if steps >= u32::MAX as usize {
            return Err(Error::Setting(format!(
                "{steps} steps are more than the {} that streams can address; train for fewer",
                u32::MAX - 1
            )));
        }
        Ok(Course { steps, batches })
    }

    /// Loads the rest of the run for `takers` ranks of a data shard, or a portion of it.
    fn loader<'a, D: Dataset>(
        &self,
        data: &'a D,
        course: &Course,
        shard: usize,
        portion: Portion,
        takers: usize,
    ) -> Loader<'a, D> {
        let (steps, part) = portion.of(self.step..course.steps);
        let load = Load {
            data,
            device: self.posterior.parameters().device().clone().autodiff(),
            steps,
            shard: (shard, self.settings.mesh.data_size()),
            part,
            takers,
            ahead: self.settings.prefetch,
            delay: self.settings.load_delay,
        };
        Loader::new(load, course.batches.clone())
    }

    /// Loads the rest of the run for a rank of a job. Collective.
    fn node_feed<'a, D: Dataset>(
        &self,
        mesh: &MeshComm,
        data: &'a D,
        course: &Course,
    ) -> Result<NodeFeed<'a, D>> {
        let shard = mesh.coordinates.data;
        let alone = self.loader(data, course, shard, Portion::All, 1);
        if !self.settings.share_loading || mesh.samples.size() == 1 {
            return Ok(NodeFeed::alone(alone));
        }
        let shared = NodeShared::new(&*mesh.samples)?;
        let node = shared.node();
        if node.size() == 1 {
            return Ok(NodeFeed::alone(alone));
        }
        let rows = share(self.settings.batch, self.settings.mesh.data_size(), shard).len();
        let portion = portion(alone.trial(node)?, rows, node.rank(), node.size());
        if portion == Portion::All {
            return Ok(NodeFeed::alone(alone));
        }
        Ok(NodeFeed::shared(self.loader(data, course, shard, portion, 1), portion, shared))
    }
}

/// How ranks of a node share batches of so many rows that take so long to load. Quick ones not at
/// all, which is quicker than sending them. Long ones in parts, so that all ranks have as much to do
/// in every step; but each part is handed over by a thread in the background, so that others, and
/// those of too few rows, are loaded in turns.
fn portion(trial: Duration, rows: usize, own: usize, all: usize) -> Portion {
    const LONG: Duration = Duration::from_millis(10);
    match trial {
        _ if trial < QUICK => Portion::All,
        _ if trial < LONG || rows < all => Portion::Turn { own, all },
        _ => Portion::Part { own, all },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_loading_is_divided_evenly() {
        let portion = |micros, rows| portion(Duration::from_micros(micros), rows, 1, 4);
        assert_eq!(portion(99, 64), Portion::All);
        assert_eq!(portion(100, 64), Portion::Turn { own: 1, all: 4 });
        assert_eq!(portion(10_000, 64), Portion::Part { own: 1, all: 4 });
        assert_eq!(portion(10_000, 3), Portion::Turn { own: 1, all: 4 });
    }
}
