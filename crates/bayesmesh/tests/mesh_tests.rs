//! The parallel run is the serial run: every loss on every mesh ends with the serial parameters.

mod common;

use std::ops::Range;

use bayesmesh::loss::{
    ByOutput, Categorical, Combine, EnsembleCrps, Expected, ExpectedSquaredError, Gaussian,
    GaussianOfDraws, Mixture, NegativeBinomial, OutputWeights, Poisson, Quantile, Quantiles,
    SquaredErrorOfMean, StudentT, Weighted,
};
use bayesmesh::posterior::{InitialStd, Kl};
use bayesmesh::trainer::{Augment, Length, Memory, OptimizerConfig, Schedule};
use bayesmesh::{
    Dataset, Loss, McDropout, MeanField, Mesh, Network, Posterior, Prior, Reduce, Result, Settings,
    Stream, TensorDataset, Trainer,
};
use burn::tensor::{Device, Tensor, TensorData};
use common::{Mlp, classification, distance, regression};

const MESHES: [&str; 12] =
    ["1x1", "2x1", "1x2", "3x1", "1x3", "4x1", "1x4", "2x2", "8x1", "1x8", "2x4", "4x2"];

/// Neither the draws nor the rows divide evenly by 2, 3, 4 or 8.
const SAMPLES: usize = 11;
const BATCH: usize = 13;

fn settings() -> Settings {
    Settings {
        samples: SAMPLES,
        batch: BATCH,
        seed: 5,
        heat: 0.7,
        kl_warmup: 3,
        clip_norm: Some(2.0),
        schedule: Schedule::Constant { rate: 0.05 },
        optimizer: OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.0 },
        ..Settings::default()
    }
}

fn mean_field(outputs: usize) -> MeanField<Mlp> {
    MeanField::new(Mlp::new(5, 8, outputs, 0.2), Prior::normal(0.0, 1.0))
        .unwrap()
        .with_initial_std(InitialStd::Constant(0.1))
        .unwrap()
        .initialised(1)
}

/// The parameters after five steps.
fn train<P, L, D>(posterior: &P, loss: &L, data: &D, settings: &Settings) -> Vec<f32>
where
    P: Posterior<Network: Network<Input = Tensor<2>>> + Clone,
    L: Loss + Clone,
    D: Dataset<Input = Tensor<2>, Target = L::Target>,
{
    let mut trainer = Trainer::new(posterior.clone(), loss.clone(), settings.clone());
    trainer.fit(data, None, Length::Steps(5)).unwrap();
    trainer.posterior().parameters().values().to_vec()
}

/// Trains on every mesh, retaining and recomputing draws, and compares with one rank.
fn assert_mesh_independent<P, L, D>(posterior: P, loss: L, data: &D, settings: Settings)
where
    P: Posterior<Network: Network<Input = Tensor<2>>> + Clone,
    L: Loss + Clone,
    D: Dataset<Input = Tensor<2>, Target = L::Target>,
{
    let serial = train(&posterior, &loss, data, &settings);
    let moved = distance(posterior.parameters().values(), &serial);
    assert!(moved > 1e-3, "five steps changed nothing: {moved}");
    // Tensor by tensor, means and deviations apart, so that small numbers count too.
    let tensors: Vec<Range<usize>> = posterior
        .parameters()
        .slots()
        .iter()
        .flat_map(|slot| {
            let (start, middle) = (slot.range.start, slot.range.start + slot.len());
            [start..middle, middle..slot.range.end]
        })
        .filter(|range| !range.is_empty())
        .collect();
    for mesh in MESHES {
        for memory in [Memory::Retain, Memory::Recompute] {
            let settings = Settings { mesh: mesh.parse().unwrap(), memory, ..settings.clone() };
            let parallel = train(&posterior, &loss, data, &settings);
            for range in &tensors {
                let error = distance(&serial[range.clone()], &parallel[range.clone()]);
                assert!(error <= 1e-5, "{mesh}, {memory:?}, {range:?}: off by {error}");
            }
        }
    }
}

#[test]
fn expected_cross_entropy() {
    let loss = Expected(Categorical);
    assert_mesh_independent(mean_field(3), loss, &classification(40), settings());
}

#[test]
fn cross_entropy_of_mean_probabilities() {
    let loss = Mixture::new(Categorical).with_floor(1e-5).unwrap();
    assert_mesh_independent(mean_field(3), loss, &classification(40), settings());
}

#[test]
fn expected_squared_error() {
    assert_mesh_independent(mean_field(3), ExpectedSquaredError, &regression(40), settings());
}

#[test]
fn squared_error_of_mean() {
    assert_mesh_independent(mean_field(3), SquaredErrorOfMean, &regression(40), settings());
}

#[test]
fn gaussian_of_draws() {
    let loss = GaussianOfDraws::default();
    let posterior = mean_field(3).with_initial_std(InitialStd::Constant(0.4)).unwrap();
    assert_mesh_independent(posterior, loss, &regression(40), settings());
}

#[test]
fn expected_gaussian() {
    assert_mesh_independent(mean_field(6), Expected(Gaussian), &regression(40), settings());
}

#[test]
fn gaussian_mixture() {
    assert_mesh_independent(mean_field(6), Mixture::new(Gaussian), &regression(40), settings());
}

#[test]
fn gaussian_mixture_by_output() {
    let loss = Mixture::new(Gaussian).by_output();
    assert_mesh_independent(mean_field(6), loss, &regression(40), settings());
}

/// Three counts of each example.
fn counts(rows: usize) -> TensorDataset<Tensor<2>, Tensor<2>> {
    let inputs = common::numbers(0, [rows, 5]);
    let counts: Vec<f32> = (0..3 * rows).map(|i| ((i * i) % 7) as f32).collect();
    let targets = Tensor::from_data(TensorData::new(counts, [rows, 3]), &Device::default());
    TensorDataset::new(inputs, targets).unwrap()
}

#[test]
fn poisson() {
    assert_mesh_independent(mean_field(3), Expected(Poisson), &counts(40), settings());
    assert_mesh_independent(mean_field(3), Mixture::new(Poisson), &counts(40), settings());
}

#[test]
fn negative_binomial() {
    let by_output = Mixture::new(NegativeBinomial).by_output();
    assert_mesh_independent(mean_field(6), Expected(NegativeBinomial), &counts(40), settings());
    assert_mesh_independent(mean_field(6), by_output, &counts(40), settings());
}

#[test]
fn several_quantiles() {
    let loss = Quantiles::new(5).unwrap();
    assert_mesh_independent(mean_field(15), loss, &regression(40), settings());
}

#[test]
fn student_t_mixture() {
    let loss = Mixture::new(StudentT::new(4.0).unwrap());
    assert_mesh_independent(mean_field(6), loss, &regression(40), settings());
}

#[test]
fn quantile_mixture() {
    let loss = Mixture::new(Quantile::new(0.9).unwrap());
    assert_mesh_independent(mean_field(3), loss, &regression(40), settings());
}

#[test]
fn ensemble_crps() {
    assert_mesh_independent(mean_field(3), EnsembleCrps::default(), &regression(40), settings());
    assert_mesh_independent(mean_field(3), EnsembleCrps::fair(), &regression(40), settings());
    // Draws that are stacked, and transposed.
    let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1);
    let loss = EnsembleCrps::almost_fair(0.95).unwrap();
    assert_mesh_independent(posterior, loss, &regression(40), settings());
}

/// The plain CRPS of so many equal groups of draws, mean over groups, with the draws gathered.
#[derive(Clone)]
struct GatheredCrps {
    groups: usize,
}

impl Loss for GatheredCrps {
    type Target = Tensor<2>;

    fn combine(&self) -> Combine {
        Combine::Gather
    }

    fn summary(&self, output: Tensor<2>, _target: &Tensor<2>) -> Tensor<2> {
        output
    }

    fn value(&self, combined: Tensor<2>, draws: usize, target: &Tensor<2>) -> Tensor<1> {
        let [_, columns] = target.dims();
        let draw = |s: usize| combined.clone().narrow(1, s * columns, columns);
        let size = draws / self.groups;
        let mut terms = target.zeros_like();
        for s in 0..draws {
            terms = terms + (draw(s) - target.clone()).abs() / draws as f32;
            for t in s + 1..(s / size + 1) * size {
                terms = terms - (draw(s) - draw(t)).abs() / (draws * size) as f32;
            }
        }
        terms.mean_dim(1).squeeze_dim(1)
    }
}

/// Gathered draws are as exact as others, and what is transposed is what is gathered.
#[test]
fn gathered_draws() {
    let (posterior, data) = (mean_field(3), regression(40));
    assert_mesh_independent(posterior.clone(), GatheredCrps { groups: 1 }, &data, settings());
    let gathered = train(&posterior, &GatheredCrps { groups: 1 }, &data, &settings());
    let transposed = train(&posterior, &EnsembleCrps::default(), &data, &settings());
    assert!(distance(&gathered, &transposed) < 1e-5);
}

/// In local mode every rank has the CRPS of its own draws.
#[test]
fn local_crps_is_that_of_the_draws_of_a_rank() {
    let (posterior, data) = (mean_field(3), regression(40));
    for ranks in [1, 2, 4] {
        let settings = Settings { samples: 4, ..settings() };
        let by_hand = train(&posterior, &GatheredCrps { groups: ranks }, &data, &settings);
        let run = |exact: bool| {
            let settings =
                Settings { mesh: Mesh::samples(ranks).unwrap(), exact, ..settings.clone() };
            train(&posterior, &EnsembleCrps::default(), &data, &settings)
        };
        let error = distance(&by_hand, &run(false));
        assert!(error < 1e-5, "{ranks} ranks: off by {error}");
        assert!(ranks == 1 || distance(&by_hand, &run(true)) > 1e-4, "{ranks} ranks");
    }
}

/// Outputs that count differently, one of them not at all.
fn weighted<L: ByOutput>(loss: L) -> Weighted<L> {
    Weighted::new(loss, OutputWeights::new(vec![2.0, 0.0, 0.5]).unwrap())
}

#[test]
fn weighted_outputs() {
    let data = regression(40);
    assert_mesh_independent(mean_field(3), weighted(ExpectedSquaredError), &data, settings());
    assert_mesh_independent(mean_field(3), weighted(SquaredErrorOfMean), &data, settings());
    assert_mesh_independent(mean_field(3), weighted(EnsembleCrps::fair()), &data, settings());
    let posterior = mean_field(3).with_initial_std(InitialStd::Constant(0.4)).unwrap();
    let loss = weighted(GaussianOfDraws::default());
    assert_mesh_independent(posterior, loss, &data, settings());
}

#[test]
fn monte_carlo_kl_with_a_scale_mixture_prior() {
    let prior = Prior::ScaleMixture { weight: 0.5, std_wide: 1.0, std_narrow: 0.1 };
    let posterior = MeanField::new(Mlp::new(5, 8, 3, 0.0), prior)
        .unwrap()
        .with_initial_std(InitialStd::Constant(0.1))
        .unwrap()
        .initialised(1);
    assert_mesh_independent(posterior, ExpectedSquaredError, &regression(40), settings());
}

#[test]
fn monte_carlo_kl_with_a_gaussian_prior() {
    let posterior = mean_field(3).with_kl(Kl::MonteCarlo).unwrap();
    assert_mesh_independent(posterior, SquaredErrorOfMean, &regression(40), settings());
}

#[test]
fn mc_dropout() {
    let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1);
    assert_mesh_independent(posterior, SquaredErrorOfMean, &regression(40), settings());
}

#[test]
fn adam_and_adamw() {
    for optimizer in [OptimizerConfig::adam(), OptimizerConfig::adamw()] {
        let settings =
            Settings { optimizer, schedule: Schedule::Constant { rate: 1e-3 }, ..settings() };
        assert_mesh_independent(mean_field(3), SquaredErrorOfMean, &regression(40), settings);
    }
}

/// Inputs jittered by the stream, example by example.
struct Jittered(TensorDataset<Tensor<2>, Tensor<2>>);

impl Dataset for Jittered {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        self.0.batch(rows, device)
    }

    fn augment(&self, input: &Tensor<2>, rows: &[usize], stream: &Stream) -> Option<Tensor<2>> {
        let [_, columns] = input.dims();
        let mut noise = vec![0.0; rows.len() * columns];
        for (row, noise) in rows.iter().zip(noise.chunks_mut(columns)) {
            stream.fill_normal((row * columns) as u64, noise);
        }
        let noise = TensorData::new(noise, [rows.len(), columns]);
        Some(input.clone() + Tensor::from_data(noise, &input.device()) * 0.3)
    }
}

#[test]
fn augmentation_per_draw_does_not_depend_on_the_mesh() {
    let data = Jittered(regression(40));
    assert_mesh_independent(mean_field(3), ExpectedSquaredError, &data, settings());
    // Stacked draws, each with an augmentation of its own.
    let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1);
    assert_mesh_independent(posterior, SquaredErrorOfMean, &data, settings());
}

#[test]
fn augmentation_can_be_shared_by_all_draws_or_by_those_of_a_rank() {
    let (posterior, data) = (mean_field(3), Jittered(regression(40)));
    let run = |augment: Augment, mesh: &str| {
        let settings = Settings { augment, mesh: mesh.parse().unwrap(), ..settings() };
        train(&posterior, &ExpectedSquaredError, &data, &settings)
    };
    let shared = run(Augment::Shared, "1x1");
    assert!(distance(&shared, &run(Augment::Shared, "3x1")) < 1e-5);
    assert!(distance(&shared, &run(Augment::Shared, "2x2")) < 1e-5);
    // On one rank "those of a rank" are all.
    assert!(distance(&shared, &run(Augment::PerRank, "1x1")) < 1e-5);
    assert!(distance(&shared, &run(Augment::PerRank, "2x1")) > 1e-4);
    assert!(distance(&shared, &run(Augment::PerDraw, "1x1")) > 1e-4);
}

/// With draws in power-of-two blocks, the fixed tree gives the same bits on any number of ranks.
#[test]
fn reproducible_sums_are_bitwise_equal_along_the_sample_axis() {
    fn check<L: Loss + Clone, D: Dataset<Input = Tensor<2>, Target = L::Target>>(
        outputs: usize,
        loss: L,
        data: &D,
    ) {
        for samples in [8, 16] {
            for kl in [Kl::Analytic, Kl::MonteCarlo] {
                let posterior = mean_field(outputs).with_kl(kl).unwrap();
                let run = |ranks: usize, reduce: Reduce, memory: Memory| {
                    let settings = Settings {
                        samples,
                        mesh: Mesh::samples(ranks).unwrap(),
                        reduce,
                        memory,
                        optimizer: OptimizerConfig::adam(),
                        ..settings()
                    };
                    let values = train(&posterior, &loss, data, &settings);
                    values.iter().map(|v| v.to_bits()).collect::<Vec<u32>>()
                };
                let serial = run(1, Reduce::Reproducible, Memory::Recompute);
                for ranks in [1, 2, 4, 8] {
                    for memory in [Memory::Retain, Memory::Recompute] {
                        let parallel = run(ranks, Reduce::Reproducible, memory);
                        assert!(serial == parallel, "{samples} draws on {ranks}, {memory:?}");
                    }
                }
            }
        }
    }
    let (values, labels) = (regression(40), classification(40));
    check(3, Expected(Categorical), &labels);
    check(3, Mixture::new(Categorical), &labels);
    check(3, ExpectedSquaredError, &values);
    check(3, SquaredErrorOfMean, &values);
    check(3, GaussianOfDraws::default(), &values);
    check(6, Mixture::new(Gaussian), &values);
    check(3, EnsembleCrps::default(), &values);
    check(3, weighted(GaussianOfDraws::default()), &values);
    check(3, weighted(EnsembleCrps::fair()), &values);
}

/// The fast sum really is another one: the test above does not pass by accident.
#[test]
fn fast_sums_differ_in_bits() {
    let posterior = mean_field(3);
    let data = regression(40);
    let run = |ranks: usize| {
        let settings = Settings { samples: 8, mesh: Mesh::samples(ranks).unwrap(), ..settings() };
        train(&posterior, &ExpectedSquaredError, &data, &settings)
    };
    assert_ne!(run(1), run(4));
}
