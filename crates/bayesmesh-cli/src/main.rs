//! The `bayesmesh` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bayesmesh_cli::main(bayesmesh_cli::use_cases::BUILTIN)
}
