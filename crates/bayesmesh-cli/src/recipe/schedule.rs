//! `[schedule]`: how the learning rate changes over a run.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, Key, Kind, Range, Section, Values};

/// How the learning rate changes over a run. The rate itself is the optimiser's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Schedule {
    /// Always the same.
    Constant,
    /// A linear rise, then constant.
    Warmup {
        /// The steps of the rise.
        steps: usize,
    },
    /// A linear rise, then half a cosine down to the end of the run.
    Cosine {
        /// The steps of the rise; zero for none.
        warmup: usize,
        /// The learning rate at the end.
        floor: f64,
    },
}

pub(super) static SECTION: Section = Section {
    name: "schedule",
    meaning: "How the learning rate changes over a run.",
    kinds: &[
        Kind::new("constant", "always `optimizer.rate`"),
        Kind::new("warmup", "a linear rise to it, then constant"),
        Kind::new("cosine", "a linear rise to it, then half a cosine down to the end of the run"),
    ],
    default_kind: Some("constant"),
    keys: &[
        Key::new("steps", Values::at_least(1), Absent::Refused("500"), "Steps of the rise.")
            .of(&["warmup"])
            .also(&["warmup", "warmup_steps"]),
        Key::new(
            "warmup",
            Values::at_least(0),
            Absent::Value("0"),
            "Steps of the rise; 0 for none.",
        )
        .of(&["cosine"])
        .also(&["warmup_steps"]),
        Key::new(
            "floor",
            Values::Number(Range::NOT_NEGATIVE),
            Absent::Value("0.0"),
            "The learning rate at the end.",
        )
        .of(&["cosine"])
        .also(&["min_lr", "eta_min"]),
    ],
    example: "[schedule]\nkind = \"cosine\"\nwarmup = 500",
};
