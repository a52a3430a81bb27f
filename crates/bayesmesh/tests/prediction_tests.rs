//! Predictions average all draws, wherever they were evaluated, before they are scored.

mod common;

use bayesmesh::loss::{Categorical, Expected, Gaussian, SquaredErrorOfMean};
use bayesmesh::metrics::{Score, normal};
use bayesmesh::posterior::InitialStd;
use bayesmesh::trainer::Length;
use bayesmesh::{Dataset, Loss, McDropout, MeanField, Posterior, Prior, Settings, Trainer};
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

fn trainer<L: Loss>(outputs: usize, loss: L, mesh: &str) -> Trainer<MeanField<Mlp>, L> {
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
    L: Loss,
    D: Dataset<Input = Tensor<2>, Target = L::Target>,
{
    let scores = |mesh: &str| trainer(outputs, loss.clone(), mesh).evaluate(data, DRAWS).unwrap();
    let serial = scores("1x1");
    for name in expected {
        assert!(serial.iter().any(|score| score.name == *name), "{name} in {serial:?}");
    }
    // More data ranks than chunks, and draws that do not divide evenly.
    for mesh in ["2x1", "1x2", "3x2", "1x5"] {
        for (Score { name, value }, other) in serial.iter().zip(scores(mesh)) {
            assert_eq!(*name, other.name);
            let same = (value - other.value).abs() <= 1e-9 * value.abs().max(1.0);
            assert!(
                same || value.is_nan() && other.value.is_nan(),
                "{mesh} {name}: {value} {other:?}"
            );
        }
    }
}

#[test]
fn scores_do_not_depend_on_the_mesh() {
    let names = ["accuracy", "nll", "brier", "ece", "unweighted_calibration_error"];
    assert_scores_equal(3, Expected(Categorical), &classification(43), &names);
    let names = ["rmse", "mae", "coverage_90", "crps_ensemble", "crps_gaussian", "mace"];
    assert_scores_equal(3, SquaredErrorOfMean, &regression(43), &names);
    assert_scores_equal(6, Expected(Gaussian), &regression(43), &["gaussian_nll", "pit_deviation"]);
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
    let added = added.with_noise(&[0.1, 0.2, 0.3]);
    let total = added.std();
    for (cell, (total, plain)) in total.iter().zip(plain_std).enumerate() {
        let noise = [0.1f32, 0.2, 0.3][cell % 3];
        assert!((total.powi(2) - plain.powi(2) - noise.powi(2)).abs() < 1e-5);
    }
    for prediction in [learned, added] {
        for (level, quantile) in
            [0.05, 0.3, 0.9].iter().zip(prediction.quantiles(&[0.05, 0.3, 0.9]).unwrap())
        {
            for pit in prediction.pit(&quantile) {
                assert!((pit - level).abs() < 1e-5, "{pit} {level}");
            }
        }
    }
    let draws = trainer(3, SquaredErrorOfMean, "1x1").predict(&input, 5).unwrap();
    let shares = draws.pit(&draws.values()[..12]);
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
    let rmse = |trainer: &Trainer<_, _>| {
        let scores = trainer.evaluate(&data, 16).unwrap();
        scores.iter().find(|score| score.name == "rmse").unwrap().value
    };
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
