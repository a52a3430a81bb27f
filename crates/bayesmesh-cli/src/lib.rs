//! The `bayesmesh` program, as a library so that its parts can be tested.
//!
//! `args` is what can be typed, `commands` what is done, `recipe` a run as a file, `run` the folder
//! it leaves behind, `build` the recipe as the library's types, `job` the processes that do it. A `use_case` is what the commands
//! do something with: `forecast` is the load forecast, `classify` the classification of images,
//! each from the data to the report.
#![forbid(unsafe_code)]

mod args;
mod build;
mod classify;
mod commands;
mod curves;
mod exit;
mod forecast;
mod job;
mod memory;
mod progress;
pub mod recipe;
pub mod run;
mod say;
mod table_file;
mod use_case;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use job::Job;

/// Reads the command line, does what it says and returns the exit code.
pub fn main() -> ExitCode {
    bayesmesh::process_memory::keep_freed();
    let json = std::env::args_os().any(|argument| argument == "--json");
    job::run(json, program)
}

/// The exit code of all processes of the job, or why this one failed.
fn program(job: &Job) -> Result<u8> {
    let arguments = match args::Arguments::try_parse() {
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
    match commands::run(job, arguments) {
        Ok(result) => {
            if json && job.leads() {
                println!("{result}");
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
