//! `bayesmesh evaluate`, and the end of every training.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bayesmesh::Mesh;
use bayesmesh::checkpoint::{Checkpoint, Store};
use bayesmesh_report::format_number;
use serde_json::{Map, Value, json};

use super::{mesh, train};
use crate::args;
use crate::exit::Usage;
use crate::forecast::{Assessment, Forecast, ForecastTrainer, RunFacts, assess, report, trainer};
use crate::recipe::Recipe;
use crate::run::{MetricsTable, RunFolder};
use crate::say;

/// The file of a run with its scores and the noise that predictions need.
const EVALUATION: &str = "evaluation.json";

/// What training gives to its end.
pub struct Finished {
    /// Seconds of training in this process.
    pub seconds: Option<f64>,
    /// Steps done in this process.
    pub steps: usize,
}

/// A trained run, read from its folder.
pub struct TrainedRun {
    pub folder: RunFolder,
    pub recipe: Recipe,
    pub trainer: ForecastTrainer,
}

impl TrainedRun {
    /// Reads the recipe and the last checkpoint of a run.
    pub fn open(path: &std::path::Path, ranks: &args::Ranks) -> Result<Self> {
        let folder = RunFolder::open(path)?;
        let recipe = Recipe::load(&folder.recipe(), &[])?;
        let mesh: Mesh = mesh(ranks, recipe.train.samples)?;
        let mut trainer = trainer(&recipe, mesh, 1)?;
        let (path, checkpoint) = latest_checkpoint(&folder)?;
        trainer.restore(&checkpoint, &path)?;
        Ok(Self { folder, recipe, trainer })
    }

    /// The noise of each lead time, in MW, as the last evaluation found it.
    pub fn noise(&self) -> Result<Vec<f64>> {
        let path = self.folder.path().display().to_string();
        let remedy =
            || format!("{path} has not been scored; run `bayesmesh evaluate {path}` first");
        let text = self.folder.read(EVALUATION).with_context(remedy)?;
        let value: Value = serde_json::from_str(&text).with_context(remedy)?;
        let noise = value["noise_mw"].as_array().with_context(remedy)?;
        Ok(noise.iter().map(|n| n.as_f64().unwrap_or(0.0)).collect())
    }
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
pub fn evaluate(arguments: args::Evaluate) -> Result<Value> {
    let TrainedRun { folder, recipe, trainer } =
        TrainedRun::open(&arguments.run, &arguments.ranks)?;
    let forecast = Forecast::new(&recipe)?;
    let draws = arguments.draws.unwrap_or(recipe.evaluate.draws);
    if draws < 2 {
        return Err(Usage("a spread needs at least two draws; use --draws 2 or more".into()).into());
    }
    let finished = Finished { seconds: None, steps: 0 };
    finish(&folder, &recipe, &forecast, &trainer, draws, finished)
}

/// Scores, report, table and JSON object of a trained network.
pub fn finish(
    folder: &RunFolder,
    recipe: &Recipe,
    forecast: &Forecast,
    trainer: &ForecastTrainer,
    draws: usize,
    finished: Finished,
) -> Result<Value> {
    let assessment = assess(trainer, forecast, draws, &recipe.evaluate.levels)?;
    let digest = trainer.checkpoint().digest();
    let mut facts = train::facts(recipe, trainer, &digest);
    if let Some(seconds) = finished.seconds.filter(|_| finished.steps > 0) {
        let rate =
            finished.steps as f64 * (recipe.train.samples * recipe.train.batch) as f64 / seconds;
        let text = format!("{} example-draws a second", format_number(rate, 0));
        facts.push(("Training rate".to_owned(), text));
        let waiting = format!("{:.1} % of the time of the steps", 100.0 * trainer.time().waiting());
        facts.push(("Waiting for data".to_owned(), waiting));
    }
    let repairs = forecast.repairs.as_ref().filter(|repairs| !repairs.is_clean());
    let run_facts = RunFacts {
        facts,
        seconds: finished.seconds,
        repairs: repairs.map(|repairs| {
            format!(
                "{} values of the series were repaired; `bayesmesh data check load FILE` lists them.",
                repairs.replaced()
            )
        }),
    };
    let metrics = MetricsTable::read(folder.metrics())?;
    let page = report(recipe, forecast, &assessment, &metrics, &run_facts);
    let path = folder.write("report.html", page.to_html())?;

    let test = test_object(&assessment);
    let mut result = train::outcome(trainer, &digest, folder.path().to_path_buf());
    result["test"] = test.clone();
    result["draws"] = json!(draws);
    result["report"] = json!(path);
    if let Some(seconds) = finished.seconds {
        result["seconds"] = json!(seconds);
        result["waiting"] = json!(trainer.time().waiting());
    }
    let evaluation = json!({
        "step": trainer.step(),
        "draws": draws,
        "test": test,
        "noise_mw": assessment.noise,
    });
    folder.write(EVALUATION, format!("{evaluation:#}\n"))?;
    tell(&assessment, finished.seconds, &path);
    Ok(result)
}

/// Scores as JSON; what is not a number is null.
fn test_object(assessment: &Assessment) -> Value {
    let scores = assessment.scores.iter().map(|score| (score.name.clone(), json!(score.value)));
    let mut test: Map<String, Value> = scores.collect();
    test.insert("yesterday_rmse_mw".to_owned(), json!(assessment.yesterday));
    test.insert("persistence_rmse_mw".to_owned(), json!(assessment.persistence));
    Value::Object(test)
}

fn tell(assessment: &Assessment, seconds: Option<f64>, report: &std::path::Path) {
    let number = |name: &str| format_number(assessment.score(name), 0);
    let rows = [
        vec![
            "forecast".to_owned(),
            number("rmse_mw"),
            number("mae_mw"),
            number("crps_mw"),
            format!("{:.1}", 100.0 * assessment.score("coverage_90")),
        ],
        vec!["same time yesterday".to_owned(), format_number(assessment.yesterday, 0)],
        vec!["persistence".to_owned(), format_number(assessment.persistence, 0)],
    ];
    let header = ["test part", "RMSE (MW)", "MAE (MW)", "CRPS (MW)", "90 % covers (%)"];
    eprintln!("\n{}", say::table(&header, &rows));
    if let Some(seconds) = seconds {
        eprintln!("trained in {}", say::seconds(seconds));
    }
    eprintln!("report: {}", report.display());
}
