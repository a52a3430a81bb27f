//! `bayesmesh checkpoint export`.

use std::path::{Path, PathBuf, absolute};

use anyhow::Result;
use bayesmesh::Network;
use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::posterior::Parameters;
use bayesmesh_models::{PyTorch, WeightsError, pytorch};
use serde_json::{Value, json};

use super::trained_run::latest_checkpoint;
use crate::args;
use crate::exit::Usage;
use crate::job::Job;
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::say::{self, say};
use crate::table_file::refuse_same_file;
use crate::use_cases::Verb;

/// Writes the weights of a checkpoint as PyTorch names and lays them out.
pub fn export(job: &Job, arguments: &args::Export) -> Result<Value> {
    let (folder, path, checkpoint) = open(&arguments.file)?;
    for out in [Some(&arguments.out), arguments.std.as_ref()].into_iter().flatten() {
        refuse_same_file(&path, out)?;
        refuse_among_checkpoints(&folder, out)?;
    }
    let recipe = Recipe::load(job.catalogue(), &folder.recipe(), &[])?;
    recipe.use_case().run(job, recipe, Verb::Export(path, checkpoint, arguments))
}

/// Refuses to write where the checkpoints are: over another one, or as a file that looks like one.
fn refuse_among_checkpoints(folder: &RunFolder, out: &Path) -> Result<()> {
    let parent = absolute(out).ok().and_then(|out| out.parent()?.canonicalize().ok());
    if parent.is_none() || parent != folder.checkpoints().canonicalize().ok() {
        return Ok(());
    }
    let out = out.display();
    Err(Usage(format!("{out}: this folder is for checkpoints; write to another one")).into())
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

/// Writes the means, and the standard deviations where these are asked for; of an ensemble all
/// members.
pub fn write<N: Network + PyTorch>(
    members: &[&Parameters<N>],
    path: &Path,
    step: u64,
    arguments: &args::Export,
) -> Result<Value> {
    let args::Export { out, std, .. } = arguments;
    if std.is_some() && members.iter().all(|member| member.is_certain()) {
        let message = "every weight of this run is a single number without a standard deviation; \
                       leave --std away";
        return Err(Usage(message.to_owned()).into());
    }
    if std.as_ref() == Some(out) {
        return Err(Usage("--out and --std name the same file; use two".to_owned()).into());
    }
    pytorch::save_members(members, out).map_err(file)?;
    let slots = || members.iter().flat_map(|member| member.slots());
    let (tensors, weights) = (slots().count(), slots().map(|slot| slot.len()).sum::<usize>());
    say!("{}: step {step}", path.display());
    say!("{}: {weights} weights in {tensors} tensors", out.display());
    if let (Some(std), [parameters]) = (std, members) {
        pytorch::save_stds(parameters, std).map_err(file)?;
        say!("{}: their standard deviations", std.display());
    }
    Ok(json!({
        "checkpoint": say::path(path),
        "step": step,
        "tensors": tensors,
        "weights": weights,
        "out": say::path(out),
        "std": std.as_deref().map(say::path),
    }))
}

/// What can happen to a file of weights while it is written is what can happen to any file.
fn file(error: WeightsError) -> anyhow::Error {
    match error {
        WeightsError::File(error) => error.into(),
        other => other.into(),
    }
}
