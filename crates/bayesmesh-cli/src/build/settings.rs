//! Everything of a recipe but the network, the loss and the data.

use std::time::Duration;

use bayesmesh::trainer::{Augment, Memory, OptimizerConfig, Schedule};
use bayesmesh::{Mesh, Reduce, Settings};

use crate::recipe::{self, Recipe};

/// The settings that a recipe describes. `steps` is how long the run will be, which some schedules
/// need to know.
pub fn settings(recipe: &Recipe, mesh: Mesh, steps: usize) -> Settings {
    let train = &recipe.train;
    let rate = recipe.optimizer.rate;
    let pair = |betas: [f64; 2]| (betas[0] as f32, betas[1] as f32);
    Settings {
        samples: train.samples,
        batch: train.batch,
        seed: train.seed,
        mesh,
        exact: train.exact,
        reduce: match train.reduce {
            recipe::Reduce::Fast => Reduce::Fast,
            recipe::Reduce::Reproducible => Reduce::Reproducible,
        },
        memory: match train.memory {
            recipe::Memory::Retain => Memory::Retain,
            recipe::Memory::Recompute => Memory::Recompute,
        },
        augment: match train.augment {
            recipe::Augment::PerDraw => Augment::PerDraw,
            recipe::Augment::PerRank => Augment::PerRank,
            recipe::Augment::Shared => Augment::Shared,
        },
        heat: train.heat,
        kl_warmup: train.kl_warmup,
        clip_norm: train.clip_norm,
        schedule: match recipe.schedule {
            recipe::Schedule::Constant => Schedule::Constant { rate },
            recipe::Schedule::Warmup { steps } => Schedule::Warmup { rate, steps },
            recipe::Schedule::Cosine { warmup, floor } => {
                Schedule::Cosine { rate, warmup, total: steps, floor }
            }
        },
        optimizer: match recipe.optimizer.method {
            recipe::Method::Adam { betas, epsilon, weight_decay } => OptimizerConfig::Adam {
                betas: pair(betas),
                epsilon: epsilon as f32,
                weight_decay: weight_decay as f32,
            },
            recipe::Method::AdamW { betas, epsilon, weight_decay } => OptimizerConfig::AdamW {
                betas: pair(betas),
                epsilon: epsilon as f32,
                weight_decay: weight_decay as f32,
            },
            recipe::Method::Sgd { momentum, weight_decay } => {
                OptimizerConfig::Sgd { momentum, weight_decay: weight_decay as f32 }
            }
        },
        overlap: train.overlap,
        shard_optimizer: train.shard_optimizer,
        threads: train.threads,
        share_loading: train.share_loading,
        load_delay: Duration::try_from_secs_f64(train.load_delay_ms / 1e3).unwrap_or(Duration::MAX),
        validation_draws: recipe.evaluate.validation_draws,
        ..Settings::default()
    }
}
