//! What a use case tells the commands: from its data to its report.

use anyhow::Result;
use bayesmesh::metrics::Score;
use bayesmesh::{Dataset, Loss, Network};
use bayesmesh_report::Report;
use serde_json::{Map, Value, json};

use crate::args;
use crate::build::TrainerOf;
use crate::commands::TrainedRun;
use crate::recipe::{self, Recipe};
use crate::run::MetricsTable;

/// A use case: data, network and loss that fit each other, and how the result is scored and shown.
/// The value is its data, loaded.
pub trait UseCase: Sized {
    /// The network.
    type Network: Network;
    /// What is minimised.
    type Loss: Loss;
    /// The examples.
    type Data: Dataset<Input = <Self::Network as Network>::Input, Target = <Self::Loss as Loss>::Target>;
    /// What the network came to on the test data.
    type Assessment;

    /// What an example is called, in the plural.
    const EXAMPLES: &'static str;

    /// The most telling of its scores.
    const MAIN_SCORES: &'static [&'static str];

    /// The smallest number of draws for which a prediction can be scored.
    const LEAST_DRAWS: usize;

    /// Reads or generates the data of a recipe.
    fn load(recipe: &Recipe) -> Result<Self>;

    /// The loss of a recipe.
    fn loss(loss: &recipe::Loss) -> Result<Self::Loss>;

    /// The network of a recipe, with outputs as the loss reads them.
    fn network(recipe: &Recipe, loss: &Self::Loss) -> Self::Network;

    /// How many numbers the network holds for one example and one draw between its forward and its
    /// backward pass.
    fn activations(recipe: &Recipe) -> u64;

    /// What is trained on.
    fn train(&self) -> &Self::Data;

    /// What is scored after every epoch; nothing where no examples were set aside.
    fn valid(&self) -> Option<&Self::Data>;

    /// What the trained network is scored on.
    fn test(&self) -> &Self::Data;

    /// How many examples of what shape there are, for the introduction of a run.
    fn describe(&self) -> String;

    /// What was found in the data that a person should know before the training.
    fn findings(&self) -> Option<String>;

    /// Where the data come from, in a few words.
    fn source(&self, recipe: &Recipe) -> String;

    /// The scores on validation data that are kept.
    fn validation(&self, loss: &Self::Loss) -> Validation;

    /// Scores a trained network on the test data, on the whole mesh.
    fn assess(
        &self,
        trainer: &TrainerOf<Self>,
        recipe: &Recipe,
        draws: usize,
    ) -> Result<Self::Assessment>;

    /// The scores, as the object `test` has them. What is not a number is null.
    fn scores(assessment: &Self::Assessment) -> Map<String, Value>;

    /// What else the file of the evaluation has: curves, and what predictions need.
    fn details(assessment: &Self::Assessment) -> Map<String, Value>;

    /// The most important scores as a table for a terminal.
    fn table(assessment: &Self::Assessment) -> String;

    /// The page of a run.
    fn report(
        &self,
        recipe: &Recipe,
        assessment: &Self::Assessment,
        metrics: &MetricsTable,
        facts: &RunFacts,
    ) -> Report;

    /// `bayesmesh predict`; the result is what `--json` prints.
    fn predict(run: &TrainedRun<'_, Self>, arguments: &args::Predict) -> Result<Value>;
}

/// The standard errors of scores, for the file of the evaluation: of each score that over draws and
/// that over examples, null where it is not known.
pub fn standard_errors(scores: &[Score]) -> Value {
    let errors = |score: &Score| json!({ "draws": score.se_draws, "examples": score.se_examples });
    scores.iter().map(|score| (score.name.clone(), errors(score))).collect::<Map<_, _>>().into()
}

/// Evaluates an expression with the use case of a recipe as a type: `for_use_case!(recipe, U =>
/// train::<U>(…))`.
macro_rules! for_use_case {
    ($recipe:expr, $case:ident => $call:expr) => {
        match $recipe.data.task() {
            $crate::recipe::Task::Regression => {
                type $case = $crate::forecast::Forecast;
                $call
            }
            $crate::recipe::Task::Classification => {
                type $case = $crate::classify::Classification;
                $call
            }
        }
    };
}

pub(crate) use for_use_case;

/// Scores on validation data.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Those that are written down after every epoch.
    pub columns: Vec<ValidationColumn>,
    /// The score of the library that makes a checkpoint the best one: the lowest does.
    pub judge: &'static str,
}

/// A score on validation data as it is written down.
#[derive(Clone, Debug)]
pub struct ValidationColumn {
    /// Its name, with its unit if it has one.
    pub name: &'static str,
    /// The score of the library that it comes from.
    pub score: &'static str,
    /// What that is multiplied by.
    pub unit: f64,
}

/// What ran where.
pub struct RunFacts {
    /// Label and text of each fact.
    pub facts: Vec<(String, String)>,
    /// Seconds of training.
    pub seconds: Option<f64>,
}
