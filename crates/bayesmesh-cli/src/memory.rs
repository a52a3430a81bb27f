//! How much memory a run will take.

use bayesmesh::{Mesh, Posterior};

use crate::recipe::{Memory, Recipe};
use crate::use_case::UseCase;

/// What one rank will hold, in bytes, beside the program and the data: trainable numbers with
/// gradients, optimiser state and the copies of a step, and the activations of the draws that are
/// kept at once.
pub fn predicted_per_rank<U: UseCase>(
    recipe: &Recipe,
    posterior: &impl Posterior,
    mesh: Mesh,
) -> u64 {
    // Values, their tensors, sum over draws, sum over ranks.
    const COPIES: u64 = 4;
    // Gradient and value tensors of the optimiser, two moments and two temporaries of its step.
    const OPTIMIZER_COPIES: u64 = 6;
    let numbers = posterior.parameters().values().len() as u64;
    let train = &recipe.train;
    let parts = if train.shard_optimizer { mesh.size() as u64 } else { 1 };
    let draws = match train.memory {
        Memory::Retain => train.samples.div_ceil(mesh.samples_size()) as u64,
        Memory::Recompute => 1,
    };
    let rows = train.batch.div_ceil(mesh.data_size()) as u64;
    let copies = COPIES * numbers + (OPTIMIZER_COPIES * numbers).div_ceil(parts);
    4 * (copies + draws * rows * U::activations(recipe))
}
