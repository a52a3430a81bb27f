//! `[checkpoint]`: what is kept of a run on disk.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, Key, Section, Values};

/// What is kept of a run on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Steps from one checkpoint to the next.
    pub every: usize,
    /// How many of the last are kept, besides the best.
    pub keep: usize,
}

pub(super) static SECTION: Section = Section {
    name: "checkpoint",
    meaning: "What is kept of a run on disk.",
    kinds: &[],
    default_kind: None,
    keys: &[
        Key::new(
            "every",
            Values::at_least(1),
            Absent::Value("1000"),
            "Steps from one checkpoint to the next.",
        )
        .also(&["interval", "steps", "frequency"]),
        Key::new(
            "keep",
            Values::at_least(1),
            Absent::Value("3"),
            "How many of the last are kept, besides the best.",
        )
        .also(&["keep_last", "max_to_keep"]),
    ],
    example: "[checkpoint]\nevery = 1000",
};
