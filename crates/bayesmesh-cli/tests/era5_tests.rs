//! The weather forecast, from the recipe to maps and forecasts in files.

#[path = "../../bayesmesh-report/tests/browser/mod.rs"]
mod browser;
mod common;

use common::{Outcome, SMALL_WEATHER, Scratch};
use serde_json::Value;

fn train(scratch: &Scratch, settings: &[&str], others: &[&str]) -> Outcome {
    scratch.train("era5-demo", settings, others)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

const VARIABLES: [&str; 3] =
    ["2m_temperature", "10m_u_component_of_wind", "10m_v_component_of_wind"];
const SCORES: [&str; 5] = ["rmse", "crps", "spread_skill", "persistence_rmse", "climatology_rmse"];

#[test]
fn a_run_is_scored_variable_by_variable_and_shown_in_maps() {
    let scratch = Scratch::new();
    let outcome = train(&scratch, &[], &["--ranks", "2", "--out", "run"]);
    let result = outcome.success();
    let test = &result["test"];
    let of_variables = VARIABLES.map(|name| &test[name]);
    for of in of_variables.into_iter().chain([&test["geopotential"]["500"]]) {
        for score in SCORES {
            assert!(number(&of[score]) > 0.0, "{score}: {test}");
        }
        assert!(number(&of["crps"]) < number(&of["rmse"]), "{test}");
        assert!(number(&of["best_crps"]) < number(&of["crps"]), "nothing beats the best: {test}");
    }
    for name in ["rmse", "crps", "spread_skill"] {
        assert!(number(&test[name]) > 0.0, "{name}");
    }
    let evaluation: Value = serde_json::from_str(&scratch.read("run/evaluation.json")).unwrap();
    assert_eq!(evaluation["test"], *test);
    let leads = evaluation["roll_out"]["leads"].as_array().unwrap();
    let hours: Vec<f64> = leads.iter().map(|lead| number(&lead["hours"])).collect();
    assert_eq!(hours, [6.0, 12.0, 18.0]);
    let histograms = evaluation["rank_histograms"].as_array().unwrap();
    assert_eq!(histograms.len(), 4);
    for histogram in histograms {
        let shares: Vec<f64> = histogram.as_array().unwrap().iter().map(number).collect();
        assert_eq!(shares.len(), 5, "four draws have five places for the truth");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    }
    let report = scratch.read("run/report.html");
    for words in ["Mean of the draws", "type=\"range\"", "geopotential.500", "Lead times"] {
        assert!(report.contains(words), "no {words} in the report");
    }
    scratch.assert_nothing_unfinished();

    // Scored again, it is the same.
    let again = scratch.run(&["evaluate", "run", "--json"]).success();
    assert_eq!(again["test"], *test);
}

/// Bit for bit along the sample axis, and to the rounding of sums elsewhere.
#[test]
fn every_mesh_trains_the_same_network() {
    // A variance of almost nothing would make mountains of the rounding of sums.
    let losses =
        [["loss.kind=crps", "loss.alpha=0.95"], ["loss.kind=gaussian-of-draws", "loss.floor=0.01"]];
    for [loss, setting] in losses {
        let scratch = Scratch::new();
        let settings = [loss, setting, "train.reduce=reproducible", "train.steps=8"];
        let on = |mesh: &str| train(&scratch, &settings, &["--mesh", mesh, "--out", mesh]);
        let serial = on("1x1");
        for mesh in ["2x1", "4x1"] {
            assert_eq!(on(mesh).digest(), serial.digest(), "{loss} {mesh}");
        }
        let rmse = |outcome: &Outcome| number(&outcome.success()["test"]["rmse"]);
        for mesh in ["1x2", "2x2", "3x1"] {
            let [ours, theirs] = [&on(mesh), &serial].map(rmse);
            assert!((ours - theirs).abs() < 1e-4 * theirs, "{loss} {mesh}: {ours} {theirs}");
        }
    }
}

#[test]
fn a_run_goes_on_where_it_stopped() {
    let scratch = Scratch::new();
    let settings = ["train.reduce=reproducible", "schedule.kind=constant"];
    let whole = train(&scratch, &settings, &["--ranks", "1", "--out", "whole"]).digest();
    let half = [&settings[..], &["train.steps=10"]].concat();
    train(&scratch, &half, &["--ranks", "1", "--out", "half"]).success();
    let resumed = train(&scratch, &settings, &["--ranks", "2", "--out", "half", "--resume"]);
    assert_eq!(resumed.digest(), whole);
}

#[test]
fn posteriors_of_every_kind_are_trained() {
    let scratch = Scratch::new();
    let kinds = [
        ["posterior.kind=mean-field", "model.noise_fields=0"],
        ["posterior.kind=mc-dropout", "model.dropout=0.1"],
        ["posterior.kind=functional-noise", "model.noise=8"],
        ["model.kind=globe-cnn", "model.noise_fields=2"],
    ];
    for (index, settings) in kinds.iter().enumerate() {
        let out = format!("run-{index}");
        let settings: Vec<&str> = match settings[0] {
            // Another kind has other keys.
            "model.kind=globe-cnn" => {
                let mut arguments = vec!["train", "era5-demo", "--json", "--out", &out];
                let small = SMALL_WEATHER.iter().filter(|setting| !setting.contains("model."));
                let all = small.chain(settings).flat_map(|setting| ["--set", *setting]);
                arguments.extend(all);
                scratch.run(&arguments).success();
                continue;
            }
            _ => settings.to_vec(),
        };
        let result = train(&scratch, &settings, &["--out", &out]).success();
        let spread = number(&result["test"]["2m_temperature"]["spread"]);
        assert!(spread > 0.0, "{settings:?}: draws agree");
    }
    for [setting, key] in
        [["posterior.kind=mc-dropout", "model.dropout"], ["model.noise_fields=0", "model.noise"]]
    {
        let outcome = train(&scratch, &[setting], &["--out", "refused"]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(key), "{}", outcome.stderr);
    }
}

#[test]
fn forecasts_are_trajectories_in_a_store_or_an_array() {
    let scratch = Scratch::new();
    let synth = ["data", "synth", "era5", "--latitudes", "12", "--longitudes", "24", "--steps"];
    scratch.run(&[&synth[..], &["64", "--out", "weather.zarr", "--json"]].concat()).success();
    let settings = ["data.kind=era5", "data.path=weather.zarr"];
    let names = "data.variables=[\"2m_temperature\", \"geopotential.500\"]";
    let settings = [&settings[..], &[names, "data.history=2"]].concat();
    // What belongs to generated weather alone is dropped with its kind.
    let small = SMALL_WEATHER.iter().copied().filter(|setting| !setting.contains("data.steps"));
    let small: Vec<&str> = small.collect();
    let mut arguments = vec!["train", "era5-demo", "--out", "run", "--json"];
    arguments.extend(small.iter().chain(&settings).flat_map(|setting| ["--set", *setting]));
    scratch.run(&arguments).success();

    let predict = ["predict", "run", "weather.zarr", "--steps", "3", "--draws", "5", "--json"];
    let store = [&predict[..], &["--every", "20", "--out", "forecast.zarr"]].concat();
    let result = scratch.run(&store).success();
    assert_eq!((&result["forecasts"], &result["steps"]), (&4.into(), &3.into()));
    assert!(scratch.path("forecast.zarr/2m_temperature").is_dir());
    let again = scratch.run(&store);
    assert_eq!(again.code, Some(4), "a store that is there stays: {again:?}");

    let array = [&predict[..], &["--out", "forecast.npy"]].concat();
    scratch.run(&array).success();
    let bytes = std::fs::read(scratch.path("forecast.npy")).unwrap();
    let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
    assert!(header.contains("(1, 3, 5, 2, 12, 24)"), "{header}");
    let values: Vec<f32> =
        bytes[128..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let field = 12 * 24;
    let temperature =
        |step: usize, draw: usize| &values[((step * 5 + draw) * 2) * field..][..field];
    assert!(temperature(0, 0).iter().all(|k| (150.0..350.0).contains(k)), "in kelvin");
    for step in 0..3 {
        assert_ne!(temperature(step, 0), temperature(step, 1), "draws are kept apart");
    }
    // The first two draws do not depend on how many there are, nor on the ranks.
    let few = ["predict", "run", "weather.zarr", "--steps", "3", "--draws", "2", "--ranks", "1"];
    scratch.run(&[&few[..], &["--out", "few.npy"]].concat());
    let few = std::fs::read(scratch.path("few.npy")).unwrap();
    let few: Vec<f32> =
        few[128..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    for step in 0..3 {
        let own = &few[step * 2 * 2 * field..][..2 * 2 * field];
        let of_all = &values[step * 5 * 2 * field..][..2 * 2 * field];
        assert_eq!(own, of_all, "step {step}");
    }
    scratch.assert_nothing_unfinished();
}

#[test]
fn stores_that_do_not_fit_are_refused_with_what_to_do() {
    let scratch = Scratch::new();
    let synth = ["data", "synth", "era5", "--latitudes", "12", "--longitudes", "24", "--steps"];
    scratch.run(&[&synth[..], &["40", "--out", "weather.zarr", "--json"]].concat()).success();
    let told = |settings: &[&str], code: i32, words: &[&str]| {
        let mut arguments = vec!["train", "gfs-wind", "--out", "run", "--set"];
        arguments.push("data.path=weather.zarr");
        arguments.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
        let outcome = scratch.run(&arguments);
        assert_eq!(outcome.code, Some(code), "{settings:?}: {outcome:?}");
        for word in words {
            assert!(outcome.stderr.contains(word), "no '{word}' in\n{}", outcome.stderr);
        }
        assert!(!scratch.path("run").exists(), "{settings:?} left a run");
    };
    told(&[], 2, &["12 latitudes and 24 longitudes", "data.latitudes=12"]);
    let grid = ["data.latitudes=12", "data.longitudes=24"];
    let with = |more: &[&'static str]| [&grid[..], more].concat();
    let unknown = ["data.variables=[\"10m_wind\"]"];
    told(&with(&unknown), 2, &["10m_wind", "weather.zarr"]);
    told(&with(&["data.variables=[\"geopotential.501\"]"]), 3, &["501", "500"]);
    told(&with(&["data.variables=[\"geopotential.\"]"]), 2, &["data.variables"]);
    told(&with(&["data.lead_hours=5"]), 2, &["5 h", "6 h"]);
    told(&with(&["data.split=[0.5,0.1,0.2]"]), 2, &["data.split", "0.8"]);
    told(&with(&["data.train_until=soon"]), 2, &["data.train_until", "2018-01-01"]);
    told(&with(&["data.statistics=none.json"]), 3, &["none.json"]);
    told(&["data.path=nowhere.zarr"], 3, &["nowhere.zarr"]);
    std::fs::remove_file(scratch.path("weather.zarr/10m_u_component_of_wind/0.0.0")).unwrap();
    told(&with(&[]), 3, &["10m_u_component_of_wind", "missing"]);
}

#[test]
fn statistics_are_written_and_used() {
    let scratch = Scratch::new();
    let synth = ["data", "synth", "era5", "--latitudes", "12", "--longitudes", "24", "--steps"];
    scratch.run(&[&synth[..], &["40", "--out", "weather.zarr", "--json"]].concat()).success();
    let checked = scratch.run(&["data", "check", "era5", "weather.zarr", "--json"]).success();
    assert_eq!((&checked["times"], &checked["latitudes"]), (&40.into(), &12.into()));
    for name in ["statistics.json", "statistics.csv"] {
        let stats = ["data", "stats", "era5", "weather.zarr", "--out", name, "--json"];
        assert_eq!(scratch.run(&stats).success()["variables"], 4);
        assert!(scratch.read(name).contains("2m_temperature"));
    }
}
