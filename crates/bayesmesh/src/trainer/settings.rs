//! How a run is done.

use std::time::Duration;

use bayesmesh_comm::{Mesh, Reduce, share};
use bayesmesh_kernels::Precision;
use bayesmesh_schema::{Choice, Keys};
use serde::{Deserialize, Deserializer};

use super::{OptimizerConfig, Schedule};
use crate::error::{Error, Result};
use crate::loss::{Combine, Exactness};

/// What a rank does with its draws while the summary of all draws is not yet known.
///
/// Losses that are a mean over draws need neither: their draws stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Keep the graphs of all local draws: faster, memory grows with the draws of a rank. Where
    /// draws share their weights (Monte Carlo dropout) and the network allows it
    /// ([`Network::STACKS_DRAWS`](crate::Network::STACKS_DRAWS)) they go through it as one batch.
    Retain,
    /// Forget each draw and evaluate it again: one more forward pass, the memory of one draw.
    #[default]
    Recompute,
}

/// Which draws see the same augmentation of the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Augment {
    /// Each draw sees an augmentation of its own, on any number of ranks.
    #[default]
    PerDraw,
    /// All draws of a rank see the same one, as in the paper's independent setting.
    PerRank,
    /// All draws see the same one, as in the paper's ablation.
    Shared,
}

/// Everything about a run but the network, the loss and the data.
///
/// Name what is not as by [default](Settings::default), which is one draw of 32 examples a step,
/// Adam with a learning rate of 1e-3, and one rank:
///
/// ```
/// use bayesmesh::trainer::{OptimizerConfig, Settings};
///
/// let settings = Settings {
///     samples: 8,
///     schedule: 3e-4.into(), // the learning rate
///     optimizer: OptimizerConfig::adam().weight_decay(1e-4),
///     ..Settings::default()
/// };
/// # assert_eq!(settings.schedule.rate(0), 3e-4);
/// ```
/// What recipes leave out of `[train]` is not what is left out here: their defaults stand at the
/// fields.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Draws per step, S, over all ranks.
    #[key(default = 16, at_least = 1, at_most = 1_000_000)]
    #[key(also("draws", "num_samples", "mc_samples", "s"))]
    pub samples: usize,
    /// Examples per step, B, over all ranks.
    ///
    /// Batches are full: an epoch leaves out what fills none
    /// ([`Course::left_out`](super::Course::left_out)), other examples each time.
    #[key(default = 64, at_least = 1, also("batch_size", "global_batch", "b"))]
    pub batch: usize,
    /// The seed of everything random: first weights, order of examples, draws, augmentation.
    #[key(default = 0, also("random_seed", "rng"))]
    pub seed: u64,
    /// The layout of ranks.
    #[serde(skip)]
    pub mesh: Mesh,
    /// Statistics of all draws, so that the parallel run is the serial run; `false` is the paper's
    /// approximation, statistics of each rank's own draws. No difference for `expected-…` losses.
    #[key(default = true)]
    pub exact: bool,
    /// The order of sums over draws and ranks: whatever is fastest, or a fixed tree with the same
    /// bits on 1, 2, 4 … sample ranks.
    #[key(default = "fast")]
    pub reduce: Reduce,
    /// For losses of all draws together: keep every draw of a rank, which is faster, or evaluate it
    /// again, which needs the memory of one draw.
    #[key(default = "recompute")]
    pub memory: Memory,
    /// The numbers of products: single precision, or bf16, which is faster where the processor
    /// multiplies it. Trainable numbers, sums and losses are in single precision either way.
    #[key(default = "f32", also("dtype", "amp", "autocast", "mixed_precision"))]
    pub precision: Precision,
    /// Which draws see the same augmentation of the batch: none, those of a rank, all. No
    /// difference for data without augmentation.
    #[key(default = "per-draw", also("augmentation"))]
    pub augment: Augment,
    /// The weight of the distance to the prior; below 1 for a colder posterior. For `mean-field`.
    #[key(default = 1.0, at_least = 0, also("temperature", "beta", "kl_weight"))]
    pub heat: f64,
    /// Steps over which that weight rises linearly from zero. For `mean-field`.
    #[key(default = 0, also("kl_annealing"))]
    pub kl_warmup: usize,
    /// The largest norm of the whole gradient; longer ones are scaled to it.
    ///
    /// Of an ensemble, of each member's.
    #[key(unset = "no clipping", above = 0, also("clip", "grad_clip", "max_norm"))]
    pub clip_norm: Option<f64>,
    /// The learning rate: a number, `1e-3.into()`, or one that changes over the run.
    #[doc(alias = "learning_rate")]
    #[doc(alias = "lr")]
    #[serde(skip)]
    pub schedule: Schedule,
    /// The optimiser and its constants, e.g. `OptimizerConfig::adam().weight_decay(1e-4)`.
    #[serde(skip)]
    pub optimizer: OptimizerConfig,
    /// The size of the pieces in which gradients are summed over ranks.
    #[serde(skip)]
    pub bucket_bytes: usize,
    /// Whether gradients are summed over ranks while the backward pass still runs. No difference
    /// for the result. Without effect where `shard_optimizer` is `true`.
    #[key(default = true)]
    pub overlap: bool,
    /// Whether the optimiser's state is divided among the ranks, each with its share: less memory,
    /// for a little more communication. No difference for the result.
    ///
    /// The ranks are those that have the same numbers: all of the mesh, or those of the data axis
    /// for members. With reproducible sums the result does not differ in a bit. Checkpoints are
    /// complete and do not depend on it. Only when a run ends because a rank failed is the state
    /// lost with it: the trainer then refuses to go on until a checkpoint is restored.
    #[key(default = false, also("zero", "shard_optimiser", "sharded_optimizer"))]
    pub shard_optimizer: bool,
    /// Threads of each rank.
    ///
    /// By default the processors divided by the ranks of the node.
    #[key(unset = "the cores shared among the ranks of the machine", at_least = 1, at_most = 4096)]
    #[key(also("num_threads", "workers"))]
    pub threads: Option<usize>,
    /// Batches that are loaded ahead where loading takes time, at least one. Where ranks share
    /// them, one more for each rank beyond the first, as that is one more thread that loads.
    #[serde(skip)]
    pub prefetch: usize,
    /// Whether ranks of a node that train on the same rows share what is loaded; `false` is the
    /// paper's way, each rank loads them for itself. No difference for the result.
    #[key(default = true)]
    pub share_loading: bool,
    /// Milliseconds by which loading an example is made slower, to see what a slow source would
    /// cost. No difference for the result.
    #[serde(rename = "load_delay_ms", deserialize_with = "milliseconds")]
    #[key(default = 0.0, values = <f64 as bayesmesh_schema::Value>::values())]
    #[key(at_least = 0, at_most = 60_000)]
    pub load_delay: Duration,
    /// Draws for the scores on validation data; by default as many as in training.
    #[serde(skip)]
    pub validation_draws: Option<usize>,
}

fn milliseconds<'de, D: Deserializer<'de>>(number: D) -> std::result::Result<Duration, D::Error> {
    let milliseconds = f64::deserialize(number)?;
    Duration::try_from_secs_f64(milliseconds / 1e3).map_err(serde::de::Error::custom)
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            samples: 1,
            batch: 32,
            seed: 0,
            mesh: Mesh::serial(),
            exact: true,
            reduce: Reduce::default(),
            memory: Memory::default(),
            precision: Precision::default(),
            augment: Augment::default(),
            heat: 1.0,
            kl_warmup: 0,
            clip_norm: None,
            schedule: Schedule::Constant { rate: 1e-3 },
            optimizer: OptimizerConfig::adam(),
            shard_optimizer: false,
            bucket_bytes: bayesmesh_comm::DEFAULT_BUCKET_BYTES,
            overlap: true,
            threads: None,
            prefetch: 2,
            share_loading: true,
            load_delay: Duration::ZERO,
            validation_draws: None,
        }
    }
}

impl Settings {
    /// How many threads each rank has.
    pub fn threads_per_rank(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(processors / self.mesh.size()).max(1)
    }

    /// What must be equal on all ranks: all but how a rank works and loads for itself.
    pub(super) fn agreed(&self) -> Vec<(&'static str, String)> {
        let Self {
            samples,
            batch,
            seed,
            mesh,
            exact,
            reduce,
            memory,
            precision,
            augment,
            heat,
            kl_warmup,
            clip_norm,
            schedule,
            optimizer,
            shard_optimizer,
            bucket_bytes,
            overlap,
            threads: _,
            prefetch: _,
            share_loading,
            load_delay: _,
            validation_draws,
        } = self;
        vec![
            ("number of draws", samples.to_string()),
            ("batch", batch.to_string()),
            ("seed", seed.to_string()),
            ("mesh", mesh.to_string()),
            ("exact", exact.to_string()),
            ("reduce", reduce.to_string()),
            ("memory", format!("{memory:?}")),
            ("precision", format!("{precision:?}")),
            ("augment", format!("{augment:?}")),
            ("heat", heat.to_string()),
            ("kl_warmup", kl_warmup.to_string()),
            ("clip_norm", format!("{clip_norm:?}")),
            ("schedule", format!("{schedule:?}")),
            ("optimizer", format!("{optimizer:?}")),
            ("shard_optimizer", shard_optimizer.to_string()),
            ("bucket_bytes", bucket_bytes.to_string()),
            ("share_loading", share_loading.to_string()),
            ("overlap", overlap.to_string()),
            ("number of validation draws", format!("{validation_draws:?}")),
        ]
    }

    /// Refuses settings that do not go together, or not with so many ranks and this loss.
    pub(super) fn check(&self, world: usize, least_draws: usize, combine: Combine) -> Result<()> {
        self.mesh.validate(world, self.samples, self.batch)?;
        let ranks = self.mesh.samples_size();
        let (least_held, held_by) = match self.exact || combine.exactness() == Exactness::Linear {
            true => (self.samples, "in all"),
            false => (share(self.samples, ranks, ranks - 1).len(), "on every rank in local mode"),
        };
        if least_held < least_draws {
            return Err(Error::Setting(format!(
                "this loss needs {least_draws} draws {held_by}, but {} draws on {ranks} sample \
                 ranks give {least_held}; use more draws, fewer sample ranks or the exact mode",
                self.samples
            )));
        }
        if u32::try_from(self.samples).is_err() {
            return Err(Error::Setting(format!(
                "{} draws are more than streams can tell apart; use at most {}",
                self.samples,
                u32::MAX
            )));
        }
        let (rate, floor) = self.schedule.ends();
        let named = [
            ("heat", self.heat, self.heat >= 0.0),
            ("clip_norm", self.clip_norm.unwrap_or(1.0), self.clip_norm.is_none_or(|c| c > 0.0)),
            ("learning rate", rate, rate > 0.0),
            ("floor of the learning rate", floor, floor >= 0.0),
            ("number of validation draws", 0.0, self.validation_draws != Some(0)),
        ];
        self.optimizer.check()?;
        match named.iter().find(|(_, value, valid)| !(value.is_finite() && *valid)) {
            Some((name, value, _)) => Err(Error::Setting(format!(
                "a {name} of {value} is not possible; choose a positive number"
            ))),
            None => Ok(()),
        }
    }
}
