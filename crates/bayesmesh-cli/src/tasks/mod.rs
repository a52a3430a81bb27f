//! What is predicted: values or classes. What all use cases of a task have in common stands here
//! once: losses, scores, tables, plots and files of predictions.

pub mod classification;
pub mod curves;
pub mod fields;
pub mod regression;

use std::sync::Arc;

use anyhow::Result;
use bayesmesh::Network;
use bayesmesh::data::Target;
use bayesmesh::loss::Loss;
use bayesmesh::metrics::{FieldLayout, Score};
use bayesmesh_report::{KeyFigure, Report, Section};
use bayesmesh_schema::Kind;
use serde_json::{Map, Value};

use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::recipe::Recipe;
use crate::run::MetricsTable;
use crate::use_cases::{InputOf, Reported, Trained, UseCase};

/// A task in words, with the losses that recipes can name for it.
#[derive(Debug)]
pub struct TaskInfo {
    /// "regression"
    pub name: &'static str,
    /// "numbers"
    pub predicts: &'static str,
    /// Whether these are classes.
    pub classes: bool,
    /// The kinds of `[loss]`.
    pub losses: fn() -> Vec<Kind>,
    /// One of them.
    pub example: &'static str,
}

/// What the names of scores before calibration end with.
pub const RAW: &str = "_raw";

/// Scores with those before calibration, under names that say so.
pub(crate) fn with_raw(mut scores: Vec<Score>, raw: Vec<Score>) -> Vec<Score> {
    let raw = raw.into_iter();
    scores.extend(raw.map(|score| Score { name: format!("{}{RAW}", score.name), ..score }));
    scores
}

/// Targets of a use case.
pub type TargetOf<U> = <<U as UseCase>::Task as Task>::Target;

/// What a network came to in a use case.
pub type AssessmentOf<U> = <<U as UseCase>::Task as Task>::Assessment;

/// What is predicted. The value is what has to be known of the data: units, names of classes.
pub trait Task: Sized + 'static {
    /// The task in words.
    const INFO: &'static TaskInfo;
    /// The smallest number of draws for which a prediction can be scored.
    const LEAST_DRAWS: usize;
    /// Whether predictions can be calibrated, output by output.
    const CALIBRATES: bool = true;
    /// Targets of a batch.
    type Target: Target;
    /// What a trained network came to on the test data.
    type Assessment: Assessment;

    /// The loss of a recipe.
    fn loss(recipe: &Recipe) -> Result<Arc<dyn Loss<Target = Self::Target>>>;

    /// How the outputs are divided into fields, where they are.
    fn layout(&self) -> Option<FieldLayout> {
        None
    }

    /// The scores on validation data that are kept.
    fn validation(&self, loss: &dyn Loss<Target = Self::Target>) -> Validation;

    /// Scores a trained network on the test data, on the whole mesh.
    fn assess<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        trained: &Trained<'_, U, N>,
    ) -> Result<Self::Assessment>;

    /// The most important scores as a table for a terminal.
    fn table(&self, assessment: &Self::Assessment) -> String;

    /// The page of a run that has nothing more to show than its task.
    fn report<U: UseCase<Task = Self>>(&self, run: &Reported<'_, U>) -> Report;

    /// Predicts examples and writes a file; the result is what `--json` prints.
    fn predict<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        run: &TrainedRun<'_, U, N>,
        examples: &U::Data,
        arguments: &args::Predict,
    ) -> Result<Value>;
}

/// What a trained network came to.
pub trait Assessment {
    /// Scores by name.
    fn scores(&self) -> &[Score];

    /// What else the file of the evaluation has: curves, and what predictions need.
    fn details(&self) -> Map<String, Value>;

    /// A score by name; not a number where there is none.
    fn score(&self, name: &str) -> f64 {
        find(self.scores(), name)
    }
}

/// A score by name; not a number where there is none.
pub(crate) fn find(scores: &[Score], name: &str) -> f64 {
    scores.iter().find(|score| score.name == name).map_or(f64::NAN, |score| score.value)
}

/// Scores on validation data.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Those that are written down after every epoch.
    pub columns: Vec<ValidationColumn>,
    /// The score of the library that makes a checkpoint the best one: the lowest does.
    pub judge: &'static str,
}

impl Validation {
    /// The scores by which the best checkpoint was chosen, epoch by epoch, of those written down.
    pub fn judged(&self, metrics: &MetricsTable) -> Vec<f64> {
        let column = self.columns.iter().find(|column| column.score == self.judge);
        let column = column.and_then(|column| {
            let points = metrics.column(&format!("validation_{}", column.name))?;
            Some(points.into_iter().map(|(_, value)| value / column.unit).collect())
        });
        column.unwrap_or_default()
    }
}

/// A score on validation data as it is written down.
#[derive(Clone, Debug)]
pub struct ValidationColumn {
    /// Its name, with its unit if it has one.
    pub name: String,
    /// The score of the library that it comes from.
    pub score: &'static str,
    /// What that is multiplied by.
    pub unit: f64,
}

/// How many rows are predicted at a time so that their draws stay within a gigabyte: so many, or
/// fewer where there are very many draws.
pub(crate) fn rows_at_a_time(rows: usize, outputs: usize, draws: usize) -> usize {
    const MOST: usize = 1 << 30;
    let row = outputs.max(1).saturating_mul(draws.max(1)).saturating_mul(size_of::<f32>());
    rows.min(MOST / row).max(1)
}

/// How many of so many rows are predicted: all, or the first ones that `--limit` asks for.
pub(crate) fn rows_asked_for(rows: usize, limit: Option<usize>) -> Result<usize> {
    match limit {
        Some(0) => Err(Usage("--limit 0 is not possible; use 1 or more".to_owned()).into()),
        Some(limit) if limit > rows => Err(Usage(format!(
            "--limit {limit}: there are {rows} only; use at most as many, or leave it out"
        ))
        .into()),
        limit => Ok(limit.unwrap_or(rows)),
    }
}

/// The rows of a data set, a chunk at a time.
pub(crate) fn chunks(rows: usize, size: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..rows).step_by(size).map(move |first| (first..rows.min(first + size)).collect())
}

/// How long training took, for the head of a report.
pub(crate) fn training_figure<U: UseCase>(run: &Reported<'_, U>) -> Option<KeyFigure> {
    let seconds = run.seconds?;
    let (value, unit) = match seconds {
        s if s < 60.0 => (s, "s"),
        s if s < 3600.0 => (s / 60.0, "min"),
        s => (s / 3600.0, "h"),
    };
    let note = format!("{} draws a step", run.recipe.train.samples);
    Some(KeyFigure::new("Training", format!("{value:.1}")).unit(unit).note(note))
}

/// The page of a run from its parts; what ran where comes last.
pub(crate) fn page<U: UseCase>(
    run: &Reported<'_, U>,
    lead: String,
    mut headline: Vec<KeyFigure>,
    mut sections: Vec<Section>,
    note: Option<String>,
) -> Report {
    use bayesmesh_report::Block;
    headline.extend(training_figure(run));
    let mut facts = Section::new("What ran where").with(Block::Facts(run.facts.to_vec()));
    if let Some(note) = note {
        facts = facts.with(Block::Note(note));
    }
    sections.push(facts);
    Report {
        title: run.recipe.name.clone(),
        lead,
        headline,
        sections,
        footer: format!("Made by BayesMesh {}.", env!("CARGO_PKG_VERSION")),
    }
}
