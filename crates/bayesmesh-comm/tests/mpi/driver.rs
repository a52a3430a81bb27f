//! Starts jobs and judges how they end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use bayesmesh_comm::{launch, mpi};

use super::faults::{FAULTS, UNNOTICED};
use super::job::{Nodes, check, in_turns, job, launcher};

/// Ranks of each node, and whether they are dealt out to nodes in turn.
const NODES: [(&str, &[usize], bool); 4] = [
    ("2 ranks", &[2, 2], false),
    ("2 ranks, dealt out", &[2, 2], true),
    ("2 and 1 ranks, dealt out", &[2, 1], true),
    ("1 and 2 ranks", &[1, 2], false),
];

/// What is promised for the end of a job of which a rank fails.
const END: Duration = Duration::from_secs(10);

pub fn run(filter: Option<&str>) -> ExitCode {
    assert!(!launch::is_launched(), "start the driver without mpirun");
    let Some(launcher) = launcher(&mpi::library()) else {
        println!("no mpirun of {} here; set BAYESMESH_MPIRUN to it", mpi::library());
        return ExitCode::FAILURE;
    };
    println!("{}, started by {}", mpi::library(), launcher.join(" "));
    let mut failed = 0;
    let mut judge = |name: &str, verdict: &dyn Fn() -> Result<(), String>| {
        if filter.is_none_or(|filter| name.contains(filter)) {
            let start = Instant::now();
            let verdict = verdict();
            let text = if verdict.is_ok() { "ok" } else { "FAILED" };
            println!("mpi {name} ... {text} ({:.1} s)", start.elapsed().as_secs_f32());
            if let Err(reason) = verdict {
                println!("{reason}");
                failed += 1;
            }
        }
    };
    let suite = |launcher: &[String], ranks: usize, arguments: &[&str]| {
        let arguments = [&["suite"], arguments].concat();
        let ended = job(launcher, ranks, &arguments, Duration::from_secs(300));
        let passed = ended.output.lines().any(|line| line == "suite passed");
        check(&ended, ended.success() && passed, "did not pass")
    };
    for ranks in 1..=4 {
        judge(&format!("suite on {ranks} ranks"), &|| suite(&launcher, ranks, &[]));
    }
    judge("suite on 2 ranks, threads in turns", &|| suite(&in_turns(&launcher), 2, &[]));
    for (name, sizes, dealt) in NODES {
        let nodes = Nodes { sizes: sizes.to_vec(), dealt };
        let name = format!("suite on nodes of {name}");
        let Some(launcher) = nodes.launcher(&mpi::library()) else {
            println!("mpi {name} ... skipped: this machine cannot stand for several here");
            continue;
        };
        judge(&name, &|| {
            let expected = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            suite(&launcher, nodes.ranks(), &[&expected])
        });
    }
    // Lets the launcher go on when a rank is killed; that of MPICH knows no such thing.
    let option = match launcher[0].as_str() {
        name if name.contains("srun") => Some("--kill-on-bad-exit=0"),
        _ if mpi::library().starts_with("Open MPI") => Some("--enable-recovery"),
        _ => None,
    };
    let unnoticed = UNNOTICED.iter().filter(|_| option.is_some()).map(|fault| (fault, true));
    for (fault, careless) in FAULTS.iter().map(|fault| (fault, false)).chain(unnoticed) {
        let option = option.filter(|_| careless).map(str::to_owned);
        let launcher = launcher.iter().cloned().chain(option).collect::<Vec<_>>();
        judge(&format!("fault {}", fault.name), &|| {
            let ended = job(&launcher, fault.ranks, &["fail", fault.name], 3 * END);
            // A launcher that does not care how ranks end may not care about its own code.
            check(&ended, careless || !ended.success(), "ended with code 0")?;
            check(&ended, ended.took < END, "took too long")?;
            let texts = format!("{}{}", ended.output, ended.messages);
            match fault.message {
                Some(message) => {
                    let is_message = |line: &&str| line.starts_with("rank ") && line.contains(": ");
                    let lines: Vec<&str> = ended.messages.lines().filter(is_message).collect();
                    check(&ended, lines.len() == 1, "did not say one thing")?;
                    check(&ended, message.iter().all(|part| lines[0].contains(part)), "said else")
                }
                // Of a killed process the launcher speaks.
                None => check(&ended, texts.contains("ignal 9"), "did not tell of the signal"),
            }
        });
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
