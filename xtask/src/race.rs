//! Whole pieces of work beside the competition, in alternation on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, run};

/// How often each contestant runs; the best counts, since other work on the machine only adds.
const ROUNDS: usize = 5;

/// One way to do a piece of work: a name and a command that prints milliseconds.
struct Contestant {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<&'static str>,
    ours: bool,
}

/// Races everything there is a rival for.
pub fn race() -> Result<(), String> {
    cargo(&["build", "--release", "--package", "bayesmesh-bench", "--bins"])?;
    let python = peers()?;
    let torch = |name, arguments: &[&'static str]| Contestant {
        name,
        program: python.clone(),
        arguments: arguments.to_vec(),
        ours: false,
    };
    let ours = |name, program: &str, arguments: &[&'static str]| Contestant {
        name,
        program: target().join("release").join(program),
        arguments: arguments.to_vec(),
        ours: true,
    };
    let mut table = String::from("work,contestant,milliseconds,times_faster\n");
    table += &compete(
        "training step of the MLP 96-128-128-24, batch 64, 16 draws, Adam",
        &[
            torch("PyTorch, 1 thread", &["bench/peers/mlp_torch.py", "64", "16", "1", "300"]),
            torch("PyTorch, 2 threads", &["bench/peers/mlp_torch.py", "64", "16", "2", "300"]),
            ours("BayesMesh, 1 rank", "mlp", &["64", "16", "1x1", "300"]),
            ours("BayesMesh, 2 sample ranks", "mlp", &["64", "16", "2x1", "300"]),
        ],
    )?;
    table += &compete(
        "ten million standard normals on one core",
        &[
            torch("PyTorch, normal_", &["bench/peers/normals_torch.py"]),
            ours("BayesMesh, fill_normal", "normals", &[]),
        ],
    )?;
    let path = target().join("race.csv");
    fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("\n{}", path.display());
    Ok(())
}

/// Runs contestants in turn, prints how they did and returns rows of the table.
fn compete(work: &str, contestants: &[Contestant]) -> Result<String, String> {
    let mut best = vec![f64::INFINITY; contestants.len()];
    for round in 1..=ROUNDS {
        for (best, contestant) in best.iter_mut().zip(contestants) {
            let milliseconds = measure(contestant)?;
            eprintln!("round {round}: {}: {milliseconds:.3} ms", contestant.name);
            *best = best.min(milliseconds);
        }
    }
    let results = || contestants.iter().zip(&best);
    let rivals = results().filter(|(contestant, _)| !contestant.ours);
    let rival = rivals.map(|(_, best)| *best).fold(f64::INFINITY, f64::min);
    println!("\n{work}: best of {ROUNDS}");
    let mut rows = String::new();
    for (Contestant { name, .. }, best) in results() {
        let ratio = rival / best;
        println!("  {name:<26} {best:8.3} ms  {ratio:5.2} times PyTorch's best");
        rows += &format!("{work:?},{name:?},{best},{ratio}\n");
    }
    Ok(rows)
}

/// The number that a contestant prints last.
fn measure(contestant: &Contestant) -> Result<f64, String> {
    let output = Command::new(&contestant.program).args(&contestant.arguments).output();
    let output = output.map_err(|error| format!("{}: {error}", contestant.program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().and_then(|line| line.trim().parse().ok());
    let complaint = || String::from_utf8_lossy(&output.stderr).into_owned();
    last.ok_or_else(|| format!("{} failed: {}", contestant.name, complaint()))
}

/// The Python of a virtual environment with the competition, made where it is missing.
fn peers() -> Result<PathBuf, String> {
    let folder = target().join("peers");
    let python = folder.join("bin/python");
    if !python.exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&folder);
        run(venv)?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "numpy", "torch==2.9.0"]);
        run(install)?;
    }
    Ok(python)
}

fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    folder.unwrap_or_else(|| Path::new("target").to_path_buf())
}
