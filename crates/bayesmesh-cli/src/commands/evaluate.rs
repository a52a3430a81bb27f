//! `bayesmesh evaluate`, and the end of every training.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bayesmesh::Mesh;
use bayesmesh::checkpoint::{Checkpoint, Store};
use bayesmesh_report::format_number;
use serde_json::{Value, json};

use super::{mesh, train};
use crate::args;
use crate::build::{TrainerOf, trainer};
use crate::exit::Usage;
use crate::recipe::Recipe;
use crate::run::{MetricsTable, RunFolder};
use crate::say;
use crate::use_case::{RunFacts, UseCase, for_use_case};

/// The file of a run with its scores and what predictions need.
const EVALUATION: &str = "evaluation.json";

/// What training gives to its end.
pub struct Finished {
    /// Seconds of training in this process.
    pub seconds: Option<f64>,
    /// Steps done in this process.
    pub steps: usize,
}

/// A trained run, read from its folder.
pub struct TrainedRun<U: UseCase> {
    pub folder: RunFolder,
    pub recipe: Recipe,
    pub trainer: TrainerOf<U>,
}

impl<U: UseCase> TrainedRun<U> {
    /// Reads the last checkpoint of a run whose recipe has been read.
    pub fn open(folder: RunFolder, recipe: Recipe, ranks: &args::Ranks) -> Result<Self> {
        let mesh: Mesh = mesh(ranks, recipe.train.samples)?;
        let mut trainer = trainer::<U>(&recipe, mesh, 1)?;
        let (path, checkpoint) = latest_checkpoint(&folder)?;
        trainer.restore(&checkpoint, &path)?;
        Ok(Self { folder, recipe, trainer })
    }

    /// What the last evaluation has written.
    pub fn evaluation(&self) -> Result<Value> {
        let remedy = || self.not_scored();
        let text = self.folder.read(EVALUATION).with_context(remedy)?;
        serde_json::from_str(&text).with_context(remedy)
    }

    /// What to do where the evaluation is missing or lacks something.
    pub fn not_scored(&self) -> String {
        let path = self.folder.path().display();
        format!("{path} has not been scored; run `bayesmesh evaluate {path}` first")
    }
}

/// The folder of a run and the recipe in it.
pub fn open_run(path: &Path) -> Result<(RunFolder, Recipe)> {
    let folder = RunFolder::open(path)?;
    let recipe = Recipe::load(&folder.recipe(), &[])?;
    Ok((folder, recipe))
}

/// The newest readable checkpoint of a run; a warning for each damaged one that is newer. Where all
/// are damaged, the error of the newest.
pub fn latest_checkpoint(folder: &RunFolder) -> Result<(PathBuf, Checkpoint)> {
    let latest = Store::open(folder.checkpoints())?.latest()?;
    let Some(found) = latest.found else {
        let none = format!("{} has no checkpoint yet; train it first", folder.path().display());
        return Err(latest.skipped.into_iter().next().map_or(Usage(none).into(), Into::into));
    };
    for problem in &latest.skipped {
        eprintln!("warning: {problem}");
    }
    Ok(found)
}

/// Scores a run on its test data and writes its report anew.
pub fn evaluate(arguments: &args::Evaluate) -> Result<Value> {
    let (folder, recipe) = open_run(&arguments.run)?;
    for_use_case!(recipe, U => score(TrainedRun::<U>::open(folder, recipe, &arguments.ranks)?, arguments.draws))
}

fn score<U: UseCase>(run: TrainedRun<U>, draws: Option<usize>) -> Result<Value> {
    let TrainedRun { folder, recipe, trainer } = run;
    let case = U::load(&recipe)?;
    let draws = draws.unwrap_or(recipe.evaluate.draws);
    if draws < U::LEAST_DRAWS {
        let least = U::LEAST_DRAWS;
        let message =
            format!("a prediction needs at least {least} draws; use --draws {least} or more");
        return Err(Usage(message).into());
    }
    let finished = Finished { seconds: None, steps: 0 };
    finish(&folder, &recipe, &case, &trainer, draws, finished)
}

/// Scores, report, table and JSON object of a trained network.
pub fn finish<U: UseCase>(
    folder: &RunFolder,
    recipe: &Recipe,
    case: &U,
    trainer: &TrainerOf<U>,
    draws: usize,
    finished: Finished,
) -> Result<Value> {
    let assessment = case.assess(trainer, recipe, draws)?;
    let digest = trainer.checkpoint().digest();
    let mut facts = train::facts(recipe, case, trainer, &digest);
    if let Some(seconds) = finished.seconds.filter(|_| finished.steps > 0) {
        let rate =
            finished.steps as f64 * (recipe.train.samples * recipe.train.batch) as f64 / seconds;
        let text = format!("{} example-draws a second", format_number(rate, 0));
        facts.push(("Training rate".to_owned(), text));
        let waiting = format!("{:.1} % of the time of the steps", 100.0 * trainer.time().waiting());
        facts.push(("Waiting for data".to_owned(), waiting));
    }
    let run_facts = RunFacts { facts, seconds: finished.seconds };
    let metrics = MetricsTable::read(folder.metrics())?;
    let page = case.report(recipe, &assessment, &metrics, &run_facts);
    let path = folder.write("report.html", page.to_html())?;

    let test = Value::Object(U::scores(&assessment));
    let mut result = train::outcome::<U>(trainer, &digest, folder.path().to_path_buf());
    result["test"] = test.clone();
    result["draws"] = json!(draws);
    result["report"] = json!(path);
    if let Some(seconds) = finished.seconds {
        result["seconds"] = json!(seconds);
        result["waiting"] = json!(trainer.time().waiting());
    }
    let mut evaluation = json!({ "step": trainer.step(), "draws": draws, "test": test });
    for (name, value) in U::details(&assessment) {
        evaluation[name] = value;
    }
    folder.write(EVALUATION, format!("{evaluation:#}\n"))?;

    eprintln!("\n{}", U::table(&assessment));
    if let Some(seconds) = finished.seconds {
        eprintln!("trained in {}", say::seconds(seconds));
    }
    eprintln!("report: {}", path.display());
    Ok(result)
}
