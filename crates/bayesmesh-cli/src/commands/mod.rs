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
use bayesmesh::Mesh;
use clap::CommandFactory;
use serde_json::{Value, json};

pub use evaluate::TrainedRun;

use crate::args::{self, Arguments, Command, Ranks};
use crate::exit::Usage;
use crate::recipe::{Recipe, builtin_names, builtin_text};
use crate::use_case::{UseCase as _, for_use_case};

/// Does what the command line says.
pub fn run(arguments: Arguments) -> Result<Value> {
    if let Some(ranks) = bayesmesh::launch::ranks().filter(|ranks| *ranks > 1) {
        // Each would do the whole work, and all would write into one folder.
        return Err(Usage(format!(
            "this program was started as {ranks} processes, by mpirun or srun, but its ranks are \
             threads of one: start it once and use --ranks or --mesh; docs/cluster.md says how a \
             program of your own trains over MPI"
        ))
        .into());
    }
    match arguments.command {
        Command::Demo(demo) => train::demo(demo),
        Command::Train(train) => train::train(train),
        Command::Evaluate(evaluate) => evaluate::evaluate(&evaluate),
        Command::Predict(arguments) => predict(&arguments),
        Command::Compare(compare) => compare::compare(&compare),
        Command::Checkpoint(args::Checkpoint::Inspect { file }) => checkpoint::inspect(&file),
        Command::Checkpoint(args::Checkpoint::Export(export)) => export::export(&export),
        Command::Data(data) => data::data(data),
        Command::Recipe { name } => show_recipe(name.as_deref()),
        Command::Completions { shell } => {
            let mut command = Arguments::command();
            clap_complete::generate(shell, &mut command, "bayesmesh", &mut std::io::stdout());
            Ok(Value::Null)
        }
    }
}

/// Predicts with a trained run.
fn predict(arguments: &args::Predict) -> Result<Value> {
    let (folder, recipe) = evaluate::open_run(&arguments.run)?;
    for_use_case!(recipe, U => {
        U::predict(&TrainedRun::open(folder, recipe, &arguments.ranks)?, arguments)
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

/// The mesh that was asked for; one sample rank for every processor otherwise, but no more ranks
/// than draws.
fn mesh(ranks: &Ranks, samples: usize) -> Result<Mesh> {
    match (ranks.mesh, ranks.ranks) {
        (Some(mesh), _) => Ok(mesh),
        (None, Some(n)) => Ok(Mesh::samples(n).map_err(|error| Usage(error.to_string()))?),
        (None, None) => {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            Ok(Mesh::samples(processors.min(samples).max(1)).expect("at least one rank"))
        }
    }
}

/// `runs/NAME`, or the first of `runs/NAME-2`, `runs/NAME-3` … that is free.
fn free_folder(name: &str) -> PathBuf {
    let first = Path::new("runs").join(name);
    let others = (2..).map(|n| Path::new("runs").join(format!("{name}-{n}")));
    std::iter::once(first).chain(others).find(|path| !path.exists()).expect("numbers do not end")
}
