//! Communication over MPI, and training on it. Features are those of the whole workspace, so that
//! only the crates of the project are built once more with OpenMPI; MPICH has a target folder of
//! its own, in which everything is built.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use crate::{install, is_installed, run};

/// The crates that have parts or tests for MPI only.
const FEATURES: &str = "bayesmesh-comm/mpi,bayesmesh/mpi,bayesmesh-models/mpi,bayesmesh-cli/mpi";

/// An MPI library, by its Debian packages.
#[derive(Clone, Copy)]
pub enum Library {
    OpenMpi,
    Mpich,
}

impl FromStr for Library {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "openmpi" => Ok(Library::OpenMpi),
            "mpich" => Ok(Library::Mpich),
            _ => Err(format!("unknown MPI library `{text}`; use `openmpi` or `mpich`")),
        }
    }
}

impl Library {
    fn packages(self) -> &'static [&'static str] {
        match self {
            Library::OpenMpi => &["libopenmpi-dev", "openmpi-bin", "libclang-dev"],
            Library::Mpich => &["libmpich-dev", "mpich", "libclang-dev"],
        }
    }

    /// Installs it where it is missing and can be.
    fn install(self) -> Result<(), String> {
        install(self.packages(), || self.compiler().is_some() && has_clang())
    }

    /// Says that it is not there. Where nobody reads what is said that is an error: nothing may
    /// land untested.
    fn missing(self, so: &str) -> Result<(), String> {
        let message = format!("no MPI here ({}); {so}", self.packages().join(", "));
        if env::var_os("CI").is_some() {
            return Err(message);
        }
        eprintln!("xtask: {message}");
        Ok(())
    }

    /// The compiler that knows the library, if it is installed: by its name on Debian, where both
    /// may be. Any MPI stands for OpenMPI elsewhere.
    fn compiler(self) -> Option<&'static str> {
        let names: &[&str] = match self {
            Library::OpenMpi => &["mpicc.openmpi", "mpicc"],
            Library::Mpich => &["mpicc.mpich"],
        };
        names.iter().copied().find(|name| is_installed(name))
    }

    /// `cargo COMMAND` with this library, if it is installed.
    fn cargo(self, command: &str, features: &str) -> Option<Command> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.arg(command).args(["--release", "--features", features]);
        cargo.env("MPICC", self.compiler().filter(|_| has_clang())?);
        if let Library::Mpich = self {
            // What was built with one library does not run with another.
            cargo.env("CARGO_TARGET_DIR", crate::bench::target().join("mpich"));
        }
        Some(cargo)
    }
}

/// Runs the tests of communication, training and the program under `mpirun`, on 1 to 4 ranks.
pub fn test(library: Library) -> Result<(), String> {
    library.install()?;
    let Some(mut test) = library.cargo("test", FEATURES) else {
        return library.missing("its tests skip");
    };
    if let Some(mut unit) = library.cargo("test", "mpi") {
        unit.args(["--package", "bayesmesh-comm", "--lib", "mpi::"]);
        run(unit)?;
    }
    for name in ["mpi_tests", "mpi_training_tests", "mpi_program_tests"] {
        test.args(["--test", name]);
    }
    run(test)
}

/// `cargo build` of what has these features, with OpenMPI, which is installed where it is missing.
pub fn build(features: &str) -> Result<Command, String> {
    let library = Library::OpenMpi;
    library.install()?;
    let none = || format!("no MPI here; install {}", library.packages().join(", "));
    library.cargo("build", features).ok_or_else(none)
}

/// What starts ranks of OpenMPI: by its name on Debian, where another library may be there too.
pub fn launcher() -> &'static str {
    if is_installed("mpirun.openmpi") { "mpirun.openmpi" } else { "mpirun" }
}

/// Clippy and documentation of what is compiled with MPI only, where there is one.
pub fn check() -> Result<(), String> {
    let library = Library::OpenMpi;
    library.install()?;
    let commands = (library.cargo("clippy", FEATURES), library.cargo("doc", FEATURES));
    let (Some(mut clippy), Some(mut doc)) = commands else {
        return library.missing("what needs it is not checked");
    };
    clippy.args(["--all-targets", "--", "-D", "warnings"]);
    run(clippy)?;
    doc.arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings");
    run(doc)
}

/// Whether there is the libclang that writes the bindings to MPI.
fn has_clang() -> bool {
    let in_folder = |folder: &Path| {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        // Not `libclang-cpp`, which other packages bring.
        names.any(|name| {
            let rest = name.strip_prefix("libclang");
            rest.is_some_and(|rest| rest.contains(".so") && !rest.starts_with("-cpp"))
        })
    };
    let versions = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut versions =
        versions.filter(|entry| entry.file_name().to_string_lossy().starts_with("llvm"));
    env::var_os("LIBCLANG_PATH").is_some()
        || is_installed("clang")
        || versions.any(|version| in_folder(&version.path().join("lib")))
}
