//! What goes wrong is said with the place and the remedy, has its exit code, and leaves nothing
//! half-written.

mod common;

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Command;

use common::{Outcome, Scratch, training};

/// The message of a program that ended with `code`. It is on standard error, and with `--json` the
/// last line of standard output has it as well.
fn refused(outcome: &Outcome, code: i32) -> String {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    let result = outcome.json();
    assert_eq!(result["exit_code"], code);
    let error = result["error"].as_str().unwrap().to_owned();
    let first = error.lines().next().unwrap();
    assert!(outcome.stderr.contains(&format!("error: {first}")), "{outcome:?}");
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    error
}

#[track_caller]
fn assert_says(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "no '{word}' in: {error}");
    }
}

/// Cuts the end off a file.
fn truncate(path: &Path) {
    let length = fs::metadata(path).unwrap().len();
    OpenOptions::new().write(true).open(path).unwrap().set_len(length - 100).unwrap();
}

#[test]
fn wrong_recipes() {
    let scratch = Scratch::new();
    let error = refused(&scratch.train("demo", &["train.sampels=4"], &["--out", "run"]), 2);
    assert_says(&error, &["--set train.sampels=4", "did you mean `train.samples`?"]);

    scratch.write("mine.toml", "name = \"mine\"\n[train]\nbatchs = 3\n");
    let error = refused(&scratch.run(&["train", "mine.toml", "--json"]), 2);
    assert_says(&error, &["mine.toml:3", "`train.batchs`", "`train.batch`"]);

    let error = refused(&scratch.run(&["train", "none.toml", "--json"]), 2);
    assert_says(&error, &["none.toml", "no such file"]);

    let error = refused(&scratch.run(&["recipe", "load-mpl", "--json"]), 2);
    assert_says(&error, &["load-mpl", "did you mean `load-mlp`?"]);
    assert_eq!(scratch.names(""), ["mine.toml"]);
}

#[test]
fn wrong_arguments() {
    let scratch = Scratch::new();
    let train = |others: &[&str]| scratch.train("demo", &[], others);
    let error = refused(&train(&["--mesh", "3y2", "--out", "run"]), 2);
    assert_says(&error, &["3y2", "--mesh", "for example 4x2"]);
    let error = refused(&train(&["--ranks", "0", "--out", "run"]), 2);
    assert_says(&error, &["no ranks"]);
    let error = refused(&train(&["--ranks", "5", "--out", "run"]), 2);
    assert_says(&error, &["5x1", "only 4 draws"]);
    let error = refused(&train(&["--mesh", "1x32", "--out", "run"]), 2);
    assert_says(&error, &["1x32", "16"]);
    let error = refused(&scratch.train("demo", &["train.batch=5000"], &["--out", "run"]), 2);
    assert_says(&error, &["5000", "835"]);
    refused(&train(&["--resume"]), 2);
    refused(&train(&["--ranks", "2", "--mesh", "2x1"]), 2);
    refused(&scratch.run(&["frobnicate", "--json"]), 2);
    let error = refused(
        &scratch.run(&["data", "synth", "load", "--days", "0", "--out", "a.csv", "--json"]),
        2,
    );
    assert_says(&error, &["0 days"]);
    // Nothing that could be in the way of the corrected command.
    assert!(scratch.names("").is_empty(), "{:?}", scratch.names(""));

    let outcome = scratch.run(&["train", "demo", "--mesh", "3y2"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "only with --json");
}

#[test]
fn images_that_are_missing_damaged_or_out_of_reach() {
    let scratch = Scratch::new();
    let data = |arguments: &[&str]| scratch.run(&[&["data"], arguments, &["--json"]].concat());
    let error = refused(&data(&["check", "cifar10", "none"]), 3);
    assert_says(&error, &["none: no such folder", "bayesmesh data fetch cifar10"]);
    data(&["synth", "cifar10", "--count", "5", "--out", "made"]).success();
    let error = refused(&data(&["synth", "cifar10", "--count", "5", "--out", "made"]), 2);
    assert_says(&error, &["made", "not empty", "--out"]);
    assert_says(&refused(&data(&["synth", "cifar10", "--count", "0", "--out", "b"]), 2), &["0"]);
    let error = refused(&data(&["fetch", "cifar10", "--from", "none", "--out", "b"]), 2);
    assert_says(&error, &["none: no such file"]);
    let error = refused(&data(&["fetch", "cifar10", "--from", "made", "--out", "b"]), 3);
    assert_says(&error, &["made/data_batch_1.bin", "15365 bytes", "30730000"]);
    let file = scratch.path("made/data_batch_4.bin");
    let mut bytes = fs::read(&file).unwrap();
    bytes[2 * 3073] = 255;
    fs::write(&file, bytes).unwrap();
    let error = refused(&data(&["check", "cifar10", "made"]), 3);
    assert_says(&error, &["data_batch_4.bin, image 2: label 255"]);

    scratch.write("file", "");
    let error = refused(&data(&["fetch", "cifar10", "--from", "made", "--out", "file/x"]), 4);
    assert_says(&error, &["file", "folder"]);

    // Neither of the programs that download.
    let mut command = scratch.command(&["data", "fetch", "cifar10", "--json"]);
    let error = refused(&Outcome::of(command.env("PATH", "")), 3);
    assert_says(&error, &["curl cannot be run", "npm cannot be run", "--from FILE"]);
    assert_eq!(scratch.names(""), ["data", "file", "made"]);
    assert!(scratch.names("data").is_empty(), "{:?}", scratch.names("data"));
}

#[test]
fn missing_and_damaged_data() {
    let scratch = Scratch::new();
    let train = |path: &str| {
        // Of the small settings only those that data from a file has.
        let small = common::SMALL.iter().filter(|setting| !setting.starts_with("data."));
        let path = format!("data.path={path}");
        let mut arguments = vec!["train", "load-mlp", "--json", "--out", "run", "--set", &path];
        arguments.extend(small.flat_map(|setting| ["--set", setting]));
        scratch.run(&arguments)
    };
    let error = refused(&train("none.csv"), 3);
    assert_says(&error, &["none.csv", "no such file", "bayesmesh data fetch load", "data.path"]);

    scratch
        .run(&["data", "synth", "load", "--days", "40", "--out", "good.csv", "--json"])
        .success();
    let good = scratch.read("good.csv");
    let mut lines: Vec<&str> = good.lines().collect();
    let damaged = lines[122].replace(',', ",4x");
    lines[122] = &damaged;
    scratch.write("bad.csv", lines.join("\n"));
    let error = refused(&train("bad.csv"), 3);
    assert_says(&error, &["bad.csv, line 123", "is not a number"]);
    let check = scratch.run(&["data", "check", "load", "bad.csv", "--json"]);
    assert_says(&refused(&check, 3), &["bad.csv, line 123"]);
    let fetch = ["data", "fetch", "load", "--from", "bad.csv", "--out", "data.csv", "--json"];
    assert_says(&refused(&scratch.run(&fetch), 3), &["bad.csv, line 123"]);
    let fetch = ["data", "fetch", "load", "--from", "none.csv", "--out", "data.csv", "--json"];
    assert_says(&refused(&scratch.run(&fetch), 2), &["none.csv"]);

    scratch.write("empty.csv", "");
    assert_says(&refused(&train("empty.csv"), 3), &["empty.csv", "empty"]);
    scratch.write("other.csv", "a,b\n1,2\n");
    assert_says(&refused(&train("other.csv"), 3), &["other.csv", "unknown header"]);
    assert_eq!(scratch.names(""), ["bad.csv", "empty.csv", "good.csv", "other.csv"]);

    train("good.csv").success();
}

#[test]
fn damaged_checkpoints() {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    let last = scratch.path("run/checkpoints/step-00000040.safetensors");
    truncate(&last);
    let inspect = ["checkpoint", "inspect", last.to_str().unwrap(), "--json"];
    assert_says(&refused(&scratch.run(&inspect), 4), &["step-00000040.safetensors"]);

    // The one before is used, and the user is told.
    for command in [&["evaluate", "run", "--json"][..], &["checkpoint", "inspect", "run", "--json"]]
    {
        let outcome = scratch.run(command);
        outcome.success();
        assert_says(&outcome.stderr, &["warning: ", "step-00000040.safetensors"]);
    }
    assert!(scratch.read("run/evaluation.json").contains("\"step\": 35"));
    // Going on repeats the last five steps and replaces the damaged file.
    let outcome = scratch.train("demo", &[], &["--out", "run", "--resume"]);
    outcome.success();
    assert_says(&outcome.stderr, &["warning: ", "going on from step 35"]);
    assert_eq!(scratch.run(&inspect).success()["step"], 40);

    for path in common::checkpoints(&scratch.path("run")) {
        truncate(&path);
    }
    for command in [&["evaluate", "run", "--json"][..], &["checkpoint", "inspect", "run", "--json"]]
    {
        let error = refused(&scratch.run(command), 4);
        assert_says(&error, &["step-00000040.safetensors"]);
    }
    scratch.assert_nothing_unfinished();
}

#[test]
fn a_checkpoint_of_another_network() {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    scratch.train("demo", &["model.hidden=[8]"], &["--out", "other"]).success();
    for path in common::checkpoints(&scratch.path("other")) {
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::copy(&path, scratch.path("run/checkpoints").join(name)).unwrap();
    }
    let error = refused(&scratch.run(&["evaluate", "run", "--json"]), 4);
    assert_says(&error, &["step-00000040.safetensors", "layers.0.weight", "16", "8"]);
    let error = refused(&scratch.train("demo", &[], &["--out", "run", "--resume"]), 4);
    assert_says(&error, &["step-00000040.safetensors", "layers.0.weight"]);
}

#[test]
fn folders_that_are_not_free_or_not_runs() {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    let before = scratch.read("run/metrics.csv");
    let error = refused(&scratch.train("demo", &[], &["--out", "run"]), 4);
    assert_says(&error, &["run", "already holds a run", "--resume", "--out"]);
    assert_eq!(scratch.read("run/metrics.csv"), before);

    scratch.write("file", "mine");
    for outcome in [
        scratch.train("demo", &[], &["--out", "file"]),
        scratch.train("demo", &[], &["--out", "file", "--resume"]),
        scratch.run(&["evaluate", "file", "--json"]),
    ] {
        assert_says(&refused(&outcome, 4), &["file", "folder"]);
    }
    assert_eq!(scratch.read("file"), "mine");

    for outcome in [
        scratch.train("demo", &[], &["--out", "none", "--resume"]),
        scratch.run(&["evaluate", "none", "--json"]),
        scratch.run(&["checkpoint", "inspect", "none", "--json"]),
    ] {
        assert_says(&refused(&outcome, 4), &["none", "no such file or folder"]);
    }
    fs::create_dir(scratch.path("empty")).unwrap();
    let error = refused(&scratch.run(&["evaluate", "empty", "--json"]), 4);
    assert_says(&error, &["empty", "not a run folder"]);
    assert_eq!(scratch.names(""), ["empty", "file", "run"]);
    assert!(scratch.names("empty").is_empty());
}

#[test]
fn forecasts_that_cannot_be() {
    let scratch = Scratch::new();
    scratch.train("demo", &[], &["--out", "run"]).success();
    scratch.run(&["data", "synth", "load", "--days", "2", "--out", "in.csv", "--json"]).success();
    let text = scratch.read("in.csv");
    let first: Vec<&str> = text.lines().take(1 + 95).collect();
    scratch.write("short.csv", first.join("\n"));
    let hours = text.lines().enumerate().filter(|(row, _)| row % 4 == 1 || *row == 0);
    scratch.write("hours.csv", hours.map(|(_, line)| line).collect::<Vec<_>>().join("\n"));
    let predict = |input: &str, out: &str, others: &[&str]| {
        scratch.run(&[&["predict", "run", input, "--out", out, "--json"], others].concat())
    };
    let error = refused(&predict("short.csv", "out.csv", &[]), 2);
    assert_says(&error, &["short.csv", "95 values", "96"]);
    let error = refused(&predict("hours.csv", "out.csv", &[]), 2);
    assert_says(&error, &["hours.csv", "3600 s", "900 s"]);
    let error = refused(&predict("in.csv", "out.txt", &[]), 2);
    assert_says(&error, &["out.txt", ".csv, .npy or .parquet"]);
    assert_says(&refused(&predict("none.csv", "out.csv", &[]), 3), &["none.csv", "no such file"]);
    assert_says(&refused(&predict("in.csv", "none/out.csv", &[]), 4), &["none/out.csv"]);
    refused(&predict("in.csv", "out.csv", &["--quantiles", "0.5,1.5"]), 2);
    refused(&predict("in.csv", "out.csv", &["--every", "0"]), 2);
    refused(&predict("in.csv", "out.csv", &["--draws", "0"]), 2);
    refused(&scratch.run(&["evaluate", "run", "--draws", "1", "--json"]), 2);
    assert_eq!(scratch.names(""), ["hours.csv", "in.csv", "run", "short.csv"]);
    scratch.assert_nothing_unfinished();
}

#[test]
fn a_loss_that_is_not_finite() {
    let scratch = Scratch::new();
    let error = refused(&scratch.train("demo", &["optimizer.rate=1e30"], &["--out", "run"]), 1);
    assert_says(&error, &["step 1", "not finite", "learning rate"]);
    assert!(error.contains("the loss") || error.contains("layers."), "what is it? {error}");
    scratch.assert_nothing_unfinished();
}

/// A disk that is full is a file that cannot grow; a limit of the shell is one cheaply.
#[cfg(unix)]
#[test]
fn a_checkpoint_that_does_not_fit() {
    let scratch = Scratch::new();
    let arguments = training("demo", &["model.hidden=[128,128]"], &["--out", "run"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]);
    shell.arg(env!("CARGO_BIN_EXE_bayesmesh")).args(arguments).current_dir(scratch.path(""));
    let error = refused(&Outcome::of(&mut shell), 4);
    assert_says(&error, &["could not be recorded", "step-00000005.safetensors"]);
    assert!(scratch.names("run/checkpoints").is_empty());
    scratch.assert_nothing_unfinished();
}

#[test]
fn a_program_that_a_launcher_of_mpi_starts_several_times() {
    let scratch = Scratch::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bayesmesh"));
    command.args(["demo", "--json", "--out", "run"]).env("OMPI_COMM_WORLD_SIZE", "4");
    let error = refused(&Outcome::of(command.current_dir(scratch.path(""))), 2);
    assert_says(&error, &["4 processes", "--ranks", "docs/cluster.md"]);
    scratch.assert_nothing_unfinished();
}
