//! The ranks share the work, and the result does not tell how.

mod common;

use common::Scratch;

/// Long and fast enough to learn something also where a recipe has a warm-up of 200 steps.
const LEARNING: [&str; 2] = ["train.steps=150", "optimizer.rate=0.005"];

/// For each mesh, the RMSE differs from that of one rank by rounding only. That of another seed
/// differs more, so that the comparison means something.
fn is_the_same_on_every_mesh(recipe: &str) {
    let scratch = Scratch::new();
    let rmse = |mesh: &str| {
        let result = scratch.train(recipe, &LEARNING, &["--mesh", mesh, "--out", mesh]).success();
        assert_eq!(result["mesh"], mesh);
        result["test"]["rmse_mw"].as_f64().unwrap()
    };
    let alone = rmse("1x1");
    assert!(alone.is_finite() && alone > 0.0);
    for mesh in ["2x1", "1x2", "2x2"] {
        let shared = rmse(mesh);
        assert!((shared / alone - 1.0).abs() < 1e-4, "{recipe} on {mesh}: {shared}, not {alone}");
    }
    let settings = [&LEARNING[..], &["train.seed=1"]].concat();
    let result = scratch.train(recipe, &settings, &["--mesh", "1x1", "--out", "other"]);
    let other = result.success()["test"]["rmse_mw"].as_f64().unwrap();
    assert!((other / alone - 1.0).abs() > 1e-3, "another seed gives {other}, also {alone}");
}

fn has_the_same_bits_on_every_power_of_two(recipe: &str) {
    let scratch = Scratch::new();
    let digest = |ranks: &str| {
        let arguments = ["--ranks", ranks, "--out", ranks];
        scratch.train(recipe, &["train.reduce=reproducible"], &arguments).digest()
    };
    let alone = digest("1");
    for ranks in ["2", "4"] {
        assert_eq!(digest(ranks), alone, "{recipe} on {ranks} ranks");
    }
}

#[test]
fn a_mixture_with_dropout_is_the_same_on_every_mesh() {
    is_the_same_on_every_mesh("load-mlp-gaussian");
}

#[test]
fn the_error_of_the_mean_is_the_same_on_every_mesh() {
    is_the_same_on_every_mesh("load-mlp");
}

#[test]
fn a_mean_field_is_the_same_on_every_mesh() {
    is_the_same_on_every_mesh("load-mlp-vi");
}

#[test]
fn a_mixture_with_dropout_is_reproducible() {
    has_the_same_bits_on_every_power_of_two("load-mlp-gaussian");
}

#[test]
fn the_error_of_the_mean_is_reproducible() {
    has_the_same_bits_on_every_power_of_two("load-mlp");
}

#[test]
fn a_mean_field_is_reproducible() {
    has_the_same_bits_on_every_power_of_two("load-mlp-vi");
}
