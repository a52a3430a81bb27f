//! `[model]`: the network.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, Key, Kind, Range, Section, Values};

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Model {
    /// Linear layers with an activation and dropout after each but the last.
    Mlp {
        /// Units of each hidden layer; none for a linear model.
        hidden: Vec<usize>,
        /// What follows each hidden layer.
        activation: Activation,
        /// The probability that a hidden unit is dropped.
        dropout: f64,
    },
}

/// A function applied to hidden units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(0, x).
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// x·Φ(x).
    Gelu,
}

impl Model {
    /// The probability that a unit is dropped.
    pub fn dropout(&self) -> f64 {
        match self {
            Self::Mlp { dropout, .. } => *dropout,
        }
    }

    /// Whether dropout acts anywhere.
    pub(super) fn has_dropout(&self) -> bool {
        match self {
            Self::Mlp { hidden, dropout, .. } => *dropout > 0.0 && !hidden.is_empty(),
        }
    }
}

pub(super) static SECTION: Section = Section {
    name: "model",
    meaning: "The network.",
    kinds: &[Kind::new(
        "mlp",
        "linear layers with an activation and dropout after each but the last",
    )],
    default_kind: None,
    keys: &[
        Key::new(
            "hidden",
            Values::List(&Values::at_least(1), 0, usize::MAX),
            Absent::Value("[128, 128]"),
            "Units of each hidden layer, from the input on; `[]` is a linear model.",
        )
        .also(&["layers", "hidden_sizes", "hidden_size", "units", "width"]),
        Key::new(
            "activation",
            Values::Choice(&["relu", "tanh", "gelu"]),
            Absent::Value("\"relu\""),
            "What follows each hidden layer.",
        ),
        Key::new(
            "dropout",
            Values::Number(Range::BELOW_ONE),
            Absent::Value("0.0"),
            "The probability that a hidden unit is dropped. The kept ones are scaled by 1/(1 − p).",
        )
        .also(&["dropout_rate", "p"]),
    ],
    example: "[model]\nkind = \"mlp\"\nhidden = [128, 128]",
};
