//! The `bayesmesh` program, as a library so that its parts can be tested.
//!
//! `args` is what can be typed, `commands` what is done, `recipe` a run as a file, `run` the folder
//! it leaves behind, `build` the recipe as the library's types. A `use_case` is what the commands
//! do something with: `forecast` is the load forecast, `classify` the classification of images,
//! each from the data to the report.

mod args;
mod build;
mod classify;
mod commands;
mod curves;
mod exit;
mod forecast;
mod memory;
mod progress;
pub mod recipe;
pub mod run;
mod say;
mod table_file;
mod use_case;

use std::process::ExitCode;

use clap::Parser;

/// Reads the command line, does what it says and returns the exit code.
pub fn main() -> ExitCode {
    bayesmesh::memory::keep_freed();
    let arguments = match args::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return exit::refuse(&error),
    };
    let json = arguments.json;
    match commands::run(arguments) {
        Ok(result) => {
            if json {
                println!("{result}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => exit::report(&error, json),
    }
}
