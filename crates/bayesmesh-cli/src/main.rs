//! The `bayesmesh` program.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: bayesmesh::process_memory::Allocator = bayesmesh::process_memory::Allocator;

fn main() -> ExitCode {
    bayesmesh_cli::main(bayesmesh_cli::use_cases::BUILTIN)
}
