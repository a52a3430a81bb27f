//! Weights of a run for PyTorch.

mod common;

use std::fs;

use bayesmesh::Scale;
use bayesmesh::checkpoint::{Checkpoint, NamedTensor};
use bayesmesh::posterior::Parameters;
use bayesmesh_models::{MlpConfig, PyTorch};
use burn::tensor::Device;
use common::Scratch;
use serde_json::json;

/// The tensors of a network with the weights of a file for PyTorch.
fn tensors(scratch: &Scratch, file: &str, outputs: usize) -> Vec<NamedTensor> {
    let config = MlpConfig::new(96, vec![16, 16], outputs);
    let network = config.init(&Device::default()).load_pytorch(scratch.path(file)).unwrap();
    Parameters::new(network).named_values()
}

#[test]
fn means_and_deviations_are_exported() {
    let scratch = Scratch::new();
    // Its loss reads a mean and a variance of each of 24 values.
    let load = |file: &str| tensors(&scratch, file, 48);
    scratch.train("load-mlp-vi", &[], &["--out", "run"]).success();
    let export = ["checkpoint", "export", "run", "--out", "weights.safetensors", "--json"];
    let result = scratch.run(&[&export[..], &["--std", "stds.safetensors"]].concat()).success();
    let weights = 96 * 16 + 16 + 16 * 16 + 16 + 16 * 48 + 48;
    assert_eq!((&result["weights"], &result["tensors"]), (&json!(weights), &json!(6)));
    assert_eq!((&result["step"], &result["out"]), (&json!(40), &json!("weights.safetensors")));
    assert_eq!(result["std"], "stds.safetensors");

    let last = scratch.path("run/checkpoints/step-00000040.safetensors");
    let parameters = Checkpoint::load(last).unwrap().parameters;
    let (means, stds) = (load("weights.safetensors"), load("stds.safetensors"));
    assert_eq!(parameters.len(), 2 * means.len());
    for ((pair, mean), std) in parameters.chunks(2).zip(&means).zip(&stds) {
        assert_eq!(pair[0].name, format!("{}.mean", mean.name));
        assert_eq!(pair[0].values, mean.values);
        let expected: Vec<f32> = pair[1].values.iter().map(|&rho| Scale::Exp.apply(rho)).collect();
        assert_eq!(std.values, expected);
    }

    // A file of the run, also from within its folder.
    let earlier = "run/checkpoints/step-00000035.safetensors";
    let export = |file: &str, out: &str| {
        scratch.run(&["checkpoint", "export", file, "--out", out, "--json"])
    };
    assert_eq!(export(earlier, "earlier.safetensors").success()["step"], 35);
    assert_ne!(load("earlier.safetensors"), means);
    let mut command = scratch.command(&["checkpoint", "export", "step-00000035.safetensors"]);
    command.current_dir(scratch.path("run/checkpoints"));
    let outcome = common::Outcome::of(command.args(["--out", "../within.safetensors", "--json"]));
    outcome.success();
    assert_eq!(load("run/within.safetensors"), load("earlier.safetensors"));

    // A file whose recipe is not known.
    fs::copy(scratch.path(earlier), scratch.path("alone.safetensors")).unwrap();
    let outcome = export("alone.safetensors", "x.safetensors");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("name the folder of the run"), "{outcome:?}");
    // A place where nothing can be written.
    let outcome = export("run", "absent/x.safetensors");
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stderr.contains("absent/x.safetensors: no such file or folder"), "{outcome:?}");
    scratch.assert_nothing_unfinished();
}

#[test]
fn deviations_of_points_are_refused() {
    let scratch = Scratch::new();
    scratch.train("load-mlp", &["train.steps=5"], &["--out", "run"]).success();
    let export = ["checkpoint", "export", "run", "--out", "weights.safetensors", "--json"];
    let outcome = scratch.run(&[&export[..], &["--std", "stds.safetensors"]].concat());
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("leave --std away"), "{outcome:?}");
    assert!(!scratch.path("weights.safetensors").exists());
    scratch.run(&export).success();
    assert_eq!(tensors(&scratch, "weights.safetensors", 24).len(), 6);
}
