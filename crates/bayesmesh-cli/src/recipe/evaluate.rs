//! `[evaluate]`: how the result is scored.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, Key, Range, Section, Values};

/// How the result is scored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluate {
    /// Draws of a prediction.
    pub draws: usize,
    /// Draws of the scores on validation data during training.
    pub validation_draws: Option<usize>,
    /// Nominal levels of the predictive intervals, ascending.
    pub levels: Vec<f64>,
    /// Whether corrupted images are predicted as well.
    pub corruptions: bool,
    /// How many of the test images are corrupted.
    pub corrupted_images: usize,
}

pub(super) static SECTION: Section = Section {
    name: "evaluate",
    meaning: "How the result is scored.",
    kinds: &[],
    default_kind: None,
    keys: &[
        Key::new(
            "draws",
            Values::at_least(1),
            Absent::Value("64"),
            "Draws of a prediction, over all ranks.",
        )
        .also(&["samples", "num_samples"]),
        Key::new(
            "validation_draws",
            Values::at_least(1),
            Absent::Unset("as many as `train.samples`"),
            "Draws of the scores on validation data during training.",
        ),
        Key::new(
            "levels",
            Values::List(&Values::Number(Range::INSIDE_ONE), 1, usize::MAX),
            Absent::Value("[0.5, 0.8, 0.9, 0.95]"),
            "Nominal levels of the predictive intervals, ascending; 0.9 is the interval that \
             should hold 90 % of the truth. For numbers.",
        )
        .also(&["quantiles", "intervals", "coverage"]),
        Key::new(
            "corruptions",
            Values::Flag,
            Absent::Value("true"),
            "Whether test images are also predicted with noise, blurred and with less contrast, to \
             see whether the network is less sure of what it does not know. For images.",
        )
        .also(&["ood", "corrupt"]),
        Key::new(
            "corrupted_images",
            Values::at_least(1),
            Absent::Value("2000"),
            "How many of the test images, from the first on; all where there are fewer. Each is \
             predicted nine times more. For images.",
        )
        .also(&["corruption_limit", "ood_limit"]),
    ],
    example: "[evaluate]\ndraws = 64",
};
