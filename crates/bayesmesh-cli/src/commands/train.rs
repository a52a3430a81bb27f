//! `bayesmesh train` and `bayesmesh demo`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use bayesmesh::checkpoint::{Checkpoint, Store};
use bayesmesh::trainer::{Callback, Course, EpochReport, Flow, Progress, StepReport};
use bayesmesh::{Dataset, Length, Mesh, Posterior};
use serde_json::{Value, json};

use super::evaluate::{self, Finished};
use super::record::{Recorder, Recording};
use super::{read_recipe, run_folder};
use crate::args;
use crate::build::TrainerOf;
use crate::exit::{self, Interrupted, Usage};
use crate::job::Job;
use crate::memory;
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::say::{self, say};
use crate::use_case::{UseCase, for_use_case};

/// What checkpoints call the checksum of the examples that a run is trained on.
pub const DATA: &str = "data";

/// The built-in demonstration.
pub fn demo(job: &Job, arguments: args::Demo) -> Result<Value> {
    let recipe = Recipe::builtin("demo", &arguments.set)?;
    let mesh = job.mesh(&arguments.ranks, &recipe)?;
    let out = run_folder(job, arguments.out, "demo")?;
    for_use_case!(recipe, U => run::<U>(job, &recipe, mesh, &out, false))
}

/// Trains a recipe.
pub fn train(job: &Job, arguments: args::Train) -> Result<Value> {
    let recipe = read_recipe(&arguments.recipe, &arguments.set)?.located();
    let mesh = job.mesh(&arguments.ranks, &recipe)?;
    let out = run_folder(job, arguments.out, &recipe.name)?;
    for_use_case!(recipe, U => run::<U>(job, &recipe, mesh, &out, arguments.resume))
}

/// Trains, or goes on with, the run in `out`, and scores it. The result is for the process that
/// leads; the others have none.
pub fn run<U: UseCase>(
    job: &Job,
    recipe: &Recipe,
    mesh: Mesh,
    out: &Path,
    resume: bool,
) -> Result<Value> {
    job.agree(&recipe.keys())?;
    let case = U::load(recipe)?;
    if let Some(findings) = case.findings() {
        say!("{findings}");
    }
    let length = match recipe.train.steps {
        Some(steps) => Length::Steps(steps),
        None => Length::Epochs(recipe.train.epochs),
    };
    let course = Course::new(length, case.train().len(), recipe.train.batch)?;
    let steps = course.steps();
    let mut trainer = job.trainer::<U>(recipe, mesh, steps)?;
    let data = case.train().checksum().unwrap_or_default();
    trainer = trainer.with_note(DATA, &data);
    // What does not go together is refused before anything is written.
    trainer.plan(case.train(), case.valid(), length)?;

    let folder = match job.leads() {
        false => None,
        true if resume => Some(RunFolder::resume(out)?),
        true => Some(RunFolder::create(out)?),
    };
    if resume {
        if let Some(folder) = &folder {
            refuse_other_run(folder, recipe)?;
        }
        let same_data =
            |checkpoint: &Checkpoint| refuse_other_data(out, checkpoint.metadata.get(DATA), &data);
        let checkpoints = out.join("checkpoints");
        match evaluate::restore_latest::<U>(job, &checkpoints, &mut trainer, same_data)? {
            Some(path) => say!("going on from step {} ({})", trainer.step(), path.display()),
            None => say!("no checkpoint yet: starting from the beginning"),
        }
    }
    if let Some(folder) = &folder {
        folder.write("recipe.toml", recipe.to_toml())?;
    }
    introduce(job, recipe, &trainer, &case, &course);
    job.pass_on_warnings()?;

    SIGNALS.train(job.is_launched())?;
    let first = trainer.step();
    if let Some(folder) = &folder {
        let recording = Recording {
            steps,
            done: first,
            epoch_steps: course.epoch_steps(),
            checkpoint_every: recipe.checkpoint.every,
            keep: recipe.checkpoint.keep,
            validation: case.validation(trainer.loss()),
        };
        let recorder = Recorder::new(folder, recording)?;
        let progress = Progress::new().examples(U::EXAMPLES);
        trainer = trainer.with_callback(recorder).with_callback(progress);
    }
    trainer = trainer.with_callback(StopOnSignal);
    let started = Instant::now();
    let outcome = match first < steps {
        true => trainer.fit(case.train(), case.valid(), length),
        false => Ok(()),
    };
    let seconds = started.elapsed().as_secs_f64();
    trainer = trainer.without_callbacks();
    outcome?;
    let last = trainer.checkpoint_on(folder.is_some())?;
    if let (Some(folder), Some(last)) = (&folder, last) {
        Store::create(folder.checkpoints(), recipe.checkpoint.keep)?.save(&last)?;
    }
    // The others wait here until it is written: a run that was stopped ends all of them.
    job.pass_on_warnings()?;
    SIGNALS.trained();
    if trainer.step() < steps {
        return Err(stopped::<U>(job, &trainer, steps, out));
    }
    let finished = Finished { seconds: Some(seconds), steps: trainer.step() - first };
    evaluate::finish(job, folder.as_ref(), recipe, &case, &trainer, recipe.evaluate.draws, finished)
}

/// Stops a run after a signal.
struct StopOnSignal;

impl Callback for StopOnSignal {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn wants_checkpoint_of_epoch(&self, _: &EpochReport) -> bool {
        false
    }

    fn on_step(&mut self, _: &StepReport, _: &dyn Fn() -> Checkpoint) -> bayesmesh::Result<Flow> {
        Ok(if SIGNALS.seen.load(Ordering::Relaxed) { Flow::Stop } else { Flow::Continue })
    }
}

fn stopped<U: UseCase>(
    job: &Job,
    trainer: &TrainerOf<U>,
    steps: usize,
    out: &Path,
) -> anyhow::Error {
    let step = trainer.step();
    Interrupted(format!(
        "stopped at step {step} of {steps}; a checkpoint is written. To go on:\n  \
         {}bayesmesh train {} --out {} --mesh {} --resume",
        job.launcher(),
        say::shell_word(&out.join("recipe.toml").display().to_string()),
        say::shell_word(&out.display().to_string()),
        trainer.settings().mesh
    ))
    .into()
}

/// What a signal to stop, Ctrl-C or `SIGTERM`, does. The same for all runs of a process, which can
/// listen only once.
struct Signals {
    /// Whether there has been one while a run trained.
    seen: AtomicBool,
    /// Whether a run trains, which then finishes the step under way and writes a checkpoint.
    training: AtomicBool,
    /// Whether this process is one of several.
    in_job: AtomicBool,
}

static SIGNALS: Signals = Signals {
    seen: AtomicBool::new(false),
    training: AtomicBool::new(false),
    in_job: AtomicBool::new(false),
};

impl Signals {
    /// From now on the first signal asks the run to stop, and the second ends the program at once.
    fn train(&self, in_job: bool) -> Result<()> {
        static LISTENING: OnceLock<()> = OnceLock::new();
        self.in_job.store(in_job, Ordering::Relaxed);
        self.training.store(true, Ordering::Relaxed);
        let mut listening = Ok(());
        LISTENING.get_or_init(|| listening = ctrlc::set_handler(|| SIGNALS.arrived()));
        listening.context("could not listen for Ctrl-C")
    }

    /// From now on the last checkpoint is written, and a signal ends the program.
    fn trained(&self) {
        self.training.store(false, Ordering::Relaxed);
    }

    fn arrived(&self) {
        if !self.training.load(Ordering::Relaxed) {
            std::process::exit(exit::INTERRUPTED.into());
        }
        if self.seen.swap(true, Ordering::Relaxed) {
            std::process::exit(exit::STOPPED.into());
        }
        // Launchers send it too when another process has failed, and then there is no next step.
        if !self.in_job.load(Ordering::Relaxed) {
            say!("\nfinishing the step and writing a checkpoint; again to stop at once");
        }
    }
}

/// Refuses a recipe that differs from that of the run in what the run is.
fn refuse_other_run(folder: &RunFolder, recipe: &Recipe) -> Result<()> {
    let saved = Recipe::load(&folder.recipe(), &[])?;
    match first_difference(&saved, recipe) {
        None => Ok(()),
        Some(key) => Err(Usage(format!(
            "the run in {} has another `{key}` than this recipe; a run goes on with its own: \
             use its recipe.toml",
            folder.path().display()
        ))
        .into()),
    }
}

/// Refuses other examples than those a run was trained on. Where they are may change: a cluster's
/// jobs copy them to the disks of the nodes they get.
pub fn refuse_other_data(run: &Path, before: Option<&String>, data: &str) -> Result<()> {
    match before {
        Some(before) if before != data => Err(Usage(format!(
            "the run in {} was trained on other examples (checksum {before}) than data.path has \
             ({data}); say where its own are",
            run.display()
        ))
        .into()),
        _ => Ok(()),
    }
}

/// The first key in which two recipes are not the same run. How long it lasts, how it is divided
/// among threads and ranks, where its data are and what is kept or scored can change.
fn first_difference(saved: &Recipe, recipe: &Recipe) -> Option<String> {
    let comparable = |recipe: &Recipe| {
        let mut recipe = recipe.clone();
        recipe.train.epochs = 1;
        recipe.train.steps = None;
        recipe.train.threads = None;
        recipe.train.overlap = saved.train.overlap;
        recipe.train.shard_optimizer = saved.train.shard_optimizer;
        recipe.train.share_loading = saved.train.share_loading;
        recipe.train.load_delay_ms = saved.train.load_delay_ms;
        recipe.data.forget_place();
        recipe.evaluate = saved.evaluate.clone();
        recipe.checkpoint = saved.checkpoint.clone();
        recipe.keys()
    };
    let (saved, recipe) = (comparable(saved), comparable(recipe));
    let other = recipe.iter().find(|pair| !saved.contains(pair));
    let other = other.or_else(|| saved.iter().find(|pair| !recipe.contains(pair)));
    other.map(|(key, _)| key.clone())
}

/// Says what is going to happen.
fn introduce<U: UseCase>(
    job: &Job,
    recipe: &Recipe,
    trainer: &TrainerOf<U>,
    case: &U,
    course: &Course,
) {
    let mesh = trainer.settings().mesh;
    let train = &recipe.train;
    let parameters = trainer.posterior().parameters();
    let weights: usize = parameters.slots().iter().map(|slot| slot.len()).sum();
    let memory = memory::predicted_per_rank::<U>(recipe, trainer.posterior(), mesh);
    let threads = trainer.settings().threads_per_rank();
    say!("{}: {weights} weights, {} trainable numbers", recipe.name, parameters.values().len());
    say!("  data    {}", case.describe());
    let left_out = match course.left_out() {
        0 => String::new(),
        left_out => format!("; {left_out} fill no batch and are left out of each epoch"),
    };
    say!(
        "  train   {} steps of {} {}, {} draws each{left_out}",
        course.steps(),
        train.batch,
        U::EXAMPLES,
        train.samples
    );
    say!(
        "  mesh    {mesh} (samples x data, {}): {} {}, threads each: {threads}",
        mesh.strategy(),
        mesh.size(),
        job.kind()
    );
    say!("  seed    {}", train.seed);
    say!("  device  {:?}", parameters.device());
    say!("  memory  about {} a rank, beside the program and the data", say::bytes(memory));
}

/// The facts for the report and the JSON object.
pub fn facts<U: UseCase>(
    job: &Job,
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
        ("Mesh", format!("{} (samples × data, {strategy}), {}", settings.mesh, job.kind())),
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
        "peak_rss_bytes": bayesmesh::process_memory::peak_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use bayesmesh::trainer::Time;

    use super::*;

    /// It is there on every rank and at every step: with a divided optimiser its wish would gather
    /// the whole state each time.
    #[test]
    fn listening_for_signals_wants_no_checkpoint() {
        let report = StepReport {
            step: 1,
            steps: 2,
            epoch: 0,
            loss: 0.0,
            data: 0.0,
            kl: 0.0,
            gradient_norm: 0.0,
            rate: 0.0,
            examples: 1,
            time: Time::default(),
            overlapped: 0.0,
        };
        assert!(!StopOnSignal.wants_checkpoint(&report));
    }
}
