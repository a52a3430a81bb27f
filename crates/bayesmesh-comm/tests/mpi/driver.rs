//! Starts jobs and judges how they end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use bayesmesh_comm::{launch, mpi};

use super::job::{check, job, launcher};

/// What is promised for the end of a job of which a rank fails.
const END: Duration = Duration::from_secs(10);

pub fn run(filter: Option<&str>) -> ExitCode {
    assert!(!launch::is_launched(), "start the driver without mpirun");
    let Some(launcher) = launcher(&mpi::library()) else {
        println!(
            "no mpirun of {} here (set BAYESMESH_MPIRUN to it); MPI tests skip",
            mpi::library()
        );
        return ExitCode::SUCCESS;
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
    for ranks in 1..=4 {
        judge(&format!("suite on {ranks} ranks"), &|| {
            let ended = job(&launcher, ranks, &["suite"], Duration::from_secs(300));
            let passed = ended.output.lines().any(|line| line == "suite passed");
            check(&ended, ended.success() && passed, "did not pass")
        });
    }
    for fault in super::faults::FAULTS {
        judge(&format!("fault {}", fault.name), &|| {
            let ended = job(&launcher, fault.ranks, &["fail", fault.name], 3 * END);
            check(&ended, !ended.success(), "ended with code 0")?;
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
