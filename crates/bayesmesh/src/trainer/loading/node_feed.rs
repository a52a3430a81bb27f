//! One reader for the ranks of a node that train on the same rows.

use std::slice;

use bayesmesh_comm::NodeShared;

use super::loader::{Division, Feed, Loaded, Loader};
use crate::data::{Dataset, Rows as _};
use crate::error::{Error, Result};

/// Where a rank of a job gets its shard of the batches from: its own loader, or the loaders of all
/// ranks of its node that train on the same rows, which divide them.
///
/// Every batch is loaded once on a node then, in the background, and each rank has the time of
/// several steps for a whole one.
pub struct NodeFeed<'a, D: Dataset> {
    loader: Loader<'a, D>,
    division: Division,
    shared: Option<NodeShared>,
}

impl<'a, D: Dataset> NodeFeed<'a, D> {
    /// A rank that loads everything for itself.
    pub fn alone(loader: Loader<'a, D>) -> Self {
        Self { loader, division: Division::None, shared: None }
    }

    /// A rank that loads some of it for all.
    pub fn shared(loader: Loader<'a, D>, division: Division, shared: NodeShared) -> Self {
        Self { loader, division, shared: Some(shared) }
    }

    /// What is to load in the background.
    pub fn loaders(&self) -> &[Loader<'a, D>] {
        slice::from_ref(&self.loader)
    }

    /// The batch of a step from the rank whose turn it is.
    fn in_turns(&self, shared: &NodeShared, step: usize) -> Result<(D::Input, D::Target)> {
        let mut own = None;
        let words = shared.share::<Error>(step, || {
            let loaded = own.insert(self.loader.take(step)?);
            Ok(pack(loaded))
        })?;
        Ok(match own {
            Some(loaded) => (loaded.input, loaded.target),
            None => self.unpack(&words)?,
        })
    }

    /// The batch of a step, put together from the shares of all.
    fn in_shares(&self, shared: &NodeShared, step: usize) -> Result<(D::Input, D::Target)> {
        let own = self.loader.take(step)?;
        let words = shared.node().all_gather(&pack(&own))?;
        let shares: Result<Vec<_>> = words.iter().map(|words| self.unpack(words)).collect();
        let (inputs, targets) = shares?.into_iter().unzip();
        Ok((D::Input::stack(inputs), D::Target::stack(targets)))
    }

    fn unpack(&self, mut words: &[f32]) -> Result<(D::Input, D::Target)> {
        let device = self.loader.device();
        Ok((D::Input::unpack(&mut words, device)?, D::Target::unpack(&mut words, device)?))
    }
}

/// What other ranks need to have the same.
fn pack<D: Dataset>(loaded: &Loaded<D>) -> Vec<f32> {
    let mut words = Vec::new();
    loaded.input.pack(&mut words);
    loaded.target.pack(&mut words);
    words
}

impl<D: Dataset> Feed<D> for NodeFeed<'_, D> {
    fn take(&self, step: usize) -> Result<Loaded<D>> {
        let (input, target) = match (&self.shared, self.division) {
            (Some(shared), Division::Turns { .. }) => self.in_turns(shared, step)?,
            (Some(shared), Division::Shares { .. }) => self.in_shares(shared, step)?,
            _ => return self.loader.take(step),
        };
        Ok(Loaded { rows: self.loader.rows(step), input, target })
    }

    fn pause(&self) {
        // What is loaded for others is loaded in the background; what only this rank takes may have
        // to be loaded now.
        if self.shared.is_none() {
            self.loader.pause();
        }
    }
}
