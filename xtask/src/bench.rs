//! Benchmarks, and the competition they are run beside.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, mpi, run};

/// `cargo xtask bench [--peers] [--epochs]`, `cargo xtask bench --mpi`, both with `[--rounds N]
/// [--through COMMAND]`, or `cargo xtask bench --operations [NAMES]`.
pub fn bench(arguments: &[String]) -> Result<(), String> {
    if let Some((first, names)) = arguments.split_first()
        && first == "--operations"
    {
        let mut arguments = vec!["bench", "--package", "bayesmesh-bench"];
        arguments.extend(names.iter().flat_map(|name| ["--bench", name]));
        return cargo(&arguments);
    }
    let package = ["--package", "bayesmesh-bench", "--bins"];
    match arguments.iter().any(|argument| argument == "--mpi") {
        true => {
            let mut build = mpi::build("bayesmesh-bench/mpi")?;
            build.args(package);
            run(build)?;
        }
        false => cargo(&[&["build", "--release"], &package[..]].concat())?,
    }
    let mut table = Command::new(target().join("release/table"));
    for argument in arguments {
        match argument.as_str() {
            "--peers" => table.arg(peers()?),
            // Root is what one is in a container.
            "--mpi" => table
                .args(["--mpi", mpi::launcher()])
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            other => table.arg(other),
        };
    }
    run(table)
}

/// The competition, from PyPI. `torch.compile` needs a C++ compiler beside it.
const PEERS: [&str; 6] = [
    "numpy==2.4.6",
    "torch==2.9.0",
    "torch_blue==1.1.0",
    "jax==0.10.2",
    "jaxlib==0.10.2",
    "optax==0.2.8",
];

/// The Python of a virtual environment with the competition. What is missing there is installed.
fn peers() -> Result<PathBuf, String> {
    let folder = target().join("peers");
    let python = folder.join("bin/python");
    if !python.exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&folder);
        run(venv)?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PEERS);
    run(install)?;
    Ok(python)
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| Path::new("target").to_path_buf())
}
