//! What a person with bad luck or bad intentions does to the program: it refuses in words, loses
//! nothing, and never panics.
#![cfg(unix)]

mod common;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use common::{Outcome, Scratch, training};
use serde_json::Value;

/// The message of a program that ended with `code`, with nothing left behind but these names.
#[track_caller]
fn refused(scratch: &Scratch, outcome: &Outcome, code: i32, left: &[&str]) -> String {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert_eq!(scratch.names(""), left);
    outcome.json()["error"].as_str().unwrap().to_owned()
}

/// Ended well and without a panic on any thread.
#[track_caller]
fn fine(outcome: &Outcome) -> Value {
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    outcome.success()
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// 1. Words for people are best effort.
#[test]
fn a_log_that_cannot_be_written_costs_nothing_but_the_log() {
    let scratch = Scratch::new();
    let arguments = training("demo", &[], &["--out", "full"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    fine(&Outcome::of(scratch.command(&arguments).stderr(full())));
    assert!(scratch.path("full/report.html").exists());

    // As `2>&1 | head -3`: the reader goes away in the middle.
    let arguments = training("demo", &["train.load_delay_ms=0.2"], &["--out", "pipe"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child =
        scratch.command(&arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().take(3).all(|line| line.is_ok()));
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(scratch.path("pipe/evaluation.json").exists());
}

/// 1. A result that cannot be written is an error, after all of the work; a reader who has gone away
/// is none.
#[test]
fn a_result_that_cannot_be_written() {
    let scratch = Scratch::new();
    let arguments = training("demo", &[], &["--out", "run"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = scratch.command(&arguments).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("error: standard output: no space left"), "{said}");
    assert!(scratch.path("run/report.html").exists());

    for arguments in [&["recipe", "demo"][..], &["recipe", "--keys"], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = scratch.command(arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
    }
}

/// 2. Names are bytes.
#[test]
fn names_that_are_not_utf8() {
    let scratch = Scratch::new();
    let [run, series, out] = [b"r\xff", b"s\xff", b"o\xff"].map(|name| OsStr::from_bytes(name));
    let series = series.to_owned();
    let run_program = |words: &[&OsStr]| {
        let mut command = scratch.command(&[]);
        fine(&Outcome::of(command.args(words).arg("--json")))
    };
    let word = OsStr::new;
    let small = common::SMALL.iter().flat_map(|setting| [word("--set"), word(setting)]);
    let train = [word("train"), word("demo"), word("--out"), run];
    let train: Vec<&OsStr> = train.into_iter().chain(small).collect();
    assert_eq!(run_program(&train)["run"], "r\u{fffd}");
    run_program(&[word("evaluate"), run]);
    let csv = [series.as_os_str(), word(".csv")].join(word(""));
    run_program(&[word("data"), word("synth"), word("load"), word("--out"), &csv]);
    run_program(&[word("data"), word("check"), word("load"), &csv]);
    let forecast = [out, word(".csv")].join(word(""));
    run_program(&[word("predict"), run, &csv, word("--out"), &forecast]);
    run_program(&[word("checkpoint"), word("inspect"), run]);
    run_program(&[word("checkpoint"), word("export"), run, word("--out"), out]);
}

/// 4. Lengths that no computer counts to, and levels between the percents.
#[test]
fn nothing_is_silently_wrong() {
    let scratch = Scratch::new();
    let arguments = ["demo", "--json", "--out", "run", "--set", "train.epochs=2305843009213693952"];
    let error = refused(&scratch, &scratch.run(&arguments), 2, &[]);
    assert!(error.contains("train for fewer"), "{error}");

    let outcome = scratch.train("demo", &["evaluate.levels=[0.995,0.999]"], &["--out", "run"]);
    let result = fine(&outcome);
    for score in ["coverage_99.5", "coverage_99.9"] {
        assert!(result["test"][score].is_number(), "{result}");
    }
    assert!(outcome.stderr.contains("99.9 % covers (%)"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("NaN"), "{}", outcome.stderr);
}

/// 5. In a gigabyte of address space.
#[test]
fn a_recipe_of_nonsense_takes_little() {
    let scratch = Scratch::new();
    let wrong =
        format!("name = \"x\"\n[model]\nkind = \"mlp\"\nhidden = [{}]\n", "-1,".repeat(60_000));
    let unknown: String = (0..20_000).map(|key| format!("key{key} = 1\n")).collect();
    scratch.write("wrong.toml", wrong);
    scratch.write("unknown.toml", format!("name = \"x\"\n[train]\n{unknown}"));
    for name in ["wrong.toml", "unknown.toml"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_bayesmesh")]);
        shell.args(["train", name, "--json"]).current_dir(scratch.path(""));
        let error = refused(&scratch, &Outcome::of(&mut shell), 2, &["unknown.toml", "wrong.toml"]);
        assert!(error.len() < 10_000 && error.contains("more"), "{}", error.len());
    }
}

/// 7. Sizes are refused by what is there, before anything is made.
#[test]
fn sizes_without_end_are_refused() {
    let scratch = Scratch::new();
    let train = |recipe: &str, setting: &str| {
        refused(&scratch, &scratch.train(recipe, &[setting], &["--out", "run"]), 2, &[])
    };
    for setting in ["model.hidden=[1000000000]", "model.hidden=[9223372036854775807]"] {
        let error = train("demo", setting);
        assert!(error.contains("of memory") && error.contains("`[model]`"), "{error}");
    }
    for setting in ["model.depth=1000000000000", "model.mlp=9223372036854775807"] {
        let error = train("images-demo", setting);
        assert!(error.contains("of memory"), "{error}");
    }
    for (setting, key) in [
        ("train.samples=1000000000", "`train.samples` must be"),
        ("train.samples=1000000000000000000", "`train.samples` must be"),
        ("evaluate.draws=1000000000000", "`evaluate.draws` must be"),
        ("train.load_delay_ms=1e308", "`train.load_delay_ms` must be"),
        ("train.steps=10000000000", "train for fewer"),
    ] {
        let error = train("demo", setting);
        assert!(error.contains(key), "{error}");
    }
    let seeds = ["--vary", "train.heat=1,1.0", "--seeds", "18446744073709551615", "--json"];
    let outcome = scratch.run(&[&["compare", "demo"][..], &seeds].concat());
    assert!(refused(&scratch, &outcome, 2, &[]).contains("--seeds 18446744073709551615"));
    let outcome = scratch.train("demo", &[], &["--ranks", "5000", "--out", "run"]);
    assert!(refused(&scratch, &outcome, 2, &[]).contains("5000"));

    scratch.train("demo", &[], &["--out", "run"]).success();
    let outcome = scratch.run(&["evaluate", "run", "--draws", "1000000000000", "--json"]);
    assert!(refused(&scratch, &outcome, 2, &["run"]).contains("--draws 1000000000000"));
}

/// 7. More ranks than processors are slow, which is said, and right.
#[test]
fn more_ranks_than_processors_are_warned_of() {
    let processors = std::thread::available_parallelism().unwrap().get();
    if processors >= 4 {
        eprintln!("{processors} processors are enough for every small run here: nothing is tested");
        return;
    }
    let scratch = Scratch::new();
    let outcome = scratch.train("demo", &[], &["--ranks", "4", "--out", "run"]);
    fine(&outcome);
    assert!(outcome.stderr.contains("warning: 4 ranks share"), "{}", outcome.stderr);
}

/// 8. What is read is not written over, and what a link points to is not touched.
#[test]
fn small_mistakes_lose_nothing() {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    scratch.run(&["data", "synth", "load", "--days", "3", "--out", "s.csv", "--json"]).success();
    let before = scratch.read("s.csv");
    symlink(scratch.path("s.csv"), scratch.path("link.csv")).unwrap();
    let left = ["link.csv", "run", "s.csv"];
    for out in ["s.csv", "link.csv", "./s.csv"] {
        let outcome = scratch.run(&["predict", "run", "s.csv", "--out", out, "--json"]);
        let error = refused(&scratch, &outcome, 2, &left);
        assert!(error.contains("would be replaced"), "{error}");
        assert_eq!(scratch.read("s.csv"), before);
    }
    let own = "run/checkpoints/step-00000040.safetensors";
    let bytes = fs::read(scratch.path(own)).unwrap();
    for option in ["--out", "--std"] {
        let mut words = vec!["checkpoint", "export", "run", option, own, "--json"];
        if option == "--std" {
            words.extend(["--out", "w.safetensors"]);
        }
        refused(&scratch, &scratch.run(&words), 2, &left);
    }
    assert_eq!(fs::read(scratch.path(own)).unwrap(), bytes);

    // A hostile run folder.
    scratch.write("precious", "mine");
    fs::remove_file(scratch.path("run/run.lock")).unwrap();
    symlink(scratch.path("precious"), scratch.path("run/run.lock")).unwrap();
    let outcome = scratch.train("demo", &["train.steps=50"], &["--out", "run", "--resume"]);
    let left = ["link.csv", "precious", "run", "s.csv"];
    assert!(refused(&scratch, &outcome, 4, &left).contains("run.lock: this is a link"));
    assert_eq!(scratch.read("precious"), "mine");
}

/// 8. A file of scores that somebody has changed.
#[test]
fn noise_of_another_length_is_refused() {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    scratch.run(&["data", "synth", "load", "--days", "3", "--out", "s.csv", "--json"]).success();
    let whole: Value = serde_json::from_str(&scratch.read("run/evaluation.json")).unwrap();
    let nulls: Vec<Value> = vec![Value::Null; 24];
    for noise in [Value::Array(Vec::new()), vec![1.0; 23].into(), nulls.into(), Value::Null] {
        let mut changed = whole.clone();
        changed["noise_mw"] = noise;
        scratch.write("run/evaluation.json", changed.to_string());
        let outcome = scratch.run(&["predict", "run", "s.csv", "--out", "f.csv", "--json"]);
        assert!(!matches!(outcome.code, Some(0 | 101)), "{outcome:?}");
        let error = outcome.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains("bayesmesh evaluate run"), "{error}");
        assert!(!scratch.path("f.csv").exists());
    }
}

/// 9. Numbers that the network cannot take end in words, not in a file of NaN.
#[test]
fn predictions_that_are_not_numbers_are_not_written() {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    scratch.run(&["data", "synth", "load", "--days", "3", "--out", "s.csv", "--json"]).success();
    let huge: String = scratch
        .read("s.csv")
        .lines()
        .enumerate()
        .map(|(row, line)| match (row, line.split_once(',')) {
            (0, _) | (_, None) => format!("{line}\n"),
            (_, Some((time, _))) => format!("{time},3e38\n"),
        })
        .collect();
    scratch.write("huge.csv", huge);
    let outcome = scratch.run(&["predict", "run", "huge.csv", "--out", "f.csv", "--json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let error = outcome.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("not finite") && error.contains("nothing is written"), "{error}");
    assert!(!scratch.path("f.csv").exists());
}

/// 10. Words that help.
#[test]
fn errors_say_what_was_meant() {
    let scratch = Scratch::new();
    let error = refused(&scratch, &scratch.run(&["train", "lod-mlp", "--json"]), 2, &[]);
    assert!(error.contains("did you mean `load-mlp`?"), "{error}");

    scratch.train("demo", &[], &["--out", "run"]).success();
    let files = ["run/metrics.csv", "run/recipe.toml", "run/events.jsonl"];
    let before = files.map(|file| scratch.read(file));
    let outcome = scratch.train("demo", &["train.steps=10"], &["--out", "run", "--resume"]);
    let error = refused(&scratch, &outcome, 2, &["run"]);
    assert!(error.contains("has had 40 steps, more than the 10"), "{error}");
    assert_eq!(files.map(|file| scratch.read(file)), before);

    fs::remove_file(scratch.path("run/metrics.csv")).unwrap();
    let outcome = scratch.train("demo", &["train.steps=50"], &["--out", "run", "--resume"]);
    fine(&outcome);
    assert!(scratch.read("run/metrics.csv").lines().count() > 5);
}

/// 10. A pipe that nobody writes to is waited for, in words.
#[test]
fn a_recipe_from_a_pipe_is_waited_for() {
    let scratch = Scratch::new();
    let pipe = scratch.path("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = scratch
        .command(&["train", "pipe.toml", "--out", "run", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = lines.next().unwrap().unwrap();
    assert!(said.contains("waiting for somebody to write to the pipe"), "{said}");
    std::io::Write::write_all(&mut File::create(&pipe).unwrap(), b"nonsense").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
}
