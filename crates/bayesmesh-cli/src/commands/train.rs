//! `bayesmesh train` and `bayesmesh demo`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::{Context, Result};
use bayesmesh::checkpoint::Store;
use bayesmesh::{Dataset, Length, Mesh, Posterior};
use serde_json::{Value, json};

use super::evaluate::{self, Finished};
use super::record::{Recorder, Recording};
use super::{free_folder, mesh, read_recipe};
use crate::args;
use crate::build::{TrainerOf, trainer};
use crate::exit::{Interrupted, Usage};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::use_case::{UseCase, for_use_case};
use crate::{memory, say};

/// The built-in demonstration.
pub fn demo(arguments: args::Demo) -> Result<Value> {
    let recipe = Recipe::builtin("demo", &arguments.set)?;
    let mesh = mesh(&arguments.ranks, recipe.train.samples)?;
    let out = arguments.out.unwrap_or_else(|| free_folder("demo"));
    for_use_case!(recipe, U => run::<U>(&recipe, mesh, &out, false))
}

/// Trains a recipe.
pub fn train(arguments: args::Train) -> Result<Value> {
    let recipe = read_recipe(&arguments.recipe, &arguments.set)?.located();
    let mesh = mesh(&arguments.ranks, recipe.train.samples)?;
    let out = arguments.out.unwrap_or_else(|| free_folder(&recipe.name));
    for_use_case!(recipe, U => run::<U>(&recipe, mesh, &out, arguments.resume))
}

/// Trains, or goes on with, the run in `out`, and scores it.
pub fn run<U: UseCase>(recipe: &Recipe, mesh: Mesh, out: &Path, resume: bool) -> Result<Value> {
    let case = U::load(recipe)?;
    if let Some(findings) = case.findings() {
        eprintln!("{findings}");
    }
    let epoch_steps = case.train().len() / recipe.train.batch;
    let length = match recipe.train.steps {
        Some(steps) => Length::Steps(steps),
        None => Length::Epochs(recipe.train.epochs),
    };
    let steps = match length {
        Length::Steps(steps) => steps,
        Length::Epochs(epochs) => epochs * epoch_steps,
    };
    let mut trainer = trainer::<U>(recipe, mesh, steps)?;
    // No step, only the checks: what does not go together is refused before anything is written.
    trainer.fit(case.train(), None, Length::Steps(0))?;

    let folder = match resume {
        true => RunFolder::resume(out)?,
        false => RunFolder::create(out)?,
    };
    match resume {
        true => continue_run::<U>(&folder, recipe, &mut trainer)?,
        false => {
            folder.write("recipe.toml", recipe.to_toml())?;
        }
    }
    introduce(recipe, &trainer, &case, mesh, steps);

    let interrupted = interruption()?;
    let recording = Recording {
        steps,
        done: trainer.step(),
        epoch_steps,
        checkpoint_every: recipe.checkpoint.every,
        keep: recipe.checkpoint.keep,
        validation: case.validation(trainer.loss()),
        interrupted,
    };
    let recorder = Recorder::new(&folder, recording)?;
    let failure = recorder.failure();
    let first = trainer.step();
    let progress = Progress::new(first, steps, U::EXAMPLES);
    trainer = trainer.with_callback(recorder).with_callback(progress);
    let started = Instant::now();
    let outcome = trainer.fit(case.train(), case.valid(), length);
    let seconds = started.elapsed().as_secs_f64();
    trainer = trainer.without_callbacks();
    if let Some(error) = failure.lock().expect("nobody panics with it").take() {
        return Err(error.context("the run could not be recorded and was stopped"));
    }
    outcome?;
    Store::create(folder.checkpoints(), recipe.checkpoint.keep)?.save(&trainer.checkpoint())?;
    if trainer.step() < steps {
        return Err(stopped::<U>(&trainer, steps, out));
    }
    let finished = Finished { seconds: Some(seconds), steps: trainer.step() - first };
    evaluate::finish(&folder, recipe, &case, &trainer, recipe.evaluate.draws, finished)
}

fn stopped<U: UseCase>(trainer: &TrainerOf<U>, steps: usize, out: &Path) -> anyhow::Error {
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

/// Becomes true on the first Ctrl-C, so that the step under way is finished; on the second the
/// program ends at once. The same for all runs of a process, which can listen only once.
fn interruption() -> Result<Arc<AtomicBool>> {
    static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let mut listening = Ok(());
    let interrupted = INTERRUPTED.get_or_init(|| {
        let interrupted = Arc::new(AtomicBool::new(false));
        let seen = interrupted.clone();
        listening = ctrlc::set_handler(move || {
            if seen.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            eprintln!("\nfinishing the step and writing a checkpoint; again to stop at once");
        });
        interrupted
    });
    listening.context("could not listen for Ctrl-C")?;
    Ok(interrupted.clone())
}

/// Puts the trainer where the last readable checkpoint is. Refuses a recipe that differs in what
/// the run is.
fn continue_run<U: UseCase>(
    folder: &RunFolder,
    recipe: &Recipe,
    trainer: &mut TrainerOf<U>,
) -> Result<()> {
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
fn introduce<U: UseCase>(
    recipe: &Recipe,
    trainer: &TrainerOf<U>,
    case: &U,
    mesh: Mesh,
    steps: usize,
) {
    let train = &recipe.train;
    let parameters = trainer.posterior().parameters();
    let weights: usize = parameters.slots().iter().map(|slot| slot.len()).sum();
    let memory = memory::predicted_per_rank::<U>(recipe, trainer.posterior(), mesh);
    let threads = trainer.settings().threads_per_rank();
    eprintln!(
        "{}: {weights} weights, {} trainable numbers",
        recipe.name,
        parameters.values().len()
    );
    eprintln!("  data    {}", case.describe());
    eprintln!(
        "  train   {steps} steps of {} {}, {} draws each",
        train.batch,
        U::EXAMPLES,
        train.samples
    );
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
pub fn facts<U: UseCase>(
    recipe: &Recipe,
    case: &U,
    trainer: &TrainerOf<U>,
    digest: &str,
) -> Vec<(String, String)> {
    let settings = trainer.settings();
    let strategy = settings.mesh.strategy();
    let facts = [
        ("Recipe", recipe.name.clone()),
        ("Data", case.source(recipe)),
        ("Mesh", format!("{} (samples × data, {strategy}), thread-ranks", settings.mesh)),
        ("Threads per rank", settings.threads_per_rank().to_string()),
        ("Device", format!("{:?}", trainer.posterior().parameters().device())),
        (
            "Draws and batch",
            format!("{} draws, {} {}", settings.samples, settings.batch, U::EXAMPLES),
        ),
        ("Reduction", settings.reduce.to_string()),
        ("Seed", settings.seed.to_string()),
        ("Steps", trainer.step().to_string()),
        ("Digest", format!("`{digest}`")),
    ];
    facts.map(|(label, text)| (label.to_owned(), text)).into()
}

/// For the JSON object: fields that every training command has.
pub fn outcome<U: UseCase>(trainer: &TrainerOf<U>, digest: &str, out: PathBuf) -> Value {
    json!({
        "run": out,
        "digest": digest,
        "steps": trainer.step(),
        "mesh": trainer.settings().mesh.to_string(),
        "seed": trainer.settings().seed,
        "peak_rss_bytes": bayesmesh::memory::peak_bytes(),
    })
}
