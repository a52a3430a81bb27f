//! Metrics against values computed by PyTorch in double precision (`tests/golden/metrics.json`) and
//! by scoringrules (`joint.json`, `fields.json`); the files say which script and versions made them.

use bayesmesh::data::Truth;
use bayesmesh::metrics::uncertainty::ClassUncertainty;
use bayesmesh::metrics::{
    Accuracy, Brier, CalibrationBins, ClassificationMetric, ClasswiseCalibration, Coverage, Crps,
    FieldErrors, FieldLayout, FieldScores, JointScores, Metric, MixtureBatch, Nll,
    RegressionCalibration, RegressionMetric, normal,
};
use bayesmesh::{Evaluation, Predictive};
use serde_json::Value;

fn golden() -> Value {
    golden_file("metrics")
}

fn golden_file(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("golden values are part of the repository");
    serde_json::from_str(&text).expect("golden values are JSON")
}

/// The numbers of a list, or of the data of a tensor.
fn numbers(value: &Value) -> Vec<f64> {
    let list = value.get("data").unwrap_or(value).as_array().expect("a list");
    list.iter().map(|x| x.as_f64().expect("a number")).collect()
}

fn floats(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|x| x as f32).collect()
}

fn labels(value: &Value) -> Vec<usize> {
    numbers(value).into_iter().map(|x| x as usize).collect()
}

fn score(metric: &impl Metric, name: &str) -> f64 {
    let scores = metric.scores();
    scores.iter().find(|score| score.name == name).expect(name).value
}

#[track_caller]
fn assert_agrees(name: &str, actual: f64, expected: &Value) {
    let expected = expected.as_f64().expect(name);
    let tolerance = 1e-6 * expected.abs();
    assert!((actual - expected).abs() <= tolerance, "{name}: {actual} is not {expected}");
}

#[track_caller]
fn assert_all_agree(name: &str, actual: &[f64], expected: &Value) {
    let expected = numbers(expected);
    assert_eq!(actual.len(), expected.len(), "{name}");
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= 1e-6 * e.abs(), "{name}: {a} is not {e}");
    }
}

fn added<M: ClassificationMetric>(mut metric: M, case: &Value) -> M {
    let (p, y) = (floats(&case["mean_probabilities"]), labels(&case["labels"]));
    metric.add(&p, &y).unwrap();
    metric
}

#[test]
fn proper_scores_of_probabilities() {
    let case = &golden()["classification"];
    let accuracy = score(&added(Accuracy::new(), case), "accuracy");
    assert_agrees("accuracy", accuracy, &case["accuracy_f64"]);
    assert_agrees("nll", score(&added(Nll::new(), case), "nll"), &case["nll_f64"]);
    assert_agrees("brier", score(&added(Brier::new(), case), "brier"), &case["brier_f64"]);
}

#[test]
fn calibration_errors() {
    let golden = golden();
    // The second case has confidences on the edges of the bins.
    for case in [&golden["classification"], &golden["bin_edges"]] {
        let bins = case["bins"].as_u64().unwrap() as usize;
        let top = added(CalibrationBins::with_bins(bins).unwrap(), case);
        for name in ["ece", "unweighted_calibration_error"] {
            assert_agrees(name, score(&top, name), &case[format!("{name}_f64")]);
        }
        let every = added(ClasswiseCalibration::with_bins(3, bins).unwrap(), case);
        let name = "classwise_calibration_error";
        assert_agrees(name, score(&every, name), &case[format!("{name}_f64")]);
    }
}

#[test]
fn uncertainty_of_draws() {
    let case = &golden()["classification"];
    let draws = case["samples"].as_u64().unwrap() as usize;
    let split = ClassUncertainty::from_draws(&floats(&case["probabilities"]), draws, 3).unwrap();
    for (name, values) in [
        ("predictive_entropy", &split.predictive_entropy),
        ("expected_entropy", &split.expected_entropy),
        ("mutual_information", &split.mutual_information),
    ] {
        assert_all_agree(name, values, &case[format!("{name}_f64")]);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert_agrees(name, mean, &case[format!("mean_{name}_f64")]);
    }
}

/// The draws of the golden values, and one Gaussian with their mean and deviation in their place.
fn predictions(case: &Value) -> (Predictive, Predictive, Vec<f32>) {
    let (mean, std) = (floats(&case["mean"]), numbers(&case["std"]));
    let (draws, target) = (floats(&case["draws"]), floats(&case["targets"]));
    let variance = std.iter().map(|std| (std * std) as f32).collect();
    let rows = target.len();
    let samples = case["samples"].as_u64().unwrap() as usize;
    (
        Predictive::of_values(samples, rows, draws).unwrap(),
        Predictive::of_gaussians(1, rows, mean, variance).unwrap(),
        target,
    )
}

/// The exact score of a mixture is that of its draws where there is no noise, and of a Gaussian
/// where there is one draw.
#[test]
fn crps_of_every_example() {
    let case = &golden()["regression"];
    let (draws, gaussian, target) = predictions(case);
    assert_all_agree("crps", &draws.crps(&target).unwrap(), &case["crps_ensemble_f64"]);
    assert_all_agree("crps", &gaussian.crps(&target).unwrap(), &case["crps_gaussian_f64"]);
    let fair = |row: usize| {
        let draws: Vec<f32> =
            draws.values().iter().skip(row).step_by(target.len()).copied().collect();
        let mut metric = Crps::new();
        let truth = &target[row..=row];
        metric.add(&MixtureBatch::new(&draws, &[], truth, draws.len(), 1).unwrap());
        score(&metric, "crps_fair")
    };
    let fair: Vec<f64> = (0..target.len()).map(fair).collect();
    assert_all_agree("crps_fair", &fair, &case["crps_ensemble_fair_f64"]);
}

/// scoringrules 0.10.0: `es_ensemble(truth, paths, estimator="fair")`, and
/// `vs_ensemble(truth, paths, p=0.5)`, a sum over both orders of every pair of outputs, divided by
/// their number K (K − 1); `scripts/golden_joint.py`.
#[test]
fn scores_of_paths() {
    for case in golden_file("joint")["cases"].as_array().expect("a list") {
        let (paths, truth) = (floats(&case["paths"]), floats(&case["truth"]));
        let shape = labels(&case["paths"]["shape"]);
        let (mut all, mut each) = (JointScores::new(), [const { Vec::new() }; 2]);
        for (paths, truth) in
            paths.chunks_exact(shape[1] * shape[2]).zip(truth.chunks_exact(shape[2]))
        {
            let mut one = JointScores::new();
            one.add(paths, truth).unwrap();
            all.merge(&one).unwrap();
            each.iter_mut().zip(one.scores()).for_each(|(each, score)| each.push(score.value));
        }
        for (name, each) in ["energy_score", "variogram_score"].into_iter().zip(each) {
            let expected = numbers(&case[name]);
            assert_eq!(expected.len(), shape[0]);
            for (actual, expected) in each.iter().zip(&expected) {
                assert!((actual - expected).abs() <= 1e-12, "{name}: {actual} is not {expected}");
            }
            let mean = expected.iter().sum::<f64>() / expected.len() as f64;
            assert!((score(&all, name) - mean).abs() <= 1e-12, "{name}");
        }
    }
}

/// scoringrules 0.10.0: `crps_ensemble(truth, draws, estimator="fair")`; spread and skill as
/// WeatherBench-X defines them, with numpy; `scripts/golden_fields.py`.
#[test]
fn scores_of_fields() {
    for case in golden_file("fields")["cases"].as_array().expect("a list") {
        let (draws, truth) = (floats(&case["draws"]), floats(&case["truth"]));
        let shape = labels(&case["draws"]["shape"]);
        let [members, examples, fields, cells] = shape[..] else { panic!("{shape:?}") };
        let weights = floats(&case["cell_weights"]);
        let prediction = Predictive::of_values(members, examples, draws.clone()).unwrap();
        let layout = FieldLayout::new(fields, &weights).unwrap();
        let mut scores = FieldScores::new(layout.clone(), members).unwrap();
        scores.add(&prediction, &truth).unwrap();
        let found = scores.fields();
        let agree = |name: &str, found: Vec<f64>| {
            let expected = numbers(&case[name]);
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() <= 1e-6, "{name}: {found} is not {expected}");
            }
        };
        agree("rmse", found.iter().map(|field| field.rmse.value).collect());
        agree("mae", found.iter().map(|field| field.mae.value).collect());
        agree("crps", found.iter().map(|field| field.crps.value).collect());
        agree("crps_error", found.iter().map(|field| field.crps.se_examples).collect());
        let error = |score: &bayesmesh::metrics::Score| 2.0 * score.value * score.se_examples;
        agree("mse_error", found.iter().map(|field| error(&field.rmse)).collect());
        agree("spread", found.iter().map(|field| field.spread.value).collect());
        agree("spread_skill", found.iter().map(|field| field.spread_skill.value).collect());
        let ranks = found.iter().flat_map(|field| field.rank_histogram.clone());
        agree("rank_histogram", ranks.collect());

        // The mean of the draws as a forecast of its own.
        let mut errors = FieldErrors::new(layout);
        errors.add(&prediction.mean(), &truth).unwrap();
        agree("rmse", errors.fields().iter().map(|field| field.rmse.value).collect());
        agree("mae", errors.fields().iter().map(|field| field.mae.value).collect());
        assert_eq!(cells, weights.len());
    }
}

#[test]
fn coverage_of_gaussian_intervals() {
    let regression = &golden()["regression"];
    let (_, gaussian, target) = predictions(regression);
    let batch = gaussian.mixtures(&target).unwrap();
    for case in [&regression["coverage_50_90"], &regression["coverage_deciles"]] {
        let levels = numbers(&case["levels"]);
        let quantiles = levels.iter().map(|level| normal::quantile(0.5 + 0.5 * level));
        for (q, expected) in quantiles.zip(numbers(&case["normal_quantiles"])) {
            assert!((q - expected).abs() < 1e-12, "{q} is not {expected}");
        }
        let mut coverage = Coverage::at_levels(&levels).unwrap();
        coverage.add(&batch);
        let observed: Vec<f64> = coverage.scores().iter().map(|score| score.value).collect();
        assert_all_agree("coverage", &observed, &case["coverage_f64"]);
        let mut calibration = RegressionCalibration::at_levels(&levels).unwrap();
        calibration.add(&batch);
        assert_agrees("mace", score(&calibration, "mace"), &case["coverage_error_f64"]);
    }
}

/// What a prediction says of itself is the same as the metrics one by one.
#[test]
fn scores_of_a_prediction() {
    let golden = golden();
    let value = |evaluation: &Evaluation, name: &str| evaluation.score(name).unwrap().value;
    let case = &golden["classification"];
    let truth = Truth::Labels(labels(&case["labels"]));
    let rows = numbers(&case["labels"]).len();
    let samples = case["samples"].as_u64().unwrap() as usize;
    let prediction =
        Predictive::of_probabilities(samples, rows, floats(&case["probabilities"])).unwrap();
    let evaluation = prediction.score(&truth).unwrap();
    for name in ["accuracy", "nll", "brier"] {
        assert_agrees(name, value(&evaluation, name), &case[format!("{name}_f64")]);
    }
    let logs = prediction.log_probability(&labels(&case["labels"])).unwrap();
    let nll = -logs.iter().sum::<f64>() / rows as f64;
    assert_agrees("log_probability", nll, &case["nll_f64"]);

    let case = &golden["regression"];
    let (draws, gaussian, target) = predictions(case);
    let truth = Truth::Values(target);
    let [draws, gaussian] = [draws, gaussian].map(|p| p.score(&truth).unwrap());
    for evaluation in [&draws, &gaussian] {
        for name in ["rmse", "mae"] {
            assert_agrees(name, value(evaluation, name), &case[format!("{name}_f64")]);
        }
    }
    assert_agrees("crps", value(&draws, "crps"), &case["mean_crps_ensemble_f64"]);
    assert_agrees("crps_fair", value(&draws, "crps_fair"), &case["mean_crps_ensemble_fair_f64"]);
    assert_agrees("crps", value(&gaussian, "crps"), &case["mean_crps_gaussian_f64"]);
    for (name, i) in [("coverage_50", 0), ("coverage_90", 1)] {
        let expected = &case["coverage_50_90"]["coverage_f64"]["data"][i];
        assert_agrees(name, value(&gaussian, name), expected);
    }
}
