//! The program under `mpirun`: what it does as one process, done by several.
//!
//! The launcher is that of the MPI library the tests are linked with, or `BAYESMESH_MPIRUN`.

// Each of its users needs a part of it.
#[allow(dead_code)]
#[path = "../../bayesmesh-comm/tests/mpi/job.rs"]
mod job;

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bayesmesh::comm::mpi;
use common::{Outcome, Scratch, checkpoints, last_step, training};

/// Longer than any of these jobs takes: one that hangs is ended and fails.
const LIMIT: Duration = Duration::from_secs(300);
/// How quickly all processes must be gone when one is killed.
const GONE: Duration = Duration::from_secs(10);

/// Jobs one after another: several at a time on few cores would be slow rather than wrong.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command that starts so many ranks of the program in a folder.
fn ranks(scratch: &Scratch, ranks: usize, arguments: &[String]) -> Command {
    let library = mpi::library();
    let launcher = job::launcher(&library)
        .unwrap_or_else(|| panic!("no mpirun of {library}; set BAYESMESH_MPIRUN to it"));
    started_by(&launcher, scratch, ranks, arguments)
}

fn started_by(
    launcher: &[String],
    scratch: &Scratch,
    ranks: usize,
    arguments: &[String],
) -> Command {
    let mut command = job::command(launcher, ranks);
    command.arg(env!("CARGO_BIN_EXE_bayesmesh")).args(arguments).current_dir(scratch.path(""));
    command
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// What so many ranks do with these arguments.
fn run(scratch: &Scratch, size: usize, arguments: &[String]) -> Outcome {
    ended(&mut ranks(scratch, size, arguments))
}

/// How a job ends, which it must do.
fn ended(command: &mut Command) -> Outcome {
    let ended = job::run(command, LIMIT);
    assert!(ended.took < LIMIT, "hangs: {}\n{}", ended.output, ended.messages);
    Outcome { code: ended.code, stdout: ended.output, stderr: ended.messages }
}

/// How often the standard error stream has these words.
fn said(outcome: &Outcome, words: &str) -> usize {
    outcome.stderr.matches(words).count()
}

#[test]
fn threads_and_processes_end_with_the_same_weights() {
    let _alone = alone();
    let recipes = [
        ("load-mlp", "train.seed=0"),
        ("images-demo", "train.seed=0"),
        ("era5-demo", "loss.kind=crps"),
        ("era5-demo", "loss.kind=gaussian-of-draws"),
    ];
    for (recipe, setting) in recipes {
        let scratch = Scratch::new();
        let settings = ["train.reduce=reproducible", setting];
        let threads = scratch.train(recipe, &settings, &["--ranks", "1", "--out", "threads"]);
        let expected = threads.digest();
        // One process alone is the program with threads; `mpi_training_tests` has a job of one.
        for size in [2, 4] {
            let out = format!("mpi-{size}");
            let mesh = format!("{size}x1");
            // The optimiser's state divided among the ranks, or not.
            let divided = format!("train.shard_optimizer={}", size == 4);
            let settings = [settings[0], settings[1], &divided];
            let arguments = training(recipe, &settings, &["--out", &out, "--mesh", &mesh]);
            let outcome = run(&scratch, size, &arguments);
            assert_eq!(outcome.digest(), expected, "{recipe} on {size}");
            assert_eq!(outcome.json()["mesh"], mesh);
            // All of them scored the test data, each a part of the draws.
            let (ours, theirs) = (&outcome.json()["test"], &threads.json()["test"]);
            for (name, value) in theirs.as_object().unwrap() {
                let (ours, theirs) = (ours[name].as_f64(), value.as_f64());
                let close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-6 * b.abs().max(1.0);
                assert!(ours == theirs || ours.zip(theirs).is_some_and(close), "{name}");
            }
        }
    }
}

#[test]
fn data_and_hybrid_meshes_train_and_score() {
    let _alone = alone();
    let scratch = Scratch::new();
    for (size, mesh) in [(2, "1x2"), (3, "3x1"), (4, "2x2")] {
        let threads = format!("threads-{mesh}");
        let threads = scratch.train("demo", &[], &["--mesh", mesh, "--out", &threads]);
        let out = format!("mpi-{mesh}");
        let outcome = run(&scratch, size, &training("demo", &[], &["--mesh", mesh, "--out", &out]));
        let rmse = |outcome: &Outcome| outcome.success()["test"]["rmse_mw"].as_f64().unwrap();
        let (ours, theirs) = (rmse(&outcome), rmse(&threads));
        assert!((ours - theirs).abs() <= 1e-4 * theirs, "{mesh}: {ours} MW, threads {theirs}");
    }
}

/// Draws are divided within the nodes and data across, however ranks are dealt out; slow loading is
/// shared by the ranks of a node; and the result is that of threads.
#[test]
fn nodes_divide_draws_within_and_data_across() {
    let _alone = alone();
    let scratch = Scratch::new();
    let settings = ["train.reduce=reproducible", "train.load_delay_ms=0.1"];
    let expected = scratch.train("demo", &settings, &["--mesh", "2x2", "--out", "threads"]);
    for (sizes, dealt, mesh) in
        [(&[2, 2], false, "2x2"), (&[2, 2], true, "2x2"), (&[2, 1], true, "3x1")]
    {
        let nodes = job::Nodes { sizes: sizes.to_vec(), dealt };
        let Some(launcher) = nodes.launcher(&mpi::library()) else {
            eprintln!("this machine cannot stand for several here; no job on nodes of {sizes:?}");
            continue;
        };
        let out = format!("nodes-{mesh}-{dealt}");
        let arguments = training("demo", &settings, &["--out", &out]);
        let outcome = ended(&mut started_by(&launcher, &scratch, nodes.ranks(), &arguments));
        assert_eq!(outcome.success()["mesh"], mesh, "{}", outcome.stderr);
        let uneven = said(&outcome, "different numbers of ranks (2, 1): the mesh is 3x1");
        assert_eq!(uneven, usize::from(mesh == "3x1"), "{}", outcome.stderr);
        if mesh == "2x2" {
            assert_eq!(outcome.digest(), expected.digest(), "dealt out: {dealt}");
        }
    }
}

#[test]
fn one_process_speaks_and_writes() {
    let _alone = alone();
    let scratch = Scratch::new();
    // No mesh: all ranks are on one node, so they share the draws, and there are two.
    let outcome = run(&scratch, 4, &training("demo", &["train.samples=2"], &[]));
    assert_eq!(outcome.success()["mesh"], "2x2");
    assert_eq!(outcome.stdout.lines().count(), 1, "{}", outcome.stdout);
    for words in ["4 MPI ranks", "trained in", "report: "] {
        assert_eq!(said(&outcome, words), 1, "{words}: {}", outcome.stderr);
    }
    assert_eq!(scratch.names("runs"), ["demo"]);
    let again = run(&scratch, 2, &training("demo", &[], &[]));
    assert_eq!(again.success()["run"], "runs/demo-2");
    scratch.assert_nothing_unfinished();
}

#[test]
fn evaluation_and_prediction_use_all_processes() {
    let _alone = alone();
    let scratch = Scratch::new();
    run(&scratch, 2, &training("images-demo", &[], &["--out", "run"])).success();
    let expected = scratch.run(&["evaluate", "run", "--json", "--ranks", "2"]).success();
    let outcome = run(&scratch, 2, &strings(&["evaluate", "run", "--json"])).success();
    assert_eq!(outcome["test"], expected["test"]);

    let arguments = ["predict", "run", "--draws", "6", "--out"];
    let threads = [&arguments[..], &["threads.csv", "--ranks", "2"]].concat();
    assert_eq!(scratch.run(&threads).code, Some(0));
    let outcome = run(&scratch, 2, &strings(&[&arguments[..], &["mpi.csv"]].concat()));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(said(&outcome, "60 images: mpi.csv"), 1, "{}", outcome.stderr);
    assert_eq!(scratch.read("mpi.csv"), scratch.read("threads.csv"));
}

#[test]
fn comparisons_run_on_all_processes() {
    let _alone = alone();
    let scratch = Scratch::new();
    let mut arguments = training("demo", &["train.steps=10"], &["--out", "c"]);
    arguments[0] = "compare".to_owned();
    arguments.extend(strings(&["--vary", "train.batch=8,16", "--seeds", "1"]));
    let outcome = run(&scratch, 2, &arguments);
    outcome.success();
    // The same command has nothing left to do.
    let again = run(&scratch, 2, &arguments);
    assert_eq!(again.success()["variants"], outcome.json()["variants"]);
    assert_eq!(said(&again, "finished before"), 2, "{}", again.stderr);
}

#[test]
fn what_is_wrong_is_said_once_with_its_exit_code() {
    let _alone = alone();
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("occupied")).unwrap();
    scratch.write("occupied/file.txt", "");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["train", "nothing.toml"], 2, "nothing.toml"),
        (&["train", "demo", "--set", "train.batch=0"], 2, "train.batch"),
        (&["demo", "--ranks", "2"], 2, "--ranks 2 is for threads; this job has 2 processes"),
        (&["demo", "--mesh", "3x1"], 2, "--mesh 3x1 has 3 ranks, but this job has 2 processes"),
        (&["demo", "--nonsense"], 2, "--nonsense"),
        (&["recipe"], 2, "is for one process, but this is one of 2"),
        (&["demo", "--out", "occupied"], 4, "file.txt"),
    ];
    for (arguments, code, words) in cases {
        let outcome = run(&scratch, 2, &strings(arguments));
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
        assert!(said(&outcome, words) >= 1, "{arguments:?}: {outcome:?}");
        let speakers = outcome
            .stderr
            .lines()
            .filter(|line| line.starts_with("rank ") || line.starts_with("error: "));
        assert_eq!(speakers.count(), 1, "{arguments:?}: {}", outcome.stderr);
    }
    let help = run(&scratch, 2, &strings(&["--help"]));
    assert_eq!(help.code, Some(0), "{help:?}");
    assert_eq!(help.stdout.matches("Usage:").count(), 1, "{}", help.stdout);
}

/// Two groups of one rank each, the second of another program or with other arguments.
fn two_kinds(scratch: &Scratch, first: &[String], program: &Path, second: &[String]) -> Outcome {
    let mut command = ranks(scratch, 1, first);
    command.args([":", "-n", "1"]).arg(program).args(second);
    ended(&mut command)
}

#[test]
fn processes_that_were_given_different_things_are_refused() {
    let _alone = alone();
    let scratch = Scratch::new();
    let one = training("demo", &["train.seed=1"], &["--out", "run"]);
    let other = training("demo", &["train.seed=2"], &["--out", "run"]);
    let program = Path::new(env!("CARGO_BIN_EXE_bayesmesh"));
    let outcome = two_kinds(&scratch, &one, program, &other);
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(said(&outcome, "command line differs between ranks"), 1, "{}", outcome.stderr);
    assert!(!scratch.path("run").exists());

    // Another build of the program: it works, but is not the same.
    let mut bytes = fs::read(program).unwrap();
    bytes.push(0);
    let copy = scratch.path("bayesmesh");
    fs::copy(program, &copy).unwrap();
    fs::write(&copy, bytes).unwrap();
    let outcome = two_kinds(&scratch, &one, &copy, &one);
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(said(&outcome, "checksum of the program differs between ranks"), 1, "{outcome:?}");
    assert!(!scratch.path("run").exists());

    // The same command line, but not the same file behind it.
    for (folder, seed) in [("a", 1), ("b", 2)] {
        fs::create_dir(scratch.path(folder)).unwrap();
        let recipe = scratch.run(&["recipe", "demo"]).stdout;
        assert!(recipe.contains("seed = 0"), "{recipe}");
        let recipe = recipe.replace("seed = 0", &format!("seed = {seed}"));
        scratch.write(&format!("{folder}/recipe.toml"), recipe);
    }
    let outcome = in_two_folders(&scratch, "train recipe.toml");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let words = "train.seed differs between ranks: rank 0 has `1`, rank 1 has `2`";
    assert_eq!(said(&outcome, words), 1, "{}", outcome.stderr);
    assert_eq!(scratch.names("a"), ["recipe.toml"]);
}

/// What two processes do with the same arguments, the first in the folder `a`, the second in `b`.
fn in_two_folders(scratch: &Scratch, arguments: &str) -> Outcome {
    let folder = "$(test ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} = 0 && echo a || echo b)";
    let script = format!("cd {folder} && exec \"$0\" {arguments}");
    let library = mpi::library();
    let mut command = job::command(&job::launcher(&library).unwrap(), 2);
    command.args(["sh", "-c", &script, env!("CARGO_BIN_EXE_bayesmesh")]);
    ended(command.current_dir(scratch.path("")))
}

#[test]
fn processes_that_see_different_data_are_refused() {
    let _alone = alone();
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    for (folder, seed) in [("a", "1"), ("b", "2")] {
        fs::create_dir(scratch.path(folder)).unwrap();
        let out = format!("{folder}/series.csv");
        let synth =
            scratch.run(&["data", "synth", "load", "--days", "9", "--seed", seed, "--out", &out]);
        assert_eq!(synth.code, Some(0), "{synth:?}");
    }
    let outcome = in_two_folders(&scratch, "predict ../run series.csv --out p.csv");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let words = "checksum of the inputs differs between ranks";
    assert_eq!(said(&outcome, words), 1, "{}", outcome.stderr);
    assert_eq!(scratch.names("a"), ["series.csv"]);

    // A path that is the same on both and leads each to its own folder, as on disks of nodes.
    let train = "train load-mlp --set data.path=/proc/self/cwd/series.csv --set train.batch=8 \
                 --set data.inputs=24 --set data.outputs=4 --out new";
    let outcome = in_two_folders(&scratch, train);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let words = "checksum of the training examples differs between ranks";
    assert_eq!(said(&outcome, words), 1, "{}", outcome.stderr);
    assert_eq!(scratch.names("a"), ["series.csv"]);
}

/// One process cannot read what the others can: it says so, as JSON too.
#[test]
fn any_process_can_say_what_is_wrong() {
    let _alone = alone();
    let scratch = Scratch::new();
    for folder in ["a", "b"] {
        fs::create_dir(scratch.path(folder)).unwrap();
    }
    scratch.write("a/recipe.toml", scratch.run(&["recipe", "demo"]).stdout);
    let outcome = in_two_folders(&scratch, "train recipe.toml --json");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_eq!(said(&outcome, "rank 1 of 2"), 1, "{}", outcome.stderr);
    assert_eq!(outcome.json()["exit_code"], 2);
    assert!(!scratch.path("a/runs").exists());
}

/// The processes of the program that work on a folder.
fn processes(folder: &Path) -> Vec<u32> {
    let program = Path::new(env!("CARGO_BIN_EXE_bayesmesh"));
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let ours = |id: &u32| {
        let link = |name: &str| fs::read_link(format!("/proc/{id}/{name}")).ok();
        link("exe").as_deref() == Some(program) && link("cwd").as_deref() == Some(folder)
    };
    let mut ids: Vec<u32> = ids.filter(ours).collect();
    ids.sort_unstable();
    ids
}

fn signal(name: &str, process: u32) {
    // It may have ended by itself.
    let _ = Command::new("kill").args([name, &process.to_string()]).stderr(Stdio::null()).status();
}

/// Waits until so many processes are there and have written a checkpoint of `step`.
fn wait_for(child: &mut Child, scratch: &Scratch, size: usize, step: u64) -> Vec<u32> {
    let (folder, run) = (scratch.path("").canonicalize().unwrap(), scratch.path("run"));
    let started = Instant::now();
    loop {
        let ids = processes(&folder);
        if ids.len() == size && last_step(&run) >= step {
            return ids;
        }
        assert!(child.try_wait().unwrap().is_none(), "ended before step {step}");
        assert!(started.elapsed() < LIMIT, "no step {step}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Ten times any rank is killed while the job starts or trains, and once while it scores; it goes
/// on with another number of processes, the optimiser divided or not, or on threads.
#[test]
fn killed_ten_times_ends_with_the_same_weights() {
    let _alone = alone();
    let settings = ["train.steps=4000", "train.reduce=reproducible", "checkpoint.every=20"];
    let scratch = Scratch::new();
    let whole = scratch.train("demo", &settings, &["--ranks", "2", "--out", "whole"]).digest();
    let resumed = |others: &[&str], changes: &[&str]| {
        let resume: &[&str] = match scratch.path("run/recipe.toml").exists() {
            true => &["--resume"],
            false => &[],
        };
        let settings = [&settings[..], changes].concat();
        training("demo", &settings, &[&["--out", "run"], others, resume].concat())
    };
    let mut random = 20_261_116_u64;
    let mut below = |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % n
    };
    let run_folder = scratch.path("run");
    let mut reached = Vec::new();
    for kill in 0..10 {
        let size = [2, 4][kill % 2];
        let before = last_step(&run_folder);
        let divided = format!("train.shard_optimizer={}", kill % 3 == 0);
        let mut command = ranks(&scratch, size, &resumed(&[], &[&divided]));
        // Now and then while it starts, otherwise when it has made some progress.
        let step = if kill % 4 == 0 { 0 } else { before + 20 + below(150) };
        let victim = below(size as u64) as usize;
        kill_one(&mut command, &scratch, size, step, victim, below(40));
        assert!(last_step(&run_folder) >= before, "checkpoints were lost");
        reached.push(last_step(&run_folder));
    }
    // Half of the rest on threads, the end on processes.
    let rest = resumed(&["--ranks", "2"], &[]);
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let mut child = scratch.command(&rest).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let child = child.as_mut().unwrap();
    let half = reached[9].midpoint(4000);
    while last_step(&run_folder) < half && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // It takes seconds to score so many draws.
    let mut command = ranks(&scratch, 4, &resumed(&[], &["evaluate.draws=2000"]));
    kill_one(&mut command, &scratch, 4, 4000, 3, 0);
    let outcome = run(&scratch, 4, &resumed(&[], &[]));
    assert_eq!(outcome.digest(), whole, "kills at {reached:?}");
    assert!(reached[9] > reached[0] && reached[9] < 4000, "kills at {reached:?}");
    scratch.assert_nothing_unfinished();
}

/// How a job ends, within a time.
fn end_of(mut child: Child, within: Duration) -> Outcome {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > within {
            child.kill().unwrap();
            panic!("does not end: {:?}", Outcome::from(child.wait_with_output().unwrap()));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Outcome::from(child.wait_with_output().unwrap())
}

/// Starts a job of the run, kills one of its processes a moment after a checkpoint of `step`, and
/// makes sure that all are gone soon, that the launcher says so, and that every checkpoint can be
/// read.
fn kill_one(
    command: &mut Command,
    scratch: &Scratch,
    size: usize,
    step: u64,
    victim: usize,
    moment: u64,
) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ids = wait_for(&mut child, scratch, size, step);
    thread::sleep(Duration::from_millis(moment));
    let killed = Instant::now();
    signal("-KILL", ids[victim]);
    let outcome = end_of(child, GONE);
    assert_ne!(outcome.code, Some(0), "{}", outcome.stderr);
    // MPICH's launcher speaks on the standard output. That of OpenMPI does not know the signal of
    // a process that had not yet started MPI.
    let texts = format!("{}{}", outcome.stderr, outcome.stdout);
    let words = ["ignal 9", "is gone without a word", "non-zero exit code"];
    assert!(words.iter().any(|words| texts.contains(words)), "{texts}");
    let folder = scratch.path("").canonicalize().unwrap();
    while !processes(&folder).is_empty() {
        assert!(killed.elapsed() < GONE, "processes are left");
        thread::sleep(Duration::from_millis(10));
    }
    for file in checkpoints(&scratch.path("run")) {
        let outcome = scratch.run(&["checkpoint", "inspect", file.to_str().unwrap()]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
}

/// What a batch system sends before it takes the nodes away.
#[test]
fn asked_to_stop_it_writes_a_checkpoint_and_goes_on_later() {
    let _alone = alone();
    let settings = ["train.steps=4000", "train.reduce=reproducible"];
    let scratch = Scratch::new();
    let whole = scratch.train("demo", &settings, &["--ranks", "2", "--out", "whole"]).digest();
    // Any process may be the one that is told.
    for told in [0, 1] {
        let resume: &[&str] = if told == 0 { &[] } else { &["--resume"] };
        let others = [&["--out", "run"], resume].concat();
        let before = last_step(&scratch.path("run"));
        let mut command = ranks(&scratch, 2, &training("demo", &settings, &others));
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let ids = wait_for(&mut child, &scratch, 2, before + 20);
        signal("-TERM", ids[told]);
        let outcome = end_of(child, LIMIT);
        assert_eq!(outcome.code, Some(130), "{outcome:?}");
        let step = last_step(&scratch.path("run"));
        let message = format!("stopped at step {step} of 4000; a checkpoint is written");
        assert_eq!(said(&outcome, &message), 1, "{}", outcome.stderr);
        assert_eq!(said(&outcome, "mpirun -n 2 bayesmesh train"), 1, "{}", outcome.stderr);
    }
    let outcome = run(&scratch, 2, &training("demo", &settings, &["--out", "run", "--resume"]));
    assert_eq!(outcome.digest(), whole);
}

/// A damaged checkpoint is passed over with a warning; more ranks than processors are worth one.
#[test]
fn warnings_come_once() {
    let _alone = alone();
    let scratch = Scratch::new();
    run(&scratch, 2, &training("demo", &[], &["--out", "run"])).success();
    let newest = checkpoints(&scratch.path("run")).pop().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&newest, bytes).unwrap();
    let outcome = run(&scratch, 2, &training("demo", &[], &["--out", "run", "--resume"]));
    outcome.success();
    assert_eq!(warnings(&outcome).len(), 1, "{}", outcome.stderr);

    // What every process finds out for itself.
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let outcome = run(&scratch, 2 * processors, &training("demo", &[], &["--out", "crowded"]));
    outcome.success();
    let expected = format!("{} ranks share {processors} processors", 2 * processors);
    let found = warnings(&outcome);
    assert!(found.len() == 1 && found[0].contains(&expected), "{}", outcome.stderr);

    // What only the processes of the second node find out.
    let nodes = job::Nodes { sizes: vec![1, 2 * processors], dealt: false };
    match nodes.launcher(&mpi::library()) {
        None => {
            eprintln!("this machine cannot stand for several here; no warnings of another node");
        }
        Some(launcher) => {
            let arguments = training("demo", &[], &["--out", "nodes"]);
            let outcome = ended(&mut started_by(&launcher, &scratch, nodes.ranks(), &arguments));
            outcome.success();
            let passed_on = format!("warning: rank 1 of {}: {expected} on node1", nodes.ranks());
            assert_eq!(said(&outcome, &passed_on), 1, "{}", outcome.stderr);
            assert_eq!(said(&outcome, &expected), 1, "{}", outcome.stderr);
        }
    }
}

fn warnings(outcome: &Outcome) -> Vec<&str> {
    outcome.stderr.lines().filter(|line| line.starts_with("warning: ")).collect()
}
