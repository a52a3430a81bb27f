//! The vision transformer trained on many ranks is the one trained on one.

mod common;

use std::sync::{Arc, Mutex};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Categorical, Expected, Mixture};
use bayesmesh::posterior::InitialStd;
use bayesmesh::trainer::{Callback, Flow, Length, Memory, OptimizerConfig, Schedule, StepReport};
use bayesmesh::{
    Dataset, Loss, MeanField, Mesh, Posterior, Precision, Predictor, Prior, Reduce, Settings,
    TensorDataset, Trainer,
};
use bayesmesh_models::{Vit, VitConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::stream_values;

type Data = TensorDataset<Tensor<4>, Tensor<1, Int>>;

/// Images of noise whose mean says the class.
fn data(rows: usize) -> Data {
    let VitConfig { image, channels, classes, .. } = VitConfig::tiny();
    let pixels = channels * image * image;
    let mut values = stream_values(0, 7, rows * pixels, 1.5, 0.0);
    let labels: Vec<i64> = (0..rows as i64).map(|row| row * 7 % classes as i64).collect();
    for (image, label) in values.chunks_mut(pixels).zip(&labels) {
        image.iter_mut().for_each(|value| *value += *label as f32 / 4.0 - 1.0);
    }
    let device = Device::default();
    let images = TensorData::new(values, [rows, channels, image, image]);
    let labels = TensorData::new(labels, [rows]);
    TensorDataset::new(Tensor::from_data(images, &device), Tensor::from_data(labels, &device))
        .unwrap()
}

fn posterior() -> MeanField<Vit> {
    MeanField::new(VitConfig::tiny().init(&Device::default()), Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::PerFanIn(0.3))
        .unwrap()
        .initialised(1)
}

fn settings() -> Settings {
    Settings {
        seed: 5,
        heat: 0.1,
        clip_norm: Some(2.0),
        schedule: Schedule::Constant { rate: 0.02 },
        optimizer: OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.0 },
        ..Settings::default()
    }
}

/// The parameters after some steps.
fn train<L: Loss<Target = Tensor<1, Int>> + Clone>(
    posterior: &MeanField<Vit>,
    loss: &L,
    settings: Settings,
) -> Vec<f32> {
    let mut trainer = Trainer::new(posterior.clone(), loss.clone(), settings);
    trainer.fit(&data(11), None, Length::Steps(3)).unwrap();
    trainer.posterior().parameters().values().to_vec()
}

/// The largest distance, relative to the largest number of the first.
fn distance(left: &[f32], right: &[f32]) -> f32 {
    let scale = left.iter().fold(f32::MIN_POSITIVE, |m, l| m.max(l.abs()));
    left.iter().zip(right).fold(0.0f32, |m, (l, r)| m.max((l - r).abs())) / scale
}

/// Neither the draws nor the rows divide evenly.
fn assert_mesh_independent<L: Loss<Target = Tensor<1, Int>> + Clone>(loss: L) {
    let posterior = posterior();
    let settings = Settings { samples: 5, batch: 7, ..settings() };
    let serial = train(&posterior, &loss, settings.clone());
    let moved = distance(posterior.parameters().values(), &serial);
    assert!(moved > 1e-3, "three steps changed nothing: {moved}");
    let mut worst = 0.0f32;
    for mesh in ["1x1", "2x1", "1x2", "2x2"] {
        for memory in [Memory::Retain, Memory::Recompute] {
            let settings = Settings { mesh: mesh.parse().unwrap(), memory, ..settings.clone() };
            let parallel = train(&posterior, &loss, settings);
            for slot in posterior.parameters().slots() {
                let (start, end) = (slot.range.start, slot.range.end);
                let middle = start + slot.len();
                for range in [start..middle, middle..end] {
                    let error = distance(&serial[range.clone()], &parallel[range]);
                    worst = worst.max(error);
                    assert!(error <= 1e-5, "{mesh}, {memory:?}, {}: off by {error}", slot.name);
                }
            }
        }
    }
    println!("off by at most {worst:e}");
}

#[test]
fn expected_cross_entropy() {
    assert_mesh_independent(Expected(Categorical));
}

#[test]
fn cross_entropy_of_mean_probabilities() {
    assert_mesh_independent(Mixture::new(Categorical).with_floor(1e-5).unwrap());
}

#[test]
fn reproducible_sums_are_bitwise_equal_along_the_sample_axis() {
    fn check<L: Loss<Target = Tensor<1, Int>> + Clone>(loss: L, precision: Precision) -> Vec<u32> {
        let posterior = posterior();
        let run = |ranks: usize, memory: Memory| {
            let settings = Settings {
                precision,
                samples: 4,
                batch: 7,
                mesh: Mesh::samples(ranks).unwrap(),
                reduce: Reduce::Reproducible,
                memory,
                optimizer: OptimizerConfig::adam(),
                ..settings()
            };
            let values = train(&posterior, &loss, settings);
            values.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        };
        let serial = run(1, Memory::Recompute);
        for (ranks, memory) in
            [(1, Memory::Retain), (2, Memory::Retain), (2, Memory::Recompute), (4, Memory::Retain)]
        {
            assert!(serial == run(ranks, memory), "{ranks} ranks, {memory:?}, {precision:?}");
        }
        serial
    }
    let mixture = || Mixture::new(Categorical).with_floor(1e-5).unwrap();
    let single = check(Expected(Categorical), Precision::F32);
    assert!(single != check(Expected(Categorical), Precision::Bf16), "bf16 makes a difference");
    check(mixture(), Precision::F32);
    check(mixture(), Precision::Bf16);
}

#[test]
fn a_posterior_that_is_saved_predicts_in_the_precision_of_its_training() {
    let path = std::env::temp_dir().join(format!("bayesmesh-bf16-{}", std::process::id()));
    let settings = Settings { precision: Precision::Bf16, batch: 7, ..settings() };
    let mut trainer = Trainer::new(posterior(), Expected(Categorical), settings);
    trainer.fit(&data(11), None, Length::Steps(2)).unwrap();
    trainer.save(&path).unwrap();
    let network = VitConfig::tiny().init(&Device::default());
    let predictor = Predictor::load(&path, network).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (images, _) = data(5).batch(&[0, 1, 2, 3, 4], &Device::default()).unwrap();
    let predicted = predictor.predict(&images, 4).unwrap();
    assert_eq!(predicted, trainer.predict(&images, 4).unwrap());
    let single = predictor.with_precision(Precision::F32).predict(&images, 4).unwrap();
    assert_ne!(predicted, single);
}

/// The share of the gradient that each step sent during its backward pass.
#[derive(Clone, Default)]
struct Shares(Arc<Mutex<Vec<f64>>>);

impl Callback for Shares {
    fn on_step(
        &mut self,
        report: &StepReport,
        _: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        self.0.lock().unwrap().push(report.overlapped);
        Ok(Flow::Continue)
    }
}

#[test]
fn all_gradients_of_the_vit_travel_during_the_backward_pass_and_arrive_whole() {
    for mesh in ["2x1", "1x2"] {
        for reduce in [Reduce::Fast, Reduce::Reproducible] {
            let run = |overlap: bool| {
                let mesh = mesh.parse().unwrap();
                let settings = Settings {
                    samples: 5,
                    batch: 7,
                    mesh,
                    reduce,
                    overlap,
                    bucket_bytes: 4096,
                    ..settings()
                };
                let shares = Shares::default();
                let trainer = Trainer::new(posterior(), Expected(Categorical), settings);
                let mut trainer = trainer.with_callback(shares.clone());
                trainer.fit(&data(11), None, Length::Steps(3)).unwrap();
                let shares = shares.0.lock().unwrap().clone();
                (trainer.posterior().parameters().values().to_vec(), shares)
            };
            let ((values, shares), (expected, none)) = (run(true), run(false));
            assert!(values == expected, "{mesh} {reduce}: {}", distance(&expected, &values));
            // The first step only looks.
            assert_eq!((shares, none), (vec![0.0, 1.0, 1.0], vec![0.0; 3]));
        }
    }
}
