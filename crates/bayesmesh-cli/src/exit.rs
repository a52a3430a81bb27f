//! Errors as a person reads them, and as exit codes.

use std::process::ExitCode;

use bayesmesh::checkpoint::{CheckpointError, FileError};
use bayesmesh_data::cifar10::Cifar10Error;
use bayesmesh_data::load::LoadError;
use serde_json::json;

use crate::recipe::RecipeError;
use crate::run::RunError;

/// What `--help` says about exit codes; [`code`] gives them.
pub const HELP: &str = "\
Exit codes:
  0    done
  1    the run failed, for example because a loss is not finite
  2    wrong usage: an argument, a recipe or a setting
  3    data that is missing or cannot be used
  4    a file or folder of a run that is missing, damaged or cannot be written
  130  interrupted; a checkpoint was written";

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
    eprintln!("error: {error:#}");
    let code = code(error);
    if json {
        println!("{}", json!({ "error": format!("{error:#}"), "exit_code": code }));
    }
    ExitCode::from(code)
}

/// Prints what the command line is not, or the help that it asks for, and gives the exit code.
pub fn refuse(error: &clap::Error) -> ExitCode {
    // Where standard error is closed there is nobody to tell.
    let _ = error.print();
    let code = error.exit_code() as u8;
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").trim_end();
        println!("{}", json!({ "error": text, "exit_code": code }));
    }
    ExitCode::from(code)
}

fn code(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if cause.is::<Interrupted>() {
            return 130;
        } else if cause.is::<Usage>() || cause.is::<RecipeError>() {
            return 2;
        } else if let Some(error) = cause.downcast_ref::<LoadError>() {
            return if matches!(error, LoadError::Setting(_)) { 2 } else { 3 };
        } else if let Some(error) = cause.downcast_ref::<Cifar10Error>() {
            return match error {
                Cifar10Error::Setting(_) | Cifar10Error::Occupied { .. } => 2,
                Cifar10Error::Write(_) | Cifar10Error::Busy { .. } => 4,
                _ => 3,
            };
        } else if cause.is::<RunError>() || cause.is::<CheckpointError>() || cause.is::<FileError>()
        {
            return 4;
        }
        match cause.downcast_ref::<bayesmesh::Error>() {
            Some(bayesmesh::Error::Mesh(_) | bayesmesh::Error::Setting(_)) => return 2,
            Some(bayesmesh::Error::Data(_)) => return 3,
            Some(bayesmesh::Error::Checkpoint(_)) => return 4,
            _ => {}
        }
    }
    1
}
