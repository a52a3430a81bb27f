//! The networks that recipes can name: the library's own configurations, and what the program needs
//! to know of each.

mod globe_cnn;
mod mlp;
mod patch_transformer;
mod resnet;
mod swin;
mod vit;

use anyhow::Result;
use bayesmesh::Network;
use bayesmesh_models::PyTorch;
use bayesmesh_schema::{Keys, Kind};
use burn::tensor::Device;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::commands;
use crate::job::Job;
use crate::recipe::{Conflict, Recipe};
use crate::use_cases::{InputOf, UseCase, Verb};

/// The shape of an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Axes of the input: `[values]`, or `[channels, height, width]`.
    pub inputs: Vec<usize>,
    /// Numbers that are predicted, or classes.
    pub outputs: usize,
    /// The number of codes of each categorical column, which are the last of the input: 0, which is
    /// a missing or unknown value, included. Empty where all inputs are numbers.
    pub categories: Vec<usize>,
    /// Where an example is a window of series: columns of the past, and steps of each, which come
    /// first.
    pub history: Option<[usize; 2]>,
}

impl Shape {
    /// An example whose inputs are all numbers.
    pub fn new(inputs: Vec<usize>, outputs: usize) -> Self {
        Self { inputs, outputs, categories: Vec::new(), history: None }
    }
}

/// A network by its sizes, as `[model]` has them.
pub trait Model: Keys + DeserializeOwned + 'static {
    /// The value of `model.kind`.
    const KIND: &'static str;
    /// What it is called in messages: "a perceptron".
    const NOUN: &'static str;
    /// The network.
    type Network: Network + PyTorch + 'static;

    /// With the sizes that follow from the data.
    #[must_use]
    fn shaped(self, shape: &Shape) -> Self;

    /// The network.
    fn init(&self, device: &Device) -> Self::Network;

    /// How many weights it has.
    fn weights(&self) -> u64;

    /// How many numbers it holds for one example and one draw between its forward and its backward
    /// pass.
    fn activations(&self) -> u64;

    /// The same with `model.checkpoint_blocks`, for a network that has the key and not set it: what
    /// it holds then.
    fn checkpointed_activations(&self) -> Option<u64> {
        None
    }

    /// Keys that are right one by one but do not go together.
    fn conflicts(&self, recipe: &Recipe) -> Vec<Conflict>;
}

/// A network that a use case takes, whatever its type.
#[derive(Clone, Copy)]
pub struct ModelEntry {
    /// The value of `model.kind`.
    pub name: &'static str,
    /// What it is called in messages.
    pub noun: &'static str,
    /// Its keys.
    pub kind: fn() -> Kind,
    /// What fits each of its keys but not the others.
    pub conflicts: fn(&Recipe) -> Result<Vec<Conflict>>,
    /// Does something with it.
    pub run: fn(&Job, Recipe, Verb<'_>) -> Result<Value>,
}

impl ModelEntry {
    /// For the list of a use case.
    pub fn of<U: UseCase, M: Model<Network: Network<Input = InputOf<U>>>>() -> Self {
        Self {
            name: M::KIND,
            noun: M::NOUN,
            kind: || Kind::of::<M>(M::KIND),
            conflicts: |recipe| {
                let model = recipe.section::<M>("model")?;
                // Data of another use case, which is refused for that, have no shape for it.
                let data = recipe.section::<U::Settings>("data");
                let model = match data {
                    Ok(data) => model.shaped(&U::shape(&data)),
                    Err(_) => model,
                };
                Ok(model.conflicts(recipe))
            },
            run: commands::run_with::<U, M>,
        }
    }
}
