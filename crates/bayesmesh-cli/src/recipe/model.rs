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
    /// A vision transformer.
    Vit {
        /// Height and width of a patch in pixels.
        patch: usize,
        /// Numbers in a token.
        width: usize,
        /// Blocks of attention and perceptron.
        depth: usize,
        /// Heads of the attention.
        heads: usize,
        /// Hidden units of the perceptron.
        mlp: usize,
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
    /// Whether dropout acts anywhere.
    pub(super) fn has_dropout(&self) -> bool {
        match self {
            Self::Mlp { hidden, dropout, .. } => *dropout > 0.0 && !hidden.is_empty(),
            Self::Vit { .. } => false,
        }
    }
}

pub(super) static SECTION: Section = Section {
    name: "model",
    meaning: "The network.",
    kinds: &[
        Kind::new("mlp", "linear layers with an activation and dropout after each but the last"),
        Kind::new(
            "vit",
            "a vision transformer: patches with fixed positions, blocks of attention and \
             perceptron, the mean over patches; the defaults are the paper's",
        ),
    ],
    default_kind: None,
    keys: &[
        Key::new(
            "hidden",
            Values::List(&Values::at_least(1), 0, usize::MAX),
            Absent::Value("[128, 128]"),
            "Units of each hidden layer, from the input on; `[]` is a linear model.",
        )
        .of(&["mlp"])
        .also(&["layers", "hidden_sizes", "hidden_size", "units", "width"]),
        Key::new(
            "activation",
            Values::Choice(&["relu", "tanh", "gelu"]),
            Absent::Value("\"relu\""),
            "What follows each hidden layer.",
        )
        .of(&["mlp"]),
        Key::new(
            "dropout",
            Values::Number(Range::BELOW_ONE),
            Absent::Value("0.0"),
            "The probability that a hidden unit is dropped. The kept ones are scaled by 1/(1 − p).",
        )
        .of(&["mlp"])
        .also(&["dropout_rate", "p"]),
        Key::new(
            "patch",
            Values::Count(1, 32),
            Absent::Value("4"),
            "Height and width of a patch in pixels; divides the 32 of an image. (32/patch)² patches are \
             the tokens.",
        )
        .of(&["vit"])
        .also(&["patch_size"]),
        Key::new(
            "width",
            Values::at_least(4),
            Absent::Value("192"),
            "Numbers in a token; divisible by `heads` and by 4.",
        )
        .of(&["vit"])
        .also(&["dim", "hidden", "embed_dim", "d_model"]),
        Key::new(
            "depth",
            Values::at_least(1),
            Absent::Value("6"),
            "Blocks of attention and perceptron.",
        )
        .of(&["vit"])
        .also(&["layers", "blocks"]),
        Key::new(
            "heads",
            Values::at_least(1),
            Absent::Value("3"),
            "Heads of the attention, each of width/heads numbers.",
        )
        .of(&["vit"])
        .also(&["num_heads"]),
        Key::new(
            "mlp",
            Values::at_least(1),
            Absent::Value("768"),
            "Hidden units of the perceptron of a block.",
        )
        .of(&["vit"])
        .also(&["mlp_dim", "feedforward"]),
    ],
    example: "[model]\nkind = \"mlp\"\nhidden = [128, 128]",
};
