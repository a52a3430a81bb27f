//! A run that has been trained.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bayesmesh::checkpoint::{Checkpoint, Store};
use bayesmesh::{Dataset as _, Loss, Network, Posterior, Trainer};

use super::calibrate::calibrate;
use super::{shape, trainer};
use crate::args::{self, Draws};
use crate::exit::Usage;
use crate::job::Job;
use crate::models::{Model, Shape};
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::say::{self, say};
use crate::tasks::Task as _;
use crate::use_cases::{CaseTrainer, InputOf, UseCase};

/// What checkpoints call the checksum of the examples that a run is trained on.
pub const DATA: &str = "data";

/// A trained run, read from its folder.
pub struct TrainedRun<'a, U: UseCase, N: Network> {
    /// Who does something with it.
    pub job: &'a Job,
    /// Where it is.
    pub folder: RunFolder,
    /// Its recipe, with keys changed at the command line.
    pub recipe: Recipe,
    /// Its last checkpoint.
    pub trainer: CaseTrainer<U, N>,
    /// What its checkpoint says beside its numbers, as far as the first process knows it.
    notes: BTreeMap<String, String>,
}

impl<'a, U: UseCase, N: Network<Input = InputOf<U>> + 'static> TrainedRun<'a, U, N> {
    /// Reads the last checkpoint of a run whose recipe has been read.
    pub(super) fn read<M: Model<Network = N>>(
        job: &'a Job,
        folder: RunFolder,
        recipe: Recipe,
        ranks: &args::Ranks,
    ) -> Result<Self> {
        job.agree(&recipe.keys())?;
        let mesh = job.mesh(ranks, &recipe)?;
        job.warn_of_crowding(mesh)?;
        let loss = U::Task::loss(&recipe)?;
        let mut trainer = trainer::<U, M>(job.place(), &recipe, loss, mesh, 1)?;
        let mut notes = BTreeMap::new();
        let found = restore_latest(job, &folder.checkpoints(), &mut trainer, |checkpoint| {
            notes.clone_from(&checkpoint.metadata);
            Ok(())
        })?;
        found.ok_or_else(|| no_checkpoint(&folder))?;
        job.pass_on_warnings()?;
        Ok(Self { job, folder, recipe, trainer, notes })
    }
}

impl<U: UseCase, N: Network> TrainedRun<'_, U, N> {
    /// Its data.
    pub fn load(&self) -> Result<U> {
        U::load(&self.recipe.section("data")?, &self.recipe)
    }

    /// The shape of an example.
    pub fn shape(&self) -> Result<Shape> {
        shape::<U>(&self.recipe)
    }

    /// Draws of a prediction: those that were asked for, else those of the recipe.
    pub fn draws(&self, asked: Option<usize>) -> Result<usize> {
        const MOST: usize = 1_000_000;
        match asked.unwrap_or(self.recipe.evaluate.draws) {
            0 => Err(Usage("--draws 0 is not possible; use 1 or more".to_owned()).into()),
            draws if draws > MOST => {
                Err(Usage(format!("--draws {draws} would not end; use at most {MOST}")).into())
            }
            draws => Ok(match self.recipe.members() {
                Some(members) if members < draws => {
                    say!("{draws} draws of an ensemble of {members} are all its members");
                    members
                }
                _ => draws,
            }),
        }
    }

    /// The same where predictions are scored, for which some need more than one.
    pub fn draws_to_score(&self, asked: Option<Draws>) -> Result<Draws> {
        let number = match asked {
            Some(Draws::Auto) => return Ok(Draws::Auto),
            Some(Draws::Number(number)) => Some(number),
            None => None,
        };
        let (draws, least) = (self.draws(number)?, U::Task::LEAST_DRAWS);
        match draws < least {
            false => Ok(Draws::Number(draws)),
            true => Err(Usage(format!(
                "a prediction needs at least {least} draws; use --draws {least} or more"
            ))
            .into()),
        }
    }

    /// What its checkpoint says under a name; nothing where it does not. Collective.
    pub fn note(&self, name: &str) -> Result<Option<String>> {
        let text = self.job.first(|| Ok(self.notes.get(name).cloned().unwrap_or_default()))?;
        Ok((!text.is_empty()).then_some(text))
    }

    /// Calibrates it for this time where its checkpoint is not.
    pub fn calibrate(&mut self, case: &U) -> Result<()>
    where
        N: Network<Input = InputOf<U>> + 'static,
    {
        calibrate(self.job, None, &self.recipe, case, &mut self.trainer)
    }

    /// Refuses data of other training examples: what they were normalised by would be another.
    pub fn refuse_other_data(&self, case: &U) -> Result<()> {
        let data = case.train().checksum().unwrap_or_default();
        refuse_other_data(self.folder.path(), self.notes.get(DATA), &data)
    }
}

/// The folder of a run and the recipe in it, with keys changed.
pub fn open(job: &Job, path: &Path, set: &[String]) -> Result<(RunFolder, Recipe)> {
    let folder = RunFolder::open(path)?;
    let recipe = Recipe::load(job.catalogue(), &folder.recipe(), set)?;
    Ok((folder, recipe))
}

/// The newest readable checkpoint of a run, which must have one.
pub fn latest_checkpoint(folder: &RunFolder) -> Result<(PathBuf, Checkpoint)> {
    find_checkpoint(&folder.checkpoints())?.ok_or_else(|| no_checkpoint(folder))
}

fn no_checkpoint(folder: &RunFolder) -> anyhow::Error {
    let path = folder.path().display();
    Usage(format!("{path} has no checkpoint yet; train it first")).into()
}

/// The newest readable checkpoint in a folder, if there is any; a warning for each damaged one that
/// is newer. Where all are damaged, the error of the newest.
fn find_checkpoint(folder: &Path) -> Result<Option<(PathBuf, Checkpoint)>> {
    let latest = Store::open(folder)?.latest()?;
    for problem in latest.skipped {
        if latest.found.is_none() {
            return Err(problem.into());
        }
        say::warn(problem.to_string());
    }
    Ok(latest.found)
}

/// Gives a trainer the newest readable checkpoint in a folder, if there is any and it passes a
/// check; its path. Only the first process reads it, and sends it to the others.
pub fn restore_latest<P: Posterior, L: Loss>(
    job: &Job,
    folder: &Path,
    trainer: &mut Trainer<P, L>,
    check: impl FnOnce(&Checkpoint) -> Result<()>,
) -> Result<Option<PathBuf>> {
    let mut own = None;
    let name = job.first(|| {
        let Some((path, checkpoint)) = find_checkpoint(folder)? else {
            return Ok(String::new());
        };
        check(&checkpoint)?;
        own = Some(checkpoint);
        Ok(path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    })?;
    if name.is_empty() {
        return Ok(None);
    }
    let path = folder.join(name);
    trainer.restore_from_first(own, &path)?;
    Ok(Some(path))
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
