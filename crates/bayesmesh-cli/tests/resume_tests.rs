//! A run that is interrupted and goes on ends like one that was not.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh_cli::run::MetricsTable;
use common::{Outcome, Scratch, checkpoints, last_step, training};

/// Numbers that look random and are always the same (Marsaglia's xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Waits until there is a checkpoint of `step` or later; whether the program still runs then.
fn wait_for_step(child: &mut Child, run: &Path, step: u64) -> bool {
    while last_step(run) < step {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    child.try_wait().unwrap().is_none()
}

/// A training that is begun, or goes on if it has begun.
fn start(scratch: &Scratch, settings: &[&str], others: &[&str]) -> Child {
    let resume: &[&str] = match scratch.path("run/recipe.toml").exists() {
        true => &["--resume"],
        false => &[],
    };
    let others = [&["--out", "run"], others, resume].concat();
    let arguments = training("demo", settings, &others);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = scratch.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Values of a column by step; each step has at most one.
fn column(run: &Path, name: &str) -> BTreeMap<u64, f64> {
    let cells = MetricsTable::read(run.join("metrics.csv")).unwrap().column(name).unwrap();
    let by_step: BTreeMap<u64, f64> = cells.iter().copied().collect();
    assert_eq!(by_step.len(), cells.len(), "a step of {} has two values of {name}", run.display());
    by_step
}

fn assert_same_metrics(run: &Path, uninterrupted: &Path) {
    for name in ["loss", "gradient_norm", "rate", "validation_rmse_mw"] {
        assert_eq!(column(run, name), column(uninterrupted, name), "{name}");
    }
}

#[test]
fn killed_twenty_times_ends_with_the_same_weights() {
    const STEPS: u64 = 2000;
    let settings = ["train.steps=2000", "train.reduce=reproducible"];
    let scratch = Scratch::new();
    let whole = scratch.train("demo", &settings, &["--ranks", "2", "--out", "whole"]).digest();

    let run = scratch.path("run");
    let mut dice = Dice(20_240_229);
    let mut reached = Vec::new();
    for kill in 0..20 {
        let before = last_step(&run);
        let mut child = start(&scratch, &settings, &["--ranks", "2"]);
        // Now and then while it starts, otherwise when it has made some progress.
        match kill % 5 == 0 {
            true => thread::sleep(Duration::from_millis(dice.below(40))),
            false => assert!(wait_for_step(&mut child, &run, before + 1 + dice.below(40))),
        }
        thread::sleep(Duration::from_micros(dice.below(6000)));
        child.kill().unwrap();
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, None, "ended before kill {kill}: {outcome:?}");

        assert!(last_step(&run) >= before, "checkpoints were lost");
        for file in checkpoints(&run) {
            let outcome = scratch.run(&["checkpoint", "inspect", file.to_str().unwrap()]);
            assert_eq!(outcome.code, Some(0), "after kill {kill}: {outcome:?}");
        }
        reached.push(last_step(&run));
    }
    // Once more where the training is done, but not yet the report.
    let mut child = start(&scratch, &settings, &["--ranks", "2"]);
    wait_for_step(&mut child, &run, STEPS);
    child.kill().unwrap();
    child.wait().unwrap();

    let child = start(&scratch, &settings, &["--ranks", "2"]);
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.digest(), whole, "kills at {reached:?}");
    assert_eq!(outcome.json()["steps"], STEPS);
    let spread: std::collections::BTreeSet<_> = reached.iter().collect();
    assert!(spread.len() >= 10, "kills at {reached:?}");
    assert_same_metrics(&run, &scratch.path("whole"));
    for line in scratch.read("run/events.jsonl").lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    scratch.assert_nothing_unfinished();
}

/// Validation is made long, and the checkpoint of the last step of an epoch is waited for: its row
/// of metrics must not be lost with the process.
#[test]
fn killed_at_the_end_of_an_epoch_keeps_its_validation() {
    let settings = [
        "train.steps=60",
        "checkpoint.every=52",
        "evaluate.validation_draws=4000",
        "train.reduce=reproducible",
    ];
    let scratch = Scratch::new();
    let whole = scratch.train("demo", &settings, &["--ranks", "2", "--out", "whole"]).digest();
    let run = scratch.path("run");
    let mut child = start(&scratch, &settings, &["--ranks", "2"]);
    assert!(wait_for_step(&mut child, &run, 52));
    child.kill().unwrap();
    child.wait().unwrap();
    let child = start(&scratch, &settings, &["--ranks", "2"]);
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.digest(), whole);
    assert!(column(&run, "validation_rmse_mw").contains_key(&52));
    assert_same_metrics(&run, &scratch.path("whole"));
}

/// The folder has a space in its name: the command must survive a shell.
#[test]
fn interrupted_it_says_how_to_go_on() {
    let settings = ["train.steps=2000", "train.reduce=reproducible"];
    let scratch = Scratch::new();
    let whole = scratch.train("demo", &settings, &["--ranks", "2", "--out", "whole"]).digest();

    let arguments = training("demo", &settings, &["--ranks", "2", "--out", "my run"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = scratch.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_for_step(&mut child, &scratch.path("my run"), 20));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    assert_eq!(outcome.json()["exit_code"], 130);
    let step = last_step(&scratch.path("my run"));
    assert!((20..2000).contains(&step), "{step}");
    let message = format!("stopped at step {step} of 2000; a checkpoint is written");
    assert!(outcome.stderr.contains(&message), "{}", outcome.stderr);

    let mut lines = outcome.stderr.lines().map(str::trim);
    let command = lines.find(|line| line.starts_with("bayesmesh train ")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_bayesmesh")).parent().unwrap().to_path_buf();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(program).chain(env::split_paths(&path))).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} --json")]).current_dir(scratch.path(""));
    assert_eq!(Outcome::of(shell.env("PATH", path)).digest(), whole, "{command}");
}

/// The training is done and on disk: there is nothing to wait for.
#[test]
fn interrupted_while_it_scores_it_ends_at_once() {
    let settings = ["evaluate.draws=20000", "train.reduce=reproducible"];
    let scratch = Scratch::new();
    let mut child = start(&scratch, &settings, &["--ranks", "2"]);
    assert!(wait_for_step(&mut child, &scratch.path("run"), 40));
    thread::sleep(Duration::from_millis(300));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let outcome = Outcome::from(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    assert!(!scratch.path("run/evaluation.json").exists());
    let child = start(&scratch, &["evaluate.draws=8", settings[1]], &["--ranks", "2"]);
    assert_eq!(Outcome::from(child.wait_with_output().unwrap()).success()["steps"], 40);
}

/// The last checkpoint is sound, which is all that a run needs to go on.
#[test]
fn a_damaged_best_checkpoint_is_passed_over() {
    let scratch = Scratch::new();
    let settings = ["train.reduce=reproducible", "train.steps=60"];
    let whole = scratch.train("demo", &settings, &["--out", "whole"]).digest();
    scratch.train("demo", &["train.reduce=reproducible", "train.steps=55"], &["--out", "run"]);
    let best = "run/checkpoints/best.safetensors";
    let mut bytes = fs::read(scratch.path(best)).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    scratch.write(best, bytes);

    let outcome = scratch.train("demo", &settings, &["--out", "run", "--resume"]);
    assert_eq!(outcome.digest(), whole, "{}", outcome.stderr);
    let warning = "best.safetensors: damaged";
    assert!(outcome.stderr.contains(warning), "{}", outcome.stderr);
    // The next best one has taken its place.
    assert!(Checkpoint::load(scratch.path(best)).is_ok());
}

/// 12 steps on one rank, 12 on two, 16 on four: the recipe without a schedule does not depend on
/// the number of steps.
fn on_one_two_four(scratch: &Scratch, reduce: &str) -> (Outcome, Outcome) {
    let reduce = format!("train.reduce={reduce}");
    // A falling rate would depend on the length of the run, which changes here from part to part.
    let rate = "schedule.kind=constant";
    let whole = scratch.train("load-mlp", &[&reduce, rate], &["--ranks", "1", "--out", "whole"]);
    let part = |steps: &str, ranks: &str, resume: &[&str]| {
        let settings = [&reduce, rate, steps];
        let others = [&["--ranks", ranks, "--out", "parts"], resume].concat();
        let outcome = scratch.train("load-mlp", &settings, &others);
        outcome.success();
        outcome
    };
    part("train.steps=12", "1", &[]);
    part("train.steps=24", "2", &["--resume"]);
    (whole, part("train.steps=40", "4", &["--resume"]))
}

#[test]
fn another_number_of_ranks_ends_with_the_same_weights() {
    let scratch = Scratch::new();
    let (whole, parts) = on_one_two_four(&scratch, "reproducible");
    assert_eq!(parts.json()["mesh"], "4x1");
    assert_eq!(parts.digest(), whole.digest());
    let runs = [scratch.path("parts"), scratch.path("whole")];
    assert_eq!(column(&runs[0], "loss"), column(&runs[1], "loss"));
}

/// The checkpoints, within the epoch and at the end, are those of an undivided run.
#[test]
fn the_optimiser_can_be_divided_in_a_part_of_the_run() {
    let scratch = Scratch::new();
    let train = |settings: &[&str], others: &[&str]| {
        let fixed = ["train.reduce=reproducible", "schedule.kind=constant"];
        let outcome = scratch.train("load-mlp-vi", &[&fixed, settings].concat(), others);
        outcome.success();
        outcome
    };
    let divided = "train.shard_optimizer=true";
    train(&["train.steps=36"], &["--ranks", "1", "--out", "whole"]);
    train(&["train.steps=12", divided], &["--ranks", "2", "--out", "run"]);
    train(&["train.steps=24"], &["--ranks", "1", "--out", "run", "--resume"]);
    train(&["train.steps=36", divided], &["--ranks", "4", "--out", "run", "--resume"]);
    for step in [30, 35, 36] {
        let load = |run: &str| {
            let path = format!("{run}/checkpoints/step-{step:08}.safetensors");
            Checkpoint::load(scratch.path(&path)).unwrap()
        };
        let (whole, run) = (load("whole"), load("run"));
        assert_eq!(whole.optimizer.len(), 2);
        assert!(whole == run, "step {step}");
    }
}

#[test]
fn another_number_of_ranks_ends_with_nearly_the_same_weights() {
    let scratch = Scratch::new();
    on_one_two_four(&scratch, "fast");
    let load = |run: &str| {
        let path = format!("{run}/checkpoints/step-00000040.safetensors");
        Checkpoint::load(scratch.path(&path)).unwrap()
    };
    let (whole, parts) = (load("whole"), load("parts"));
    assert_eq!(whole.parameters.len(), 6);
    let mut largest = 0f32;
    for (a, b) in whole.parameters.iter().zip(&parts.parameters) {
        assert_eq!((&a.name, &a.shape), (&b.name, &b.shape));
        assert!(a.values.iter().any(|value| *value != 0.0));
        for (x, y) in a.values.iter().zip(&b.values) {
            largest = largest.max((x - y).abs());
        }
    }
    assert!(largest <= 1e-5, "{largest}");
}

#[test]
fn another_recipe_is_not_the_same_run() {
    let scratch = Scratch::new();
    let first = scratch.train("load-mlp", &[], &["--out", "run"]).digest();
    let recipe = scratch.read("run/recipe.toml");
    let changes = [
        ("train.batch=8", "train.batch"),
        ("train.seed=7", "train.seed"),
        ("train.clip_norm=1.0", "train.clip_norm"),
        ("model.hidden=[16,8]", "model.hidden"),
        ("optimizer.rate=0.5", "optimizer.rate"),
        ("loss.kind=gaussian-mixture", "loss.kind"),
        ("data.stride=5", "data.stride"),
        ("name=other", "name"),
    ];
    for (setting, key) in changes {
        let outcome = scratch.train("load-mlp", &[setting], &["--out", "run", "--resume"]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        let error = outcome.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(&format!("another `{key}`")), "{setting}: {error}");
        assert_eq!(scratch.read("run/recipe.toml"), recipe, "a refused recipe was saved");
    }

    // A key that the run has and the recipe has not is named as well.
    let clipped = scratch.train("load-mlp", &["train.clip_norm=1.0"], &["--out", "clipped"]);
    clipped.success();
    let outcome = scratch.train("load-mlp", &[], &["--out", "clipped", "--resume"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("another `train.clip_norm`"), "{}", outcome.stderr);

    // How long it lasts can change.
    let longer = scratch.train("load-mlp", &["train.steps=60"], &["--out", "run", "--resume"]);
    assert_eq!(longer.success()["steps"], 60);
    assert_ne!(longer.digest(), first);
    assert_eq!(column(&scratch.path("run"), "loss").len(), 60);
    let saved = scratch.read("run/recipe.toml");
    assert!(saved.contains("steps = 60"), "{saved}");
}

/// Jobs of a cluster copy data to the disks of the nodes they get.
#[test]
fn data_may_move_but_not_change() {
    let scratch = Scratch::new();
    for (seed, out) in [("1", "first.csv"), ("2", "other.csv")] {
        let arguments = ["data", "synth", "load", "--days", "60", "--seed", seed, "--out", out];
        assert_eq!(scratch.run(&arguments).code, Some(0));
    }
    let train = |path: &str, steps: u32, others: &[&str]| {
        let settings = [
            format!("data.path={path}"),
            format!("train.steps={steps}"),
            "data.stride=4".to_owned(),
            "train.batch=16".to_owned(),
            "train.samples=4".to_owned(),
            "model.hidden=[16,16]".to_owned(),
            "evaluate.draws=4".to_owned(),
        ];
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let start = ["train", "load-mlp", "--json", "--out", "run"].into_iter();
        scratch.run(&start.chain(settings).chain(others.iter().copied()).collect::<Vec<_>>())
    };
    train("first.csv", 10, &[]).success();
    let moved = |from: &str, to: &str| fs::rename(scratch.path(from), scratch.path(to)).unwrap();
    moved("first.csv", "second.csv");
    let outcome = train("second.csv", 20, &["--resume"]);
    assert_eq!(outcome.success()["steps"], 20);

    let recipe = scratch.read("run/recipe.toml");
    let outcome = train("other.csv", 30, &["--resume"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("was trained on other examples"), "{}", outcome.stderr);
    assert_eq!(scratch.read("run/recipe.toml"), recipe, "a refused recipe was saved");

    moved("second.csv", "third.csv");
    let outcome = scratch.run(&["evaluate", "run"]);
    assert_ne!(outcome.code, Some(0));
    assert!(outcome.stderr.contains("second.csv"), "{}", outcome.stderr);
    let outcome = scratch.run(&["evaluate", "run", "--set", "data.path=third.csv", "--json"]);
    assert!(outcome.success()["test"]["rmse_mw"].as_f64().is_some());
}
