//! After training, or where it is missing: calibration on data that were set aside.

use anyhow::Result;
use bayesmesh::checkpoint::Store;
use bayesmesh::{CalibrateConfig, Calibration, Dataset as _, Network};

use crate::job::Job;
use crate::recipe::Recipe;
use crate::run::RunFolder;
use crate::say::say;
use crate::tasks::Task as _;
use crate::use_cases::{CaseTrainer, InputOf, UseCase};

/// Calibrates a trained network as its recipe says, unless it is calibrated so. A calibration that
/// the last checkpoint did not have is saved with it, in the folder if there is one. All processes
/// do it together.
pub fn calibrate<U: UseCase, N: Network<Input = InputOf<U>> + 'static>(
    job: &Job,
    folder: Option<&RunFolder>,
    recipe: &Recipe,
    case: &U,
    trainer: &mut CaseTrainer<U, N>,
) -> Result<()> {
    // It has learned from what was set aside, and has its calibration from a pilot that has not.
    if case.refit().is_some() {
        if recipe.calibrate == CalibrateConfig::None {
            trainer.forget_calibration();
        }
        return Ok(());
    }
    calibrate_on_validation(job, folder, recipe, case, trainer)
}

/// The same for a network that has not learned from what was set aside.
pub fn calibrate_on_validation<U: UseCase, N: Network<Input = InputOf<U>> + 'static>(
    job: &Job,
    folder: Option<&RunFolder>,
    recipe: &Recipe,
    case: &U,
    trainer: &mut CaseTrainer<U, N>,
) -> Result<()> {
    const LEAST: usize = Calibration::LEAST_EXAMPLES;
    if !U::Task::CALIBRATES {
        return Ok(());
    }
    let (valid, config) = match case.valid() {
        Some(valid) if valid.len() >= LEAST => (valid, recipe.calibrate),
        // What was learned from is better known than it should be; still better than no noise.
        valid => {
            if recipe.calibrate != CalibrateConfig::None {
                say!(
                    "not calibrated: {} {} are set aside for validation, and {LEAST} are needed; \
                     intervals are those of the network",
                    valid.map_or(0, |valid| valid.len()),
                    U::EXAMPLES
                );
            }
            (case.train(), CalibrateConfig::None)
        }
    };
    let wanted = config.method(U::Task::INFO.classes, U::SERIES)?;
    let before = trainer.calibration().map(Calibration::method);
    let noise_known = !trainer.loss().leaves_noise_open() || !trainer.noise().is_empty();
    if before == wanted && noise_known {
        return Ok(());
    }
    trainer.calibrate(valid, config, recipe.evaluate.draws)?;
    // Another calibration for this time only does not become that of the run.
    let keeps = match folder {
        Some(folder) if before.is_none() => {
            let own = Recipe::load(job.catalogue(), &folder.recipe(), &[])?;
            (own.calibrate == recipe.calibrate).then_some(folder)
        }
        _ => None,
    };
    let last = trainer.checkpoint_on(keeps.is_some())?;
    if let (Some(folder), Some(last)) = (keeps, last) {
        Store::open(folder.checkpoints())?.save(&last)?;
    }
    job.pass_on_warnings()
}
