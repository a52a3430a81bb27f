//! A use case as the list has it: without its types.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bayesmesh::Mesh;
use bayesmesh::checkpoint::Checkpoint;
use bayesmesh_schema::{Key, Kind, Kinds};
use serde_json::Value;

use super::{DataCommand, Splits, UseCase};
use crate::args;
use crate::job::Job;
use crate::models::ModelEntry;
use crate::recipe::{Conflict, Recipe};
use crate::run::RunFolder;
use crate::tasks::{Task, TaskInfo};

/// What is done with a use case and one of its networks.
pub enum Verb<'a> {
    /// Trains, or goes on with, the run in a folder, and scores it.
    Train {
        /// The ranks.
        mesh: Mesh,
        /// The folder.
        out: &'a Path,
        /// Whether to go on.
        resume: bool,
    },
    /// Scores a run.
    Evaluate(RunFolder, &'a args::Evaluate),
    /// Predicts with a run.
    Predict(RunFolder, &'a args::Predict),
    /// Writes the weights of a checkpoint, read from the path.
    Export(PathBuf, Checkpoint, &'a args::Export),
}

/// A use case, whatever its types.
pub trait Entry: Sync {
    /// What it is called at the command line.
    fn name(&self) -> &'static str;
    /// What its networks take, in words.
    fn inputs(&self) -> &'static str;
    /// The most telling of its scores.
    fn main_scores(&self) -> &'static [&'static str];
    /// The kinds of `[data]`.
    fn kinds(&self) -> Vec<Kind>;
    /// Its own keys of `[evaluate]`.
    fn evaluate_keys(&self) -> Vec<Key>;
    /// Whether its examples have an order in time.
    fn is_series(&self) -> bool;
    /// Whether predictions can be calibrated.
    fn calibrates(&self) -> bool;
    /// What is predicted.
    fn task(&self) -> &'static TaskInfo;
    /// The networks that it takes.
    fn models(&self) -> Vec<ModelEntry>;
    /// Keys of `[data]` that are right one by one but do not go together.
    fn conflicts(&self, recipe: &Recipe) -> Result<Vec<Conflict>>;
    /// The smallest number of draws for which the loss of a recipe is defined.
    fn least_draws(&self, recipe: &Recipe) -> Result<usize>;
    /// `bayesmesh data …`.
    fn data_commands(&self) -> Vec<DataCommand>;
    /// A recipe with what follows from its data.
    fn resolved(&self, recipe: Recipe) -> Result<Recipe>;
    /// Into how many divisions its data come.
    fn splits(&self, recipe: &Recipe) -> Result<Splits>;

    /// Does something with the network of a recipe.
    fn run(&self, job: &Job, recipe: Recipe, verb: Verb<'_>) -> Result<Value> {
        let models = self.models();
        let model = models.iter().find(|model| model.name == recipe.kind("model"));
        (model.expect("recipes with other networks are refused").run)(job, recipe, verb)
    }
}

struct Registered<U>(PhantomData<fn() -> U>);

/// A use case for the list of a program.
pub const fn entry<U: UseCase>() -> &'static dyn Entry {
    &Registered::<U>(PhantomData)
}

impl<U: UseCase> Entry for Registered<U> {
    fn name(&self) -> &'static str {
        U::NAME
    }

    fn inputs(&self) -> &'static str {
        U::INPUTS
    }

    fn main_scores(&self) -> &'static [&'static str] {
        U::MAIN_SCORES
    }

    fn kinds(&self) -> Vec<Kind> {
        U::Settings::section().kinds
    }

    fn evaluate_keys(&self) -> Vec<Key> {
        U::evaluate_keys()
    }

    fn is_series(&self) -> bool {
        U::SERIES
    }

    fn calibrates(&self) -> bool {
        U::Task::CALIBRATES
    }

    fn task(&self) -> &'static TaskInfo {
        U::Task::INFO
    }

    fn models(&self) -> Vec<ModelEntry> {
        U::models()
    }

    fn conflicts(&self, recipe: &Recipe) -> Result<Vec<Conflict>> {
        Ok(U::conflicts(&recipe.section("data")?))
    }

    fn least_draws(&self, recipe: &Recipe) -> Result<usize> {
        Ok(U::Task::loss(recipe)?.least_draws())
    }

    fn data_commands(&self) -> Vec<DataCommand> {
        U::data_commands()
    }

    fn resolved(&self, recipe: Recipe) -> Result<Recipe> {
        let keys = U::resolve(&recipe.section("data")?, &recipe)?;
        recipe.with_data(keys).settled()
    }

    fn splits(&self, recipe: &Recipe) -> Result<Splits> {
        U::splits(&recipe.section("data")?, recipe)
    }
}
