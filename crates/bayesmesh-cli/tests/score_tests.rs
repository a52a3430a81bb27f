//! The scores of the program are those of the library, which is all that these tests use to compute
//! them again: the network and its data, the checkpoint of the run, `Trainer::evaluate`.

mod common;

use bayesmesh::checkpoint::Store;
use bayesmesh::loss::{Categorical, Gaussian, Mixture, SquaredErrorOfMean};
use bayesmesh::metrics::Evaluation;
use bayesmesh::posterior::InitialStd;
use bayesmesh::{
    CalibrateConfig, Loss, McDropout, MeanField, Posterior, Prior, Scoring, Settings, Trainer,
};
use bayesmesh_data::cifar10::{Cifar10, Normalisation};
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::series::{Normaliser, SeriesWindows, split};
use bayesmesh_models::{MlpConfig, VitConfig};
use burn::tensor::Device;
use common::Scratch;
use serde_json::Value;

/// Agreement of the program's numbers, which went through JSON and other sums, with the library's.
const ROUNDING: f64 = 1e-6;

fn evaluation(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.read("run/evaluation.json")).unwrap()
}

/// The trainer of a run, made by hand, at its last checkpoint.
fn restored<P: Posterior, L: Loss>(scratch: &Scratch, posterior: P, loss: L) -> Trainer<P, L> {
    let mut trainer = Trainer::new(posterior, loss, Settings::default());
    let latest = Store::open(scratch.path("run/checkpoints")).unwrap().latest().unwrap();
    let (path, checkpoint) = latest.found.unwrap();
    trainer.restore(&checkpoint, path).unwrap();
    trainer
}

/// Compares a score in a unit, and its standard errors, with those of the file.
#[track_caller]
fn assert_agrees(file: &Value, name: &str, library: &Evaluation, own: &str, unit: f64) {
    let score = library.score(own).unwrap();
    let errors = &file["standard_errors"][name];
    for (what, found, expected) in [
        ("value", &file["test"][name], score.value),
        ("over draws", &errors["draws"], score.se_draws),
        ("over examples", &errors["examples"], score.se_examples),
    ] {
        let expected = unit * expected;
        match found.as_f64() {
            Some(found) => {
                let distance = (found - expected).abs();
                let scale = expected.abs().max(1e-3 * unit);
                assert!(distance <= ROUNDING * scale, "{name} {what}: {found} {expected}");
            }
            None => assert!(expected.is_nan(), "{name} {what}: {found} {expected}"),
        }
    }
}

/// The parts of the generated series of [`common::SMALL`]: validation, test, and the unit.
fn windows() -> (SeriesWindows, SeriesWindows, f64) {
    let config = SynthConfig { seed: 1, days: 60, ..SynthConfig::default() };
    let series = german_like(&config).unwrap();
    let split = split(series.len(), [0.6, 0.1, 0.3]).unwrap();
    let values = || series.values.iter().copied().map(f64::from);
    let normaliser = Normaliser::fit(values().take(split.train.end)).unwrap();
    let values: Vec<f32> = values().map(|value| normaliser.apply(value)).collect();
    let part = |range, stride| SeriesWindows::of_values(values.clone(), range, 96, 24, stride);
    (part(split.valid, 4), part(split.test, 1), normaliser.std)
}

fn mlp(outputs: usize, dropout: f64) -> bayesmesh_models::Mlp {
    let config = MlpConfig { dropout, ..MlpConfig::new(96, vec![16, 16], outputs) };
    config.init(&Device::default())
}

#[test]
fn a_forecast_has_the_scores_of_the_library() {
    let scratch = Scratch::new();
    let levels = ["evaluate.levels=[0.5,0.9,0.995,0.999]"];
    scratch.train("demo", &levels, &["--out", "run", "--mesh", "2x1"]).success();
    let file = evaluation(&scratch);
    let (_, test, unit) = windows();
    let loss = Mixture::new(Gaussian).by_output();
    let trainer = restored(&scratch, McDropout::new(mlp(48, 0.02)), loss);

    let library = trainer.evaluate(&test, 8).unwrap();
    for own in ["rmse", "mae", "bias", "crps", "mean_std"] {
        assert_agrees(&file, &format!("{own}_mw"), &library, own, unit);
    }
    for name in ["coverage_50", "coverage_90", "mace"] {
        assert_agrees(&file, name, &library, name, 1.0);
    }
    // A density per MW instead of per normalised unit.
    let nll = file["test"]["nll_mw"].as_f64().unwrap();
    let expected = library.score("nll").unwrap().value + unit.ln();
    assert!((nll - expected).abs() <= ROUNDING * expected.abs(), "{nll} {expected}");

    // Levels are exact, and so are their names.
    let levels = vec![0.995, 0.999];
    let library =
        trainer.predictor().evaluate_as(&test, &Scoring { levels, ..Scoring::new(8) }).unwrap();
    for name in ["coverage_99.5", "coverage_99.9"] {
        assert_agrees(&file, name, &library, name, 1.0);
    }
    assert!(file["test"].get("coverage_100").is_none(), "{file}");
}

/// A squared error says nothing of the noise, so both estimate it on the validation part.
#[test]
fn a_forecast_without_noise_has_the_scores_of_the_library() {
    let scratch = Scratch::new();
    let settings = ["loss.kind=squared-error-of-mean"];
    scratch.train("demo", &settings, &["--out", "run"]).success();
    let file = evaluation(&scratch);
    let (valid, test, unit) = windows();
    let mut trainer = restored(&scratch, McDropout::new(mlp(24, 0.02)), SquaredErrorOfMean);

    let library = trainer.evaluate(&test, 8).unwrap();
    let kept = trainer.noise().to_vec();
    trainer.calibrate(&valid, CalibrateConfig::None, 8).unwrap();
    for (kept, found) in kept.iter().zip(trainer.noise()) {
        assert!((kept - found).abs() <= ROUNDING * found.max(1e-3), "{kept} {found}");
    }
    for (found, expected) in file["noise_mw"].as_array().unwrap().iter().zip(trainer.noise()) {
        let distance = (found.as_f64().unwrap() - unit * expected).abs();
        assert!(distance <= ROUNDING * unit, "{found} {expected}");
    }
    for own in ["rmse", "mae", "crps", "mean_std"] {
        assert_agrees(&file, &format!("{own}_mw"), &library, own, unit);
    }
    for own in ["crps", "mean_std"] {
        assert_agrees(&file, &format!("{own}_mw_raw"), library.raw().unwrap(), own, unit);
    }
    for name in ["coverage_50", "coverage_90", "mace"] {
        assert_agrees(&file, name, &library, name, 1.0);
    }
}

#[test]
fn a_classification_has_the_scores_of_the_library() {
    let scratch = Scratch::new();
    let settings = ["evaluate.corruptions=false"];
    scratch.train("images-demo", &settings, &["--out", "run", "--mesh", "1x2"]).success();
    let file = evaluation(&scratch);
    let images = Cifar10::synthetic(60, 1).unwrap();
    let test = images.test(Some(60)).unwrap().normalised(Normalisation::PIXELS).unwrap();
    let config = VitConfig {
        image: 32,
        channels: 3,
        patch: 8,
        width: 32,
        depth: 2,
        heads: 2,
        mlp: 64,
        classes: 10,
    };
    let posterior = MeanField::new(config.init(&Device::default()), Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::Constant(0.1))
        .unwrap();
    let trainer = restored(&scratch, posterior, Mixture::new(Categorical));
    let library = trainer.evaluate(&test, 4).unwrap();
    for score in &library {
        assert_agrees(&file, &score.name, &library, &score.name, 1.0);
    }
    assert!(library.classification().unwrap().accuracy.se_examples > 0.0);
}
