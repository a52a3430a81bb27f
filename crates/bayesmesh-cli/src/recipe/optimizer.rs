//! `[optimizer]`: how a gradient changes the weights.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, Key, Kind, Range, Section, Values};

/// How a gradient changes the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimizer {
    /// The learning rate, which the schedule may change from step to step.
    pub rate: f64,
    /// The rule.
    #[serde(flatten)]
    pub method: Method,
}

/// The rule of an optimiser with its constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Method {
    /// Adam.
    Adam {
        /// Decay of the first and the second moment.
        betas: [f64; 2],
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Multiple of the weight added to its gradient.
        weight_decay: f64,
    },
    /// Adam with decoupled weight decay.
    AdamW {
        /// Decay of the first and the second moment.
        betas: [f64; 2],
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Share of the weight removed at each step, times the learning rate.
        weight_decay: f64,
    },
    /// Stochastic gradient descent.
    Sgd {
        /// Zero for none.
        momentum: f64,
        /// Multiple of the weight added to its gradient.
        weight_decay: f64,
    },
}

const ADAMS: &[&str] = &["adam", "adamw"];

pub(super) static SECTION: Section = Section {
    name: "optimizer",
    meaning: "How a gradient changes the weights. The defaults are PyTorch's.",
    kinds: &[
        Kind::new("adam", "Adam; weight decay is added to the gradient"),
        Kind::new("adamw", "Adam with decoupled weight decay"),
        Kind::new("sgd", "stochastic gradient descent, with or without momentum"),
    ],
    default_kind: Some("adam"),
    keys: &[
        Key::new(
            "rate",
            Values::Number(Range::above(0.0)),
            Absent::Value("1e-3"),
            "The learning rate; `[schedule]` may change it from step to step.",
        )
        .also(&["lr", "learning_rate"])
        .of(ADAMS),
        Key::new(
            "rate",
            Values::Number(Range::above(0.0)),
            Absent::Value("1e-2"),
            "The learning rate; `[schedule]` may change it from step to step.",
        )
        .also(&["lr", "learning_rate"])
        .of(&["sgd"]),
        Key::new(
            "betas",
            Values::List(&Values::Number(Range::BELOW_ONE), 2, 2),
            Absent::Value("[0.9, 0.999]"),
            "Decay of the first and the second moment.",
        )
        .of(ADAMS),
        Key::new(
            "epsilon",
            Values::Number(Range::above(0.0)),
            Absent::Value("1e-8"),
            "Added to the root of the second moment.",
        )
        .of(ADAMS)
        .also(&["eps"]),
        Key::new(
            "momentum",
            Values::Number(Range::BELOW_ONE),
            Absent::Value("0.0"),
            "The share of the last change that is kept; 0 for none.",
        )
        .of(&["sgd"]),
        Key::new(
            "weight_decay",
            Values::Number(Range::NOT_NEGATIVE),
            Absent::Value("0.0"),
            "Multiple of each weight that is added to its gradient.",
        )
        .of(&["adam", "sgd"])
        .also(&["l2", "decay"]),
        Key::new(
            "weight_decay",
            Values::Number(Range::NOT_NEGATIVE),
            Absent::Value("0.01"),
            "Share of each weight that a step removes, times the learning rate.",
        )
        .of(&["adamw"])
        .also(&["l2", "decay"]),
    ],
    example: "[optimizer]\nkind = \"adam\"\nrate = 1e-3",
};
