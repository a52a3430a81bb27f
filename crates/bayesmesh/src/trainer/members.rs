//! The numbers that are trained, and which of them are where.

use std::ops::Range;

use bayesmesh_comm::{Communicator, Mesh, share};

use super::{Optimizer, OptimizerConfig};
use crate::checkpoint::digest_of_tensors;
use crate::error::{Error, Result};
use crate::posterior::{Ownership, Posterior};

/// Numbers that are trained together, with the optimiser's state for them.
pub(crate) struct Member<P> {
    pub posterior: P,
    pub optimizer: Optimizer,
}

/// The members that are in one place. A posterior whose draws share their numbers has one, which is
/// everywhere; otherwise there is one for each draw, on the sample rank of that draw.
pub(crate) struct Members<P> {
    list: Vec<Member<P>>,
    ownership: Ownership,
    /// The number of the first one here, and how many there are everywhere.
    first: usize,
    total: usize,
}

impl<P: Posterior> Clone for Member<P> {
    fn clone(&self) -> Self {
        Self { posterior: dyn_clone::clone(&self.posterior), optimizer: self.optimizer.clone() }
    }
}

impl<P: Posterior> Clone for Members<P> {
    fn clone(&self) -> Self {
        Self { list: self.list.clone(), ..*self }
    }
}

/// None, while ranks have them.
impl<P> Default for Members<P> {
    fn default() -> Self {
        Self { list: Vec::new(), ownership: Ownership::Shared, first: 0, total: 0 }
    }
}

impl<P: Posterior> Members<P> {
    /// Those at the beginning of a run with so many draws: all, or those of a rank of the mesh.
    pub fn new(
        posterior: P,
        draws: usize,
        seed: u64,
        optimizer: OptimizerConfig,
        rank: Option<(Mesh, usize)>,
    ) -> Self {
        let ownership = posterior.ownership();
        let member = |posterior| Member { posterior, optimizer: optimizer.build() };
        if ownership == Ownership::Shared {
            return Self { list: vec![member(posterior)], ownership, first: 0, total: 1 };
        }
        // Without draws there is nothing to train, which is refused later.
        let total = draws.max(1);
        let here = rank.map_or(0..total, |(mesh, rank)| place(total, mesh, rank));
        let first = here.start;
        let begin = |index| {
            let mut posterior = dyn_clone::clone(&posterior);
            posterior.become_member(index, seed);
            member(posterior)
        };
        let list = here.map(begin).collect();
        Self { list, ownership, first, total }
    }

    /// Those of a saved run, all of them, each like `posterior` until it gets its numbers.
    pub fn of(posterior: P, total: usize) -> Self {
        let (ownership, optimizer) = (posterior.ownership(), OptimizerConfig::sgd());
        let member =
            || Member { posterior: dyn_clone::clone(&posterior), optimizer: optimizer.build() };
        let list = (0..total).map(|_| member()).collect();
        Self { list, ownership, first: 0, total }
    }

    /// The digest of numbers that are the same on all ranks; empty where there are none.
    pub fn common_digest(&self) -> String {
        match self.ownership {
            Ownership::PerDraw => String::new(),
            Ownership::Shared => digest_of_tensors(self.any().parameters().tensors()),
        }
    }

    /// Whether each draw has a member of its own.
    pub fn are_per_draw(&self) -> bool {
        self.ownership == Ownership::PerDraw
    }

    /// Whether all of them are here.
    pub fn are_all_here(&self) -> bool {
        self.list.len() == self.total
    }

    /// How many there are everywhere.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The numbers of those that are here.
    pub fn here(&self) -> Range<usize> {
        self.first..self.first + self.list.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Member<P>> {
        self.list.iter()
    }

    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Member<P>> {
        self.list.iter_mut()
    }

    /// One for what all have in common, e.g. the structure of the network.
    pub fn any(&self) -> &P {
        // A rank without a draw has none, and is refused before a run.
        &self.list.first().expect("every rank has a draw").posterior
    }

    /// Whose the numbers of a draw are; it must be here.
    pub fn of_draw(&self, draw: usize) -> &P {
        match self.ownership {
            Ownership::Shared => self.any(),
            Ownership::PerDraw => &self.list[draw - self.first].posterior,
        }
    }

    /// The same with optimisers that have done nothing yet.
    pub fn with_new_optimizers(&self, config: OptimizerConfig) -> Self {
        let member = |m: &Member<P>| Member {
            posterior: dyn_clone::clone(&m.posterior),
            optimizer: config.build(),
        };
        Self { list: self.list.iter().map(member).collect(), ..*self }
    }

    /// What each of these ranks of the mesh has of those that are here. What only one rank has is
    /// moved to it. Copies share their numbers until they are [unshared](Self::unshare).
    pub fn divide(mut self, mesh: Mesh, ranks: Range<usize>) -> Vec<Self> {
        if !self.are_per_draw() {
            return vec![self; ranks.len()];
        }
        if ranks.len() == 1 {
            return vec![self];
        }
        // The ranks of the first data shard take them, from the last to the first; the others get
        // copies of what their neighbours have.
        let mut shard: Vec<Self> = Vec::new();
        for rank in (0..mesh.samples_size()).rev() {
            let Range { start: first, .. } = place(self.total, mesh, rank);
            let list = self.list.split_off(first - self.first);
            shard.insert(0, Self { list, first, ..self });
        }
        let copies: Vec<Vec<Self>> = vec![shard.clone(); mesh.data_size() - 1];
        shard.extend(copies.into_iter().flatten());
        shard
    }

    /// Copies the numbers that are shared with others, and the state of their optimisers where it
    /// is not going to be divided.
    pub fn unshare(&mut self, divided: bool) {
        for Member { posterior, optimizer } in self.iter_mut() {
            posterior.parameters_mut().values_mut();
            if !divided {
                optimizer.unshare();
            }
        }
    }

    /// What a rank of the mesh has of those that are here, to read.
    pub fn of_rank(&self, mesh: Mesh, rank: usize) -> Self {
        if !self.are_per_draw() {
            return self.clone();
        }
        let Range { start, end } = place(self.total, mesh, rank);
        let list = self.list[start - self.first..end - self.first].to_vec();
        Self { list, first: start, ..*self }
    }

    /// Puts together what the ranks of a data shard have.
    pub fn collect(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = parts.into_iter();
        let mut all = parts.next().expect("at least one rank");
        parts.for_each(|part| all.list.extend(part.list));
        all
    }

    /// Which of `draws` predictive draws are made on this rank of the sample axis.
    pub fn draws_of(&self, draws: usize, samples: &dyn Communicator) -> Result<Range<usize>> {
        if !self.are_per_draw() {
            return Ok(share(draws, samples.size(), samples.rank()));
        }
        if draws > self.total {
            return Err(Error::Setting(format!(
                "{draws} draws of a posterior that has {}, one for each of its members; use at \
                 most {}",
                self.total, self.total
            )));
        }
        let here = self.here();
        Ok(here.start.min(draws)..here.end.min(draws))
    }
}

/// The members on a rank of the mesh.
fn place(total: usize, mesh: Mesh, rank: usize) -> Range<usize> {
    share(total, mesh.samples_size(), mesh.coordinates(rank).sample)
}
