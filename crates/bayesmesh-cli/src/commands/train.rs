//! `bayesmesh train` and `bayesmesh demo`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use bayesmesh::checkpoint::Store;
use bayesmesh::loss::Reading;
use bayesmesh::{Dataset, Length, Loss, Mesh, Posterior};
use serde_json::{Value, json};

use super::evaluate::{self, Finished};
use super::record::{Recorder, Recording};
use super::{free_folder, mesh, read_recipe};
use crate::args;
use crate::exit::{Interrupted, Usage};
use crate::forecast::{Forecast, ForecastTrainer, trainer};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::{memory, say};

/// The built-in demonstration.
pub fn demo(arguments: args::Demo) -> Result<Value> {
    let recipe = Recipe::builtin("demo", &arguments.set)?;
    let mesh = mesh(&arguments.ranks, recipe.train.samples)?;
    let out = arguments.out.unwrap_or_else(|| free_folder("demo"));
    run(recipe, mesh, &out, false)
}

/// Trains a recipe.
pub fn train(arguments: args::Train) -> Result<Value> {
    let recipe = read_recipe(&arguments.recipe, &arguments.set)?.located();
    let mesh = mesh(&arguments.ranks, recipe.train.samples)?;
    let out = arguments.out.unwrap_or_else(|| free_folder(&recipe.name));
    run(recipe, mesh, &out, arguments.resume)
}

fn run(recipe: Recipe, mesh: Mesh, out: &Path, resume: bool) -> Result<Value> {
    let forecast = Forecast::new(&recipe)?;
    if let Some(repairs) = &forecast.repairs {
        eprintln!("{repairs}");
    }
    let epoch_steps = forecast.train.len() / recipe.train.batch;
    let length = match recipe.train.steps {
        Some(steps) => Length::Steps(steps),
        None => Length::Epochs(recipe.train.epochs),
    };
    let steps = match length {
        Length::Steps(steps) => steps,
        Length::Epochs(epochs) => epochs * epoch_steps,
    };
    let mut trainer = trainer(&recipe, mesh, steps)?;
    // No step, only the checks: what does not go together is refused before anything is written.
    trainer.fit(&forecast.train, None, Length::Steps(0))?;

    let folder = match resume {
        true => RunFolder::resume(out)?,
        false => RunFolder::create(out)?,
    };
    match resume {
        true => continue_run(&folder, &recipe, &mut trainer)?,
        false => {
            folder.write("recipe.toml", recipe.to_toml())?;
        }
    }
    introduce(&recipe, &trainer, &forecast, mesh, steps);

    let interrupted = Arc::new(AtomicBool::new(false));
    on_interrupt(interrupted.clone())?;
    let recording = Recording {
        steps,
        done: trainer.step(),
        epoch_steps,
        checkpoint_every: recipe.checkpoint.every,
        keep: recipe.checkpoint.keep,
        unit: forecast.normaliser.std,
        judge: match trainer.loss().reading() {
            Reading::MeanAndLogVariance => "gaussian_nll",
            Reading::Values | Reading::Logits => "rmse",
        },
        interrupted: interrupted.clone(),
    };
    let recorder = Recorder::new(&folder, recording)?;
    let failure = recorder.failure();
    let first = trainer.step();
    trainer = trainer.with_callback(recorder).with_callback(Progress::new(first, steps));
    let started = Instant::now();
    let outcome = trainer.fit(&forecast.train, Some(&forecast.valid), length);
    let seconds = started.elapsed().as_secs_f64();
    trainer = trainer.without_callbacks();
    if let Some(error) = failure.lock().expect("nobody panics with it").take() {
        return Err(error.context("the run could not be recorded and was stopped"));
    }
    outcome?;
    Store::create(folder.checkpoints(), recipe.checkpoint.keep)?.save(&trainer.checkpoint())?;
    if trainer.step() < steps {
        return Err(stopped(&trainer, steps, out));
    }
    let finished = Finished { seconds: Some(seconds), steps: trainer.step() - first };
    evaluate::finish(&folder, &recipe, &forecast, &trainer, recipe.evaluate.draws, finished)
}

fn stopped(trainer: &ForecastTrainer, steps: usize, out: &Path) -> anyhow::Error {
    let step = trainer.step();
    Interrupted(format!(
        "stopped at step {step} of {steps}; a checkpoint is written. To go on:\n  \
         bayesmesh train {} --out {} --mesh {} --resume",
        say::shell_word(&out.join("recipe.toml").display().to_string()),
        say::shell_word(&out.display().to_string()),
        trainer.settings().mesh
    ))
    .into()
}

/// Finishes the step under way on the first Ctrl-C, and ends at once on the second.
fn on_interrupt(interrupted: Arc<AtomicBool>) -> Result<()> {
    let handler = move || {
        if interrupted.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\nfinishing the step and writing a checkpoint; again to stop at once");
    };
    ctrlc::set_handler(handler).context("could not listen for Ctrl-C")
}

/// Puts the trainer where the last readable checkpoint is. Refuses a recipe that differs in what
/// the run is.
fn continue_run(folder: &RunFolder, recipe: &Recipe, trainer: &mut ForecastTrainer) -> Result<()> {
    let saved = Recipe::load(&folder.recipe(), &[])?;
    if let Some(key) = first_difference(&saved, recipe) {
        return Err(Usage(format!(
            "the run in {} has another `{key}` than this recipe; a run goes on with its own: \
             use its recipe.toml",
            folder.path().display()
        ))
        .into());
    }
    folder.write("recipe.toml", recipe.to_toml())?;
    let latest = Store::open(folder.checkpoints())?.latest()?;
    for problem in &latest.skipped {
        eprintln!("warning: {problem}");
    }
    match latest.found {
        Some((path, checkpoint)) => {
            trainer.restore(&checkpoint, &path)?;
            eprintln!("going on from step {} ({})", trainer.step(), path.display());
        }
        None => eprintln!("no checkpoint yet: starting from the beginning"),
    }
    Ok(())
}

/// The first key in which two recipes are not the same run. How long it lasts, how it is divided
/// among threads and what is kept or scored can change.
fn first_difference(saved: &Recipe, recipe: &Recipe) -> Option<String> {
    let comparable = |recipe: &Recipe| {
        let mut recipe = recipe.clone();
        recipe.train.epochs = 1;
        recipe.train.steps = None;
        recipe.train.threads = None;
        recipe.train.share_loading = saved.train.share_loading;
        recipe.train.load_delay_ms = saved.train.load_delay_ms;
        recipe.evaluate = saved.evaluate.clone();
        recipe.checkpoint = saved.checkpoint.clone();
        recipe.to_toml()
    };
    let (saved, recipe) = (comparable(saved), comparable(recipe));
    let mut section = "";
    for (old, new) in saved.lines().zip(recipe.lines()) {
        if new.starts_with('[') {
            section = new.trim_matches(['[', ']']);
        }
        if old != new {
            // A key that is not set is a comment that begins with it.
            let key = new.trim_start_matches("# ").split([' ', '=']).next().unwrap_or(new);
            return Some(format!("{section}.{key}").trim_start_matches('.').to_owned());
        }
    }
    (saved != recipe).then(|| section.to_owned())
}

/// Says what is going to happen.
fn introduce(
    recipe: &Recipe,
    trainer: &ForecastTrainer,
    forecast: &Forecast,
    mesh: Mesh,
    steps: usize,
) {
    let train = &recipe.train;
    let parameters = trainer.posterior().parameters();
    let weights: usize = parameters.slots().iter().map(|slot| slot.len()).sum();
    let memory = memory::predicted_per_rank(recipe, trainer.posterior(), mesh);
    let threads = trainer.settings().threads_per_rank();
    eprintln!(
        "{}: {weights} weights, {} trainable numbers",
        recipe.name,
        parameters.values().len()
    );
    eprintln!(
        "  data    {} training, {} validation, {} test windows of {} + {} values",
        forecast.train.len(),
        forecast.valid.len(),
        forecast.test.len(),
        forecast.inputs,
        forecast.outputs
    );
    eprintln!("  train   {steps} steps of {} examples, {} draws each", train.batch, train.samples);
    eprintln!(
        "  mesh    {mesh} (samples x data, {}): {} thread-ranks, threads each: {threads}",
        mesh.strategy(),
        mesh.size()
    );
    eprintln!("  seed    {}", train.seed);
    eprintln!("  device  {:?}", parameters.device());
    eprintln!("  memory  about {} a rank, beside the program and the data", say::bytes(memory));
}

/// The facts for the report and the JSON object.
pub fn facts(recipe: &Recipe, trainer: &ForecastTrainer, digest: &str) -> Vec<(String, String)> {
    let settings = trainer.settings();
    let data = match recipe.data.file() {
        Some(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        None => "generated series".to_owned(),
    };
    let strategy = settings.mesh.strategy();
    let facts = [
        ("Recipe", recipe.name.clone()),
        ("Data", data),
        ("Mesh", format!("{} (samples × data, {strategy}), thread-ranks", settings.mesh)),
        ("Threads per rank", settings.threads_per_rank().to_string()),
        ("Device", format!("{:?}", trainer.posterior().parameters().device())),
        ("Draws and batch", format!("{} draws, {} examples", settings.samples, settings.batch)),
        ("Reduction", settings.reduce.to_string()),
        ("Seed", settings.seed.to_string()),
        ("Steps", trainer.step().to_string()),
        ("Digest", format!("`{digest}`")),
    ];
    facts.map(|(label, text)| (label.to_owned(), text)).into()
}

/// For the JSON object: fields that every training command has.
pub fn outcome(trainer: &ForecastTrainer, digest: &str, out: PathBuf) -> Value {
    json!({
        "run": out,
        "digest": digest,
        "steps": trainer.step(),
        "mesh": trainer.settings().mesh.to_string(),
        "seed": trainer.settings().seed,
        "peak_rss_bytes": memory::peak_rss_bytes(),
    })
}
