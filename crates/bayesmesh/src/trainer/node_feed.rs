//! One reader for the ranks of a node that train on the same rows.

use std::slice;

use bayesmesh_comm::NodeShared;

use super::loader::{Feed, Loaded, Loader};
use crate::data::{Dataset, Rows as _};
use crate::error::{Error, Result};

/// Where a rank of a job gets its part of the batches from: its own loader, or in turns the loaders
/// of all ranks of its node that train on the same rows.
///
/// With turns every batch is loaded once on a node, and each rank has the time of several steps for
/// one of its own, in the background.
pub(super) struct NodeFeed<'a, D: Dataset> {
    loader: Loader<'a, D>,
    shared: Option<NodeShared>,
}

impl<'a, D: Dataset> NodeFeed<'a, D> {
    /// A rank that loads every step for itself.
    pub fn alone(loader: Loader<'a, D>) -> Self {
        Self { loader, shared: None }
    }

    /// A rank that loads the steps of its own turns.
    pub fn shared(loader: Loader<'a, D>, shared: NodeShared) -> Self {
        Self { loader, shared: Some(shared) }
    }

    /// What is to load in the background.
    pub fn loaders(&self) -> &[Loader<'a, D>] {
        slice::from_ref(&self.loader)
    }
}

impl<D: Dataset> Feed<D> for NodeFeed<'_, D> {
    fn take(&self, step: usize) -> Result<Loaded<D>> {
        let Some(shared) = &self.shared else {
            return self.loader.take(step);
        };
        let mut own = None;
        let words = shared.share::<Error>(step, || {
            let loaded = own.insert(self.loader.take(step)?);
            let mut words = Vec::new();
            loaded.input.pack(&mut words);
            loaded.target.pack(&mut words);
            Ok(words)
        })?;
        if let Some(loaded) = own {
            return Ok(loaded);
        }
        let (mut words, device) = (&words[..], self.loader.device());
        Ok(Loaded {
            rows: self.loader.rows(step),
            input: D::Input::unpack(&mut words, device),
            target: D::Target::unpack(&mut words, device),
        })
    }

    fn pause(&self) {
        // A reader's next turn is loaded in the background; one of every step may have to be now.
        if self.shared.is_none() {
            self.loader.pause();
        }
    }
}
