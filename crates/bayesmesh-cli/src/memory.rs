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
    // Values, their tensors, sum over draws, sum over ranks, gradient and value tensors of the
    // optimiser, two moments and two temporaries of its step.
    const COPIES: u64 = 10;
    let numbers = posterior.parameters().values().len() as u64;
    let train = &recipe.train;
    let draws = match train.memory {
        Memory::Retain => train.samples.div_ceil(mesh.samples_size()) as u64,
        Memory::Recompute => 1,
    };
    let rows = train.batch.div_ceil(mesh.data_size()) as u64;
    4 * (COPIES * numbers + draws * rows * U::activations(recipe))
}
