//! Sections that belong to the program: how long a run lasts, how it is scored, what is kept of it.

use bayesmesh::Length;
use bayesmesh_schema::Keys;
use serde::Deserialize;

/// How long a run lasts: the first keys of `[train]`.
#[derive(Keys, Deserialize)]
pub(super) struct RunLength {
    /// Passes over the training data.
    #[key(default = 10, at_least = 1, also("num_epochs", "max_epochs"))]
    epochs: usize,
    /// Optimiser steps. Overrides `epochs`; for trials and benchmarks.
    #[key(unset = "as many as the epochs have", at_least = 1, also("iterations"))]
    steps: Option<usize>,
    /// Ends the training after so many steps, whatever `epochs` says, so that one recipe suits few
    /// examples and many.
    #[key(unset = "there is no limit", at_least = 1, also("most_steps", "step_limit"))]
    max_steps: Option<usize>,
    /// Ends the training after so many epochs in a row without a better score on validation data,
    /// and keeps the best of all.
    #[key(unset = "it lasts as long as said", at_least = 1, also("early_stopping"))]
    pub patience: Option<usize>,
    /// Settings to choose from before the training, such as `model.dropout=0.01`, several of them
    /// with blanks between: each is trained on a part of the training rows, and the likeliest of
    /// the others is kept. For tables.
    #[key(default = [], also("candidates", "search", "grid"))]
    pub tune: Vec<String>,
}

impl From<RunLength> for Length {
    fn from(length: RunLength) -> Self {
        match (length.steps, length.max_steps) {
            (Some(steps), most) => Self::Steps(most.map_or(steps, |most| steps.min(most))),
            (None, Some(steps)) => Self::AtMost { epochs: length.epochs, steps },
            (None, None) => Self::Epochs(length.epochs),
        }
    }
}

/// The learning rate: the first key of `[optimizer]`. Its default is that of the kind.
#[derive(Keys, Deserialize)]
pub(super) struct Rate {
    /// The learning rate; `[schedule]` may change it from step to step.
    #[key(default = 1e-3, above = 0, also("lr", "learning_rate"))]
    pub rate: f64,
}

/// How the result is scored.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct Evaluate {
    /// Draws of a prediction, over all ranks; of an `ensemble` all members where it has fewer.
    #[key(default = 64, at_least = 1, at_most = 1_000_000, also("samples", "num_samples"))]
    pub draws: usize,
    /// Draws of the scores on validation data during training.
    #[key(unset = "as many as `train.samples`", at_least = 1, at_most = 1_000_000)]
    pub validation_draws: Option<usize>,
    /// Nominal levels of the predictive intervals, ascending; 0.9 is the interval, or the set of
    /// classes, that should hold 90 % of the truth.
    #[key(default = [0.5, 0.8, 0.9, 0.95], above = 0, below = 1, items = 1)]
    #[key(also("quantiles", "intervals", "coverage"))]
    pub levels: Vec<f64>,
}

/// What is kept of a run on disk.
#[derive(Clone, Debug, PartialEq, Eq, Keys, Deserialize)]
pub struct Checkpoint {
    /// Steps from one checkpoint to the next.
    #[key(default = 1000, at_least = 1, also("interval", "steps", "frequency"))]
    pub every: usize,
    /// How many of the last are kept, besides the best.
    #[key(default = 3, at_least = 1, also("keep_last", "max_to_keep"))]
    pub keep: usize,
}
