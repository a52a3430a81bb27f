//! What calibration promises, held against data that are made for it.

use bayesmesh::calibrate::{Adaptive, Method};
use bayesmesh::data::{Moment, Truth};
use bayesmesh::loss::{Categorical, Expected, FixedGaussian, Gaussian, SquaredErrorOfMean};
use bayesmesh::metrics::{JointScores, Metric as _, normal, shuffled};
use bayesmesh::{
    CalibrateConfig, Calibration, Dataset, Draw, Length, McDropout, MeanField, Mesh, Network,
    Predictive, Predictor, Prior, Purpose, Result, Settings, Stream, Trainer,
};
use bayesmesh_files::testing::Scratch;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Standard normal numbers.
fn normals(seed: u64, count: usize) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Stream::new(seed, Purpose::Synthesis).fill_normal(0, &mut values);
    values
}

/// A prediction that is wrong about its spread and its shape, differently for every example: two
/// draws apart, too narrow.
fn wrong(means: &[f32]) -> Predictive {
    let shifted = |shift: f32| means.iter().map(move |mean| mean + shift);
    let draws = shifted(-0.2).chain(shifted(0.2)).collect();
    let variances = means.iter().map(|mean| 0.05 + 0.1 * mean * mean);
    let variances: Vec<f32> = variances.collect();
    Predictive::of_gaussians(2, means.len(), draws, variances.repeat(2)).unwrap()
}

/// Exchangeable data, a thousand repetitions: an interval of level L that was learned from n
/// examples holds the truth with a probability of at least L and below L + 1/(n + 1), however wrong
/// the network is.
#[test]
fn intervals_keep_their_promise_for_any_number_of_examples() {
    const REPETITIONS: usize = 1000;
    for n in [20, 100, 1000] {
        let mut inside = [0usize; 4];
        let levels = [0.5, 0.8, 0.9, 0.95];
        for repetition in 0..REPETITIONS {
            let seed = (n * REPETITIONS + repetition) as u64;
            let numbers = normals(seed, 2 * (n + 1));
            let (means, noise) = numbers.split_at(n + 1);
            // Noise with heavy tails, and a bias.
            let truth = means.iter().zip(noise).map(|(m, e)| m + 0.3 + 0.7 * e * e.abs());
            let truth: Vec<f32> = truth.collect();
            let valid = Truth::Values(truth[..n].to_vec());
            let config = CalibrateConfig::Conformal;
            let learned = Calibration::learn(&wrong(&means[..n]), &valid, config).unwrap().unwrap();
            let new = learned.apply(wrong(&means[n..])).unwrap();
            let pit = new.pit(&truth[n..]).unwrap()[0];
            for (count, level) in inside.iter_mut().zip(levels) {
                *count += usize::from(2.0 * (pit - 0.5).abs() <= level + 1e-9);
            }
        }
        for (count, level) in inside.into_iter().zip(levels) {
            let share = count as f64 / REPETITIONS as f64;
            let error = 3.0 * (level * (1.0 - level) / REPETITIONS as f64).sqrt();
            let most = level + 1.0 / (n as f64 + 1.0) + error;
            assert!((level - error..most).contains(&share), "n {n}, {level}: {share}");
        }
    }
}

/// As they are, the same predictions are far from it: the test above can fail.
#[test]
fn without_calibration_the_same_intervals_are_wrong() {
    let numbers = normals(5, 20_000);
    let (means, noise) = numbers.split_at(10_000);
    let truth: Vec<f32> =
        means.iter().zip(noise).map(|(m, e)| m + 0.3 + 0.7 * e * e.abs()).collect();
    let evaluation = wrong(means).score(&Truth::Values(truth)).unwrap();
    assert!(evaluation.score("coverage_90").unwrap().value < 0.8);
}

/// Quantiles, coverage, density and CRPS are those of one distribution.
#[test]
fn a_calibrated_prediction_is_one_distribution() {
    let numbers = normals(11, 8000);
    let (means, noise) = numbers.split_at(4000);
    let truth: Vec<f32> = means.iter().zip(noise).map(|(m, e)| m + 0.8 * e).collect();
    let values = Truth::Values(truth.clone());
    for config in [CalibrateConfig::Conformal, CalibrateConfig::Variance] {
        let learned = Calibration::learn(&wrong(means), &values, config).unwrap().unwrap();
        let prediction = learned.apply(wrong(means)).unwrap();
        let ends = prediction.quantiles(&[0.05, 0.95]).unwrap();
        let pit = prediction.pit(&truth).unwrap();
        for cell in 0..truth.len() {
            let by_ends = truth[cell] >= ends[0][cell] && truth[cell] <= ends[1][cell];
            let close = (2.0 * (pit[cell] - 0.5).abs() - 0.9).abs() < 1e-4;
            assert!(close || by_ends == (2.0 * (pit[cell] - 0.5).abs() <= 0.9), "{cell}");
        }
        // The density integrates to the distribution function, and the CRPS is its integral.
        let one = |x: f32| {
            let own = prediction.of_rows(0..1);
            (own.log_density(&[x]).unwrap()[0].exp(), own.pit(&[x]).unwrap()[0])
        };
        let (mut mass, mut crps, step) = (0.0, 0.0, 0.002f32);
        let y = truth[0];
        for i in -5000..5000 {
            let x = means[0] + (i as f32 + 0.5) * step;
            let (density, below) = one(x);
            mass += density * f64::from(step);
            assert!((mass - below).abs() < 0.01, "{x}: {mass} {below}");
            crps += (below - f64::from(u8::from(x >= y))).powi(2) * f64::from(step);
        }
        let found = prediction.of_rows(0..1).crps(&[y]).unwrap()[0];
        assert!((found - crps).abs() < 2e-3, "{found} {crps}");
        // Better than before, on the data that it was learned from.
        let score =
            |p: &Predictive, name: &str| p.score(&values).unwrap().score(name).unwrap().value;
        for name in ["nll", "crps"] {
            let (before, after) = (score(&wrong(means), name), score(&prediction, name));
            assert!(after < before, "{name}: {after} {before}");
        }
    }
}

#[test]
fn variance_scaling_makes_the_mean_square_one() {
    let means = vec![0.0; 4000];
    let truth: Vec<f32> = normals(3, 4000).iter().map(|e| 3.0 * e).collect();
    let narrow =
        |rows| Predictive::of_gaussians(1, rows, means[..rows].to_vec(), vec![1.0; rows]).unwrap();
    let values = Truth::Values(truth.clone());
    let learned =
        Calibration::learn(&narrow(4000), &values, CalibrateConfig::Variance).unwrap().unwrap();
    let std = learned.apply(narrow(1)).unwrap().std()[0];
    let rms = truth.iter().map(|y| y * y).sum::<f32>() / 4000.0;
    assert!((std - rms.sqrt()).abs() < 1e-3, "{std} {rms}");
}

/// A series whose noise triples half way. What was learned before no longer holds after it; what
/// follows is right in the long run, and so is each of its halves.
#[test]
fn after_a_drift_the_adaptive_calibration_is_right_and_the_plain_one_is_not() {
    const STEPS: usize = 8000;
    const OUTPUTS: usize = 4;
    let noise = normals(17, 2 * STEPS + OUTPUTS);
    let size = |time: usize| if time < STEPS + STEPS / 2 { 1.0 } else { 3.0 };
    let value = |time: usize| size(time) * noise[time];
    let plain = |rows: usize| {
        let cells = rows * OUTPUTS;
        Predictive::of_gaussians(1, rows, vec![0.0; cells], vec![0.25; cells]).unwrap()
    };
    let truth = |first: usize, rows: usize| -> Vec<f32> {
        (first..first + rows).flat_map(|t| (t..t + OUTPUTS).map(value)).collect()
    };
    // The first half is for learning.
    let series =
        Series { first: 0, rows: STEPS, values: (0..2 * STEPS + OUTPUTS).map(value).collect() };
    let trainer = constant_trainer();
    let fit = |config| {
        trainer.predictor().fit_calibration(&series, config, 1).unwrap().expect("a calibration")
    };
    let adaptive = fit(CalibrateConfig::Adaptive(Adaptive { rate: 0.01 }));
    let fixed = fit(CalibrateConfig::Conformal);

    let numbers: Vec<u64> = (0..STEPS as u64).collect();
    let deviations = plain(STEPS).deviations(&truth(STEPS, STEPS), &numbers).unwrap();
    let mut follower = adaptive.follower(OUTPUTS).unwrap();
    let (mut followed, mut stayed) = ([0.0; 2], [0.0; 2]);
    let mut bands = 0.0;
    for row in 0..STEPS {
        let moment = Moment { series: 7, time: (STEPS + row) as i64 };
        let half = usize::from(row >= STEPS / 2);
        let y = truth(STEPS + row, 1);
        let own = adaptive.seen_through(plain(1), follower.lens(moment));
        let inside = |prediction: &Predictive| {
            let pits = prediction.pit(&y).unwrap();
            pits.iter().filter(|pit| 2.0 * (**pit - 0.5).abs() <= 0.9).count() as f64
        };
        followed[half] += inside(&own);
        stayed[half] += inside(&fixed.apply(plain(1)).unwrap());
        let [lower, upper] = own.band(0.9).unwrap();
        let all = (0..OUTPUTS).all(|k| y[k] >= lower[k] && y[k] <= upper[k]);
        bands += f64::from(u8::from(all));
        follower.observe(moment, deviations[row * OUTPUTS..][..OUTPUTS].to_vec());
    }
    let share = |count: f64, of: usize| count / (of * OUTPUTS) as f64;
    let [before, after] = followed.map(|count| share(count, STEPS / 2));
    // The bound for T steps is (ln of the range of deviations)/(ηT), 0.05; chance 0.01.
    assert!((before - 0.9).abs() < 0.015, "{before}");
    assert!((after - 0.9).abs() < 0.03, "{after}");
    assert!((bands / STEPS as f64 - 0.9).abs() < 0.03, "{bands}");
    let [before, after] = stayed.map(|count| share(count, STEPS / 2));
    assert!((before - 0.9).abs() < 0.015, "{before}");
    assert!(after < 0.5, "{after}");
}

/// No forecast knows what comes after it: values of the future do not change its lens.
#[test]
fn a_follower_knows_only_what_has_come_true() {
    let trainer = constant_trainer();
    let series = Series { first: 0, rows: 400, values: normals(2, 500) };
    let config = CalibrateConfig::Auto;
    let learned = trainer.predictor().fit_calibration(&series, config, 1).unwrap().unwrap();
    assert_eq!(learned.method(), Method::Adaptive(Adaptive::default()));
    let lens_after = |last: &[f64; 4]| {
        let mut follower = learned.follower(4).unwrap();
        for time in 0..10 {
            let moment = Moment { series: 0, time };
            follower.lens(moment);
            // Of the forecast made at time 9 the first value is known at time 10, no other.
            let own = if time == 9 { *last } else { [0.1, 2.0, 0.3, 5.0] };
            follower.observe(moment, own.to_vec());
        }
        follower.lens(Moment { series: 0, time: 10 })
    };
    let known = lens_after(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(known, lens_after(&[1.0, 9.0, 0.0, 0.0]));
    assert_eq!(known, lens_after(&[1.0, f64::NAN, f64::NAN, f64::NAN]));
    assert_ne!(known, lens_after(&[9.0, 2.0, 3.0, 4.0]));
    // Another series starts anew.
    let mut follower = learned.follower(4).unwrap();
    let start = follower.lens(Moment { series: 1, time: 10 });
    follower.observe(Moment { series: 0, time: 0 }, vec![9.0; 4]);
    follower.lens(Moment { series: 0, time: 100 });
    assert_eq!(start, follower.lens(Moment { series: 1, time: 11 }));
}

/// A network that predicts nothing but zeros with a noise of a half, for any series.
#[derive(Module, Debug)]
struct Zeros {
    linear: Linear,
}

impl Network for Zeros {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, _: &Draw) -> Tensor<2> {
        self.linear.forward(input) * 0.0
    }
}

fn constant_trainer() -> Trainer<McDropout<Zeros>, Expected<FixedGaussian>> {
    let device = Device::default();
    let network = Zeros { linear: LinearConfig::new(1, 4).init(&device) };
    let loss = Expected(Gaussian::fixed(0.5).unwrap());
    Trainer::new(McDropout::new(network), loss, Settings { batch: 64, ..Settings::default() })
}

/// Forecasts of four values of a series from every time on.
struct Series {
    first: usize,
    rows: usize,
    values: Vec<f32>,
}

impl Dataset for Series {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.rows
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        let values: Vec<f32> =
            rows.iter().flat_map(|row| &self.values[self.first + row..][..4]).copied().collect();
        let target = Tensor::from_data(TensorData::new(values, [rows.len(), 4]), device);
        Ok((Tensor::zeros([rows.len(), 1], device), target))
    }

    fn moment(&self, row: usize) -> Option<Moment> {
        Some(Moment { series: 0, time: (self.first + row) as i64 })
    }
}

/// Two outputs from one input, with dropout between.
#[derive(Module, Debug)]
struct Pair {
    first: Linear,
    last: Linear,
}

impl Pair {
    fn new(outputs: usize) -> Self {
        let device = Device::default();
        let first = LinearConfig::new(1, 8).init(&device);
        Self { first, last: LinearConfig::new(8, outputs).init(&device) }
    }
}

impl Network for Pair {
    type Input = Tensor<2>;

    fn forward(&self, input: Tensor<2>, draw: &Draw) -> Tensor<2> {
        self.last.forward(draw.dropout(relu(self.first.forward(input)), 0.2))
    }
}

/// Noisy values of an example, and where it stands.
struct Points {
    x: Vec<f32>,
    y: Vec<f32>,
    ordered: bool,
}

impl Points {
    fn new(seed: u64, rows: usize, ordered: bool) -> Self {
        let numbers = normals(seed, 3 * rows);
        let x: Vec<f32> = (0..rows).map(|i| (i as f32 * 0.37).sin()).collect();
        let y = x.iter().enumerate().flat_map(|(i, x)| {
            let [shared, own] = [numbers[3 * i], numbers[3 * i + 1]];
            [x + 0.4 * shared, 2.0 * x + 0.4 * (0.9 * shared + 0.4 * own)]
        });
        Self { y: y.collect(), x, ordered }
    }
}

impl Dataset for Points {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.x.len()
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        let x: Vec<f32> = rows.iter().map(|&row| self.x[row]).collect();
        let y: Vec<f32> = rows.iter().flat_map(|row| &self.y[2 * row..][..2]).copied().collect();
        Ok((
            Tensor::from_data(TensorData::new(x, [rows.len(), 1]), device),
            Tensor::from_data(TensorData::new(y, [rows.len(), 2]), device),
        ))
    }

    fn moment(&self, row: usize) -> Option<Moment> {
        self.ordered.then_some(Moment { series: (row % 2) as u64, time: (row / 2) as i64 })
    }
}

/// What calibration and scores come to on a mesh.
fn on_mesh(mesh: Mesh, config: CalibrateConfig, ordered: bool) -> (String, Vec<(String, f64)>) {
    let settings = Settings { samples: 4, batch: 16, mesh, ..Settings::default() };
    // The same weights everywhere: nothing is trained.
    let network = Pair::new(2);
    let posterior = common_weights(network);
    let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings);
    trainer.calibrate(&Points::new(1, 203, ordered), config, 16).unwrap();
    let text = trainer.calibration().unwrap().to_text();
    let evaluation = trainer.evaluate(&Points::new(2, 150, ordered), 16).unwrap();
    let scores = evaluation.iter().chain(evaluation.raw().unwrap());
    (text, scores.map(|score| (score.name.clone(), score.value)).collect())
}

fn common_weights(network: Pair) -> McDropout<Pair> {
    use bayesmesh::Posterior as _;
    McDropout::new(network).initialised(3)
}

/// Calibration is the same on any number of ranks, and so are the scores.
#[test]
fn any_number_of_ranks_learns_the_same() {
    for (config, ordered) in [
        (CalibrateConfig::Auto, true),
        (CalibrateConfig::Conformal, false),
        (CalibrateConfig::Variance, false),
    ] {
        let (text, scores) = on_mesh(Mesh::serial(), config, ordered);
        for mesh in ["2x1", "1x2", "4x1", "2x2", "1x4"] {
            let (other_text, other) = on_mesh(mesh.parse().unwrap(), config, ordered);
            assert_eq!(text, other_text, "{mesh} {config:?}");
            for ((name, value), (_, other)) in scores.iter().zip(&other) {
                let same = (value - other).abs() <= 1e-12 * value.abs().max(1.0);
                assert!(
                    same || (value.is_nan() && other.is_nan()),
                    "{mesh} {name} {value} {other}"
                );
            }
        }
    }
}

/// A checkpoint brings calibration and noise, wherever it is read.
#[test]
fn a_checkpoint_carries_the_calibration() {
    let folder = Scratch::new();
    let path = folder.path().join("pair.safetensors");
    let settings = Settings { samples: 4, batch: 16, ..Settings::default() };
    let (train, valid) = (Points::new(1, 64, false), Points::new(2, 100, false));
    let mut trainer =
        Trainer::new(common_weights(Pair::new(2)), SquaredErrorOfMean, settings.clone());
    trainer.fit(&train, None, Length::Steps(5)).unwrap();
    trainer.calibrate(&valid, CalibrateConfig::Auto, 8).unwrap();
    trainer.save(&path).unwrap();
    let (input, _) = valid.batch(&[0, 1, 2], &Device::default()).unwrap();
    let expected = trainer.predict(&input, 8).unwrap();
    assert!(expected.band(0.9).is_ok());

    let predictor = Predictor::load(&path, Pair::new(2)).unwrap();
    assert_eq!(predictor.predict(&input, 8).unwrap(), expected);
    assert_eq!(predictor.calibration(), trainer.calibration());
    assert!(predictor.uncalibrated().predict(&input, 8).unwrap().band(0.9).is_err());

    let mut other = Trainer::new(common_weights(Pair::new(2)), SquaredErrorOfMean, settings);
    let checkpoint = bayesmesh::checkpoint::Checkpoint::load(&path).unwrap();
    other.restore(&checkpoint, &path).unwrap();
    assert_eq!(other.predict(&input, 8).unwrap(), expected);
    // Training changes what was calibrated.
    other.fit(&train, None, Length::Steps(6)).unwrap();
    assert_eq!(other.calibration(), None);
    assert!(!other.checkpoint().metadata.contains_key("bayesmesh.calibration"));
    // Nothing is asked for.
    trainer.calibrate(&valid, CalibrateConfig::None, 8).unwrap();
    assert_eq!(trainer.calibration(), None);
    assert!(!trainer.noise().is_empty());
}

#[test]
fn what_cannot_be_calibrated_is_said() {
    let mut trainer = Trainer::new(
        common_weights(Pair::new(2)),
        SquaredErrorOfMean,
        Settings { samples: 4, batch: 16, ..Settings::default() },
    );
    let message = |error: bayesmesh::Error| error.to_string();
    let few = trainer.calibrate(&Points::new(1, 9, false), CalibrateConfig::Auto, 4).unwrap_err();
    assert!(message(few).contains("9 examples are too few to calibrate with"));
    let adaptive = CalibrateConfig::Adaptive(Adaptive::default());
    let error = trainer.calibrate(&Points::new(1, 50, false), adaptive, 4).unwrap_err();
    assert!(message(error).contains("for series"));
    let classes = CalibrateConfig::Temperature(Default::default());
    let error = trainer.calibrate(&Points::new(1, 50, false), classes, 4).unwrap_err();
    assert!(message(error).contains("for classes"));
    for text in ["", "{}", r#"{"method":"Conformal","examples":1,"learned":{"Values":{}}}"#] {
        assert!(Calibration::from_text(text).is_err(), "{text}");
    }
}

/// Noise with a correlation of 0.9 between two outputs: paths have it, and their marginals are the
/// calibrated ones.
#[test]
fn paths_hang_together_as_the_errors_did() {
    const ROWS: usize = 2000;
    let numbers = normals(23, 2 * ROWS);
    let truth: Vec<f32> = numbers
        .chunks_exact(2)
        .flat_map(|e| [2.0 * e[0], 2.0 * (0.9 * e[0] + 0.19f32.sqrt() * e[1])])
        .collect();
    let flat = |rows: usize| {
        Predictive::of_gaussians(4, rows, vec![0.0; 8 * rows], vec![1.0; 8 * rows]).unwrap()
    };
    let values = Truth::Values(truth.clone());
    let learned =
        Calibration::learn(&flat(ROWS), &values, CalibrateConfig::Conformal).unwrap().unwrap();
    let prediction = learned.apply(flat(1)).unwrap();
    let paths = prediction.paths(4000, 1, 0).unwrap();
    assert_eq!(paths, prediction.paths(4000, 1, 0).unwrap());
    assert_ne!(paths, prediction.paths(4000, 2, 0).unwrap());
    let mean = |f: &dyn Fn(&[f32]) -> f32| {
        paths.chunks_exact(2).map(f).map(f64::from).sum::<f64>() / 4000.0
    };
    let (a, b, ab) = (mean(&|p| p[0] * p[0]), mean(&|p| p[1] * p[1]), mean(&|p| p[0] * p[1]));
    // The standard error of a correlation of 0.9 from 2,000 rows and 4,000 paths is 0.005.
    assert!((ab / (a * b).sqrt() - 0.9).abs() < 0.02, "{ab} {a} {b}");
    let ends = prediction.quantiles(&[0.05, 0.95]).unwrap();
    for output in 0..2 {
        let inside = mean(&|p| {
            f32::from(u8::from(p[output] >= ends[0][output] && p[output] <= ends[1][output]))
        });
        assert!((inside - 0.9).abs() < 0.02, "{inside}");
    }
    // Joint scores see it.
    let (mut joint, mut torn) = (JointScores::new(), JointScores::new());
    for row in 0..300 {
        let mut paths = prediction.paths(64, 1, row).unwrap();
        let y = &truth[2 * row..][..2];
        joint.add(&paths, y).unwrap();
        shuffled(&mut paths, 64, 2, &Stream::new(9, Purpose::Paths).at_step(row as u32)).unwrap();
        torn.add(&paths, y).unwrap();
    }
    for (own, other) in joint.scores().iter().zip(torn.scores()) {
        assert!(own.value < other.value, "{own:?} {other:?}");
    }
}

/// A band holds both outputs nine times out of ten, and the intervals of each do not.
#[test]
fn bands_hold_whole_vectors() {
    const ROWS: usize = 3000;
    let numbers = normals(29, 4 * ROWS);
    let flat = |rows: usize| {
        Predictive::of_gaussians(1, rows, vec![0.0; 2 * rows], vec![1.0; 2 * rows]).unwrap()
    };
    let (valid, test) = numbers.split_at(2 * ROWS);
    let valid = Truth::Values(valid.to_vec());
    let learned = Calibration::learn(&flat(ROWS), &valid, CalibrateConfig::Auto).unwrap().unwrap();
    let prediction = learned.apply(flat(ROWS)).unwrap();
    let evaluation = prediction.score(&Truth::Values(test.to_vec())).unwrap();
    // Three standard errors from as many rows on either side are 0.023.
    let band = evaluation.score("band_coverage_90").unwrap().value;
    assert!((band - 0.9).abs() < 0.023, "{band}");
    let [lower, upper] = prediction.band(0.9).unwrap();
    let each: Vec<bool> =
        (0..2 * ROWS).map(|cell| test[cell] >= lower[cell] && test[cell] <= upper[cell]).collect();
    let all = each.chunks_exact(2).filter(|pair| pair[0] && pair[1]).count();
    assert!((all as f64 / ROWS as f64 - band).abs() < 1e-9);
    // Independent outputs: each must hold √0.9 of the time.
    let expected = normal::quantile(0.5 + 0.5 * 0.9f64.sqrt());
    assert!((f64::from(upper[0]) - expected).abs() < 0.1, "{} {expected}", upper[0]);
}

/// Few examples of many outputs: intervals that were learned from the same examples would make bands
/// look better than they are.
#[test]
fn bands_of_few_examples_are_not_too_narrow() {
    let (outputs, repetitions) = (12, 300);
    for n in [40, 100] {
        let flat = |rows: usize| {
            let cells = rows * outputs;
            Predictive::of_gaussians(1, rows, vec![0.0; cells], vec![1.0; cells]).unwrap()
        };
        let mut inside = 0.0;
        for repetition in 0..repetitions {
            let numbers = normals(1000 * n as u64 + repetition, (n + 1) * outputs);
            let (valid, new) = numbers.split_at(n * outputs);
            let valid = Truth::Values(valid.to_vec());
            let config = CalibrateConfig::Conformal;
            let learned = Calibration::learn(&flat(n), &valid, config).unwrap().unwrap();
            let [lower, upper] = learned.apply(flat(1)).unwrap().band(0.9).unwrap();
            let all = (0..outputs).all(|k| new[k] >= lower[k] && new[k] <= upper[k]);
            inside += f64::from(u8::from(all));
        }
        let share = inside / repetitions as f64;
        // Three binomial errors below the level.
        assert!(share > 0.9 - 3.0 * (0.09 / repetitions as f64).sqrt(), "{n}: {share}");
    }
}

#[test]
fn truths_that_are_none_are_refused() {
    let prediction = Predictive::of_gaussians(1, 20, vec![0.0; 20], vec![1.0; 20]).unwrap();
    let mut truth = vec![0.0; 20];
    truth[7] = f32::NAN;
    let learn = |prediction, truth: &Truth| {
        Calibration::learn(prediction, truth, CalibrateConfig::Auto).unwrap_err().to_string()
    };
    let error = learn(&prediction, &Truth::Values(truth));
    assert!(error.contains("NaN (value 7)"), "{error}");
    let classes = Predictive::of_probabilities(1, 20, vec![0.5; 40]).unwrap();
    let error = learn(&classes, &Truth::Labels(vec![2; 20]));
    assert!(error.contains("a label of 2 is not one of 2 classes"), "{error}");
    assert!(learn(&classes, &Truth::Labels(vec![1; 3])).contains("3 labels"));
}

/// Training goes on without the noise of other weights, as if it had never been estimated.
#[test]
fn noise_of_other_weights_is_forgotten() {
    let settings = Settings { samples: 4, batch: 16, ..Settings::default() };
    let (train, valid) = (Points::new(1, 64, false), Points::new(2, 100, false));
    let mut trainer = Trainer::new(common_weights(Pair::new(2)), SquaredErrorOfMean, settings);
    trainer.fit(&train, None, Length::Steps(5)).unwrap();
    trainer.calibrate(&valid, CalibrateConfig::None, 8).unwrap();
    assert!(!trainer.noise().is_empty());
    trainer.fit(&train, None, Length::Steps(6)).unwrap();
    assert!(trainer.noise().is_empty());
    assert!(!trainer.checkpoint().metadata.contains_key("bayesmesh.noise"));
}

/// Draws without noise: truths beyond all of them can be covered too.
#[test]
fn draws_without_noise_get_a_kernel() {
    let rows = 1000;
    let numbers = normals(31, 9 * rows);
    let (draws, truth) = numbers.split_at(8 * rows);
    let truth: Vec<f32> = truth.iter().map(|e| 3.0 * e).collect();
    let draws = Predictive::of_values(8, rows, draws.to_vec()).unwrap();
    let values = Truth::Values(truth);
    let learned = Calibration::learn(&draws, &values, CalibrateConfig::Auto).unwrap().unwrap();
    let evaluation = learned.apply(draws).unwrap().score(&values).unwrap();
    let covered = evaluation.score("coverage_90").unwrap().value;
    assert!((covered - 0.9).abs() < 0.005, "{covered}");
}

/// Classes on any mesh, and their checkpoint.
#[test]
fn classes_are_calibrated_on_any_mesh() {
    struct Labels(Points);
    impl Dataset for Labels {
        type Input = Tensor<2>;
        type Target = Tensor<1, Int>;

        fn len(&self) -> usize {
            self.0.len()
        }

        fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<1, Int>)> {
            let (x, _) = self.0.batch(rows, device)?;
            let labels: Vec<i64> = rows.iter().map(|row| (row * row % 3) as i64).collect();
            Ok((x, Tensor::from_data(TensorData::new(labels, [rows.len()]), device)))
        }
    }
    let run = |mesh: Mesh| {
        let settings = Settings { samples: 4, batch: 16, mesh, ..Settings::default() };
        let posterior = common_weights(Pair::new(3));
        let mut trainer = Trainer::new(posterior, Expected(Categorical), settings);
        let valid = Labels(Points::new(1, 300, false));
        trainer.calibrate(&valid, CalibrateConfig::Auto, 8).unwrap();
        let evaluation = trainer.evaluate(&Labels(Points::new(2, 300, false)), 8).unwrap();
        let text = trainer.calibration().unwrap().to_text();
        let sets = evaluation.score("set_coverage_90").unwrap().clone();
        assert!(evaluation.raw().unwrap().score("set_coverage_90").is_err());
        (text, sets.value, evaluation.score("ece").unwrap().value)
    };
    let (text, sets, ece) = run(Mesh::serial());
    assert_eq!(Calibration::from_text(&text).unwrap().to_text(), text);
    assert!((sets - 0.9).abs() < 0.06, "{sets}");
    for mesh in ["2x1", "1x2", "2x2"] {
        let (other, other_sets, other_ece) = run(mesh.parse().unwrap());
        assert_eq!((&text, sets), (&other, other_sets), "{mesh}");
        assert!((ece - other_ece).abs() < 1e-12);
    }
}

/// The posterior does not matter.
#[test]
fn a_mean_field_is_calibrated_like_any_other() {
    let posterior = MeanField::new(Pair::new(2), Prior::normal(0.0, 1.0)).unwrap();
    let settings = Settings { samples: 4, batch: 16, ..Settings::default() };
    let mut trainer = Trainer::new(posterior, SquaredErrorOfMean, settings);
    let (valid, test) = (Points::new(1, 400, false), Points::new(2, 400, false));
    trainer.calibrate(&valid, CalibrateConfig::Auto, 16).unwrap();
    let evaluation = trainer.evaluate(&test, 16).unwrap();
    let covered = evaluation.score("coverage_90").unwrap().value;
    // Three standard errors from as many rows on either side, outputs counting as one.
    assert!((covered - 0.9).abs() < 3.0 * (0.09f64 * 2.0 / 400.0).sqrt(), "{covered}");
}
