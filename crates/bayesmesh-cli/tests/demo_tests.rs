//! The first thing a person sees.

#[path = "../../bayesmesh-report/tests/browser/mod.rs"]
mod browser;
mod common;

use std::process::Command;

use bayesmesh::Length;
use bayesmesh_cli::recipe::{Catalogue, Recipe};
use common::{SMALL, Scratch};
use serde_json::Value;

/// `bayesmesh demo` with small settings.
fn demo(scratch: &Scratch) -> Command {
    let mut command = scratch.command(&["demo", "--json"]);
    command.args(SMALL.iter().flat_map(|setting| ["--set", setting]));
    command
}

#[test]
fn a_demo_needs_no_file_and_leaves_a_run() {
    let scratch = Scratch::new();
    let outcome = common::Outcome::of(demo(&scratch).args(["--ranks", "2"]));
    let result = outcome.success();
    assert_eq!(outcome.stdout.lines().count(), 1, "logs do not go to standard output");
    let digest = outcome.digest();
    assert_eq!(result["steps"], 40);
    assert_eq!(result["mesh"], "2x1");
    assert!(result["seconds"].as_f64().unwrap() > 0.0);
    assert!(result["peak_rss_bytes"].as_u64().unwrap() > 1 << 20);
    let rmse = result["test"]["rmse_mw"].as_f64().unwrap();
    assert!((100.0..20_000.0).contains(&rmse), "{rmse}");
    let coverage = result["test"]["coverage_90"].as_f64().unwrap();
    assert!((0.5..=1.0).contains(&coverage), "{coverage}");

    for word in ["mesh    2x1", "seed    0", "device  ", "memory  about", "same time yesterday"] {
        assert!(outcome.stderr.contains(word), "no '{word}' in\n{}", outcome.stderr);
    }

    let mut names = scratch.names("runs/demo");
    let board = names.iter().position(|name| name.starts_with("events.out.tfevents"));
    names.remove(board.expect("an event file for TensorBoard"));
    let expected = [
        "checkpoints",
        "evaluation.json",
        "events.jsonl",
        "metrics.csv",
        "recipe.toml",
        "report.html",
        "run.lock",
    ];
    assert_eq!(names, expected);
    let expected = ["best.safetensors", "step-00000035.safetensors", "step-00000040.safetensors"];
    assert_eq!(scratch.names("runs/demo/checkpoints"), expected);
    scratch.assert_nothing_unfinished();

    assert_eq!(scratch.read("runs/demo/metrics.csv").lines().count(), 1 + 40 + 1);
    for line in scratch.read("runs/demo/events.jsonl").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event.is_object(), "{line}");
    }
    let evaluation: Value =
        serde_json::from_str(&scratch.read("runs/demo/evaluation.json")).unwrap();
    assert_eq!(evaluation["test"], result["test"]);

    let recipe =
        Recipe::load(&Catalogue::builtin(), &scratch.path("runs/demo/recipe.toml"), &[]).unwrap();
    assert_eq!(recipe.length, Length::Steps(40));
    let again = ["train", "runs/demo/recipe.toml", "--out", "again", "--ranks", "2", "--json"];
    assert_eq!(scratch.run(&again).digest(), digest);
    assert_eq!(scratch.read("again/recipe.toml"), scratch.read("runs/demo/recipe.toml"));
}

#[test]
fn a_second_demo_takes_the_next_folder() {
    let scratch = Scratch::new();
    for expected in ["runs/demo", "runs/demo-2", "runs/demo-3"] {
        let result = common::Outcome::of(&mut demo(&scratch)).success();
        assert_eq!(result["run"], expected);
        assert!(scratch.path(expected).join("report.html").is_file());
    }
    assert_eq!(scratch.names("runs"), ["demo", "demo-2", "demo-3"]);
}

/// The report of a short demo, and that of a recipe that does not predict its noise.
#[test]
fn reports_fit_a_phone_and_a_screen() {
    let scratch = Scratch::new();
    common::Outcome::of(demo(&scratch).args(["--out", "demo"])).success();
    scratch.train("load-mlp", &[], &["--out", "load-mlp"]).success();
    for run in ["demo", "load-mlp"] {
        let html = scratch.read(&format!("{run}/report.html"));
        let Some(layouts) = browser::layouts(&html, &[400, 1400]) else {
            eprintln!("skipped: no Chromium");
            return;
        };
        assert_eq!(layouts.iter().map(|layout| layout.width).collect::<Vec<_>>(), [400, 1400]);
        for layout in layouts {
            assert!(layout.problems.is_empty(), "{run}: {layout:?}");
            assert!(layout.charts >= 5, "{run}: {layout:?}");
            assert!(layout.marks >= layout.charts, "{run}: {layout:?}");
            assert!(layout.tables >= 1, "{run}: {layout:?}");
        }
    }
}
