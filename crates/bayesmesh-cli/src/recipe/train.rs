//! `[train]`: how training is done.

use serde::{Deserialize, Serialize};

use super::schema::{Absent, Key, Range, Section, Values};

/// How training is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Train {
    /// Passes over the training data.
    pub epochs: usize,
    /// Optimiser steps; where given, instead of the epochs.
    pub steps: Option<usize>,
    /// Draws per step, S, over all ranks.
    pub samples: usize,
    /// Examples per step, B, over all ranks.
    pub batch: usize,
    /// The seed of everything random but generated data.
    pub seed: u64,
    /// Statistics of all draws, or of each rank's own.
    pub exact: bool,
    /// The order of sums over draws and ranks.
    pub reduce: Reduce,
    /// What happens to draws while the summary of all is not known.
    pub memory: Memory,
    /// Which draws see the same augmentation.
    pub augment: Augment,
    /// The weight of the distance to the prior.
    pub heat: f64,
    /// Steps over which that weight rises from zero.
    pub kl_warmup: usize,
    /// The largest norm of the gradient.
    pub clip_norm: Option<f64>,
    /// Whether gradients are summed over ranks while the backward pass still runs.
    pub overlap: bool,
    /// Whether the optimiser's state is divided among the ranks.
    pub shard_optimizer: bool,
    /// Threads of each rank.
    pub threads: Option<usize>,
    /// Whether ranks that train on the same rows share what is loaded.
    pub share_loading: bool,
    /// Milliseconds by which loading an example is made slower.
    pub load_delay_ms: f64,
}

/// The order of sums over draws and ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// Whatever is fastest.
    Fast,
    /// A fixed tree over the draws: the same bits on 1, 2, 4 … sample ranks.
    Reproducible,
}

/// What happens to draws while the summary of all is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Keep them: faster.
    Retain,
    /// Evaluate them again: the memory of one draw.
    Recompute,
}

/// Which draws see the same augmentation of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Augment {
    /// None: each draw its own.
    PerDraw,
    /// Those of a rank.
    PerRank,
    /// All.
    Shared,
}

pub(super) static SECTION: Section = Section {
    name: "train",
    meaning: "How training is done. How many ranks share the work is said at the command line.",
    kinds: &[],
    default_kind: None,
    keys: &[
        Key::new(
            "epochs",
            Values::at_least(1),
            Absent::Value("10"),
            "Passes over the training data.",
        )
        .also(&["num_epochs", "max_epochs"]),
        Key::new(
            "steps",
            Values::at_least(1),
            Absent::Unset("as many as the epochs have"),
            "Optimiser steps. Overrides `epochs`; for trials and benchmarks.",
        )
        .also(&["max_steps", "iterations"]),
        Key::new(
            "samples",
            Values::at_least(1),
            Absent::Value("16"),
            "Draws per step, S, over all ranks.",
        )
        .also(&["draws", "num_samples", "mc_samples", "s"]),
        Key::new(
            "batch",
            Values::at_least(1),
            Absent::Value("64"),
            "Examples per step, B, over all ranks.",
        )
        .also(&["batch_size", "global_batch", "b"]),
        Key::new(
            "seed",
            Values::at_least(0),
            Absent::Value("0"),
            "The seed of everything random: first weights, order of examples, draws, augmentation.",
        )
        .also(&["random_seed", "rng"]),
        Key::new(
            "exact",
            Values::Flag,
            Absent::Value("true"),
            "Statistics of all draws, so that the parallel run is the serial run; `false` is the \
             paper's approximation, statistics of each rank's own draws. No difference for \
             `expected-…` losses.",
        ),
        Key::new(
            "reduce",
            Values::Choice(&["fast", "reproducible"]),
            Absent::Value("\"fast\""),
            "The order of sums over draws and ranks: whatever is fastest, or a fixed tree with the \
             same bits on 1, 2, 4 … sample ranks.",
        ),
        Key::new(
            "memory",
            Values::Choice(&["retain", "recompute"]),
            Absent::Value("\"recompute\""),
            "For losses of all draws together: keep every draw of a rank, which is faster, or \
             evaluate it again, which needs the memory of one draw.",
        ),
        Key::new(
            "augment",
            Values::Choice(&["per-draw", "per-rank", "shared"]),
            Absent::Value("\"per-draw\""),
            "Which draws see the same augmentation of the batch: none, those of a rank, all. No \
             difference for data without augmentation.",
        )
        .also(&["augmentation"]),
        Key::new(
            "heat",
            Values::Number(Range::NOT_NEGATIVE),
            Absent::Value("1.0"),
            "The weight of the distance to the prior; below 1 for a colder posterior. For \
             `mean-field`.",
        )
        .also(&["temperature", "beta", "kl_weight"]),
        Key::new(
            "kl_warmup",
            Values::at_least(0),
            Absent::Value("0"),
            "Steps over which that weight rises linearly from zero. For `mean-field`.",
        )
        .also(&["kl_annealing"]),
        Key::new(
            "clip_norm",
            Values::Number(Range::above(0.0)),
            Absent::Unset("no clipping"),
            "The largest norm of the whole gradient; longer ones are scaled to it.",
        )
        .also(&["clip", "grad_clip", "max_norm"]),
        Key::new(
            "overlap",
            Values::Flag,
            Absent::Value("true"),
            "Whether gradients are summed over ranks while the backward pass still runs. No \
             difference for the result. Without effect where `shard_optimizer` is `true`.",
        ),
        Key::new(
            "shard_optimizer",
            Values::Flag,
            Absent::Value("false"),
            "Whether the optimiser's state is divided among the ranks, each with its share: less \
             memory where ranks are processes, for a little more communication. No difference for \
             the result.",
        )
        .also(&["zero", "shard_optimiser", "sharded_optimizer"]),
        Key::new(
            "threads",
            Values::Count(1, 4096),
            Absent::Unset("the cores shared among the ranks of the machine"),
            "Threads of each rank.",
        )
        .also(&["num_threads", "workers"]),
        Key::new(
            "share_loading",
            Values::Flag,
            Absent::Value("true"),
            "Whether ranks of a node that train on the same rows share what is loaded; `false` \
             is the paper's way, each rank loads them for itself. No difference for the result.",
        ),
        Key::new(
            "load_delay_ms",
            Values::Number(Range::NOT_NEGATIVE),
            Absent::Value("0.0"),
            "Milliseconds by which loading an example is made slower, to see what a slow source \
             would cost. No difference for the result.",
        ),
    ],
    example: "[train]\nepochs = 10\nsamples = 16\nbatch = 64",
};
