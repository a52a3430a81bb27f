//! Ranks that are MPI processes: the same promises as for threads, and to the same bits.
//!
//! Started without arguments this is the driver: it starts itself under the `mpirun` of the MPI
//! library it is linked with (or the command in `BAYESMESH_MPIRUN`) on 1 to 4 ranks, and then runs
//! jobs that fail in every way and must end at once, with one message. An argument that is no
//! option runs only the jobs whose name contains it.

mod common;
mod mpi;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rank", "suite"] => mpi::suite::run(None),
        ["rank", "suite", nodes] => mpi::suite::run(Some(nodes)),
        ["rank", "fail", fault] => mpi::faults::run(fault),
        ["rank", "measure"] => mpi::measure::run(),
        others => mpi::driver::run(others.iter().find(|other| !other.starts_with('-')).copied()),
    }
}
