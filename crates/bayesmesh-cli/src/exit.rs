//! Errors as a person reads them, and as exit codes.

use std::process::ExitCode;

use bayesmesh::checkpoint::CheckpointError;
use bayesmesh::comm::CommError;
use bayesmesh_data::Blame;
use bayesmesh_files::FileError;
use bayesmesh_models::WeightsError;
use serde_json::{Value, json};

use crate::recipe::RecipeError;
use crate::run::RunError;
use crate::say;

/// What `--help` says about exit codes; [`code`] gives them.
pub const HELP: &str = "\
Exit codes:
  0    done
  1    the run failed, for example because a loss is not finite
  2    wrong usage: an argument, a recipe or a setting
  3    data that is missing or cannot be used
  4    a file or folder of a run that is missing, damaged or cannot be written
  130  interrupted; a checkpoint was written
  143  interrupted twice and stopped at once; the last checkpoint counts";

/// The exit code of [`Interrupted`].
pub const INTERRUPTED: u8 = 130;

/// The exit code of a program that was stopped at once.
pub const STOPPED: u8 = 143;

/// A run that was interrupted by the user after writing a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Interrupted(pub String);

/// Something that the user asked for and that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Prints an error and gives its exit code.
pub fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    say::to_people(format_args!("error: {error:#}"));
    if json {
        // Where it cannot be written either, the exit code has to do.
        let _ = say::to_output(&format!("{}\n", self::json(error)));
    }
    ExitCode::from(code(error))
}

/// An error as `--json` prints it.
pub fn json(error: &anyhow::Error) -> Value {
    json!({ "error": format!("{error:#}"), "exit_code": code(error) })
}

/// Prints what the command line is not, or the help that it asks for.
pub fn refuse(error: &clap::Error) {
    // Where standard error is closed there is nobody to tell.
    let _ = error.print();
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").trim_end();
        let result = json!({ "error": text, "exit_code": error.exit_code() });
        let _ = say::to_output(&format!("{result}\n"));
    }
}

/// The exit code of an error.
pub fn code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if cause.is::<Interrupted>() {
            return INTERRUPTED;
        } else if cause.is::<Usage>() || cause.is::<RecipeError>() {
            return 2;
        } else if let Some(blame) = bayesmesh_data::blame(cause) {
            return match blame {
                Blame::Setting => 2,
                Blame::Data => 3,
                Blame::File => 4,
            };
        } else if cause.is::<WeightsError>() {
            return 3;
        } else if cause.is::<RunError>() || cause.is::<CheckpointError>() || cause.is::<FileError>()
        {
            return 4;
        }
        match cause.downcast_ref::<bayesmesh::Error>() {
            Some(
                bayesmesh::Error::Mesh(_)
                | bayesmesh::Error::Setting(_)
                | bayesmesh::Error::Communication(CommError::Disagreement { .. }),
            ) => return 2,
            Some(bayesmesh::Error::Data(_)) => return 3,
            Some(bayesmesh::Error::Checkpoint(_)) => return 4,
            _ => {}
        }
    }
    1
}
