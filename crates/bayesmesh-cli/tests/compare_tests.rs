//! Variants of a recipe, each with several seeds.

#[path = "../../bayesmesh-report/tests/browser/mod.rs"]
mod browser;
mod common;

use common::{Outcome, Scratch, small};
use serde_json::Value;

fn compare(scratch: &Scratch, recipe: &str, others: &[&str]) -> Outcome {
    let settings = small(recipe).iter().flat_map(|setting| ["--set", *setting]);
    let start = ["compare", recipe, "--json", "--out", "cmp", "--ranks", "2"].into_iter();
    scratch.run(&start.chain(settings).chain(others.iter().copied()).collect::<Vec<_>>())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn augmentations_are_compared_over_seeds() {
    let scratch = Scratch::new();
    let vary = ["--vary", "train.augment=per-draw,shared", "--seeds", "2"];
    let outcome = compare(&scratch, "images-demo", &vary);
    let result = outcome.success();
    assert_eq!(result["seeds"], serde_json::json!([0, 1]));
    let names = scratch.names("cmp");
    let expected =
        ["augment=per-draw", "augment=shared", "compare.csv", "compare.json", "report.html"];
    assert_eq!(names, expected);
    assert_eq!(scratch.names("cmp/augment=shared"), ["seed-0", "seed-1"]);

    // Means and deviations of what the runs say.
    let variants = result["variants"].as_array().unwrap();
    assert_eq!(variants[1]["variant"], "train.augment=shared");
    let nll = |seed: &str| {
        let text = scratch.read(&format!("cmp/augment=shared/{seed}/evaluation.json"));
        number(&serde_json::from_str::<Value>(&text).unwrap()["test"]["nll"])
    };
    let (a, b) = (nll("seed-0"), nll("seed-1"));
    assert_ne!(a, b);
    let found = &variants[1]["test"]["nll"];
    assert!((number(&found["mean"]) - 0.5 * (a + b)).abs() < 1e-12);
    assert!((number(&found["std"]) - (a - b).abs() / 2f64.sqrt()).abs() < 1e-12);
    let values: Vec<f64> = found["values"].as_array().unwrap().iter().map(number).collect();
    assert!((values[0] - a).abs() < 1e-12 && (values[1] - b).abs() < 1e-12, "{values:?}");
    let saved: Value = serde_json::from_str(&scratch.read("cmp/compare.json")).unwrap();
    assert_eq!(saved, result);
    let csv = scratch.read("cmp/compare.csv");
    assert!(
        csv.starts_with("variant,score,mean,std,standard_error,runs,difference_to_first,its_std\n"),
        "{csv}"
    );
    assert!(csv.contains("\n\"train.augment=shared\",accuracy,"), "{csv}");
    assert!(outcome.stdout.contains("train.augment=per-draw"), "{}", outcome.stdout);

    if let Some(layouts) = browser::layouts(&scratch.read("cmp/report.html"), &[400, 1400]) {
        for layout in layouts {
            assert!(layout.problems.is_empty(), "{layout:?}");
            // The loss and three scores on validation data.
            assert_eq!(layout.charts, 4, "{layout:?}");
        }
    }

    // Again: nothing is repeated. One that is not finished is; another recipe is refused.
    let again = compare(&scratch, "images-demo", &vary);
    assert_eq!(again.success(), result);
    assert_eq!(again.stderr.matches("finished before").count(), 4, "{}", again.stderr);
    std::fs::remove_file(scratch.path("cmp/augment=shared/seed-1/result.json")).unwrap();
    let again = compare(&scratch, "images-demo", &vary);
    assert_eq!(again.success()["variants"], result["variants"]);
    assert_eq!(again.stderr.matches("finished before").count(), 3, "{}", again.stderr);
    let other =
        compare(&scratch, "images-demo", &[&vary[..], &["--set", "train.batch=10"]].concat());
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("another recipe"), "{}", other.stderr);
    scratch.assert_nothing_unfinished();
}

/// Any key, of any use case; several give every combination.
#[test]
fn keys_of_a_forecast_are_compared() {
    let scratch = Scratch::new();
    let vary = ["--vary", "model.hidden=[8],[8,8]", "--vary", "optimizer.rate=1e-3,1e-2"];
    let result = compare(&scratch, "demo", &[&vary[..], &["--seeds", "1"]].concat()).success();
    let variants = result["variants"].as_array().unwrap();
    let names: Vec<&str> = variants.iter().map(|v| v["variant"].as_str().unwrap()).collect();
    assert_eq!(names[1], "model.hidden=[8], optimizer.rate=1e-2");
    assert_eq!(names.len(), 4);
    for variant in variants {
        assert!(number(&variant["test"]["rmse_mw"]["mean"]) > 0.0, "{variant}");
        assert!(variant["test"]["rmse_mw"]["std"].is_null(), "one seed has no spread");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_trained() {
    let scratch = Scratch::new();
    for (vary, words) in [
        ("train.augment", &["--vary train.augment", "no `=`"][..]),
        ("train.augment=shared,always", &["train.augment=always", "`per-draw`"]),
        ("train.seed=1,2", &["--seeds"]),
        ("train.heat=1,1", &["twice"]),
    ] {
        let outcome = compare(&scratch, "images-demo", &["--vary", vary]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        let error = outcome.json()["error"].as_str().unwrap().to_owned();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }
    assert!(scratch.names("").is_empty());
}
