//! What a newcomer ran into: each is an error that says what to do, or works.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

use bayesmesh::prelude::*;
use bayesmesh::{Error, Purpose, Stream};
use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("bayesmesh-outside-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn normal(tensor: u32, shape: [usize; 2]) -> Tensor<2> {
    let mut values = vec![0.0; shape[0] * shape[1]];
    Stream::new(4, Purpose::Synthesis).at_tensor(tensor).fill_normal(0, &mut values);
    Tensor::from_data(TensorData::new(values, shape), &Device::default())
}

/// `y = x₀ − 2x₁ + noise of 0.1`.
fn line(rows: usize) -> TensorDataset<Tensor<2>, Tensor<2>> {
    let x = normal(0, [rows, 2]);
    let weights = Tensor::<2>::from_floats([[1.0], [-2.0]], &Device::default());
    let y = x.clone().matmul(weights) + normal(1, [rows, 1]) * 0.1;
    TensorDataset::new(x, y).unwrap()
}

/// A layer with a dropout before it: Burn's, the draw's, or none.
#[derive(Module, Debug)]
struct Line {
    linear: Linear,
    burns: Option<Dropout>,
    own: f64,
}

impl Line {
    fn new(outputs: usize, burns: Option<f64>, own: f64) -> Self {
        let linear = LinearConfig::new(2, outputs).init(&Device::default());
        Self { linear, burns: burns.map(|p| DropoutConfig::new(p).init()), own }
    }
}

impl Network for Line {
    type Input = Tensor<2>;
    fn forward(&self, x: Tensor<2>, draw: &Draw) -> Tensor<2> {
        let x = match &self.burns {
            Some(dropout) => dropout.forward(x),
            None => x,
        };
        self.linear.forward(draw.dropout(x, self.own))
    }
}

fn settings() -> Settings {
    Settings { samples: 2, batch: 16, schedule: 0.05.into(), ..Settings::default() }
}

fn refused<P, L, D>(posterior: P, loss: L, data: &D, words: &[&str])
where
    P: Posterior + Clone,
    L: Loss + Clone,
    D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
{
    let mut trainer = Trainer::new(posterior, loss, settings());
    let message = trainer.fit(data, None, Length::Steps(2)).unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{word:?} not in: {message}");
    }
    assert_eq!(trainer.step(), 0);
}

#[test]
fn dropout_that_no_draw_knows_is_refused() {
    let data = line(64);
    let loss = ExpectedSquaredError;
    let burns = || Line::new(1, Some(0.2), 0.0);
    let words = ["burns (Dropout)", "draw.dropout"];
    refused(McDropout::new(burns()), loss, &data, &words);
    refused(MeanField::new(burns(), Prior::normal(0.0, 1.0)).unwrap(), loss, &data, &words);
    refused(McDropout::new(Line::new(1, None, 0.0)), loss, &data, &["all would agree"]);
    // Switched off it is no harm.
    let mut trainer = Trainer::new(McDropout::new(Line::new(1, Some(0.0), 0.2)), loss, settings());
    trainer.fit(&data, None, Length::Steps(2)).unwrap();
    let spread = trainer.predict(&normal(7, [3, 2]), 8).unwrap().epistemic_std();
    assert!(spread.iter().all(|std| *std > 0.0), "{spread:?}");
}

#[test]
fn data_that_do_not_fit_the_network_are_refused_in_words() {
    let point = |outputs| Point::new(Line::new(outputs, None, 0.0));
    let wide = TensorDataset::new(normal(0, [32, 5]), normal(1, [32, 1])).unwrap();
    refused(point(1), ExpectedSquaredError, &wide, &["cannot take the first example", "features"]);
    refused(point(3), ExpectedSquaredError, &line(32), &["has 3 outputs", "ask for 1"]);
    let labels = |highest: i64| {
        let labels: Vec<i64> = (0..32).map(|row| if row == 20 { highest } else { 1 }).collect();
        let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [32]), &Device::default());
        TensorDataset::new(normal(0, [32, 2]), labels).unwrap()
    };
    let two = Trainer::new(point(2), Expected(Categorical), settings());
    for label in [2, -1] {
        let mut trainer = Trainer::new(point(2), Expected(Categorical), two.settings().clone());
        let outcome = trainer.fit(&labels(label), None, Length::Epochs(1));
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains(&format!("label {label}")), "{message}");
    }
}

#[test]
fn a_run_that_has_had_its_length_says_so() {
    let mut trainer =
        Trainer::new(Point::new(Line::new(1, None, 0.0)), ExpectedSquaredError, settings());
    trainer.fit(&line(64), None, Length::Epochs(2)).unwrap();
    let message = trainer.fit(&line(64), None, Length::Epochs(2)).unwrap_err().to_string();
    assert!(message.contains("has had 8 steps") && message.contains("ask for more"), "{message}");
    trainer.fit(&line(64), None, Length::Epochs(3)).unwrap();
    assert_eq!(trainer.step(), 12);
}

#[test]
fn a_checkpoint_of_another_optimiser_is_refused() {
    let optimizers = [
        OptimizerConfig::adam(),
        OptimizerConfig::sgd(),
        OptimizerConfig::sgd().momentum(0.9).unwrap(),
    ];
    let trainer = |optimizer| {
        let settings = Settings { optimizer, ..settings() };
        Trainer::new(Point::new(Line::new(1, None, 0.0)), ExpectedSquaredError, settings)
    };
    for (one, from) in optimizers.into_iter().enumerate() {
        let mut first = trainer(from);
        first.fit(&line(64), None, Length::Steps(3)).unwrap();
        for (other, to) in optimizers.into_iter().enumerate() {
            let outcome = trainer(to).restore(&first.checkpoint(), "first");
            assert_eq!(outcome.is_ok(), one == other, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn predictions_have_densities_noise_and_scores_in_the_units_of_the_user() {
    let data = line(400);
    let x = normal(5, [50, 2]);
    let y = x.clone().matmul(Tensor::<2>::from_floats([[1.0], [-2.0]], &Device::default()));
    let scale = Standardize::new(vec![1000.0], vec![50.0]).unwrap();
    // Known noise, in the units of training.
    let posterior = MeanField::new(Line::new(1, None, 0.0), Prior::normal(0.0, 1.0)).unwrap();
    let loss = Expected(Gaussian::fixed(0.1).unwrap());
    let mut trainer = Trainer::new(posterior, loss, settings()).with_target_scale(scale.clone());
    trainer.fit(&data, None, Length::Epochs(20)).unwrap();
    let prediction = trainer.predict(&x, 16).unwrap();
    let truth: Vec<f32> = scale.invert(&y.into_data().try_into_vec::<f32>().unwrap(), 1).unwrap();
    assert!(prediction.noise_std().iter().all(|std| (std - 5.0).abs() < 1e-3));
    let nll = -prediction.log_density(&truth).unwrap().iter().sum::<f64>() / 50.0;
    let score = prediction.score(&bayesmesh::data::Truth::Values(truth)).unwrap();
    let named = score.score("nll").unwrap().value;
    assert!((named - nll).abs() < 1e-9, "{named} and {nll}");
    assert_eq!(score.regression().unwrap().nll.value, named);
    assert!(score.score("nil").unwrap_err().to_string().contains("nll"));
    let rmse = trainer.evaluate(&data, 16).unwrap().score("rmse").unwrap().value;
    assert!((4.0..7.0).contains(&rmse), "{rmse} of a noise of 5");

    // Noise that a squared error leaves open is found afterwards and stays with the run.
    let posterior = MeanField::new(Line::new(1, None, 0.0), Prior::normal(0.0, 1.0)).unwrap();
    let mut trainer =
        Trainer::new(posterior, ExpectedSquaredError, settings()).with_target_scale(scale);
    trainer.fit(&data, None, Length::Epochs(20)).unwrap();
    let message = trainer.predict(&x, 4).unwrap().log_density(&[0.0; 50]).unwrap_err().to_string();
    assert!(message.contains("calibrate_noise"), "{message}");
    let noise = trainer.calibrate_noise(&data, 16).unwrap();
    assert!((4.0..7.0).contains(&noise[0]), "{noise:?}");
    let folder = Folder::new("noise");
    let path = folder.path("line.safetensors");
    trainer.save(&path).unwrap();
    let loaded = Predictor::load(&path, Line::new(1, None, 0.0)).unwrap();
    assert_eq!(loaded.predict(&x, 4).unwrap(), trainer.predict(&x, 4).unwrap());
    let other = Predictor::load(&path, Line::new(2, None, 0.0)).err().unwrap().to_string();
    assert!(other.contains("line.safetensors"), "{other}");
}

#[test]
fn an_error_is_shown_as_its_text() {
    let error: Error =
        Predictor::load("nowhere.safetensors", Line::new(1, None, 0.0)).err().unwrap();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(error.to_string().contains("nowhere.safetensors"), "{error}");
}

/// The example programs, as one would start them.
fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn scores(output: &Output) -> Vec<(String, f64)> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let score = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(score).collect()
}

fn score(scores: &[(String, f64)], name: &str) -> f64 {
    scores.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("{scores:?}")).1
}

#[test]
fn a_table_is_learned_in_fifty_lines() {
    assert!(include_str!("../src/bin/tabular.rs").lines().count() <= 50);
    let folder = Folder::new("tabular");
    let (table, model) = (folder.path("table.txt"), folder.path("model.safetensors"));
    // y = 300 + 40·sin(2x₀) + 25·x₁ + noise of 8.
    let values: Vec<f32> = normal(3, [600, 3]).into_data().try_into_vec().unwrap();
    let row = |row: &[f32]| {
        let y = 300.0 + 40.0 * (2.0 * row[0]).sin() + 25.0 * row[1] + 8.0 * row[2];
        format!("{} {} {y}\n", row[0], row[1])
    };
    fs::write(&table, values.chunks(3).map(row).collect::<String>()).unwrap();
    let found = scores(&run(env!("CARGO_BIN_EXE_tabular"), &[&table, &model]));
    // Not far above the noise, and intervals that hold what they say: 60 test rows.
    assert!((6.0..13.0).contains(&score(&found, "rmse")), "{found:?}");
    assert!((0.75..=1.0).contains(&score(&found, "coverage_90")), "{found:?}");

    let data = env::var_os("BAYESMESH_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    let concrete = data.join("uci/concrete/data/data.txt");
    if !concrete.exists() {
        eprintln!("skipped: no {}", concrete.display());
        return;
    }
    let found = scores(&run(env!("CARGO_BIN_EXE_tabular"), &[concrete.to_str().unwrap(), &model]));
    println!("concrete, in the order of the file: {found:?}");
    assert!(score(&found, "rmse") < 16.7, "worse than the mean: {found:?}");
}

#[test]
fn a_cnn_with_a_loss_of_its_own_takes_sixty_lines() {
    assert!(include_str!("../src/bin/cnn.rs").lines().count() <= 60);
    let found = scores(&run(env!("CARGO_BIN_EXE_cnn"), &[]));
    assert!(score(&found, "accuracy") > 0.9, "{found:?}");
}
