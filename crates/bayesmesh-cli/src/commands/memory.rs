//! How much memory a run will take.

use bayesmesh::Mesh;
use bayesmesh::trainer::Memory;

use crate::exit::Usage;
use crate::job::Job;
use crate::models::Model;
use crate::recipe::Recipe;
use crate::say;

/// What one rank will hold, in bytes, beside the program and the data: trainable numbers with
/// gradients, optimiser state and the copies of a step, and the activations of the draws that are
/// kept at once.
pub fn predicted_per_rank(recipe: &Recipe, numbers: u64, activations: u64, mesh: Mesh) -> u64 {
    // Values, their tensors, sum over draws, sum over ranks.
    const COPIES: u64 = 4;
    // Gradient and value tensors of the optimiser, two moments and two temporaries of its step.
    const OPTIMIZER_COPIES: u64 = 6;
    let train = &recipe.train;
    let parts = if train.shard_optimizer { mesh.size() as u64 } else { 1 };
    let draws = match train.memory {
        Memory::Retain => train.samples.div_ceil(mesh.samples_size()) as u64,
        Memory::Recompute => 1,
    };
    let rows = train.batch.div_ceil(mesh.data_size()) as u64;
    let optimizer = numbers.saturating_mul(OPTIMIZER_COPIES).div_ceil(parts);
    let copies = numbers.saturating_mul(COPIES).saturating_add(optimizer);
    let held = draws.saturating_mul(rows).saturating_mul(activations);
    copies.saturating_add(held).saturating_mul(4)
}

/// Refuses a network that the memory of this machine does not hold, before anything of it is made.
/// Collective.
pub fn refuse_too_much(
    job: &Job,
    recipe: &Recipe,
    model: &impl Model,
    mesh: Mesh,
) -> anyhow::Result<()> {
    let ranks = job.ranks_here(mesh)? as u64;
    let Some(there) = bayesmesh::process_memory::available_bytes() else {
        return Ok(());
    };
    let weights = model.weights();
    let numbers = weights.saturating_mul(recipe.posterior()?.numbers_per_weight());
    let rank = predicted_per_rank(recipe, numbers, model.activations(), mesh);
    let needed = rank.saturating_mul(ranks);
    if needed <= there {
        return Ok(());
    }
    Err(Usage(format!(
        "this run needs about {} of memory, and {} are free: {weights} weights and {numbers} \
         trainable numbers on {ranks} rank{} here. Use a smaller `[model]` or `train.batch`{}, or \
         fewer ranks",
        say::bytes(needed),
        say::bytes(there),
        if ranks == 1 { "" } else { "s" },
        match recipe.train.memory {
            Memory::Retain => ", `train.memory = \"recompute\"`",
            Memory::Recompute => "",
        }
    ))
    .into())
}
