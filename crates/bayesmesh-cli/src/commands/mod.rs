//! What is done. Every command returns the object that `--json` prints.

mod calibrate;
mod checkpoint;
mod compare;
mod data;
mod evaluate;
mod export;
mod finish;
mod memory;
mod record;
mod train;
mod trained_run;
mod tune;
mod without_recipe;

use std::path::{Path, PathBuf};

use anyhow::Result;
use bayesmesh::{CalibrateConfig, Mesh, Network, Place, Posterior as _, Trainer};
use burn::tensor::Device;
use clap::ArgMatches;
use serde_json::{Value, json};

pub use trained_run::TrainedRun;

use crate::args::{self, Arguments, Command};
use crate::exit::Usage;
use crate::job::Job;
use crate::models::{Model, Shape};
use crate::recipe::{Recipe, RecipeError, builtin_names, builtin_text, nearest};
use crate::say;
use crate::tasks::Task as _;
use crate::use_cases::{AnyLoss, CaseTrainer, InputOf, UseCase, Verb};

/// Does what the command line says.
pub fn run(job: &Job, arguments: Arguments, found: &ArgMatches) -> Result<Value> {
    match arguments.command {
        Command::Demo(demo) => train::demo(job, demo),
        Command::Train(train) => train::train(job, train),
        Command::Evaluate(arguments) => {
            let (folder, recipe) = trained_run::open(job, &arguments.run, &arguments.set)?;
            recipe.use_case().run(job, recipe, Verb::Evaluate(folder, &arguments))
        }
        Command::Predict(arguments) => {
            if !(arguments.band > 0.0 && arguments.band < 1.0) {
                let message = "--band is a level between 0 and 1, for example 0.9";
                return Err(Usage(message.to_owned()).into());
            }
            let (folder, recipe) = trained_run::open(job, &arguments.run, &arguments.set)?;
            if let Some(input) = &arguments.input {
                crate::table_file::refuse_same_file(input, &arguments.out)?;
            }
            recipe.use_case().run(job, recipe, Verb::Predict(folder, &arguments))
        }
        Command::Compare(compare) => compare::compare(job, &compare),
        Command::Checkpoint(checkpoint) => {
            job.refuse("checkpoint")?;
            match checkpoint {
                args::Checkpoint::Inspect { file } => checkpoint::inspect(&file),
                args::Checkpoint::Export(arguments) => export::export(job, &arguments),
            }
        }
        Command::Data => {
            job.refuse("data")?;
            data::data(job.catalogue(), found)
        }
        Command::Recipe { keys: true, .. } => {
            job.refuse("recipe")?;
            let keys = job.catalogue().reference();
            say::to_output(&keys)?;
            Ok(json!({ "keys": keys }))
        }
        Command::Recipe { name, .. } => {
            job.refuse("recipe")?;
            show_recipe(name.as_deref())
        }
        Command::Completions { shell } => {
            job.refuse("completions")?;
            let mut text = Vec::new();
            let mut command = args::command(job.catalogue());
            clap_complete::generate(shell, &mut command, "bayesmesh", &mut text);
            say::to_output(&String::from_utf8_lossy(&text))?;
            Ok(Value::Null)
        }
    }
}

/// Does something with a use case and one of its networks.
pub fn run_with<U, M>(job: &Job, recipe: Recipe, verb: Verb<'_>) -> Result<Value>
where
    U: UseCase,
    M: Model<Network: Network<Input = InputOf<U>>>,
{
    match verb {
        Verb::Train { mesh, out, resume } => train::run::<U, M>(job, &recipe, mesh, out, resume),
        Verb::Evaluate(folder, arguments) => {
            let mut run = TrainedRun::<U, _>::read::<M>(job, folder, recipe, &arguments.ranks)?;
            evaluate::evaluate(&mut run, arguments)
        }
        Verb::Predict(folder, arguments) => {
            let mut run = TrainedRun::<U, _>::read::<M>(job, folder, recipe, &arguments.ranks)?;
            if run.recipe.calibrate == CalibrateConfig::None {
                run.trainer.forget_calibration();
            }
            U::predict(&mut run, arguments)
        }
        Verb::Export(path, checkpoint, arguments) => {
            let place = Place::Threads;
            let loss = U::Task::loss(&recipe)?;
            let mut trainer = trainer::<U, M>(place, &recipe, loss, Mesh::serial(), 1)?;
            let step = checkpoint.step;
            trainer.restore_from_first(Some(checkpoint), &path)?;
            let members: Vec<_> = trainer.members().map(|member| member.parameters()).collect();
            export::write(&members, &path, step, arguments)
        }
    }
}

/// The shape of what the network of a recipe takes and gives.
fn shape<U: UseCase>(recipe: &Recipe) -> Result<Shape> {
    Ok(U::shape(&recipe.section("data")?))
}

/// The network of a recipe by its sizes, with outputs as the loss reads them.
fn model<U: UseCase, M: Model>(recipe: &Recipe) -> Result<M> {
    let mut shape = shape::<U>(recipe)?;
    shape.outputs *= U::Task::loss(recipe)?.reading().outputs_per_target();
    Ok(recipe.section::<M>("model")?.shaped(&shape))
}

/// The trainer that a recipe describes, at step zero. `steps` is how long the run will be, which
/// some schedules need to know.
fn trainer<U, M>(
    place: Place,
    recipe: &Recipe,
    loss: AnyLoss<U>,
    mesh: Mesh,
    steps: usize,
) -> Result<CaseTrainer<U, M::Network>>
where
    U: UseCase,
    M: Model<Network: Network<Input = InputOf<U>>>,
{
    let model = model::<U, M>(recipe)?;
    let posterior = recipe.posterior()?.init(model.init(&Device::default()))?;
    let posterior = posterior.initialised(recipe.train.seed);
    let settings = recipe.settings(mesh, steps)?;
    Ok(Trainer::at(place, posterior, loss, settings)?)
}

fn show_recipe(name: Option<&str>) -> Result<Value> {
    match name {
        Some(name) => {
            let text = builtin_text(name)?;
            say::to_output(text)?;
            Ok(json!({ "recipe": name, "text": text }))
        }
        None => {
            let names = builtin_names();
            say::to_output(&(names.join("\n") + "\n"))?;
            Ok(json!({ "recipes": names }))
        }
    }
}

/// A recipe file, or a built-in recipe where there is no such file; for data, the recipe that suits
/// them.
fn read_recipe(job: &Job, path: &Path, aim: &args::Aim, set: &[String]) -> Result<Recipe> {
    let name = path.to_str().unwrap_or_default();
    let is_recipe = path.extension().is_some_and(|end| end == "toml");
    if (!aim.target.is_empty() || aim.horizon.is_some())
        && (is_recipe || builtin_names().contains(&name))
    {
        return Err(Usage(format!(
            "--target and --horizon are for data, and {} is a recipe; set `data.target` and \
             `data.outputs` instead",
            path.display()
        ))
        .into());
    }
    if let Some((name, text)) = without_recipe::chosen(path, aim)? {
        return Ok(Recipe::parse(job.catalogue(), &text, &name, set)?);
    }
    if path.exists() {
        return Ok(Recipe::load(job.catalogue(), path, set)?);
    }
    if builtin_names().contains(&name) {
        return Ok(Recipe::builtin(job.catalogue(), name, set)?);
    }
    match Recipe::load(job.catalogue(), path, set) {
        // Neither a file nor a built-in recipe, but nearly the name of one.
        Err(RecipeError::Read { .. }) if nearest(name, builtin_names()).is_some() => {
            Ok(Recipe::builtin(job.catalogue(), name, set)?)
        }
        other => Ok(other?),
    }
}

/// The folder that was asked for; otherwise `runs/NAME`, or the first of `runs/NAME-2`,
/// `runs/NAME-3` … that is free. All processes get the one that the first finds.
fn run_folder(job: &Job, asked: Option<PathBuf>, name: &str) -> Result<PathBuf> {
    let free = || {
        let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
        let mut free = names.filter(|name| !Path::new("runs").join(name).exists());
        Ok(free.next().expect("numbers do not end"))
    };
    match asked {
        Some(path) => Ok(path),
        None => Ok(Path::new("runs").join(job.first(free)?)),
    }
}
