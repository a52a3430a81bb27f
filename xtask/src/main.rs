//! What contributors run: `cargo xtask test`, `check`, `bench`.
#![forbid(unsafe_code)]

mod bench;
mod mpi;

use std::env;
use std::process::{Command, ExitCode, Stdio};

const HELP: &str = "\
usage: cargo xtask COMMAND

  test     install what the tests need (Debian: Chromium, OpenMPI) and run all of them
             --mpi openmpi|mpich only those of communication over MPI, with this library
  check    install OpenMPI where it is missing; formatting, clippy and documentation, warnings as
             errors
  bench    whole pieces of work: speed, scaling, memory, page faults; a table and a plot
             --peers             beside PyTorch, torch_blue and JAX (from PyPI, in target/peers)
             --epochs            instead, whole epochs: loading, augmentation, validation
             --mpi               instead, what ranks that are MPI processes do
             --rounds N          the best of so many (3)
             --through COMMAND   starts all contestants, e.g. \"taskset -c 0,1\"
             --operations [..]   Criterion benchmarks of single operations, by name or all
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match command {
        "test" => test(rest),
        "check" => check(),
        "bench" => bench::bench(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command `{other}`\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn test(options: &[String]) -> Result<(), String> {
    match options {
        [] => {}
        [option, name] if option == "--mpi" => return mpi::test(name.parse()?),
        _ => return Err(format!("test: unknown options {}\n\n{HELP}", options.join(" "))),
    }
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    install(&["chromium"], || browsers.iter().any(|program| is_installed(program)))?;
    cargo(&["test", "--release", "--examples", "--lib", "--bins", "--tests"])?;
    cargo(&["test", "--release", "--doc"])?;
    // Not of one package: its dependencies would be built once more, with fewer features.
    for example in ["cnn", "own_posterior"] {
        cargo(&["run", "--release", "--quiet", "--example", example])?;
    }
    mpi::test(mpi::Library::OpenMpi)
}

fn check() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])?;
    refuse_long_lines()?;
    cargo(&["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    mpi::check()?;
    let mut doc = Command::new(env!("CARGO"));
    doc.args(["doc", "--release", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    run(doc)
}

/// Refuses lines of code and comments that are longer than rustfmt is set to; it wraps neither
/// comments nor texts. Tables in comments and texts in tests may be as long as they are.
fn refuse_long_lines() -> Result<(), String> {
    const MOST: usize = 100;
    let files = Command::new("git").args(["ls-files", "*.rs"]).output();
    let files = files.map_err(|error| format!("git ls-files: {error}"))?.stdout;
    let files = String::from_utf8_lossy(&files).into_owned();
    for file in files.lines().filter(|file| !file.contains("/tests/")) {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let is_table =
            |line: &str| line.trim_start().starts_with(['/', '!']) && line.contains("| ");
        let long = |line: &&str| line.chars().count() > MOST && !is_table(line);
        if let Some(line) = text.lines().position(|line| long(&line)) {
            return Err(format!("{file}:{}: longer than {MOST} columns", line + 1));
        }
    }
    Ok(())
}

/// Installs Debian packages unless what they bring is there. Where they cannot be installed the
/// tests that need them say that they skip.
fn install(packages: &[&str], is_there: impl Fn() -> bool) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    let names = packages.join(", ");
    let root = is_root();
    if !is_installed("apt-get") || !(root || is_installed("sudo")) {
        eprintln!("xtask: no {names} here and no way to install it; tests that need it will skip");
        return Ok(());
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if root { "apt-get" } else { "sudo" });
        if !root {
            command.arg("apt-get");
        }
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        run(command)
    };
    eprintln!("xtask: installing {names}");
    apt(&["update", "-qq"])?;
    apt(&[&["install", "-y", "-qq", "--no-install-recommends"], packages].concat())
}

fn is_installed(program: &str) -> bool {
    let found = |folder: std::path::PathBuf| folder.join(program).is_file();
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(found))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments);
    run(command)
}

fn run(mut command: Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    let status = command.status().map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown} failed: {status}")) }
}
