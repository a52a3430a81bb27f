//! The use cases: data, the networks that they take, and what is shown of a result.
//!
//! A use case is one folder here and one line in [`BUILTIN`]. It says in [`UseCase`] what is its
//! own: the kinds of `[data]` with their keys, how they are loaded, what else is scored, drawn and
//! written. What all regressions or all classifications have in common is in
//! [`tasks`](crate::tasks); everything else is the same for all.

mod cifar10;
mod data_command;
mod entry;
mod era5;
mod images;
mod load;
mod picture;
mod series;
mod table;

pub use data_command::{DataCommand, DataVerb};
pub use entry::{Entry, Verb, entry};
pub(crate) use images::default_recipe as recipe_for_images;
pub(crate) use series::default_recipe as recipe_for_series;
pub(crate) use table::default_recipe as recipe_for_table;

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bayesmesh::loss::Loss;
use bayesmesh::metrics::Score;
use bayesmesh::{Dataset, Network, Posterior, Trainer};
use bayesmesh_report::Report;
use bayesmesh_schema::{Key, Kinds};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::models::{ModelEntry, Shape};
use crate::recipe::{Conflict, Recipe};
use crate::run::MetricsTable;
use crate::tasks::{AssessmentOf, TargetOf, Task};

/// The use cases of the program.
pub const BUILTIN: &[&dyn Entry] = &[
    entry::<load::Load>(),
    entry::<series::Series>(),
    entry::<cifar10::Cifar10>(),
    entry::<era5::Era5>(),
    entry::<images::Images>(),
    entry::<table::TableValues>(),
    entry::<table::TableClasses>(),
];

/// What networks of a use case take.
pub type InputOf<U> = <<U as UseCase>::Data as Dataset>::Input;

/// Any posterior over a network.
pub type AnyPosterior<N> = Box<dyn Posterior<Network = N>>;

/// Any loss of a use case.
pub type AnyLoss<U> = Arc<dyn Loss<Target = TargetOf<U>>>;

/// The trainer of a network in a use case.
pub type CaseTrainer<U, N> = Trainer<AnyPosterior<N>, AnyLoss<U>>;

/// A use case. The value is its data, loaded.
pub trait UseCase: Sized + 'static {
    /// What it is called at the command line, e.g. in `bayesmesh data fetch NAME`.
    const NAME: &'static str;
    /// What its networks take, in words: "a series".
    const INPUTS: &'static str;
    /// What an example is called: "window".
    const EXAMPLE: &'static str;
    /// The same in the plural.
    const EXAMPLES: &'static str;
    /// The most telling of its scores.
    const MAIN_SCORES: &'static [&'static str];
    /// Whether its examples are forecasts of series, which have a time
    /// ([`Dataset::moment`]).
    const SERIES: bool = false;

    /// The section `[data]` of a recipe: an enum whose variants are the kinds of data. A key `path`
    /// is where the data are; a run may go on where they have moved.
    type Settings: Kinds + DeserializeOwned;
    /// What is predicted: values or classes.
    type Task: Task;
    /// The examples.
    type Data: Dataset<Target = <Self::Task as Task>::Target>;
    /// What is scored beside what its task is scored by.
    type Extras;

    /// The networks that it takes.
    fn models() -> Vec<ModelEntry>;

    /// The shape of an example. It follows from the recipe alone, because weights can be exported
    /// where the data are not.
    fn shape(settings: &Self::Settings) -> Shape;

    /// Keys of `[data]` that follow from the data, with their values. They are found before a
    /// training and written into its recipe, so that everything else, a shape first of all, follows
    /// from that.
    fn resolve(settings: &Self::Settings, recipe: &Recipe) -> Result<toml::Table> {
        let _ = (settings, recipe);
        Ok(toml::Table::new())
    }

    /// Into how many divisions, chosen by the key `data.split_index`, the data come.
    fn splits(settings: &Self::Settings, recipe: &Recipe) -> Result<Splits> {
        let _ = (settings, recipe);
        Ok(Splits::One)
    }

    /// Keys of `[evaluate]` that only this use case has.
    fn evaluate_keys() -> Vec<Key> {
        Vec::new()
    }

    /// Keys that are right one by one but do not go together.
    fn conflicts(settings: &Self::Settings) -> Vec<Conflict> {
        let _ = settings;
        Vec::new()
    }

    /// Reads or generates the data of a recipe.
    fn load(settings: &Self::Settings, recipe: &Recipe) -> Result<Self>;

    /// The task, with what it needs to know of the data.
    fn task(&self) -> Self::Task;

    /// The loss of a recipe for these data. By default that of its task.
    fn loss(&self, recipe: &Recipe) -> Result<AnyLoss<Self>> {
        Self::Task::loss(recipe)
    }

    /// What checkpoints must say of the data so that predictions can be made without them, by name.
    fn notes(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What is trained on.
    fn train(&self) -> &Self::Data;

    /// What is scored after every epoch; nothing where no examples were set aside.
    fn valid(&self) -> Option<&Self::Data>;

    /// The examples for training and validation together, where a network is trained on both in
    /// the end: then a pilot is trained and calibrated before, and its calibration kept.
    fn refit(&self) -> Option<&Self::Data> {
        None
    }

    /// What the trained network is scored on.
    fn test(&self) -> &Self::Data;

    /// Where the data come from, in a few words.
    fn source(&self, recipe: &Recipe) -> String;

    /// How many examples of what shape there are, for the introduction of a run.
    fn describe(&self) -> String {
        let valid = self.valid().map_or(0, Dataset::len);
        let (train, test) = (self.train().len(), self.test().len());
        format!("{train} training, {valid} validation, {test} test {}", Self::EXAMPLES)
    }

    /// Groups of test examples for which coverage is counted apart; none by default.
    fn groups(&self) -> Option<Groups> {
        None
    }

    /// What was found in the data that a person should know before the training.
    fn findings(&self) -> Option<String> {
        None
    }

    /// Scores a trained network by what is this use case's own, on the whole mesh.
    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        trained: &Trained<'_, Self, N>,
        assessment: &AssessmentOf<Self>,
    ) -> Result<Self::Extras>;

    /// Scores of it, which follow those of the task.
    fn extra_scores(extras: &Self::Extras) -> Vec<Score> {
        let _ = extras;
        Vec::new()
    }

    /// What else of it the file of the evaluation has.
    fn details(extras: &Self::Extras) -> Map<String, Value> {
        let _ = extras;
        Map::new()
    }

    /// The most important scores as a table for a terminal.
    fn table(&self, assessment: &AssessmentOf<Self>, extras: &Self::Extras) -> String {
        let _ = extras;
        self.task().table(assessment)
    }

    /// The page of a run.
    fn report(&self, run: &Reported<'_, Self>) -> Report {
        self.task().report(run)
    }

    /// `bayesmesh predict`; the result is what `--json` prints. By default its task predicts the
    /// test examples, or those that [`read`](Self::read) finds in the file that is named.
    fn predict<N: Network<Input = InputOf<Self>> + 'static>(
        run: &mut TrainedRun<'_, Self, N>,
        arguments: &args::Predict,
    ) -> Result<Value> {
        let case = run.load()?;
        run.refuse_other_data(&case)?;
        run.calibrate(&case)?;
        let read;
        let examples = match &arguments.input {
            Some(path) => {
                read = case.read(path)?;
                &read
            }
            None => case.test(),
        };
        case.task().predict(run, examples, arguments)
    }

    /// Examples to predict from a file. By default there is no such file.
    fn read(&self, path: &Path) -> Result<Self::Data> {
        Err(Usage(format!(
            "{}: {} are predicted from the data of the run; leave the file out",
            path.display(),
            Self::EXAMPLES
        ))
        .into())
    }

    /// `bayesmesh data fetch | check | synth NAME`.
    fn data_commands() -> Vec<DataCommand> {
        Vec::new()
    }
}

/// How many divisions into training, validation and test part there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splits {
    /// One only.
    One,
    /// So many, counted from 0.
    Many(u64),
    /// As many as are asked for.
    Any,
}

/// Groups of test examples.
#[derive(Clone, Debug)]
pub struct Groups {
    /// What they are groups by: "time of day".
    pub by: &'static str,
    /// What each is called.
    pub names: Vec<String>,
    /// The group of each example.
    pub of: Vec<usize>,
}

/// A trained network with what it is scored on.
pub struct Trained<'a, U: UseCase, N: Network> {
    /// The data.
    pub case: &'a U,
    /// The recipe.
    pub recipe: &'a Recipe,
    /// The network.
    pub trainer: &'a CaseTrainer<U, N>,
    /// Draws of each prediction.
    pub draws: usize,
}

/// A run as its report shows it.
pub struct Reported<'a, U: UseCase> {
    /// The data.
    pub case: &'a U,
    /// The recipe.
    pub recipe: &'a Recipe,
    /// What it came to, as its task scores it.
    pub assessment: &'a AssessmentOf<U>,
    /// What it came to, as only this use case scores it.
    pub extras: &'a U::Extras,
    /// What was written down during training.
    pub metrics: &'a MetricsTable,
    /// What ran where: label and text of each fact.
    pub facts: &'a [(String, String)],
    /// Seconds of training, where it has just been trained.
    pub seconds: Option<f64>,
}
