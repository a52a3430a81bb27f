//! A recipe as the library's types.

mod posterior;
mod settings;

pub use posterior::AnyPosterior;

use anyhow::Result;
use bayesmesh::{Mesh, Place, Posterior, Trainer};

use crate::recipe::Recipe;
use crate::use_case::UseCase;

/// The trainer of a use case.
pub type TrainerOf<U> = Trainer<AnyPosterior<<U as UseCase>::Network>, <U as UseCase>::Loss>;

/// The trainer that a recipe describes, at step zero. `steps` is how long the run will be, which
/// some schedules need to know.
pub fn trainer<U: UseCase>(
    place: Place,
    recipe: &Recipe,
    mesh: Mesh,
    steps: usize,
) -> Result<TrainerOf<U>> {
    let loss = U::loss(&recipe.loss)?;
    let network = U::network(recipe, &loss);
    let posterior = posterior::posterior(&recipe.posterior, network)?;
    let posterior = posterior.initialised(recipe.train.seed);
    Ok(Trainer::at(place, posterior, loss, settings::settings(recipe, mesh, steps))?)
}
