//! Whole training steps beside the competition, in alternation on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, run};

/// How often each contestant runs; the best counts, since other work on the machine only adds.
const ROUNDS: usize = 5;
const STEPS: &str = "300";

/// Races the MLP of the load forecast: batch 64, 16 draws, on two cores.
pub fn race() -> Result<(), String> {
    cargo(&["build", "--release", "--package", "bayesmesh-bench", "--bins"])?;
    let python = peers()?;
    let ours = target().join("release/mlp");
    let torch = |threads: &'static str| {
        let mut command = Command::new(&python);
        command.args(["bench/peers/mlp_torch.py", "64", "16", threads, STEPS]);
        command
    };
    let bayesmesh = |mesh: &'static str| {
        let mut command = Command::new(&ours);
        command.args(["64", "16", mesh, STEPS]);
        command
    };
    type Contestant<'a> = (&'a str, &'a dyn Fn() -> Command);
    let contestants: [Contestant; 4] = [
        ("PyTorch, 1 thread", &|| torch("1")),
        ("PyTorch, 2 threads", &|| torch("2")),
        ("BayesMesh, 1 rank", &|| bayesmesh("1x1")),
        ("BayesMesh, 2 sample ranks", &|| bayesmesh("2x1")),
    ];
    let mut best = [f64::INFINITY; 4];
    for round in 0..ROUNDS {
        for (best, (name, command)) in best.iter_mut().zip(&contestants) {
            let milliseconds = measure(command())?;
            eprintln!("round {}: {name}: {milliseconds:.3} ms", round + 1);
            *best = best.min(milliseconds);
        }
    }
    let rival = best[0].min(best[1]);
    let mut table = String::from("contestant,ms_per_step,times_faster_than_pytorch\n");
    println!("\nMLP 96-128-128-24, batch 64, 16 draws, Adam: best of {ROUNDS}");
    for (best, (name, _)) in best.iter().zip(&contestants) {
        println!("  {name:<26} {best:8.3} ms/step  {:5.2}x PyTorch's best", rival / best);
        table += &format!("{name:?},{best},{}\n", rival / best);
    }
    let path = target().join("race.csv");
    fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("  {}", path.display());
    Ok(())
}

/// The number that a contestant prints last.
fn measure(mut command: Command) -> Result<f64, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().and_then(|line| line.trim().parse().ok());
    last.ok_or_else(|| format!("{shown} failed: {}", String::from_utf8_lossy(&output.stderr)))
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
