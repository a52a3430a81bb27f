//! Predictions average all draws, wherever they were evaluated, before they are scored.

mod common;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::data::{Target as _, Truth};
use bayesmesh::loss::{
    Categorical, EnsembleCrps, Expected, ExpectedSquaredError, Gaussian, Mixture,
    SquaredErrorOfMean,
};
use bayesmesh::metrics::{FieldLayout, FieldScores, MetricSet as _, RegressionScores, normal};
use bayesmesh::posterior::InitialStd;
use bayesmesh::trainer::Length;
use bayesmesh::{
    Dataset, Loss, McDropout, MeanField, Point, Posterior, Predictive, Predictor, Prior, Scoring,
    Settings, Standardize, Trainer,
};
use bayesmesh_files::testing::Scratch;
use burn::tensor::{Device, Tensor};
use common::{Mlp, classification, distance, numbers, regression};

const DRAWS: usize = 7;

fn mean_field(outputs: usize) -> MeanField<Mlp> {
    MeanField::new(Mlp::new(5, 8, outputs, 0.2), Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::Constant(0.3))
        .unwrap()
        .initialised(1)
}

fn trainer<L: Loss + Clone>(outputs: usize, loss: L, mesh: &str) -> Trainer<MeanField<Mlp>, L> {
    let settings =
        Settings { samples: 4, batch: 8, mesh: mesh.parse().unwrap(), ..Settings::default() };
    Trainer::new(mean_field(outputs), loss, settings)
}

#[test]
fn a_prediction_does_not_depend_on_the_mesh() {
    let input = numbers(5, [9, 5]);
    let serial = trainer(3, Expected(Categorical), "1x1").predict(&input, DRAWS).unwrap();
    assert_eq!((serial.draws(), serial.rows(), serial.outputs()), (DRAWS, 9, 3));
    for mesh in ["2x1", "3x1", "1x2", "2x2", "16x1"] {
        let parallel = trainer(3, Expected(Categorical), mesh).predict(&input, DRAWS).unwrap();
        assert_eq!(serial, parallel, "{mesh}");
    }
}

fn assert_scores_equal<L, D>(outputs: usize, loss: L, data: &D, expected: &[&str])
where
    L: Loss + Clone,
    D: Dataset<Input = Tensor<2>, Target = L::Target>,
{
    let scores = |mesh: &str| trainer(outputs, loss.clone(), mesh).evaluate(data, DRAWS).unwrap();
    let serial = scores("1x1");
    for name in expected {
        assert!(serial.iter().any(|score| score.name == *name), "{name} in {serial:?}");
    }
    // More data ranks than chunks, and draws that do not divide evenly.
    for mesh in ["2x1", "1x2", "3x2", "1x5"] {
        for (own, other) in serial.iter().zip(scores(mesh)) {
            assert_eq!(own.name, other.name);
            let pairs = [
                (own.value, other.value),
                (own.se_draws, other.se_draws),
                (own.se_examples, other.se_examples),
            ];
            for (a, b) in pairs {
                let same = (a - b).abs() <= 1e-9 * a.abs().max(1.0);
                assert!(same || a.is_nan() && b.is_nan(), "{mesh}: {own:?} {other:?}");
            }
        }
    }
}

#[test]
fn scores_do_not_depend_on_the_mesh() {
    let names = ["accuracy", "nll", "brier", "ece", "unweighted_calibration_error"];
    assert_scores_equal(3, Expected(Categorical), &classification(43), &names);
    let names = ["rmse", "mae", "coverage_90", "crps", "crps_fair", "mace", "rank_deviation"];
    assert_scores_equal(3, SquaredErrorOfMean, &regression(43), &names);
    assert_scores_equal(6, Expected(Gaussian), &regression(43), &["nll", "pit_deviation"]);
}

#[test]
fn moments_and_quantiles_are_those_of_the_draws() {
    let prediction =
        trainer(3, SquaredErrorOfMean, "1x1").predict(&numbers(5, [2, 5]), 101).unwrap();
    let cells = 6;
    for cell in 0..cells {
        let mut draws: Vec<f64> =
            prediction.values().iter().skip(cell).step_by(cells).map(|&v| f64::from(v)).collect();
        let mean = draws.iter().sum::<f64>() / 101.0;
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 100.0;
        draws.sort_by(f64::total_cmp);
        assert!((f64::from(prediction.mean()[cell]) - mean).abs() < 1e-6);
        assert!((f64::from(prediction.std()[cell]) - variance.sqrt()).abs() < 1e-6);
        let quantiles = prediction.quantiles(&[0.1, 0.5]).unwrap();
        assert!((f64::from(quantiles[0][cell]) - draws[10]).abs() < 1e-6);
        assert!((f64::from(quantiles[1][cell]) - draws[50]).abs() < 1e-6);
    }
    assert!(prediction.quantiles(&[1.0]).is_err());
    assert!(prediction.entropy().unwrap_err().to_string().contains("predicts values"));
}

#[test]
fn noise_adds_to_the_spread_and_quantiles_are_those_of_the_mixture() {
    let prediction =
        trainer(6, Expected(Gaussian), "1x1").predict(&numbers(5, [2, 5]), 20).unwrap();
    assert_eq!(prediction.outputs(), 3);
    let (total, epistemic) = (prediction.std(), prediction.epistemic_std());
    assert!(total.iter().zip(&epistemic).all(|(t, e)| t > e && *e > 0.0));
    let levels = [0.05, 0.5, 0.95];
    let quantiles = prediction.quantiles(&levels).unwrap();
    assert!(quantiles[0].iter().zip(&quantiles[1]).all(|(low, middle)| low < middle));
    // With one draw the mixture is a Gaussian.
    let one = trainer(6, Expected(Gaussian), "1x1").predict(&numbers(5, [2, 5]), 1).unwrap();
    let quantiles = one.quantiles(&levels).unwrap();
    for (level, quantile) in levels.iter().zip(&quantiles) {
        let z = normal::quantile(*level) as f32;
        let expected: Vec<f32> = one.mean().iter().zip(one.std()).map(|(m, s)| m + s * z).collect();
        assert!(distance(&expected, quantile) < 1e-5);
    }
}

/// The probability below a quantile is its level.
#[test]
fn the_pit_inverts_the_quantiles() {
    let input = numbers(5, [4, 5]);
    let learned = trainer(6, Expected(Gaussian), "1x1").predict(&input, 20).unwrap();
    let added = trainer(3, SquaredErrorOfMean, "1x1").predict(&input, 20).unwrap();
    let plain_std = added.std();
    let added = added.with_noise(&[0.1, 0.2, 0.3]).unwrap();
    assert!(added.noise_std()[..3].iter().zip([0.1, 0.2, 0.3]).all(|(a, b)| (a - b).abs() < 1e-7));
    let total = added.std();
    for (cell, (total, plain)) in total.iter().zip(plain_std).enumerate() {
        let noise = [0.1f32, 0.2, 0.3][cell % 3];
        assert!((total.powi(2) - plain.powi(2) - noise.powi(2)).abs() < 1e-5);
    }
    for prediction in [learned, added] {
        for (level, quantile) in
            [0.05, 0.3, 0.9].iter().zip(prediction.quantiles(&[0.05, 0.3, 0.9]).unwrap())
        {
            for pit in prediction.pit(&quantile).unwrap() {
                assert!((pit - level).abs() < 1e-5, "{pit} {level}");
            }
        }
    }
    let draws = trainer(3, SquaredErrorOfMean, "1x1").predict(&input, 5).unwrap();
    let shares = draws.pit(&draws.values()[..12]).unwrap();
    assert!(
        shares
            .iter()
            .all(|share| [0.1, 0.3, 0.5, 0.7, 0.9].iter().any(|s| (s - share).abs() < 1e-9))
    );
}

#[test]
fn entropies_decompose() {
    let prediction =
        trainer(3, Expected(Categorical), "1x1").predict(&numbers(5, [9, 5]), 30).unwrap();
    let entropy = prediction.entropy().unwrap();
    let expected = prediction.expected_entropy().unwrap();
    let information = prediction.mutual_information().unwrap();
    for row in 0..9 {
        assert!((entropy[row] - expected[row] - information[row]).abs() < 1e-9);
        assert!(information[row] > 0.0 && entropy[row] <= 3f64.ln() + 1e-6);
    }
    let sums: Vec<f32> = prediction.mean().chunks(3).map(|row| row.iter().sum()).collect();
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5));
}

#[test]
fn training_improves_the_scores_and_reports_them_for_validation_data() {
    let data = regression(400);
    let posterior = McDropout::new(Mlp::new(5, 32, 3, 0.05)).initialised(1);
    let settings = Settings {
        samples: 4,
        batch: 40,
        mesh: "2x2".parse().unwrap(),
        schedule: bayesmesh::trainer::Schedule::Constant { rate: 5e-3 },
        ..Settings::default()
    };
    let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings);
    let rmse =
        |trainer: &Trainer<_, _>| trainer.evaluate(&data, 16).unwrap().score("rmse").unwrap().value;
    let before = rmse(&trainer);
    trainer.fit(&data, Some(&data), Length::Epochs(40)).unwrap();
    let after = rmse(&trainer);
    // The outputs have a deviation of about 0.7, the noise one of 0.1.
    assert!(after < 0.5 * before && after < 0.3, "{before} {after}");
}

#[test]
fn targets_that_do_not_fit_the_reading_are_an_error() {
    #[derive(Clone)]
    struct Misread;
    impl Loss for Misread {
        type Target = Tensor<2>;
        fn combine(&self) -> bayesmesh::loss::Combine {
            bayesmesh::loss::Combine::Mean
        }

        fn summary(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
            output - target.clone()
        }
        fn reading(&self) -> bayesmesh::loss::Reading {
            bayesmesh::loss::Reading::Logits
        }
    }
    let error = trainer(3, Misread, "1x1").evaluate(&regression(20), 3).unwrap_err();
    assert!(error.to_string().contains("targets are values"), "{error}");
    let none = trainer(3, SquaredErrorOfMean, "1x1")
        .predict(&Tensor::zeros([1, 5], &Device::default()), 0);
    assert!(none.unwrap_err().to_string().contains("at least one draw"));
}

/// `ln 1/S Σ_s N(y; ŷ_s, v_s)` by hand, and that it is a density: it integrates to one.
#[test]
fn the_log_density_is_that_of_the_mixture() {
    let means = vec![0.0, 10.0, 1.5, 12.0];
    let variances = vec![1.0, 4.0, 0.25, 1.0];
    // Two draws of one row with two outputs.
    let prediction = Predictive::of_gaussians(2, 1, means.clone(), variances.clone()).unwrap();
    let truth = [0.75, 11.0];
    let density = |y: f32, output: usize| {
        let draw = |s: usize| {
            let (m, v) = (means[2 * s + output], f64::from(variances[2 * s + output]));
            normal::pdf(f64::from(y - m) / v.sqrt()) / v.sqrt()
        };
        0.5 * (draw(0) + draw(1))
    };
    let logs = prediction.log_density(&truth).unwrap();
    for (output, log) in logs.iter().enumerate() {
        assert!((log - density(truth[output], output).ln()).abs() < 1e-12);
    }
    let width = 0.01;
    let total: f64 = (-1500..2500)
        .map(|i| prediction.log_density(&[i as f32 * 0.01, 0.0]).unwrap()[0].exp() * width)
        .sum();
    assert!((total - 1.0).abs() < 1e-6, "{total}");
    let nll = prediction.score(&Truth::Values(truth.to_vec())).unwrap().score("nll").unwrap().value;
    assert!((nll + 0.5 * (logs[0] + logs[1])).abs() < 1e-12);
}

#[test]
fn what_has_no_density_says_what_to_do() {
    let values = Predictive::of_values(2, 1, vec![0.0, 1.0]).unwrap();
    let message = values.log_density(&[0.5]).unwrap_err().to_string();
    for word in ["calibrate_noise", "with_noise", "Gaussian"] {
        assert!(message.contains(word), "{message}");
    }
    assert!(values.score(&Truth::Values(vec![0.5])).unwrap().score("nll").unwrap().value.is_nan());
    assert!(values.clone().with_noise(&[0.3]).unwrap().log_density(&[0.5]).is_ok());
    assert!(values.clone().with_noise(&[0.3, 0.3]).is_err());
    assert!(values.clone().with_noise(&[-0.3]).is_err());
    assert!(values.pit(&[0.5, 0.5]).unwrap_err().to_string().contains("2 true values"));
    assert!(values.log_probability(&[0]).is_err());
    let classes = Predictive::of_probabilities(1, 2, vec![0.5, 0.5, 0.25, 0.75]).unwrap();
    assert!(classes.log_density(&[0.5; 4]).unwrap_err().to_string().contains("predicts classes"));
    let logs = classes.log_probability(&[0, 1]).unwrap();
    assert!((logs[0] - 0.5f64.ln()).abs() < 1e-7 && (logs[1] - 0.75f64.ln()).abs() < 1e-7);
    assert!(classes.log_probability(&[0, 2]).unwrap_err().to_string().contains("2 classes"));
    assert!(classes.with_noise(&[0.1, 0.1]).is_err());
    assert!(Predictive::of_values(2, 2, vec![0.0; 6]).is_err());
    let message = values.score(&Truth::Values(vec![0.5])).unwrap().score("crsp").unwrap_err();
    assert!(message.to_string().contains("crps"), "{message}");
}

/// Scores in the units of the user are those of the network, scaled.
#[test]
fn a_scaled_prediction_is_in_the_units_of_the_user() {
    let scale = Standardize::new(vec![100.0, -5.0], vec![20.0, 0.5]).unwrap();
    let (means, variances) = (vec![0.5, 1.0, -0.25, 2.0], vec![0.25, 1.0, 0.5, 1.0]);
    let prediction = Predictive::of_gaussians(2, 1, means, variances).unwrap();
    let scaled = prediction.scaled(&scale).unwrap();
    let [truth, far] = [[0.75f32, 1.25], [100.0 + 20.0 * 0.75, -5.0 + 0.5 * 1.25]];
    let (crps, far_crps) = (prediction.crps(&truth).unwrap(), scaled.crps(&far).unwrap());
    let (logs, far_logs) =
        (prediction.log_density(&truth).unwrap(), scaled.log_density(&far).unwrap());
    for (output, std) in [20.0f64, 0.5].into_iter().enumerate() {
        assert!((far_crps[output] - std * crps[output]).abs() < 1e-5 * std);
        assert!((far_logs[output] - (logs[output] - std.ln())).abs() < 1e-5);
        let ratio = f64::from(scaled.noise_std()[output] / prediction.noise_std()[output]);
        assert!((ratio - std).abs() < 1e-5 * std);
    }
    assert!(prediction.scaled(&Standardize::new(vec![0.0; 3], vec![1.0; 3]).unwrap()).is_err());
}

/// Noise of one output only, and of one draw only: the rest are steps.
#[test]
fn quantiles_of_steps_among_gaussians() {
    let prediction = Predictive::of_values(3, 1, vec![0.0, 0.0, 1.0, 1.0, 4.0, 4.0]).unwrap();
    let noisy = prediction.clone().with_noise(&[0.0, 0.5]).unwrap();
    let [plain, mixed] = [prediction, noisy].map(|p| p.quantiles(&[0.3, 0.5]).unwrap());
    for (plain, mixed) in plain.iter().zip(&mixed) {
        assert_eq!(plain[0], mixed[0]);
        assert!(mixed[1].is_finite() && plain[1] != mixed[1]);
    }
    let steps = Predictive::of_gaussians(2, 1, vec![0.0, 10.0], vec![0.0, 1.0]).unwrap();
    let [low, high] = [0.25, 0.75].map(|level| steps.quantiles(&[level]).unwrap()[0][0]);
    assert!(low.abs() < 1e-6 && (high - 10.0).abs() < 1e-5, "{low} {high}");
}

/// A known noise reaches predictions and scores.
#[test]
fn a_fixed_noise_is_that_of_the_prediction() {
    let loss = Expected(Gaussian::fixed(0.25).unwrap());
    let prediction = trainer(3, loss, "2x1").predict(&numbers(5, [2, 5]), 6).unwrap();
    assert_eq!(prediction.noise_std(), [0.25; 6]);
    let plain = trainer(3, SquaredErrorOfMean, "1x1").predict(&numbers(5, [2, 5]), 6).unwrap();
    assert_eq!(prediction.values(), plain.values());
    assert_eq!(prediction, plain.with_noise(&[0.25; 3]).unwrap());
    let evaluation = trainer(3, loss, "1x2").evaluate(&regression(43), 4).unwrap();
    assert!(evaluation.regression().unwrap().nll.value.is_finite());
    let mixture = Mixture::new(Gaussian::fixed(0.25).unwrap());
    let evaluation = trainer(3, mixture, "1x1").evaluate(&regression(43), 4).unwrap();
    assert!(evaluation.score("nll").unwrap().value.is_finite());
}

/// A network that is right but for the noise of the data: its size is found, for each output.
#[test]
fn calibrated_noise_is_that_of_the_data() {
    let data = regression(4000);
    let settings = Settings {
        samples: 2,
        batch: 100,
        schedule: bayesmesh::trainer::Schedule::Constant { rate: 3e-3 },
        ..Settings::default()
    };
    let posterior = Point::new(Mlp::new(5, 64, 3, 0.0)).initialised(1);
    let mut trained = Trainer::new(posterior, ExpectedSquaredError, settings);
    trained.fit(&data, None, Length::Epochs(25)).unwrap();
    let noise = trained.predictor().estimate_noise(&data, 3).unwrap();
    let evaluation = trained.evaluate(&data, 3).unwrap();
    let rows = &evaluation.regression().unwrap().by_output;
    assert_eq!(noise.len(), 3);
    for (noise, row) in noise.iter().zip(rows) {
        // Without dropout the draws agree, and the noise is the whole error.
        assert!((noise / row.rmse - 1.0).abs() < 1e-6, "{noise} {row:?}");
        assert!((0.09..0.3).contains(noise), "{noise}");
    }
    let scoring = Scoring { noise, ..Scoring::new(3) };
    let with = trained.predictor().evaluate_as(&data, &scoring).unwrap();
    let coverage = with.score("coverage_90").unwrap();
    assert!((coverage.value - 0.9).abs() < 0.04, "{coverage:?}");
    assert!(with.score("nll").unwrap().value < 0.5);
    assert!(with.score("crps").unwrap().value < evaluation.score("crps").unwrap().value);
    let labels =
        trainer(3, Expected(Categorical), "1x1").predictor().estimate_noise(&classification(9), 2);
    assert!(labels.unwrap_err().to_string().contains("predicts classes"));
    let own = trainer(3, Expected(Gaussian), "1x1").predictor().estimate_noise(&data, 2);
    assert!(own.unwrap_err().to_string().contains("noise of its own"));
}

/// Noise is likelier than any other, wherever draws and rows are, and is not added to itself.
#[test]
fn estimated_noise_is_the_likeliest_on_every_mesh() {
    let data = regression(70);
    let with = |mesh: &str| {
        let mut trainer = trainer(3, ExpectedSquaredError, mesh);
        let first = trainer.calibrate_noise(&data, DRAWS).unwrap();
        assert_eq!(trainer.calibrate_noise(&data, DRAWS).unwrap(), first);
        first
    };
    let serial = with("1x1");
    for mesh in ["2x1", "1x2", "3x2"] {
        for (parallel, serial) in with(mesh).iter().zip(&serial) {
            assert!((parallel / serial - 1.0).abs() < 1e-9, "{mesh}: {parallel} and {serial}");
        }
    }
    let predictor = trainer(3, ExpectedSquaredError, "1x1").predictor();
    let nll = |factor: f64| {
        let noise = serial.iter().map(|std| factor * std).collect();
        let scoring = Scoring { noise, ..Scoring::new(DRAWS) };
        predictor.evaluate_as(&data, &scoring).unwrap().score("nll").unwrap().value
    };
    for factor in [0.2, 0.5, 0.8, 1.25, 2.0, 5.0] {
        assert!(nll(1.0) < nll(factor), "{factor}: {} and {}", nll(1.0), nll(factor));
    }
}

/// Metrics of one's own, and numbers of each example, on any mesh.
#[test]
fn predictions_can_be_scored_and_tabulated_by_hand() {
    let data = regression(43);
    let with = |mesh: &str| {
        let trainer = trainer(6, Expected(Gaussian), mesh);
        let set = RegressionScores::new(3, DRAWS);
        let add = |set: &mut RegressionScores, prediction: &Predictive, truth: &Truth| {
            let Truth::Values(truth) = truth else { panic!("values") };
            Ok(set.add(&prediction.mixtures(truth)?)?)
        };
        let set = trainer.predictor().score_with(&data, DRAWS, set, add).unwrap();
        let row = |p: &Predictive| Ok(p.mean().iter().map(|&m| f64::from(m)).collect());
        (set.scores(), trainer.predictor().tabulate(&data, DRAWS, 3, row).unwrap())
    };
    let (scores, table) = with("1x1");
    let serial = trainer(6, Expected(Gaussian), "1x1");
    let evaluation = serial.evaluate(&data, DRAWS).unwrap();
    for (own, score) in scores.iter().zip(&evaluation) {
        assert_eq!(own.name, score.name);
        assert!(own.value == score.value || own.value.is_nan() && score.value.is_nan());
    }
    let rows: Vec<usize> = (0..43).collect();
    let (input, target) = data.batch(&rows, &Device::default()).unwrap();
    let whole = serial.predict(&input, DRAWS).unwrap();
    assert_eq!(table.len(), 43 * 3);
    for (a, b) in table.iter().zip(whole.mean()) {
        assert!((a - f64::from(b)).abs() < 1e-6);
    }
    // The scores of the whole are those of its parts.
    let at_once = whole.score(&target.truth()).unwrap();
    for (a, b) in at_once.iter().zip(&evaluation) {
        let close = (a.value - b.value).abs() <= 1e-5 * b.value.abs().max(1.0);
        assert!(close || a.value.is_nan() && b.value.is_nan(), "{a:?} {b:?}");
    }
    for mesh in ["2x1", "3x2", "1x5", "16x1"] {
        let (other, other_table) = with(mesh);
        let floats = |table: &[f64]| table.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        assert!(distance(&floats(&table), &floats(&other_table)) < 1e-6);
        for (a, b) in scores.iter().zip(other) {
            let close = (a.value - b.value).abs() <= 1e-9 * b.value.abs().max(1.0);
            assert!(close || a.value.is_nan() && b.value.is_nan(), "{mesh} {a:?} {b:?}");
        }
    }
    let wrong = serial.predictor().tabulate(&data, 2, 2, |p| Ok(vec![0.0; p.rows()]));
    assert!(wrong.unwrap_err().to_string().contains("a row of the table has 2"));
}

/// Whoever passes a file with such numbers on predicts nonsense with them.
#[test]
fn numbers_that_are_not_finite_become_no_network() {
    let scratch = Scratch::new();
    let path = scratch.path().join("run.safetensors");
    let mut trained = trainer(3, SquaredErrorOfMean, "1x1");
    trained.fit(&regression(40), None, Length::Steps(2)).unwrap();
    trained.save(&path).unwrap();
    let sound = Checkpoint::load(&path).unwrap();
    Predictor::load(&path, Mlp::new(5, 8, 3, 0.2)).unwrap();

    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut spoilt = sound.clone();
        spoilt.parameters[1].values[3] = wrong;
        spoilt.save(&path).unwrap();
        let name = &spoilt.parameters[1].name;
        let expected = format!("run.safetensors: parameters: '{name}' is not finite");
        let load = Predictor::load(&path, Mlp::new(5, 8, 3, 0.2)).err().unwrap().to_string();
        let restore = trained.restore(&spoilt, &path).unwrap_err().to_string();
        for message in [load, restore] {
            assert!(message.contains(&expected), "{message}");
            assert!(message.contains("earlier checkpoint"), "{message}");
        }
        let mut spoilt = sound.clone();
        spoilt.optimizer[0].values[0] = wrong;
        let message = trained.restore(&spoilt, &path).unwrap_err().to_string();
        assert!(message.contains("optimizer: '"), "{message}");
    }
    trained.restore(&sound, &path).unwrap();
}

/// Draws beyond the last address would repeat earlier ones; and a number that only sounds possible
/// must not be looked for in memory.
#[test]
fn more_draws_than_can_be_told_apart_are_refused() {
    let trainer = trainer(3, SquaredErrorOfMean, "2x1");
    for draws in [1 << 32, usize::MAX] {
        let message = trainer.predict(&numbers(5, [2, 5]), draws).unwrap_err().to_string();
        assert!(message.contains("predict with fewer"), "{message}");
    }
}

/// A field of three cells, scored on meshes that divide draws and rows.
#[test]
fn scores_of_fields_do_not_depend_on_the_mesh() {
    let data = regression(43);
    let with = |mesh: &str| {
        let layout = FieldLayout::new(1, &[1.0, 2.0, 0.5]).unwrap();
        let set = FieldScores::new(layout, DRAWS).unwrap();
        let add = |set: &mut FieldScores, prediction: &Predictive, truth: &Truth| {
            let Truth::Values(truth) = truth else { panic!("values") };
            set.add(prediction, truth)
        };
        let predictor = trainer(3, EnsembleCrps::fair(), mesh).predictor();
        predictor.score_with(&data, DRAWS, set, add).unwrap()
    };
    let serial = with("1x1");
    assert_eq!(serial.examples(), 43);
    for mesh in ["2x1", "3x2", "1x5", "16x1"] {
        let other = with(mesh);
        assert_eq!(other.examples(), 43, "{mesh}");
        for (a, b) in serial.statistics().iter().zip(other.statistics()) {
            assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{mesh}: {a} {b}");
        }
    }
}
