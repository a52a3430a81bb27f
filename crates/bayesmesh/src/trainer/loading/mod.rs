//! Where the ranks get their batches from.
//!
//! A batch is loaded once for all ranks of a process that train on the same rows ([`Loader`]);
//! processes of a node share the work ([`NodeFeed`]).

mod loader;
mod node_feed;

pub(super) use loader::{Feed, Loaded};

use std::time::Duration;

use bayesmesh_comm::{MeshComm, NodeShared, share};
use burn::tensor::Device;

use super::place::Place;
use super::plan::Plan;
use crate::data::Dataset;
use crate::error::Result;
use loader::{Division, Load, Loader, QUICK, while_loading};
use node_feed::NodeFeed;

/// Where the ranks of this process get their batches from.
pub(super) enum Feeds<'a, D: Dataset> {
    /// A loader for so many neighbours each.
    Threads(Vec<Loader<'a, D>>, usize),
    /// That of the one rank here.
    Job(Box<NodeFeed<'a, D>>),
}

impl<'a, D: Dataset> Feeds<'a, D> {
    /// Loads the rest of a run from step `first` on. Collective in a job.
    pub fn new(
        place: &Place,
        plan: &Plan,
        data: &'a D,
        device: &Device,
        first: usize,
    ) -> Result<Self> {
        let source = Source { plan, data, device, first };
        match place {
            Place::Threads => Ok(source.for_threads()),
            Place::Job(world) => {
                let mesh = MeshComm::new(plan.settings().mesh, world.clone())?;
                Ok(Self::Job(Box::new(source.for_process(&mesh)?)))
            }
        }
    }

    /// That of a rank of the mesh that is in this process.
    pub fn of(&self, rank: usize) -> &dyn Feed<D> {
        match self {
            Self::Threads(loaders, sharing) => &loaders[rank / sharing],
            Self::Job(feed) => &**feed,
        }
    }

    /// Runs `body` while batches are loaded in the background.
    pub fn while_loading<T>(&self, body: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Self::Threads(loaders, _) => while_loading(loaders, body),
            Self::Job(feed) => while_loading(feed.loaders(), body),
        }
    }
}

/// What is to be loaded.
struct Source<'p, 'a, D> {
    plan: &'p Plan,
    data: &'a D,
    device: &'p Device,
    /// The first step.
    first: usize,
}

impl<'a, D: Dataset> Source<'_, 'a, D> {
    /// A loader for the ranks of each data shard, or for every rank.
    fn for_threads(&self) -> Feeds<'a, D> {
        let settings = self.plan.settings();
        let mesh = settings.mesh;
        // Ranks that share a shard are neighbours.
        let (sharing, loaders) = match settings.share_loading {
            true => (mesh.samples_size(), mesh.data_size()),
            false => (1, mesh.size()),
        };
        let loader = |index| {
            let shard = mesh.coordinates(index * sharing).data;
            self.loader(shard, Division::None, sharing)
        };
        Feeds::Threads((0..loaders).map(loader).collect(), sharing)
    }

    /// For one process of a job. Collective.
    fn for_process(&self, mesh: &MeshComm) -> Result<NodeFeed<'a, D>> {
        let settings = self.plan.settings();
        let shard = mesh.coordinates.data;
        let alone = self.loader(shard, Division::None, 1);
        if !settings.share_loading || mesh.samples.size() == 1 {
            return Ok(NodeFeed::alone(alone));
        }
        let shared = NodeShared::new(&*mesh.samples)?;
        let node = shared.node();
        if node.size() == 1 {
            return Ok(NodeFeed::alone(alone));
        }
        let rows = share(settings.batch, settings.mesh.data_size(), shard).len();
        let division = division(alone.trial(node)?, rows, node.rank(), node.size());
        if division == Division::None {
            return Ok(NodeFeed::alone(alone));
        }
        Ok(NodeFeed::shared(self.loader(shard, division, 1), division, shared))
    }

    /// Loads the run for `takers` ranks of a data shard, as far as the division leaves it to them.
    fn loader(&self, shard: usize, division: Division, takers: usize) -> Loader<'a, D> {
        let settings = self.plan.settings();
        let (steps, share) = division.of(self.first..self.plan.course().steps());
        let load = Load {
            data: self.data,
            device: self.device.clone().autodiff(),
            steps,
            shard: (shard, settings.mesh.data_size()),
            share,
            takers,
            ahead: settings.prefetch,
            delay: settings.load_delay,
        };
        Loader::new(load, self.plan.course().batches(settings.seed))
    }
}

/// How the ranks of a node divide the loading of batches that have so many rows and take so long.
///
/// - Quick batches are not shared: each rank loads all of them, which takes less than sending them.
/// - Slow batches are loaded in shares, so that all ranks have as much to do in every step.
/// - What lies between is loaded in turns: gathering the shares would cost more than it saves. So
///   are batches that have too few rows for all ranks.
fn division(trial: Duration, rows: usize, own: usize, all: usize) -> Division {
    const LONG: Duration = Duration::from_millis(10);
    match trial {
        _ if trial < QUICK => Division::None,
        _ if trial < LONG || rows < all => Division::Turns { own, all },
        _ => Division::Shares { own, all },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_loading_is_divided_evenly() {
        let division = |micros, rows| division(Duration::from_micros(micros), rows, 1, 4);
        assert_eq!(division(99, 64), Division::None);
        assert_eq!(division(100, 64), Division::Turns { own: 1, all: 4 });
        assert_eq!(division(10_000, 64), Division::Shares { own: 1, all: 4 });
        assert_eq!(division(10_000, 3), Division::Turns { own: 1, all: 4 });
    }
}
