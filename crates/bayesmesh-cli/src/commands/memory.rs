//! How much memory a run will take.

use anyhow::Result;
use bayesmesh::Mesh;
use bayesmesh::loss::{Combine, Loss as _};
use bayesmesh::trainer::{Footprint, Memory, Settings, Sizes};

use super::shape;
use crate::exit::Usage;
use crate::job::Job;
use crate::models::Model;
use crate::recipe::Recipe;
use crate::say;
use crate::tasks::Task as _;
use crate::use_cases::UseCase;

/// What has to be known of a run to tell how much memory it takes.
pub struct Needs {
    settings: Settings,
    combine: Combine,
    sizes: Sizes,
    /// The activations with `model.checkpoint_blocks`, where that can be chosen.
    checkpointed: Option<u64>,
}

impl Needs {
    /// Of a run with this network, before anything of it is made.
    pub fn of<U: UseCase>(
        recipe: &Recipe,
        model: &impl Model,
        mesh: Mesh,
        steps: usize,
    ) -> Result<Self> {
        let (shape, loss) = (shape::<U>(recipe)?, U::Task::loss(recipe)?);
        let (weights, outputs) = (model.weights(), shape.outputs as u64);
        let inputs = shape.inputs.iter().map(|&extent| extent as u64).product::<u64>();
        // Members are on the sample rank of their draw.
        let here = recipe.members().map_or(1, |members| members.div_ceil(mesh.samples_size()));
        let numbers = recipe.posterior()?.numbers_per_weight().saturating_mul(here as u64);
        let sizes = Sizes {
            weights,
            numbers: weights.saturating_mul(numbers),
            activations: model.activations(),
            example: inputs.saturating_add(outputs),
            outputs: outputs.saturating_mul(loss.reading().outputs_per_target() as u64),
        };
        Ok(Self {
            settings: recipe.settings(mesh, steps)?,
            combine: loss.combine(),
            sizes,
            checkpointed: model.checkpointed_activations(),
        })
    }

    /// What one rank will hold at most, beside the program and the data.
    pub fn of_rank(&self) -> Footprint {
        Footprint::of(&self.settings, self.combine, &self.sizes)
    }

    /// What so many ranks will hold, in bytes.
    fn of_ranks(&self, ranks: u64) -> u64 {
        self.of_rank().total().saturating_mul(ranks)
    }

    /// Refuses a run that the memory of this machine does not hold, with what would make it fit.
    /// Collective.
    pub fn refuse_too_much(&self, job: &Job) -> Result<()> {
        let ranks = job.ranks_here(self.settings.mesh)? as u64;
        let Some(there) = bayesmesh::process_memory::available_bytes() else {
            return Ok(());
        };
        let needed = self.of_ranks(ranks);
        if needed <= there {
            return Ok(());
        }
        let Sizes { weights, numbers, .. } = self.sizes;
        let ranks_here = if ranks == 1 { "1 rank".to_owned() } else { format!("{ranks} ranks") };
        Err(Usage(format!(
            "this run needs about {} of memory, and {} are free: {weights} weights and {numbers} \
             trainable numbers on {ranks_here} here. {}",
            say::bytes(needed),
            say::bytes(there),
            self.remedy(ranks, there, job.is_launched())
        ))
        .into())
    }

    /// What makes a run fit, in words: one thing, if one is enough, else all that help.
    fn remedy(&self, ranks: u64, there: u64, launched: bool) -> String {
        let Settings { memory, shard_optimizer, mesh, .. } = self.settings;
        let with = |settings: Settings| Self { settings, ..*self };
        let mut changes: Vec<(&str, Self, u64)> = Vec::new();
        let mut all = with(self.settings.clone());
        if memory == Memory::Retain && self.combine != Combine::Mean {
            all.settings.memory = Memory::Recompute;
            let settings = Settings { memory: Memory::Recompute, ..self.settings.clone() };
            changes.push(("`train.memory = \"recompute\"`", with(settings), ranks));
        }
        if !shard_optimizer && mesh.size() > 1 {
            all.settings.shard_optimizer = true;
            let settings = Settings { shard_optimizer: true, ..self.settings.clone() };
            changes.push(("`train.shard_optimizer = true`", with(settings), ranks));
        }
        if let Some(activations) = self.checkpointed {
            all.sizes.activations = activations;
            let sizes = Sizes { activations, ..self.sizes };
            let needs = Self { sizes, ..with(self.settings.clone()) };
            changes.push(("`model.checkpoint_blocks = true`", needs, ranks));
        }
        if !launched && ranks > 1 {
            let settings = Settings { mesh: Mesh::serial(), ..self.settings.clone() };
            changes.push(("`--ranks 1`", with(settings), 1));
        }
        let fits = |needs: &Self, ranks: u64| needs.of_ranks(ranks) <= there;
        let enough = changes.iter().filter(|(_, needs, ranks)| fits(needs, *ranks));
        let enough: Vec<String> = enough
            .map(|(words, needs, ranks)| {
                format!("{words} (about {})", say::bytes(needs.of_ranks(*ranks)))
            })
            .collect();
        let together: Vec<&str> = changes
            .iter()
            .map(|(words, ..)| *words)
            .filter(|words| !words.starts_with("`--"))
            .collect();
        if !enough.is_empty() {
            format!("Any of these makes it fit: {}", enough.join(", "))
        } else if together.len() > 1 && fits(&all, ranks) {
            format!("Together these make it fit: {}", together.join(", "))
        } else {
            "Use a smaller `[model]` or `train.batch`, or fewer ranks on this machine".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(settings: Settings) -> Needs {
        let sizes = Sizes {
            weights: 100_000_000,
            numbers: 200_000_000,
            activations: 300_000_000,
            ..Sizes::default()
        };
        Needs { settings, combine: Combine::Moments, sizes, checkpointed: None }
    }

    #[test]
    fn what_makes_a_run_fit_is_told() {
        let settings = Settings {
            samples: 8,
            batch: 1,
            memory: Memory::Retain,
            mesh: Mesh::samples(2).unwrap(),
            ..Settings::default()
        };
        let told = |settings: &Settings, gigabytes: u64| {
            needs(settings.clone()).remedy(2, gigabytes * 1_000_000_000, false)
        };
        let words = told(&settings, 13);
        assert!(words.starts_with("Any of these makes it fit: `train.memory"), "{words}");
        let words = told(&settings, 9);
        assert!(words.starts_with("Together these make it fit: "), "{words}");
        assert!(words.contains("recompute") && words.contains("shard_optimizer"), "{words}");
        let frugal =
            Settings { memory: Memory::Recompute, shard_optimizer: true, ..settings.clone() };
        let words = told(&frugal, 8);
        assert!(words.contains("`--ranks 1` (about 4.6 GiB"), "{words}");
        assert!(told(&settings, 1).starts_with("Use a smaller"));
        let blocks = Needs { checkpointed: Some(50_000_000), ..needs(frugal) };
        let words = blocks.remedy(2, 8_000_000_000, false);
        assert!(words.contains("`model.checkpoint_blocks = true` (about "), "{words}");
    }
}
