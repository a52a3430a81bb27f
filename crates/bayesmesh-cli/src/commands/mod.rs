//! What is done. Every command returns the object that `--json` prints.

mod checkpoint;
mod compare;
mod data;
mod evaluate;
mod export;
mod record;
mod train;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::CommandFactory;
use serde_json::{Value, json};

pub use evaluate::TrainedRun;

use crate::args::{self, Arguments, Command};
use crate::job::Job;
use crate::recipe::{Recipe, builtin_names, builtin_text};
use crate::use_case::{UseCase as _, for_use_case};

/// Does what the command line says.
pub fn run(job: &Job, arguments: Arguments) -> Result<Value> {
    match arguments.command {
        Command::Demo(demo) => train::demo(job, demo),
        Command::Train(train) => train::train(job, train),
        Command::Evaluate(evaluate) => evaluate::evaluate(job, &evaluate),
        Command::Predict(arguments) => predict(job, &arguments),
        Command::Compare(compare) => compare::compare(job, &compare),
        Command::Checkpoint(checkpoint) => {
            job.refuse("checkpoint")?;
            match checkpoint {
                args::Checkpoint::Inspect { file } => checkpoint::inspect(&file),
                args::Checkpoint::Export(export) => export::export(&export),
            }
        }
        Command::Data(data) => {
            job.refuse("data")?;
            data::data(data)
        }
        Command::Recipe { name } => {
            job.refuse("recipe")?;
            show_recipe(name.as_deref())
        }
        Command::Completions { shell } => {
            job.refuse("completions")?;
            let mut command = Arguments::command();
            clap_complete::generate(shell, &mut command, "bayesmesh", &mut std::io::stdout());
            Ok(Value::Null)
        }
    }
}

/// Predicts with a trained run.
fn predict(job: &Job, arguments: &args::Predict) -> Result<Value> {
    let (folder, recipe) = evaluate::open_run(&arguments.run, &arguments.set)?;
    for_use_case!(recipe, U => {
        U::predict(&TrainedRun::open(job, folder, recipe, &arguments.ranks)?, arguments)
    })
}

fn show_recipe(name: Option<&str>) -> Result<Value> {
    match name {
        Some(name) => {
            let text = builtin_text(name)?;
            print!("{text}");
            Ok(json!({ "recipe": name, "text": text }))
        }
        None => {
            builtin_names().iter().for_each(|name| println!("{name}"));
            Ok(json!({ "recipes": builtin_names() }))
        }
    }
}

/// A recipe file, or a built-in recipe where there is no such file.
fn read_recipe(path: &Path, set: &[String]) -> Result<Recipe> {
    let name = path.to_str().unwrap_or_default();
    if !path.exists() && builtin_names().contains(&name) {
        return Ok(Recipe::builtin(name, set)?);
    }
    Ok(Recipe::load(path, set)?)
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
