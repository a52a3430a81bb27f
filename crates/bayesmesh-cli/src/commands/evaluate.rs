//! `bayesmesh evaluate`, and the end of every training.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bayesmesh::Dataset as _;
use bayesmesh::checkpoint::{Checkpoint, Store};
use bayesmesh::trainer::Time;
use bayesmesh_report::format_number;
use serde_json::{Value, json};

use super::train;
use crate::args;
use crate::build::TrainerOf;
use crate::exit::Usage;
use crate::job::Job;
use crate::recipe::Recipe;
use crate::run::{MetricsTable, RunFolder};
use crate::say::{self, say};
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

impl Finished {
    /// What a step took, and how much of it was spent waiting, for people.
    fn each_step(&self, time: &Time) -> String {
        if self.steps == 0 {
            return String::new();
        }
        let each = time.seconds / self.steps as f64;
        let each = match each < 1.0 {
            true => format!("{:.2} ms", 1e3 * each),
            false => format!("{each:.2} s"),
        };
        let data = 100.0 * time.waiting();
        let mut text = format!(": {each} a step, of which {data:.1} % waiting for data");
        if time.communication > 0.0 {
            text += &format!(" and {:.1} % for other ranks", 100.0 * time.exposure());
        }
        text
    }
}

/// A trained run, read from its folder.
pub struct TrainedRun<'a, U: UseCase> {
    pub job: &'a Job,
    pub folder: RunFolder,
    pub recipe: Recipe,
    pub trainer: TrainerOf<U>,
    /// The checksum of what it was trained on, as far as the first process knows it.
    data: Option<String>,
}

impl<'a, U: UseCase> TrainedRun<'a, U> {
    /// Reads the last checkpoint of a run whose recipe has been read.
    pub fn open(
        job: &'a Job,
        folder: RunFolder,
        recipe: Recipe,
        ranks: &args::Ranks,
    ) -> Result<Self> {
        job.agree(&recipe.keys())?;
        let mesh = job.mesh(ranks, &recipe)?;
        let mut trainer = job.trainer::<U>(&recipe, mesh, 1)?;
        let mut data = None;
        let found = restore_latest::<U>(job, &folder.checkpoints(), &mut trainer, |checkpoint| {
            data = checkpoint.metadata.get(train::DATA).cloned();
            Ok(())
        })?;
        found.ok_or_else(|| no_checkpoint(&folder))?;
        job.pass_on_warnings()?;
        Ok(Self { job, folder, recipe, trainer, data })
    }

    /// Refuses data of other training examples: what they were normalised by would be another.
    pub fn refuse_other_data(&self, case: &U) -> Result<()> {
        let data = case.train().checksum().unwrap_or_default();
        train::refuse_other_data(self.folder.path(), self.data.as_ref(), &data)
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

/// The folder of a run and the recipe in it, with keys changed.
pub fn open_run(path: &Path, set: &[String]) -> Result<(RunFolder, Recipe)> {
    let folder = RunFolder::open(path)?;
    let recipe = Recipe::load(&folder.recipe(), set)?;
    Ok((folder, recipe))
}

/// The newest readable checkpoint of a run, which must have one.
pub fn latest_checkpoint(folder: &RunFolder) -> Result<(PathBuf, Checkpoint)> {
    find_checkpoint(&folder.checkpoints())?.ok_or_else(|| no_checkpoint(folder))
}

fn no_checkpoint(folder: &RunFolder) -> anyhow::Error {
    let path = folder.path().display();
    Usage(format!("{path} has no checkpoint yet; train it first")).into()
}

/// The newest readable checkpoint in a folder, if there is any; a warning for each damaged one that
/// is newer. Where all are damaged, the error of the newest.
fn find_checkpoint(folder: &Path) -> Result<Option<(PathBuf, Checkpoint)>> {
    let latest = Store::open(folder)?.latest()?;
    for problem in latest.skipped {
        if latest.found.is_none() {
            return Err(problem.into());
        }
        say::warn(problem.to_string());
    }
    Ok(latest.found)
}

/// Gives a trainer the newest readable checkpoint in a folder, if there is any and it passes a
/// check; its path. Only the first process reads it, and sends it to the others.
pub fn restore_latest<U: UseCase>(
    job: &Job,
    folder: &Path,
    trainer: &mut TrainerOf<U>,
    check: impl FnOnce(&Checkpoint) -> Result<()>,
) -> Result<Option<PathBuf>> {
    let mut own = None;
    let name = job.first(|| {
        let Some((path, checkpoint)) = find_checkpoint(folder)? else {
            return Ok(String::new());
        };
        check(&checkpoint)?;
        own = Some(checkpoint);
        Ok(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    })?;
    if name.is_empty() {
        return Ok(None);
    }
    let path = folder.join(name);
    trainer.restore_from_first(own, &path)?;
    Ok(Some(path))
}

/// Scores a run on its test data and writes its report anew.
pub fn evaluate(job: &Job, arguments: &args::Evaluate) -> Result<Value> {
    let (folder, recipe) = open_run(&arguments.run, &arguments.set)?;
    for_use_case!(recipe, U => {
        score(TrainedRun::<U>::open(job, folder, recipe, &arguments.ranks)?, arguments.draws)
    })
}

fn score<U: UseCase>(run: TrainedRun<'_, U>, draws: Option<usize>) -> Result<Value> {
    let case = U::load(&run.recipe)?;
    run.refuse_other_data(&case)?;
    let TrainedRun { job, folder, recipe, trainer, .. } = run;
    let draws = draws.unwrap_or(recipe.evaluate.draws);
    if draws < U::LEAST_DRAWS {
        let least = U::LEAST_DRAWS;
        let message =
            format!("a prediction needs at least {least} draws; use --draws {least} or more");
        return Err(Usage(message).into());
    }
    let finished = Finished { seconds: None, steps: 0 };
    let folder = job.leads().then_some(&folder);
    finish(job, folder, &recipe, &case, &trainer, draws, finished)
}

/// How long a step's gradients were on their way to other ranks, and how much of it cost time.
/// Nothing where there was one rank.
fn communication(time: &Time, steps: usize) -> Option<String> {
    let each = |seconds: f64| format!("{:.2} ms", 1e3 * seconds / steps.max(1) as f64);
    (time.communication > 0.0).then(|| {
        format!(
            "{} a step, of which {} ({:.1} % of the step) were not hidden behind computing",
            each(time.communication),
            each(time.exposed),
            100.0 * time.exposure()
        )
    })
}

/// Scores, report, table and JSON object of a trained network. All processes score; the one that
/// has the folder writes and has a result.
pub fn finish<U: UseCase>(
    job: &Job,
    folder: Option<&RunFolder>,
    recipe: &Recipe,
    case: &U,
    trainer: &TrainerOf<U>,
    draws: usize,
    finished: Finished,
) -> Result<Value> {
    job.agree_on_examples(case.test())?;
    let assessment = case.assess(trainer, recipe, draws)?;
    let Some(folder) = folder else {
        return Ok(Value::Null);
    };
    let digest = trainer.digest();
    let mut facts = train::facts(job, recipe, case, trainer, &digest);
    if let Some(seconds) = finished.seconds.filter(|_| finished.steps > 0) {
        let rate =
            finished.steps as f64 * (recipe.train.samples * recipe.train.batch) as f64 / seconds;
        let text = format!("{} example-draws a second", format_number(rate, 0));
        facts.push(("Training rate".to_owned(), text));
        let waiting = format!("{:.1} % of the time of the steps", 100.0 * trainer.time().waiting());
        facts.push(("Waiting for data".to_owned(), waiting));
        if let Some(text) = communication(&trainer.time(), finished.steps) {
            facts.push(("Communication".to_owned(), text));
        }
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
        let time = trainer.time();
        result["waiting"] = json!(time.waiting());
        result["communication_seconds"] = json!(time.communication);
        result["exposed_communication"] = json!(time.exposure());
    }
    let mut evaluation = json!({ "step": trainer.step(), "draws": draws, "test": test });
    for (name, value) in U::details(&assessment) {
        evaluation[name] = value;
    }
    folder.write(EVALUATION, format!("{evaluation:#}\n"))?;

    say!("\n{}", U::table(&assessment));
    if let Some(seconds) = finished.seconds {
        let each = finished.each_step(&trainer.time());
        say!("trained in {}{each}; digest {}", say::seconds(seconds), &digest[..12]);
    }
    say!("report: {}", path.display());
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_with_what_was_waited_for() {
        let finished = Finished { seconds: Some(9.0), steps: 4 };
        let alone = Time { seconds: 8.0, waited: 0.04, ..Time::default() };
        let text = finished.each_step(&alone);
        assert_eq!(text, ": 2.00 s a step, of which 0.5 % waiting for data");
        let time = Time { seconds: 0.02, communication: 0.01, exposed: 0.002, ..alone };
        let text = finished.each_step(&Time { waited: 0.0, ..time });
        let expected =
            ": 5.00 ms a step, of which 0.0 % waiting for data and 10.0 % for other ranks";
        assert_eq!(text, expected);
        assert_eq!(Finished { steps: 0, ..finished }.each_step(&time), "");
    }

    #[test]
    fn communication_is_told_for_a_step_where_there_was_any() {
        let time = Time { seconds: 4.0, communication: 0.2, exposed: 0.01, ..Time::default() };
        let text = communication(&time, 10).unwrap();
        let expected = "20.00 ms a step, of which 1.00 ms (0.2 % of the step) were not hidden";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(communication(&Time { seconds: 4.0, ..Time::default() }, 10), None);
    }
}
