//! `bayesmesh evaluate`.

use anyhow::Result;
use bayesmesh::Network;
use serde_json::Value;

use super::TrainedRun;
use super::calibrate::calibrate;
use super::finish::{Training, finish};
use crate::args;
use crate::use_cases::{InputOf, UseCase};

/// Scores a run on its test data and writes its report anew.
pub fn evaluate<U: UseCase, N: Network<Input = InputOf<U>> + 'static>(
    run: &mut TrainedRun<'_, U, N>,
    arguments: &args::Evaluate,
) -> Result<Value> {
    let case = run.load()?;
    run.refuse_other_data(&case)?;
    let draws = run.draws_to_score(arguments.draws)?;
    let folder = run.job.leads().then_some(&run.folder);
    calibrate(run.job, folder, &run.recipe, &case, &mut run.trainer)?;
    finish(run.job, folder, &run.recipe, &case, &run.trainer, draws, Training::default())
}
