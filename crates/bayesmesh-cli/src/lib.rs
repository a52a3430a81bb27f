//! The `bayesmesh` program, as a library: to test its parts, and to make a program of your own that
//! knows one more use case.
//!
//! `args` is what can be typed, `commands` what is done, [`recipe`] a run as a file, `run` the
//! folder it leaves behind, `job` the processes that do it. A [use case](use_cases) is what the
//! commands do something with; [`tasks`] are what use cases have in common, [`models`] the networks
//! they take.
//!
//! A program with a use case of your own is
//!
//! ```no_run
//! # use bayesmesh_cli::use_cases::BUILTIN;
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     // Yours follow: `&[BUILTIN, &[entry::<Mine>()]].concat()`.
//!     bayesmesh_cli::main(BUILTIN)
//! }
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod args;
mod commands;
mod exit;
mod job;
pub mod models;
pub mod prelude;
mod progress;
pub mod recipe;
pub mod run;
mod say;
mod table_file;
pub mod tasks;
pub mod use_cases;

pub use commands::TrainedRun;
pub use exit::Usage;
pub use job::Job;

use std::process::ExitCode;

use anyhow::Result;
use clap::FromArgMatches as _;

use recipe::Catalogue;
use use_cases::Entry;

/// Reads the command line, does what it says and returns the exit code.
pub fn main(use_cases: &[&'static dyn Entry]) -> ExitCode {
    bayesmesh::process_memory::keep_freed();
    let json = std::env::args_os().any(|argument| argument == "--json");
    job::run(json, Catalogue::new(use_cases), program)
}

/// The exit code of all processes of the job, or why this one failed.
fn program(job: &Job) -> Result<u8> {
    let found = args::command(job.catalogue()).try_get_matches();
    let arguments = found.and_then(|found| {
        let arguments = args::Arguments::from_arg_matches(&found)?;
        Ok((found, arguments))
    });
    let (found, arguments) = match arguments {
        Ok(arguments) => arguments,
        // All processes have the same arguments; one says what is wrong with them.
        Err(error) => {
            if job.leads() {
                exit::refuse(&error);
            }
            return Ok(error.exit_code() as u8);
        }
    };
    let json = arguments.json;
    match commands::run(job, arguments, &found) {
        Ok(result) => {
            if json && job.leads() {
                say::to_output(&format!("{result}\n"))?;
            }
            Ok(0)
        }
        // Nothing failed: all stopped together.
        Err(error) if exit::code(&error) == exit::INTERRUPTED => {
            if job.leads() {
                exit::report(&error, json);
            }
            Ok(exit::INTERRUPTED)
        }
        Err(error) => Err(error),
    }
}
