//! `bayesmesh checkpoint export`.

use std::path::{Path, PathBuf, absolute};

use anyhow::Result;
use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::posterior::Parameters;
use bayesmesh::{Mesh, Place, Posterior};
use bayesmesh_models::{PyTorch, WeightsError, pytorch};
use serde_json::{Value, json};

use super::evaluate::latest_checkpoint;
use crate::args;
use crate::build::trainer;
use crate::exit::Usage;
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::use_case::for_use_case;

/// Writes the weights of a checkpoint as PyTorch names and lays them out.
pub fn export(arguments: &args::Export) -> Result<Value> {
    let (folder, path, checkpoint) = open(&arguments.file)?;
    let recipe = Recipe::load(&folder.recipe(), &[])?;
    for_use_case!(recipe, U => {
        let mut trainer = trainer::<U>(Place::Threads, &recipe, Mesh::serial(), 1)?;
        trainer.restore(&checkpoint, &path)?;
        write(trainer.posterior().parameters(), &path, checkpoint.step, arguments)
    })
}

/// A checkpoint and the run that it is of: the recipe of the run says what the tensors are.
fn open(path: &Path) -> Result<(RunFolder, PathBuf, Checkpoint)> {
    if path.is_dir() {
        let folder = RunFolder::open(path)?;
        let (path, checkpoint) = latest_checkpoint(&folder)?;
        return Ok((folder, path, checkpoint));
    }
    let checkpoint = Checkpoint::load(path)?;
    let run = absolute(path).ok().and_then(|path| Some(path.parent()?.parent()?.to_path_buf()));
    let Some(folder) = run.and_then(|run| RunFolder::open(run).ok()) else {
        return Err(Usage(format!(
            "{}: not in the checkpoints folder of a run, whose recipe says what the tensors are; \
             name the folder of the run, or copy the file into its checkpoints folder",
            path.display()
        ))
        .into());
    };
    Ok((folder, path.to_path_buf(), checkpoint))
}

fn write<N: PyTorch>(
    parameters: &Parameters<N>,
    path: &Path,
    step: u64,
    arguments: &args::Export,
) -> Result<Value> {
    let args::Export { out, std, .. } = arguments;
    if std.is_some() && parameters.is_certain() {
        let message = "every weight of this run is a single number without a standard deviation; \
                       leave --std away";
        return Err(Usage(message.to_owned()).into());
    }
    if std.as_ref() == Some(out) {
        return Err(Usage("--out and --std name the same file; use two".to_owned()).into());
    }
    pytorch::save_means(parameters, out).map_err(file)?;
    let (tensors, weights) = (parameters.slots().len(), parameters.slots().iter().map(|s| s.len()));
    let weights: usize = weights.sum();
    eprintln!("{}: step {step}", path.display());
    eprintln!("{}: {weights} weights in {tensors} tensors", out.display());
    if let Some(std) = std {
        pytorch::save_stds(parameters, std).map_err(file)?;
        eprintln!("{}: their standard deviations", std.display());
    }
    Ok(json!({
        "checkpoint": path,
        "step": step,
        "tensors": tensors,
        "weights": weights,
        "out": out,
        "std": std,
    }))
}

/// What can happen to a file of weights while it is written is what can happen to any file.
fn file(error: WeightsError) -> anyhow::Error {
    match error {
        WeightsError::File(error) => error.into(),
        other => other.into(),
    }
}
