//! What is wrong with a recipe, while it is being found.

use super::tree::Place;

/// One thing that is wrong, with its place still as bytes.
pub(super) struct Found {
    /// Where.
    pub place: Place,
    /// The full name of the key; empty where no key is at fault.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// What was found so far. Of very many only the first are worked out: nobody reads them all, and a
/// file of nonsense must not take time and memory that grow faster than it.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<Found>,
    more: usize,
}

impl Problems {
    const MOST: usize = 200;

    /// One more.
    pub fn push(&mut self, found: impl FnOnce() -> Found) {
        match self.found.len() < Self::MOST {
            true => self.found.push(found()),
            false => self.more += 1,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.found.len() + self.more
    }

    /// Whether all is well so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Those that were worked out, in the order of the file, then of the overrides.
    pub fn sorted(mut self) -> Vec<Found> {
        self.found.sort_by_key(|found| match found.place {
            Place::Nowhere => (0, 0, 0),
            Place::File(ref span) => (1, span.start, span.end),
            Place::Override(index) => (2, index, 0),
        });
        self.found
    }
}
