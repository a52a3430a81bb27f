//! A common noise is learned with the network, and the same on any mesh.

mod common;

use bayesmesh::loss::{Expected, Gaussian, Loss, Mixture};

use bayesmesh::trainer::{Length, OptimizerConfig, Schedule};
use bayesmesh::{
    Draw, LearnedNoise, McDropout, MeanField, Network, Point, Posterior, Prior, Reduce, Settings,
    TensorDataset, Trainer,
};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use common::{Mlp, distance, numbers, regression};

/// A linear regression.
#[derive(Module, Debug)]
struct Lines {
    linear: Linear,
}

impl Network for Lines {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
        self.linear.forward(input)
    }
}

fn lines() -> LearnedNoise<Lines> {
    LearnedNoise::new(Lines { linear: LinearConfig::new(5, 3).init(&Device::default()) }, 3)
}

const STDS: [f32; 3] = [0.1, 0.5, 2.0];
const ROWS: usize = 600;

/// Lines with noise of these standard deviations.
fn noisy() -> (Tensor<2>, Tensor<2>) {
    let x = numbers(0, [ROWS, 5]);
    let stds = Tensor::<1>::from_floats(STDS, &Device::default()).unsqueeze_dim::<2>(0);
    (x.clone(), x.matmul(numbers(1, [5, 3])) + numbers(2, [ROWS, 3]) * stds)
}

fn vector(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// The trained log-variances, which come last.
fn log_variances<P: Posterior + Clone>(posterior: &P) -> Vec<f32> {
    let slot = posterior.parameters().slots().last().unwrap();
    assert_eq!(slot.name, "log_variance");
    posterior.parameters().values()[slot.range.clone()].to_vec()
}

/// The mean square of the residuals of each output.
fn mean_squares(x: &Tensor<2>, y: &Tensor<2>, network: &LearnedNoise<Lines>) -> Vec<f64> {
    let residuals = y.clone() - network.network().forward(x.clone(), &Draw::new(0, 0, 0));
    let residuals = vector(residuals);
    let square =
        |k: usize| residuals.iter().skip(k).step_by(3).map(|r| f64::from(*r).powi(2)).sum();
    (0..3)
        .map(|k| {
            let sum: f64 = square(k);
            sum / ROWS as f64
        })
        .collect()
}

#[test]
fn the_noise_of_the_data_is_learned() {
    let (x, y) = noisy();
    let data = TensorDataset::new(x.clone(), y.clone()).unwrap();
    let steps = 2000;
    let settings = Settings {
        batch: ROWS,
        schedule: Schedule::Cosine { rate: 0.05, warmup: 0, total: steps, floor: 0.0 },
        ..Settings::default()
    };
    let mut trainer =
        Trainer::new(Point::new(lines()).initialised(1), Expected(Gaussian), settings);
    trainer.fit(&data, None, Length::Steps(steps)).unwrap();
    let learned = log_variances(trainer.posterior());

    let draw = Draw::for_prediction(0, 0);
    let snapshot = trainer.posterior().parameters().snapshot();
    let network = snapshot.draw(&draw, bayesmesh::posterior::Tape::Off).network;
    let squares = mean_squares(&x, &y, &network);
    for (k, &log_variance) in learned.iter().enumerate() {
        // The maximum of the likelihood is at the mean square of the residuals.
        let optimum = squares[k].ln();
        assert!((f64::from(log_variance) - optimum).abs() < 1e-3, "{log_variance} {optimum}");
        // Three standard errors of a log-variance, and what five slopes and a constant take away.
        let error = f64::from(log_variance) - f64::from(STDS[k]).powi(2).ln();
        let allowed = 3.0 * (2.0 / ROWS as f64).sqrt() + 6.0 / ROWS as f64;
        assert!(error.abs() < allowed, "{error} {allowed}");
        assert_eq!(network.std()[k], (log_variance * 0.5).exp());
    }
}

#[test]
fn the_gradient_of_the_log_variance_is_the_analytic_one() {
    fn check<L: Loss<Target = Tensor<2>> + Clone>(loss: L) {
        let (x, y) = noisy();
        let data = TensorDataset::new(x.clone(), y.clone()).unwrap();
        let network = lines().with_initial_std(0.7).unwrap();
        let squares = mean_squares(&x, &y, &network);
        let optimizer = OptimizerConfig::sgd();
        let settings =
            Settings { batch: ROWS, schedule: 1.0.into(), optimizer, ..Settings::default() };
        let mut trainer = Trainer::new(Point::new(network), loss, settings);
        let before = log_variances(trainer.posterior());
        assert!(before.iter().all(|v| (v - 2.0 * 0.7f32.ln()).abs() < 1e-6));
        trainer.fit(&data, None, Length::Steps(1)).unwrap();
        let after = log_variances(trainer.posterior());
        for k in 0..3 {
            // ∂L/∂v = ½ (1 − mean of r² · e^(−v)).
            let exact = 0.5 * (1.0 - squares[k] * f64::from(-before[k]).exp());
            let gradient = f64::from(before[k] - after[k]);
            assert!((gradient - exact).abs() < 1e-5 * exact.abs().max(1.0), "{gradient} {exact}");
        }
    }
    check(Expected(Gaussian));
    check(Mixture::new(Gaussian));
}

fn settings(mesh: &str, reduce: Reduce) -> Settings {
    Settings {
        samples: 4,
        batch: 8,
        mesh: mesh.parse().unwrap(),
        reduce,
        schedule: 0.01.into(),
        ..Settings::default()
    }
}

fn trained<P, L>(posterior: &P, loss: L, mesh: &str, reduce: Reduce) -> Vec<f32>
where
    P: Posterior<Network: Network<Input = Tensor<2>>> + Clone,
    L: Loss<Target = Tensor<2>> + Clone,
{
    let mut trainer = Trainer::new(posterior.clone(), loss, settings(mesh, reduce));
    trainer.fit(&regression(24), None, Length::Steps(9)).unwrap();
    trainer.posterior().parameters().values().to_vec()
}

#[test]
fn it_is_the_same_on_any_mesh() {
    let network = || LearnedNoise::new(Mlp::new(5, 8, 3, 0.3), 3);
    let mean_field = MeanField::new(network(), Prior::normal(0.0, 1.0)).unwrap().initialised(1);
    let serial = trained(&mean_field, Mixture::new(Gaussian), "1x1", Reduce::Reproducible);
    let start = mean_field.parameters().values();
    let noise = start.len() - 3..;
    assert!(start[noise.clone()].iter().zip(&serial[noise]).all(|(a, b)| a != b), "it is trained");
    let other = |mesh| trained(&mean_field, Mixture::new(Gaussian), mesh, Reduce::Reproducible);
    assert_eq!(serial, other("2x1"));
    assert!(distance(&serial, &other("1x2")) < 1e-5);

    // With fast sums the draws of dropout go through the network together, otherwise one by one.
    let dropout = McDropout::new(network()).initialised(1);
    let apart = trained(&dropout, Expected(Gaussian), "1x1", Reduce::Reproducible);
    for mesh in ["1x1", "2x1"] {
        let together = trained(&dropout, Expected(Gaussian), mesh, Reduce::Fast);
        assert!(distance(&apart, &together) < 1e-5, "{mesh}");
    }
}

#[test]
fn under_a_mean_field_the_noise_is_a_point_and_keeps_its_start() {
    let network = lines().with_initial_std(0.5).unwrap();
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap().initialised(3);
    let families: Vec<_> = posterior
        .parameters()
        .slots()
        .iter()
        .map(|slot| (slot.name.as_str(), slot.family.is_certain()))
        .collect();
    let expected =
        [("network.linear.weight", false), ("network.linear.bias", false), ("log_variance", true)];
    assert_eq!(families, expected);
    assert_eq!(log_variances(&posterior), [2.0 * 0.5f32.ln(); 3]);
    let all = posterior.with_selection(|_| true);
    assert!(all.parameters().slots().iter().all(|slot| !slot.family.is_certain()));
}

#[test]
fn impossible_noise_and_another_number_of_outputs_are_refused() {
    for std in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let error = lines().with_initial_std(std).unwrap_err().to_string();
        assert!(error.contains("positive standard deviation"), "{error}");
    }
    let network = LearnedNoise::new(Mlp::new(5, 8, 2, 0.3), 3);
    let mut trainer =
        Trainer::new(McDropout::new(network), Expected(Gaussian), settings("1x1", Reduce::Fast));
    let error = trainer.fit(&regression(24), None, Length::Steps(1)).unwrap_err().to_string();
    assert!(error.contains("2 outputs for an example"), "{error}");
    assert!(error.contains("made for 3"), "{error}");
}
