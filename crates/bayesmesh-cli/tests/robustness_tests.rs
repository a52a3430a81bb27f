//! What users, disks and other programs do to the program costs no work, no file and no sense: it
//! is refused in few words, or survived.

#![cfg(target_os = "linux")]

mod common;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use bayesmesh::checkpoint::Checkpoint;
use common::{Outcome, SMALL, Scratch, training};
use serde_json::json;

/// The error of a program that ended with `code`, with these words and not too many others.
#[track_caller]
fn refused(outcome: &Outcome, code: i32, words: &[&str]) -> String {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let error = outcome.json()["error"].as_str().unwrap().to_owned();
    for word in words {
        assert!(error.contains(word), "no '{word}' in: {error}");
    }
    assert!(error.len() < 5000, "{} bytes of error", error.len());
    error
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// A run is complete when its report is there, which is written last.
#[track_caller]
fn assert_complete(scratch: &Scratch, run: &str) {
    for file in ["recipe.toml", "metrics.csv", "evaluation.json", "report.html"] {
        assert!(scratch.path(run).join(file).exists(), "{run} has no {file}");
    }
    assert_eq!(common::last_step(&scratch.path(run)), 40);
}

/// `demo` with the small settings.
fn demo(scratch: &Scratch, out: &str) -> Command {
    let mut command = scratch.command(&["demo", "--out", out]);
    command.args(SMALL.iter().flat_map(|setting| ["--set", setting]));
    command
}

/// A trained run and a series of two days.
fn trained() -> Scratch {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    scratch.run(&["data", "synth", "load", "--days", "2", "--out", "s.csv", "--json"]).success();
    scratch
}

#[test]
fn a_log_on_a_full_disk_does_not_end_the_training() {
    let scratch = Scratch::new();
    let status = demo(&scratch, "run").stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_complete(&scratch, "run");
}

/// As with `2>&1 | head -3`.
#[test]
fn a_reader_of_the_log_who_goes_away_does_not_end_the_training() {
    let scratch = Scratch::new();
    let mut child = demo(&scratch, "run").stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(lines.take(3).filter(|line| line.is_ok()).count(), 3);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_complete(&scratch, "run");
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_after_the_work() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&[]);
    command.args(training("demo", &[], &["--out", "run"])).stdout(full()).stderr(Stdio::piped());
    let outcome = Outcome::from(command.spawn().unwrap().wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stderr.contains("error: standard output: no space left"), "{outcome:?}");
    assert_complete(&scratch, "run");
}

/// The reading end is closed before the program starts, so that its first word finds nobody.
#[test]
fn a_reader_of_the_output_who_has_gone_is_no_error() {
    let scratch = Scratch::new();
    for arguments in [&["recipe", "demo"][..], &["recipe", "--json"], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = scratch.command(arguments);
        command.stdout(writer).stderr(Stdio::piped());
        let outcome = Outcome::from(command.spawn().unwrap().wait_with_output().unwrap());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// Data commands have a test of their own in `data_tests`.
#[test]
fn a_run_can_have_a_name_that_is_not_text() {
    let scratch = Scratch::new();
    scratch.run(&["data", "synth", "load", "--days", "2", "--out", "s.csv", "--json"]).success();
    let name = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let (run, series) = (name(b"r\xff"), name(b"s\xff.csv"));
    fs::rename(scratch.path("s.csv"), scratch.path("").join(&series)).unwrap();
    let program = |words: &[&OsStr]| Outcome::of(scratch.command(&["--json"]).args(words));
    let word = OsStr::new;

    let settings = SMALL.iter().flat_map(|setting| [word("--set"), word(setting)]);
    let start = [word("demo"), word("--out"), &run].into_iter();
    let result = program(&start.chain(settings).collect::<Vec<_>>()).success();
    assert_eq!(result["run"], "r\u{fffd}");
    program(&[word("evaluate"), &run]).success();
    let out = name(b"o\xff.csv");
    let result = program(&[word("predict"), &run, &series, word("--out"), &out]).success();
    assert!(result.to_string().contains("o\u{fffd}.csv"), "{result}");
    let checkpoint = word("checkpoint");
    program(&[checkpoint, word("inspect"), &run]).success();
    let weights = name(b"w\xff.safetensors");
    program(&[checkpoint, word("export"), &run, word("--out"), &weights]).success();
    for file in [&out, &weights] {
        assert!(scratch.path("").join(file).exists(), "{file:?}");
    }
}

/// A product of epochs and steps that wraps around would be a run of no steps.
#[test]
fn more_epochs_than_can_be_counted_are_refused() {
    let scratch = Scratch::new();
    let settings = ["train.batch=20", "train.epochs=2305843009213693952"];
    let settings = settings.iter().flat_map(|setting| ["--set", setting]);
    let start = ["train", "demo", "--json", "--out", "run"].into_iter();
    let outcome = scratch.run(&start.chain(settings).collect::<Vec<_>>());
    refused(&outcome, 2, &["2305843009213693952", "train for fewer"]);
    assert!(scratch.names("").is_empty(), "{:?}", scratch.names(""));
}

#[test]
fn levels_that_are_not_whole_percent_keep_their_names() {
    let scratch = Scratch::new();
    let levels = ["evaluate.levels=[0.995,0.999]"];
    let outcome = scratch.train("demo", &levels, &["--out", "run"]);
    let test = &outcome.success()["test"];
    let coverages: Vec<&String> =
        test.as_object().unwrap().keys().filter(|key| key.starts_with("coverage_")).collect();
    let names = ["coverage_99.5", "coverage_99.9", "coverage_99.5_raw", "coverage_99.9_raw"];
    assert_eq!(coverages, names);
    assert!(coverages.iter().all(|key| test[key.as_str()].is_number()), "{test}");
    assert!(outcome.stderr.contains("99.9 % covers"), "{}", outcome.stderr);
    let report = scratch.read("run/report.html");
    assert!(report.contains("99.9"), "the report does not name the level");
    for text in [&outcome.stderr, &report] {
        assert!(!text.contains("NaN"), "there is a NaN");
    }
}

/// As many problems as there are bytes must not cost their square. The program takes 100 MB of
/// addresses for `recipe demo`; copies of a line of 180 kB for each problem would be 10 GB.
#[test]
fn a_recipe_of_many_mistakes_costs_little_memory() {
    let scratch = Scratch::new();
    let items = format!("name=\"x\"\n[model]\nkind=\"mlp\"\nhidden=[{}]\n", "-1,".repeat(60_000));
    let keys: String = (0..20_000).map(|key| format!("key{key}=1\n")).collect();
    for (text, words) in [(items, ["model.hidden", "more"]), (keys, ["key0", "more"])] {
        scratch.write("wrong.toml", text);
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_bayesmesh")).args(["train", "wrong.toml", "--json"]);
        refused(&Outcome::of(shell.current_dir(scratch.path(""))), 2, &words);
    }
}

#[test]
fn sizes_that_nothing_holds_are_refused_before_anything_is_written() {
    let scratch = trained();
    let memory = &["memory", "[model]"][..];
    let cases = [
        ("demo", "model.hidden=[1000000000]", memory),
        ("demo", "model.hidden=[9223372036854775807]", memory),
        ("images-demo", "model.depth=1000000000000", memory),
        ("demo", "train.samples=1000000000", &["train.samples", "1000000"]),
        ("demo", "train.samples=1000000000000000000", &["train.samples", "1000000"]),
        ("demo", "evaluate.draws=1000000000000", &["evaluate.draws", "1000000"]),
        ("demo", "train.load_delay_ms=1e308", &["train.load_delay_ms", "60000"]),
        ("demo", "train.steps=10000000000", &["10000000000", "steps", "train for fewer"]),
    ];
    for (recipe, setting, words) in cases {
        refused(&scratch.train(recipe, &[setting], &["--out", "new"]), 2, words);
        assert!(!scratch.path("new").exists(), "{setting} leaves a folder");
    }
    let seeds = ["--vary", "train.batch=8,16", "--seeds", "18446744073709551615", "--out", "new"];
    let compare = scratch.run(&[&["compare", "demo", "--json"], &seeds[..]].concat());
    refused(&compare, 2, &["--seeds", "at most"]);
    let draws = ["--draws", "1000000000000", "--json"];
    refused(&scratch.run(&[&["evaluate", "run"], &draws[..]].concat()), 2, &["--draws"]);
    let predict = ["predict", "run", "s.csv", "--out", "new.csv"];
    refused(&scratch.run(&[&predict, &draws[..]].concat()), 2, &["--draws"]);
    assert_eq!(scratch.names(""), ["run", "s.csv"]);
}

#[test]
fn ranks_without_processors_are_warned_of_and_without_end_refused() {
    let scratch = Scratch::new();
    let outcome = scratch.train("demo", &[], &["--ranks", "4", "--out", "run"]);
    assert_eq!(outcome.success()["mesh"], "4x1");
    let processors = thread::available_parallelism().unwrap().get();
    match processors < 4 {
        true => {
            let warning = format!("warning: 4 ranks share {processors} processor");
            assert!(outcome.stderr.contains(&warning), "{}", outcome.stderr);
        }
        false => eprintln!("skipped: {processors} processors are enough for four ranks"),
    }
    // With as many draws, so that only the number of threads is in the way.
    for mesh in [["--ranks", "5000"], ["--mesh", "2500x2"]] {
        let others = [&mesh[..], &["--out", "new"]].concat();
        let outcome = scratch.train("demo", &["train.samples=5000"], &others);
        refused(&outcome, 2, &["5000 ranks", "threads", "--ranks"]);
    }
    assert_eq!(scratch.names(""), ["run"]);
}

/// A run folder of somebody else must not make the program overwrite a file of its user.
#[test]
fn a_lock_that_is_a_link_is_refused() {
    let scratch = trained();
    scratch.write("mine.txt", "mine");
    fs::remove_file(scratch.path("run/run.lock")).unwrap();
    symlink("../mine.txt", scratch.path("run/run.lock")).unwrap();
    let outcome = scratch.train("demo", &["train.steps=50"], &["--out", "run", "--resume"]);
    refused(&outcome, 4, &["run.lock", "link", "Remove it"]);
    assert_eq!(scratch.read("mine.txt"), "mine");
    assert_complete(&scratch, "run");
}

#[test]
fn what_is_read_is_not_written_over() {
    let scratch = trained();
    let series = scratch.read("s.csv");
    symlink("s.csv", scratch.path("link.csv")).unwrap();
    for [from, out] in [["s.csv", "s.csv"], ["s.csv", "link.csv"], ["link.csv", "s.csv"]] {
        let predict = scratch.run(&["predict", "run", from, "--out", out, "--json"]);
        refused(&predict, 2, &[out, "this is what is read"]);
    }
    assert_eq!(scratch.read("s.csv"), series);

    let last = "run/checkpoints/step-00000040.safetensors";
    let before = fs::read(scratch.path(last)).unwrap();
    for from in ["run", last] {
        let export = scratch.run(&["checkpoint", "export", from, "--out", last, "--json"]);
        refused(&export, 2, &[last, "this is what is read"]);
    }
    assert!(fs::read(scratch.path(last)).unwrap() == before);
    // Nor is an earlier checkpoint, which may be needed yet.
    let earlier = "run/checkpoints/step-00000035.safetensors";
    let export = scratch.run(&["checkpoint", "export", "run", "--out", earlier, "--json"]);
    refused(&export, 2, &[earlier, "for checkpoints"]);
    assert!(Checkpoint::load(scratch.path(earlier)).is_ok());
}

/// A single such value is repaired; where all are, nothing is left to compare with, and the
/// network is given numbers it cannot multiply.
#[test]
fn a_series_far_outside_gives_no_forecast_that_is_not_a_number() {
    let scratch = trained();
    let text = scratch.read("s.csv");
    let (header, rows) = text.split_once('\n').unwrap();
    for value in ["1e30", "3e38"] {
        let far = |row: &str| format!("{},{value}\n", row.split_once(',').unwrap().0);
        scratch
            .write("far.csv", format!("{header}\n{}", rows.lines().map(far).collect::<String>()));
        for out in ["o.csv", "o.npy", "o.parquet"] {
            let predict = scratch.run(&["predict", "run", "far.csv", "--out", out, "--json"]);
            refused(&predict, 1, &["not finite", "nothing is written"]);
            assert!(!scratch.path(out).exists());
        }
    }
}

/// The library's part is in `prediction_tests`.
#[test]
fn weights_that_are_not_numbers_are_not_used() {
    let scratch = trained();
    let last = scratch.path("run/checkpoints/step-00000040.safetensors");
    let mut spoilt = Checkpoint::load(&last).unwrap();
    spoilt.parameters[0].values[0] = f32::NAN;
    spoilt.save(&last).unwrap();
    for arguments in [
        &["evaluate", "run"][..],
        &["predict", "run", "s.csv", "--out", "o.csv"],
        &["checkpoint", "export", "run", "--out", "w.safetensors"],
    ] {
        let outcome = scratch.run(&[arguments, &["--json"]].concat());
        refused(&outcome, 4, &["step-00000040.safetensors", "not finite"]);
    }
    assert_eq!(scratch.names(""), ["run", "s.csv"]);
}

#[test]
fn a_misspelt_recipe_is_guessed() {
    let scratch = Scratch::new();
    let outcome = scratch.run(&["train", "lod-mlp", "--json"]);
    refused(&outcome, 2, &["did you mean `load-mlp`?"]);
    assert!(scratch.names("").is_empty());
}

#[test]
fn fewer_steps_than_done_are_refused_and_change_nothing() {
    let scratch = trained();
    let files = ["recipe.toml", "metrics.csv", "events.jsonl", "evaluation.json", "report.html"];
    let read = || files.map(|file| scratch.read(&format!("run/{file}")));
    let (before, names) = (read(), scratch.names("run"));
    let outcome = scratch.train("demo", &["train.steps=10"], &["--out", "run", "--resume"]);
    refused(&outcome, 2, &["has had 40 steps", "the 10 that are asked for"]);
    assert!(read() == before, "a refused training has changed a file");
    assert_eq!(scratch.names("run"), names);
    assert_complete(&scratch, "run");
}

/// The weights are what a run is; its curve is not worth more than a warning.
#[test]
fn a_run_without_its_metrics_goes_on() {
    for missing in ["metrics.csv", "events.jsonl"] {
        let scratch = trained();
        fs::remove_file(scratch.path("run").join(missing)).unwrap();
        let outcome = scratch.train("demo", &["train.steps=44"], &["--out", "run", "--resume"]);
        assert_eq!(outcome.success()["steps"], 44);
        let warning = format!("warning: run/{missing} is missing: it begins again after step 40");
        assert!(outcome.stderr.contains(&warning), "{}", outcome.stderr);
        assert!(scratch.read(&format!("run/{missing}")).contains("44"));
    }
}

#[test]
fn recipes_without_end_are_refused_and_pipes_waited_for() {
    let scratch = Scratch::new();
    let outcome = scratch.run(&["train", "/dev/zero", "--json"]);
    refused(&outcome, 2, &["/dev/zero", "more than 1 MiB"]);

    let pipe = scratch.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(2500));
        fs::write(pipe, "name = 3\n")
    });
    let outcome = scratch.run(&["train", "pipe", "--json"]);
    writer.join().unwrap().unwrap();
    refused(&outcome, 2, &["pipe", "name"]);
    assert!(outcome.stderr.contains("waiting for somebody to write to the pipe"), "{outcome:?}");
    assert_eq!(scratch.names(""), ["pipe"]);
}

/// The library's part is in `checkpoint_tests`: a file that lists a tensor over and over would be
/// read as often. Here it is 4 MB, listed 3,000 times.
#[test]
fn a_checkpoint_cannot_ask_for_more_memory_than_it_has_bytes() {
    let scratch = Scratch::new();
    let numbers = 1 << 20;
    let names = json!(vec!["a"; 3000]).to_string();
    let lists = json!({ "parameters": names, "buffers": "[]", "optimizer": "[]" });
    let mut header = json!({
        "__metadata__": lists,
        "parameters/a": { "dtype": "F32", "shape": [numbers], "data_offsets": [0, 4 * numbers] },
    });
    header["__metadata__"]["bayesmesh_checkpoint"] = json!("1");
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    let bytes = [&length, header.as_bytes(), &vec![0; 4 * numbers]].concat();
    scratch.write("large.safetensors", bytes);
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_bayesmesh")]);
    shell.args(["checkpoint", "inspect", "large.safetensors", "--json"]);
    let words = ["large.safetensors", "'a' is listed twice"];
    refused(&Outcome::of(shell.current_dir(scratch.path(""))), 4, &words);
}
