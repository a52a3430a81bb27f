//! Counts and quantiles end to end: a network learns them, and its predictions are those of the
//! distribution it has learned.

mod common;

use bayesmesh::data::Truth;
use bayesmesh::loss::{Expected, Loss, Mixture, NegativeBinomial, Poisson, Quantiles};
use bayesmesh::trainer::Length;
use bayesmesh::{
    CalibrateConfig, Calibration, Ensemble, Point, Posterior, Predictive, Predictor, Purpose,
    Settings, Stream, TensorDataset, Trainer,
};
use bayesmesh_files::testing::Scratch;
use burn::tensor::{Device, Tensor, TensorData};
use common::Mlp;

type Data = TensorDataset<Tensor<2>, Tensor<2>>;

fn uniform(number: u32, count: usize) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Stream::new(3, Purpose::Synthesis).at_tensor(number).fill_uniform(0, &mut values);
    values
}

/// A count with these means and variances, by inverting their distribution function.
fn sample(mean: f64, variance: f64, u: f32) -> f32 {
    let prediction = Predictive::of_counts(1, 1, vec![mean as f32], vec![variance as f32]).unwrap();
    let level = f64::from(u).clamp(1e-6, 1.0 - 1e-6);
    prediction.quantiles(&[level]).unwrap()[0][0]
}

fn table(rows: usize, number: u32, y: impl Fn(f32, f32) -> f32) -> Data {
    let x: Vec<f32> = uniform(number, rows).iter().map(|u| 2.0 * u - 1.0).collect();
    let y: Vec<f32> = x.iter().zip(uniform(number + 1, rows)).map(|(x, u)| y(*x, u)).collect();
    let inputs = Tensor::from_data(TensorData::new(x, [rows, 1]), &Device::default());
    let targets = Tensor::from_data(TensorData::new(y, [rows, 1]), &Device::default());
    TensorDataset::new(inputs, targets).unwrap()
}

fn fit<L: Loss<Target = Tensor<2>>>(
    loss: L,
    outputs: usize,
    data: &Data,
    samples: usize,
) -> Trainer<Ensemble<Mlp>, L> {
    let settings =
        Settings { samples, batch: 64, seed: 2, schedule: 0.01.into(), ..Settings::default() };
    let mut trainer = Trainer::new(Ensemble::new(Mlp::new(1, 16, outputs, 0.0)), loss, settings);
    trainer.fit(data, None, Length::Epochs(60)).unwrap();
    trainer
}

/// Counts whose rate is e^(1 + x): the network finds the rate, its intervals hold what they
/// promise, and its likelihood is that of the truth.
#[test]
fn a_network_learns_rates() {
    let draw = |x: f32, u: f32| sample(f64::from(1.0 + x).exp(), f64::from(1.0 + x).exp(), u);
    let (train, test) = (table(2000, 0, draw), table(1000, 10, draw));
    for trainer in [fit(Expected(Poisson), 1, &train, 2)] {
        let x = Tensor::<2>::from_floats([[-0.8], [0.0], [0.8]], &Device::default());
        let prediction = trainer.predict(&x, 2).unwrap();
        assert!(prediction.predicts_counts() && prediction.has_noise());
        for (mean, x) in prediction.mean().iter().zip([-0.8f32, 0.0, 0.8]) {
            let rate = (1.0 + x).exp();
            assert!((mean / rate - 1.0).abs() < 0.12, "{mean} {rate}");
        }
        // Whole numbers.
        let ends = prediction.quantiles(&[0.05, 0.95]).unwrap();
        assert!(ends.iter().flatten().all(|end| end.fract() == 0.0 && *end >= 0.0), "{ends:?}");
        let scores = trainer.evaluate(&test, 2).unwrap();
        let score = |name: &str| scores.score(name).unwrap().value;
        // The entropy of the truth, by the same distribution with the true rates.
        let truth = entropy(&test);
        assert!((score("nll") - truth).abs() < 0.03, "{} {truth}", score("nll"));
        assert!((0.88..=0.99).contains(&score("coverage_90")), "{}", score("coverage_90"));
        assert!(score("crps") > 0.0 && score("crps") < 1.2 * score("mae"), "{}", score("crps"));
    }
}

/// The mean negative log-probability of the counts of a table under their true rates.
fn entropy(data: &Data) -> f64 {
    use bayesmesh::Dataset as _;
    let rows: Vec<usize> = (0..data.len()).collect();
    let (x, y) = data.batch(&rows, &Device::default()).unwrap();
    let rates: Vec<f32> =
        x.try_into_vec_as::<f32>().unwrap().iter().map(|x| (1.0 + x).exp()).collect();
    let y = y.try_into_vec_as::<f32>().unwrap();
    let truth = Predictive::of_counts(1, rows.len(), rates.clone(), rates).unwrap();
    -truth.log_density(&y).unwrap().iter().sum::<f64>() / rows.len() as f64
}

/// Counts that vary more than a Poisson: α = 0.5 is found, the likelihood is better than that of a
/// Poisson, and jointly trained members do as well.
#[test]
fn a_network_learns_dispersion() {
    let draw = |x: f32, u: f32| {
        let mean = f64::from(2.0 + 0.5 * x).exp();
        sample(mean, mean + 0.5 * mean * mean, u)
    };
    let (train, test) = (table(2000, 20, draw), table(1000, 30, draw));
    let x = Tensor::<2>::from_floats([[0.0]], &Device::default());
    let trainer = fit(Expected(NegativeBinomial), 2, &train, 2);
    let prediction = trainer.predict(&x, 2).unwrap();
    let (mean, variance) = (prediction.values()[0], prediction.noise_variances()[0]);
    let alpha = (variance - mean) / (mean * mean);
    assert!((alpha - 0.5).abs() < 0.15, "{alpha}");
    let nll = |evaluation: bayesmesh::Result<bayesmesh::metrics::Evaluation>| {
        evaluation.unwrap().score("nll").unwrap().value
    };
    let own = nll(trainer.evaluate(&test, 2));
    let poisson = nll(fit(Expected(Poisson), 1, &train, 2).evaluate(&test, 2));
    let joint = Mixture::new(NegativeBinomial).by_output();
    let joint = nll(fit(joint, 2, &train, 2).evaluate(&test, 2));
    assert!(own < poisson - 0.3, "{own} {poisson}");
    assert!((joint - own).abs() < 0.05, "{joint} {own}");

    // Saved and read elsewhere.
    let scratch = Scratch::new();
    let path = scratch.path().join("counts.safetensors");
    trainer.save(&path).unwrap();
    let loaded = Predictor::load(&path, Mlp::new(1, 16, 2, 0.0)).unwrap();
    assert_eq!(loaded.predict(&x, 2).unwrap(), prediction);
}

/// Counts that are four times as dispersed as predicted are calibrated by levels: intervals hold
/// as often as they say, probabilities sum to one and paths are counts.
#[test]
fn counts_are_calibrated() {
    let rows = 600;
    let narrow = |rows| Predictive::of_counts(1, rows, vec![20.0; rows], vec![20.0; rows]).unwrap();
    let truth = |number: u32| -> Vec<f32> {
        uniform(number, rows).iter().map(|u| sample(20.0, 80.0, *u)).collect()
    };
    let (valid, test) = (truth(40), truth(41));
    let conformal = CalibrateConfig::Conformal;
    let calibration =
        Calibration::learn(&narrow(rows), &Truth::Values(valid), conformal).unwrap().unwrap();
    let coverage = |prediction: &Predictive| {
        let scores = prediction.score(&Truth::Values(test.clone())).unwrap();
        (scores.score("coverage_90").unwrap().value, scores.score("nll").unwrap().value)
    };
    let calibrated = calibration.apply(narrow(rows)).unwrap();
    let (before, after) = (coverage(&narrow(rows)), coverage(&calibrated));
    assert!(before.0 < 0.75, "{before:?}");
    assert!((0.87..0.96).contains(&after.0), "{after:?}");
    assert!(after.1 < before.1 - 0.3, "{before:?} {after:?}");
    // What is said of intervals is true of them.
    let ends = calibrated.quantiles(&[0.05, 0.95]).unwrap();
    let inside = test.iter().enumerate().filter(|(i, y)| ends[0][*i] <= **y && **y <= ends[1][*i]);
    let inside = inside.count() as f64 / rows as f64;
    assert!((inside - after.0).abs() < 0.03, "{inside} {}", after.0);
    let all: Vec<f32> = (0..200).map(|k| k as f32).collect();
    let one = calibration.apply(narrow(200)).unwrap();
    let sum: f64 = one.log_density(&all).unwrap().iter().map(|ln| ln.exp()).sum();
    assert!((sum - 1.0).abs() < 0.02, "{sum}");
    let paths = calibrated.paths(4, 1, 0).unwrap();
    assert!(paths.iter().all(|value| value.fract() == 0.0 && *value >= 0.0));

    let message =
        Calibration::learn(&narrow(rows), &Truth::Values(test.clone()), CalibrateConfig::Variance);
    assert!(message.unwrap_err().to_string().contains("conformal"));
    assert!(narrow(1).with_noise(&[1.0]).is_err());
    assert!(Predictive::of_counts(1, 1, vec![2.0], vec![1.0]).is_err());
}

/// A right prediction of small counts, of which the 90 % interval holds more than that because
/// there is no shorter one, is left as it is.
#[test]
fn right_counts_stay_as_they_are() {
    let rows = 2000;
    let right = Predictive::of_counts(1, rows, vec![1.5; rows], vec![2.5; rows]).unwrap();
    let truth = |number: u32| -> Truth {
        let uniform = uniform(number, rows);
        Truth::Values(uniform.iter().map(|u| sample(1.5, 2.5, *u)).collect())
    };
    let learned = Calibration::learn(&right, &truth(42), CalibrateConfig::Conformal);
    let calibrated = learned.unwrap().unwrap().apply(right.clone()).unwrap();
    let score = |prediction: &Predictive, name: &str| {
        prediction.score(&truth(43)).unwrap().score(name).unwrap().value
    };
    for name in ["nll", "crps"] {
        let (before, after) = (score(&right, name), score(&calibrated, name));
        assert!((after / before - 1.0).abs() < 0.02, "{name}: {before} {after}");
    }
    assert!(score(&calibrated, "coverage_90") > 0.9);
}

/// A skewed target, `y = −ln u`, whose quantiles are known.
#[test]
fn a_network_learns_quantiles() {
    let draw = |_: f32, u: f32| -u.max(1e-6).ln();
    let (train, test) = (table(3000, 50, draw), table(1000, 60, draw));
    // So many that an interval between them is of its level: of 20 values, four fifths are 16 gaps
    // and the halves beside them, 85 %.
    let loss = Quantiles::new(100).unwrap();
    let trainer = fit(loss, 100, &train, 1);
    let x = Tensor::<2>::from_floats([[0.1]], &Device::default());
    let prediction = trainer.predict(&x, 1).unwrap();
    let found = prediction.quantiles(&[0.1, 0.5, 0.9]).unwrap();
    for (found, level) in found.iter().zip([0.1f64, 0.5, 0.9]) {
        let exact = -(1.0 - level).ln();
        assert!((f64::from(found[0]) - exact).abs() < 0.2 * exact + 0.03, "{} {exact}", found[0]);
    }
    let scores = trainer.evaluate(&test, 1).unwrap();
    let score = |name: &str| scores.score(name).unwrap().value;
    assert!((score("coverage_80") - 0.8).abs() < 0.06, "{}", score("coverage_80"));
    // Of an exponential distribution the CRPS is ½ on average.
    assert!((score("crps") - 0.5).abs() < 0.05, "{}", score("crps"));
    // There is no density before calibration makes one.
    assert!(prediction.log_density(&[1.0]).is_err());
    let point = Point::new(Mlp::new(1, 16, 100, 0.0)).initialised(1);
    let settings = Settings { batch: 64, ..Settings::default() };
    let mut trainer = Trainer::new(point, loss, settings);
    trainer.fit(&train, None, Length::Epochs(2)).unwrap();
    trainer.calibrate(&test, CalibrateConfig::Auto, 1).unwrap();
    assert!(trainer.predict(&x, 1).unwrap().log_density(&[1.0]).unwrap()[0].is_finite());
}
