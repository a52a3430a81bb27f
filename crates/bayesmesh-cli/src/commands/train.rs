//! `bayesmesh train` and `bayesmesh demo`.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use bayesmesh::checkpoint::{Checkpoint, Store};
use bayesmesh::trainer::{
    Callback, Course, EarlyStopping, EpochReport, Flow, Footprint, Progress, StepReport,
};
use bayesmesh::{Dataset, Loss, Mesh, Network, Posterior, Precision, Trainer};
use serde_json::Value;

use super::calibrate::{calibrate, calibrate_on_validation};
use super::finish::{Training, finish};
use super::memory::Needs;
use super::record::{Recorder, Recording};
use super::trained_run::{self, DATA};
use super::{model, read_recipe, run_folder, trainer, tune};
use crate::args::{self, Draws};
use crate::exit::{self, Interrupted, Usage};
use crate::job::Job;
use crate::models::Model;
use crate::recipe::Recipe;
use crate::run::{MetricsTable, RunFolder};
use crate::say::{self, say};
use crate::tasks::Task as _;
use crate::use_cases::{CaseTrainer, InputOf, UseCase, Verb};

/// The built-in demonstration.
pub fn demo(job: &Job, arguments: args::Demo) -> Result<Value> {
    let recipe = Recipe::builtin(job.catalogue(), "demo", &arguments.set)?;
    let mesh = job.mesh(&arguments.ranks, &recipe)?;
    job.warn_of_crowding(mesh)?;
    let out = &run_folder(job, arguments.out, "demo")?;
    recipe.use_case().run(job, recipe, Verb::Train { mesh, out, resume: false })
}

/// Trains a recipe.
pub fn train(job: &Job, arguments: args::Train) -> Result<Value> {
    let recipe = read_recipe(job, &arguments.recipe, &arguments.aim, &arguments.set)?.located();
    let recipe = recipe.use_case().resolved(recipe)?;
    let mesh = job.mesh(&arguments.ranks, &recipe)?;
    job.warn_of_crowding(mesh)?;
    let out = &run_folder(job, arguments.out, &recipe.name)?;
    let resume = arguments.resume;
    let chosen = tune::chosen(job, recipe.clone(), mesh, resume.then_some(out))?;
    let verb = Verb::Train { mesh, out, resume };
    tune::told(chosen.use_case().run(job, chosen.clone(), verb)?, &recipe, &chosen)
}

/// Trains, or goes on with, the run in `out`, and scores it. The result is for the process that
/// leads; the others have none.
pub fn run<U, M>(job: &Job, recipe: &Recipe, mesh: Mesh, out: &Path, resume: bool) -> Result<Value>
where
    U: UseCase,
    M: Model<Network: Network<Input = InputOf<U>>>,
{
    job.agree(&recipe.keys())?;
    let case = U::load(&recipe.section("data")?, recipe)?;
    if let Some(findings) = case.findings() {
        say!("{findings}");
    }
    // What is trained on in the end, and what is scored after every epoch of that.
    let (examples, valid) = match case.refit() {
        Some(all) => (all, None),
        None => (case.train(), case.valid()),
    };
    let course = Course::new(recipe.length, examples.len(), recipe.train.batch)?;
    let steps = course.steps();
    let model = model::<U, M>(recipe)?;
    let needs = Needs::of::<U>(recipe, &model, mesh, steps)?;
    needs.refuse_too_much(job)?;
    let mut trainer = trainer::<U, M>(job.place(), recipe, case.loss(recipe)?, mesh, steps)?;
    let data = case.train().checksum().unwrap_or_default();
    trainer = trainer.with_note(DATA, &data);
    for (name, text) in case.notes() {
        trainer = trainer.with_note(name, &text);
    }
    if let Some(layout) = case.task().layout() {
        trainer = trainer.with_fields(layout);
    }
    if recipe.patience.is_some() && valid.is_none() {
        return Err(Usage(format!(
            "train.patience waits for better scores on validation data, but no {} are set aside \
             from the training; set some aside, without `data.refit`, or leave it out",
            U::EXAMPLES
        ))
        .into());
    }
    // What does not go together is refused before anything is written.
    trainer.plan(examples, valid, recipe.length)?;

    let folder = match job.leads() {
        false => None,
        true if resume => Some(RunFolder::resume(out)?),
        true => Some(RunFolder::create(out)?),
    };
    let mut ended = false;
    if resume {
        if let Some(folder) = &folder {
            refuse_other_run(job, folder, recipe)?;
        }
        let same_data = |checkpoint: &Checkpoint| {
            ended = checkpoint.metadata.contains_key(ENDED);
            trained_run::refuse_other_data(out, checkpoint.metadata.get(DATA), &data)
        };
        let checkpoints = out.join("checkpoints");
        match trained_run::restore_latest(job, &checkpoints, &mut trainer, same_data)? {
            Some(path) => say!("going on from step {} ({})", trainer.step(), path.display()),
            None => say!("no checkpoint yet: starting from the beginning"),
        }
        if trainer.step() > steps {
            return Err(Usage(format!(
                "the run in {} has had {} steps, more than the {steps} that are asked for: ask for \
                 more, or score it as it is with `bayesmesh evaluate`",
                out.display(),
                trainer.step()
            ))
            .into());
        }
    }
    if let Some(folder) = &folder {
        folder.write("recipe.toml", recipe.to_toml())?;
    }
    let ended = job.first(|| Ok(ended.to_string()))? == true.to_string();
    introduce(job, recipe, &trainer, &case, &course, &needs.of_rank());
    job.pass_on_warnings()?;

    SIGNALS.train(job.is_launched())?;
    let first = trainer.step();
    let pilot = match case.refit() {
        Some(_) if first < steps => Some(pilot::<U, M>(job, recipe, &case, mesh)?),
        _ => None,
    };
    if let Some(folder) = &folder {
        let recording = Recording {
            steps,
            done: first,
            epoch_steps: course.epoch_steps(),
            checkpoint_every: recipe.checkpoint.every,
            keep: recipe.checkpoint.keep,
            validation: case.task().validation(&**trainer.loss()),
        };
        let validation = recording.validation.clone();
        let recorder = Recorder::new(folder, recording)?;
        let progress = Progress::new().examples(U::EXAMPLES);
        trainer = trainer.with_callback(recorder).with_callback(progress);
        if let Some(patience) = recipe.patience {
            let stopping = EarlyStopping::on(validation.judge).patience(patience);
            let before = validation.judged(&MetricsTable::read(folder.metrics())?);
            trainer = trainer.with_callback(stopping.after(before));
        }
    }
    trainer = trainer.with_callback(StopOnSignal);
    let started = Instant::now();
    let outcome = match first < steps && !ended {
        true => trainer.fit(examples, valid, recipe.length),
        false => Ok(()),
    };
    let seconds = started.elapsed().as_secs_f64();
    trainer = trainer.without_callbacks();
    outcome?;
    let stopped_by = || Ok(SIGNALS.seen.load(Ordering::Relaxed).to_string());
    let interrupted = trainer.step() < steps && job.first(stopped_by)? == true.to_string();
    if recipe.patience.is_some() && !interrupted {
        if !ended {
            keep_best(job, folder.as_ref(), &mut trainer, steps)?;
        }
        let step = trainer.step().to_string();
        trainer = trainer.with_note(ENDED, step);
    }
    if let Some(pilot) = pilot.filter(|_| !interrupted) {
        trainer.calibrate_like(&pilot);
    }
    let last = trainer.checkpoint_on(folder.is_some())?;
    if let (Some(folder), Some(last)) = (&folder, last) {
        Store::create(folder.checkpoints(), recipe.checkpoint.keep)?.save(&last)?;
    }
    // The others wait here until it is written: a run that was stopped ends all of them.
    job.pass_on_warnings()?;
    SIGNALS.trained();
    let early = recipe.patience.is_some() && !interrupted;
    if trainer.step() < steps && !early {
        return Err(stopped(job, trainer.step(), steps, out, mesh));
    }
    calibrate(job, folder.as_ref(), recipe, &case, &mut trainer)?;
    let training = Training { seconds: Some(seconds), steps: trainer.step() - first };
    let draws = Draws::Number(recipe.evaluate.draws);
    finish(job, folder.as_ref(), recipe, &case, &trainer, draws, training)
}

/// A network that has not learned from what was set aside, trained as the run will be and
/// calibrated. Nothing of it is written.
fn pilot<U, M>(
    job: &Job,
    recipe: &Recipe,
    case: &U,
    mesh: Mesh,
) -> Result<CaseTrainer<U, M::Network>>
where
    U: UseCase,
    M: Model<Network: Network<Input = InputOf<U>>>,
{
    let steps = Course::new(recipe.length, case.train().len(), recipe.train.batch)?.steps();
    let loss = case.loss(recipe)?;
    let mut pilot = trainer::<U, M>(job.place(), recipe, loss, mesh, steps)?;
    pilot = pilot.with_callback(StopOnSignal);
    pilot.fit(case.train(), None, recipe.length)?;
    pilot = pilot.without_callbacks();
    calibrate_on_validation(job, None, recipe, case, &mut pilot)?;
    say!("a pilot is calibrated on validation {}; the run learns from them too", U::EXAMPLES);
    Ok(pilot)
}

/// What checkpoints note of a run that has ended before all its epochs.
const ENDED: &str = "ended";

/// Gives a run that has ended its best weights.
fn keep_best<P: Posterior, L: Loss>(
    job: &Job,
    folder: Option<&RunFolder>,
    trainer: &mut Trainer<P, L>,
    steps: usize,
) -> Result<()> {
    let mut best = match folder {
        Some(folder) => Store::open(folder.checkpoints())?.best()?.found,
        None => None,
    };
    let found = job.first(|| Ok(best.is_some().to_string()))?;
    if found != true.to_string() {
        return Ok(());
    }
    let step = trainer.step();
    if let Some((_, best)) = &mut best {
        say!("the best of {step} steps, of {steps} at most, was {}", best.step);
        // It is the end of the run, whenever it was best.
        best.step = step as u64;
    }
    let (path, best) = best.unzip();
    Ok(trainer.restore_from_first(best, path.unwrap_or_default())?)
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

fn stopped(job: &Job, step: usize, steps: usize, out: &Path, mesh: Mesh) -> anyhow::Error {
    Interrupted(format!(
        "stopped at step {step} of {steps}; a checkpoint is written. To go on:\n  \
         {}bayesmesh train {} --out {} --mesh {mesh} --resume",
        job.launcher(),
        say::shell_word(&out.join("recipe.toml").display().to_string()),
        say::shell_word(&out.display().to_string()),
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
fn refuse_other_run(job: &Job, folder: &RunFolder, recipe: &Recipe) -> Result<()> {
    let saved = Recipe::load(job.catalogue(), &folder.recipe(), &[])?;
    match saved.first_difference(recipe) {
        None => Ok(()),
        Some(key) => Err(Usage(format!(
            "the run in {} has another `{key}` than this recipe; a run goes on with its own: \
             use its recipe.toml",
            folder.path().display()
        ))
        .into()),
    }
}

/// Says what is going to happen.
fn introduce<U: UseCase, N: Network<Input = InputOf<U>>>(
    job: &Job,
    recipe: &Recipe,
    trainer: &CaseTrainer<U, N>,
    case: &U,
    course: &Course,
    memory: &Footprint,
) {
    let mesh = trainer.settings().mesh;
    let train = &recipe.train;
    let parameters = trainer.posterior().parameters();
    let weights: usize = parameters.slots().iter().map(|slot| slot.len()).sum();
    let numbers = parameters.values().len() * recipe.members().unwrap_or(1);
    let threads = trainer.settings().threads_per_rank();
    say!("{}: {weights} weights, {numbers} trainable numbers", recipe.name);
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
    say!("  numbers {}", products(trainer.settings().precision));
    let lasting = memory.values.saturating_add(memory.optimizer);
    say!(
        "  memory  about {} a rank, beside the program and the data: {} for numbers and optimiser, \
         {} for a step",
        say::bytes(memory.total()),
        say::bytes(lasting),
        say::bytes(memory.total() - lasting)
    );
}

/// In what products are made, and what that means on this machine.
fn products(precision: Precision) -> &'static str {
    match (precision, Precision::Bf16.is_in_hardware()) {
        (Precision::F32, false) => "products in f32",
        (Precision::F32, true) => {
            "products in f32; this processor multiplies bf16 faster (train.precision=bf16)"
        }
        (Precision::Bf16, true) => "products in bf16, summed in f32",
        (Precision::Bf16, false) => {
            "products in bf16, which this processor does not multiply: widened, slower than \
             with train.precision=f32"
        }
    }
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
