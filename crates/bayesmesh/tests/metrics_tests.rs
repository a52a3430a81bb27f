//! Metrics against values computed by PyTorch in double precision (`tests/golden/metrics.json`; the
//! file says which script and versions made it).

use bayesmesh::metrics::uncertainty::ClassUncertainty;
use bayesmesh::metrics::{
    Accuracy, Brier, CalibrationBins, ClassificationMetric, ClasswiseCalibration, Coverage,
    CrpsEnsemble, CrpsGaussian, EnsembleMetric, Metric, Nll, PointError, RegressionCalibration,
    RegressionMetric, RegressionScores, crps_ensemble, crps_gaussian, normal,
};
use bayesmesh::metrics::{ClassificationScores, MetricSet};
use serde_json::Value;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/metrics.json");
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

#[test]
fn crps_of_every_example() {
    let case = &golden()["regression"];
    let (mean, std) = (floats(&case["mean"]), floats(&case["std"]));
    let (draws, target) = (floats(&case["draws"]), floats(&case["targets"]));
    let n = target.len();

    let gaussian =
        |i: usize| crps_gaussian(f64::from(mean[i]) - f64::from(target[i]), f64::from(std[i]));
    let values: Vec<f64> = (0..n).map(gaussian).collect();
    assert_all_agree("crps_gaussian", &values, &case["crps_gaussian_f64"]);

    let ensemble = |i: usize| {
        let mut column: Vec<f32> = draws.iter().skip(i).step_by(n).copied().collect();
        crps_ensemble(&mut column, target[i])
    };
    let (plain, fair): (Vec<f64>, Vec<f64>) = (0..n).map(ensemble).unzip();
    assert_all_agree("crps_ensemble", &plain, &case["crps_ensemble_f64"]);
    assert_all_agree("crps_ensemble_fair", &fair, &case["crps_ensemble_fair_f64"]);

    let mut metric = CrpsGaussian::new();
    metric.add(&mean, &std, &target).unwrap();
    let expected = &case["mean_crps_gaussian_f64"];
    assert_agrees("crps_gaussian", score(&metric, "crps_gaussian"), expected);
    let mut metric = CrpsEnsemble::new();
    metric.add(&draws, &target).unwrap();
    for name in ["crps_ensemble", "crps_ensemble_fair"] {
        assert_agrees(name, score(&metric, name), &case[format!("mean_{name}_f64")]);
    }
}

#[test]
fn errors_of_the_mean() {
    let case = &golden()["regression"];
    let mut metric = PointError::new();
    let (mean, std) = (floats(&case["mean"]), floats(&case["std"]));
    metric.add(&mean, &std, &floats(&case["targets"])).unwrap();
    assert_agrees("rmse", score(&metric, "rmse"), &case["rmse_f64"]);
    assert_agrees("mae", score(&metric, "mae"), &case["mae_f64"]);
}

#[test]
fn coverage_of_gaussian_intervals() {
    let regression = &golden()["regression"];
    let (mean, std) = (floats(&regression["mean"]), floats(&regression["std"]));
    let target = floats(&regression["targets"]);
    for case in [&regression["coverage_50_90"], &regression["coverage_deciles"]] {
        let levels = numbers(&case["levels"]);
        let quantiles = levels.iter().map(|level| normal::quantile(0.5 + 0.5 * level));
        for (q, expected) in quantiles.zip(numbers(&case["normal_quantiles"])) {
            assert!((q - expected).abs() < 1e-12, "{q} is not {expected}");
        }
        let mut coverage = Coverage::at_levels(&levels).unwrap();
        coverage.add(&mean, &std, &target).unwrap();
        let observed: Vec<f64> = coverage.scores().iter().map(|score| score.value).collect();
        assert_all_agree("coverage", &observed, &case["coverage_f64"]);
        let mut calibration = RegressionCalibration::at_levels(&levels).unwrap();
        calibration.add(&mean, &std, &target).unwrap();
        assert_agrees("mace", score(&calibration, "mace"), &case["coverage_error_f64"]);
    }
}

/// The sets that an evaluation uses say the same as the metrics one by one.
#[test]
fn families_of_metrics() {
    let golden = golden();
    let find = |set: &dyn MetricSet, name: &str| {
        set.scores().into_iter().find(|score| score.name == name).expect(name).value
    };
    let case = &golden["classification"];
    let mut set = ClassificationScores::new(3);
    set.add(&floats(&case["mean_probabilities"]), &labels(&case["labels"])).unwrap();
    let names = ["accuracy", "nll", "brier", "ece", "unweighted_calibration_error"];
    for name in names.into_iter().chain(["classwise_calibration_error"]) {
        assert_agrees(name, find(&set, name), &case[format!("{name}_f64")]);
    }

    let case = &golden["regression"];
    let mut set = RegressionScores::new(case["samples"].as_u64().unwrap() as usize);
    let (mean, std) = (floats(&case["mean"]), floats(&case["std"]));
    set.add(&mean, &std, &floats(&case["targets"]), &floats(&case["draws"])).unwrap();
    for name in ["rmse", "mae"] {
        assert_agrees(name, find(&set, name), &case[format!("{name}_f64")]);
    }
    for name in ["crps_gaussian", "crps_ensemble", "crps_ensemble_fair"] {
        assert_agrees(name, find(&set, name), &case[format!("mean_{name}_f64")]);
    }
    for (name, i) in [("coverage_50", 0), ("coverage_90", 1)] {
        let expected = &case["coverage_50_90"]["coverage_f64"]["data"][i];
        assert_agrees(name, find(&set, name), expected);
    }
}
