//! A deep ensemble from a recipe: trained, gone on with, scored, predicted with and exported.

mod common;

use std::fs;

use bayesmesh::checkpoint::Checkpoint;
use common::Scratch;
use serde_json::json;

const ENSEMBLE: &[&str] = &["posterior.kind=ensemble", "model.dropout=0.0", "calibrate.kind=none"];

#[test]
fn an_ensemble_is_trained_scored_predicted_with_and_exported() {
    let scratch = Scratch::new();
    let train = |out: &str, more: &[&str], arguments: &[&str]| {
        let set = [ENSEMBLE, more].concat();
        scratch.train("load-mlp-gaussian", &set, &[&["--out", out], arguments].concat()).success()
    };
    // Eight draws are asked for: all four members.
    let whole = train("run", &[], &["--mesh", "2x1"]);
    assert_eq!(whole["draws"], 4);
    let last = "checkpoints/step-00000040.safetensors";
    let of = |run: &str| Checkpoint::load(scratch.path(&format!("{run}/{last}"))).unwrap();
    let saved = of("run");
    assert_eq!(saved.parameters.len(), 4 * 6);
    let [first, second] = [0, 6].map(|index| &saved.parameters[index]);
    assert!(first.name.starts_with("member.0.") && second.name.starts_with("member.1."));
    assert_ne!(first.values, second.values, "members have beginnings of their own");

    // Stopped half-way and gone on with on another mesh.
    train("half", &["train.steps=20"], &["--mesh", "4x1"]);
    let resumed = train("half", &[], &["--resume", "--mesh", "2x1"]);
    assert_eq!(resumed["digest"], whole["digest"]);

    let run = |arguments: &[&str]| scratch.run(&[arguments, &["--json"]].concat()).success();
    let scored = run(&["evaluate", "run", "--draws", "auto"]);
    assert_eq!((&scored["draws"], &scored["test"]), (&json!(4), &whole["test"]));
    assert_eq!(run(&["evaluate", "run", "--draws", "100"])["draws"], 4);
    assert_eq!(run(&["evaluate", "run", "--draws", "3"])["draws"], 3);

    let export = ["checkpoint", "export", "run", "--out", "weights.safetensors"];
    assert_eq!(run(&export)["tensors"], 24);
    let names = fs::read(scratch.path("weights.safetensors")).unwrap();
    let names = String::from_utf8_lossy(&names).into_owned();
    assert!(names.contains("members.3.layers.2.bias"), "PyTorch's names of all members");

    let refused = scratch.train(
        "load-mlp-gaussian",
        &[ENSEMBLE, &["train.samples=1"]].concat(),
        &["--out", "one"],
    );
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("one is none"), "{refused:?}");
}
