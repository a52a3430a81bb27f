//! What the shifted-window transformer promises: where it turns with the globe, how it is random,
//! and that ranks change nothing.

mod common;

use bayesmesh::loss::{EnsembleCrps, GaussianOfDraws};
use bayesmesh::posterior::{InitialStd, Tape};
use bayesmesh::testing::check_meshes;
use bayesmesh::trainer::{Length, OptimizerConfig, Schedule};
use bayesmesh::{
    Draw, FunctionalNoise, McDropout, MeanField, Network, Point, Posterior, Prior, Settings,
    TensorDataset, Trainer,
};
use bayesmesh_models::{Swin, SwinConfig};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::{stream_values, to_vec};

type Input = (Tensor<4>, Tensor<1, Int>);

/// A network on a small globe of odd rows: 7 × 12 tokens, 4 × 6 on the coarse grid.
fn tiny() -> SwinConfig {
    SwinConfig {
        width: 8,
        depths: [1, 2, 2],
        heads: [2, 2],
        window: [2, 3],
        residual: false,
        ..SwinConfig::small(4, 2, 13, 24)
    }
}

fn turns(turns: &[i64]) -> Tensor<1, Int> {
    Tensor::from_data(TensorData::new(turns.to_vec(), [turns.len()]), &Device::default())
}

fn fields(config: &SwinConfig, rows: usize) -> Tensor<4> {
    let shape = [rows, config.channels, config.latitudes, config.longitudes];
    let values = stream_values(0, 3, shape.iter().product(), 1.5, 0.0);
    Tensor::from_data(TensorData::new(values, shape), &Device::default())
}

/// A network whose weights are the same in every run.
fn network(config: &SwinConfig) -> Swin {
    let posterior = Point::new(config.init(&Device::default())).initialised(2);
    let draw = Draw::for_prediction(0, 0);
    posterior.parameters().snapshot().draw(&draw, Tape::Off).network
}

/// Every longitude moved eastwards.
fn turned<const D: usize>(x: Tensor<D>, by: usize) -> Tensor<D> {
    let n = x.dims()[D - 1];
    let by = by % n;
    match by {
        0 => x,
        _ => {
            let parts = [(n - by, by), (0, n - by)];
            Tensor::cat(parts.map(|(from, n)| x.clone().narrow(D - 1, from, n)).to_vec(), D - 1)
        }
    }
}

fn forward(network: &Swin, input: Input) -> Vec<f32> {
    to_vec(network.forward(input, &Draw::for_prediction(0, 0)))
}

fn grid(config: &SwinConfig, values: Vec<f32>) -> Tensor<4> {
    let SwinConfig { variables, latitudes, longitudes, .. } = *config;
    let rows = values.len() / (variables * latitudes * longitudes);
    let shape = [rows, variables, latitudes, longitudes];
    Tensor::from_data(TensorData::new(values, shape), &Device::default())
}

/// Windows of 3 columns of tokens of 2 points, on a coarse grid of every second token: predictions
/// turn with the globe by multiples of 12 columns, to the last bit, and by no others.
#[test]
fn predictions_turn_with_the_globe_by_whole_windows_of_the_coarse_grid() {
    for patch in [1, 2] {
        let config = SwinConfig { patch, ..tiny() };
        let whole = 3 * patch * 2;
        let (network, x) = (network(&config), fields(&config, 2));
        let straight = forward(&network, (x.clone(), turns(&[0, 0])));
        for by in 1..24 {
            let expected = to_vec(turned(grid(&config, straight.clone()), by));
            let found = forward(&network, (turned(x.clone(), by), turns(&[0, 0])));
            assert_eq!(found == expected, by % whole == 0, "turned by {by}, patches of {patch}");
        }
    }
}

#[test]
fn a_turn_is_undone_in_the_output_row_by_row() {
    let config = SwinConfig { residual: true, ..tiny() };
    let (network, x) = (network(&config), fields(&config, 3));
    let by = [0i64, 5, -3];
    let found = grid(&config, forward(&network, (x.clone(), turns(&by))));
    for (row, by) in by.into_iter().enumerate() {
        let by = by.rem_euclid(24) as usize;
        let one = turned(x.clone().narrow(0, row, 1), by);
        let expected = forward(&network, (one, turns(&[0])));
        let expected = turned(grid(&config, expected), 24 - by);
        assert_eq!(to_vec(found.clone().narrow(0, row, 1)), to_vec(expected), "row {row}");
    }
}

#[test]
fn a_residual_network_adds_a_scaled_change() {
    let plain = tiny();
    let x = fields(&plain, 1);
    let values = forward(&network(&plain), (x.clone(), turns(&[0])));
    let changes = vec![0.5, 0.25];
    let residual = SwinConfig { residual: true, changes: changes.clone(), ..plain.clone() };
    let found = forward(&network(&residual), (x.clone(), turns(&[0])));
    let area = 13 * 24;
    let before = to_vec(x);
    for (i, found) in found.into_iter().enumerate() {
        let expected = before[i] + changes[i / area] * values[i];
        assert!((found - expected).abs() < 1e-5, "{i}: {found} against {expected}");
    }
}

#[test]
fn weights_are_counted_before_they_are_made() {
    for config in [
        tiny(),
        SwinConfig { residual: true, noise: 5, ..tiny() },
        SwinConfig { patch: 1, noise: 3, noise_fields: 2, ..tiny() },
        SwinConfig::small(7, 3, 32, 48),
    ] {
        let made = config.init(&Device::default()).num_params() as u64;
        assert_eq!(config.weights(), made, "{config:?}");
    }
    let absurd = SwinConfig { width: usize::MAX - 3, depths: [usize::MAX; 3], ..tiny() };
    assert_eq!((absurd.weights(), absurd.activations()), (u64::MAX, u64::MAX));
    let again = SwinConfig { checkpoint_blocks: true, ..SwinConfig::paper(76, 69, 121, 240) };
    let (all, again) = (SwinConfig::paper(76, 69, 121, 240).activations(), again.activations());
    assert!(5 * again < all, "{again} of {all}");
}

#[test]
fn sizes_that_do_not_go_together_are_refused_in_words() {
    let refused = |config: SwinConfig| config.check().unwrap_err();
    assert_eq!(tiny().check(), Ok(()));
    assert_eq!(SwinConfig::paper(76, 69, 121, 240).check(), Ok(()));
    let window = refused(SwinConfig { window: [2, 4], ..tiny() });
    assert!(window.contains("4 columns") && window.contains("one of 1, 2, 3, 6"), "{window}");
    let heads = refused(SwinConfig { heads: [3, 2], ..tiny() });
    assert!(heads.contains("`heads`"), "{heads}");
    let odd = refused(SwinConfig { longitudes: 22, window: [2, 1], ..tiny() });
    assert!(odd.contains("set `patch` to 1"), "{odd}");
    let odd = refused(SwinConfig { longitudes: 21, patch: 1, ..tiny() });
    assert!(odd.contains("21 columns"), "{odd}");
    let residual = refused(SwinConfig { residual: true, channels: 1, ..tiny() });
    assert!(residual.contains("`residual`"), "{residual}");
}

/// The second row of the batch is turned.
fn data(config: &SwinConfig) -> TensorDataset<Input, Tensor<2>> {
    let outputs = config.variables * config.latitudes * config.longitudes;
    let target = stream_values(0, 4, 4 * outputs, 1.0, 0.3);
    let target = Tensor::from_data(TensorData::new(target, [4, outputs]), &Device::default());
    TensorDataset::new((fields(config, 4), turns(&[0, 7, 0, 12])), target).unwrap()
}

fn settings() -> Settings {
    Settings {
        seed: 5,
        samples: 4,
        batch: 3,
        heat: 0.1,
        clip_norm: Some(1.0),
        schedule: Schedule::Constant { rate: 0.02 },
        optimizer: OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.0 },
        ..Settings::default()
    }
}

fn mean_field(config: &SwinConfig) -> MeanField<Swin> {
    let network = config.init(&Device::default());
    let posterior = MeanField::new(network, Prior::normal(0.0, 1.0)).unwrap();
    posterior.with_initial_std(InitialStd::PerFanIn(0.3)).unwrap().initialised(1)
}

#[test]
fn a_gaussian_of_draws_is_the_same_on_all_meshes() {
    let config = SwinConfig { checkpoint_blocks: true, ..tiny() };
    let loss = GaussianOfDraws::with_floor(1e-2).unwrap();
    check_meshes(&mean_field(&config), &loss, &data(&config), &settings()).unwrap();
}

#[test]
fn the_crps_of_functional_noise_is_the_same_on_all_meshes() {
    let config = SwinConfig { noise: 4, residual: true, dropout: 0.1, ..tiny() };
    let posterior = FunctionalNoise::new(config.init(&Device::default())).initialised(1);
    check_meshes(&posterior, &EnsembleCrps::fair(), &data(&config), &settings()).unwrap();
}

/// Blocks that are run again learn the same, with gradients that travel during the backward pass.
#[test]
fn running_blocks_again_changes_no_bit_of_training() {
    let run = |checkpoint_blocks: bool, overlap: bool| {
        let config = SwinConfig { checkpoint_blocks, dropout: 0.2, noise: 3, ..tiny() };
        let posterior = FunctionalNoise::new(config.init(&Device::default())).initialised(1);
        let settings = Settings {
            mesh: "2x1".parse().unwrap(),
            overlap,
            bucket_bytes: 2048,
            reduce: bayesmesh::Reduce::Reproducible,
            ..settings()
        };
        let mut trainer = Trainer::new(posterior, EnsembleCrps::default(), settings);
        trainer.fit(&data(&config), None, Length::Steps(3)).unwrap();
        trainer.posterior().parameters().values().to_vec()
    };
    let kept = run(false, false);
    assert!(kept == run(true, false));
    assert!(kept == run(true, true));
}

/// The outputs of the first draws of a posterior for prediction.
fn draws<P: Posterior<Network = Swin>>(posterior: &P, config: &SwinConfig) -> Vec<Vec<f32>> {
    let of_draw = |index| {
        let draw = posterior.adapt(Draw::for_prediction(1, index).with_rows(0..1));
        let network = posterior.parameters().snapshot().draw(&draw, Tape::Off).network;
        to_vec(network.forward((fields(config, 1), turns(&[0])), &draw))
    };
    (0..3).map(of_draw).collect()
}

#[test]
fn noise_tells_draws_apart_and_begins_small() {
    let config = SwinConfig { noise: 6, ..tiny() };
    let network = config.init(&Device::default());
    let noisy = FunctionalNoise::new(network.clone()).initialised(1);
    let [a, b, c]: [Vec<f32>; 3] = draws(&noisy, &config).try_into().unwrap();
    assert!(a != b && b != c);
    let plain = draws(&Point::new(network).initialised(1), &config);
    assert!(plain[0] == plain[1], "without functional noise nothing is random");
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
    let apart = norm(&mut a.iter().zip(&plain[0]).map(|(a, b)| a - b));
    let size = norm(&mut plain[0].iter().copied());
    assert!(apart > 1e-3 * size && apart < 0.6 * size, "{apart} of {size}");
    // Maps of the same seed are the same, whatever Burn made of them.
    let again = FunctionalNoise::new(config.init(&Device::default())).initialised(1);
    assert!(draws(&again, &config)[0] == a);
}

#[test]
fn posteriors_refuse_a_network_that_does_not_listen_to_them() {
    fn refusal<P: Posterior<Network = Swin>>(posterior: P) -> Option<String> {
        let loss = EnsembleCrps::default();
        let mut trainer = Trainer::new(posterior, loss, settings());
        trainer.fit(&data(&tiny()), None, Length::Steps(1)).err().map(|error| error.to_string())
    }
    let network = |noise, dropout| SwinConfig { noise, dropout, ..tiny() }.init(&Device::default());
    let silent = refusal(FunctionalNoise::new(network(0, 0.3)).initialised(1)).unwrap();
    assert!(silent.contains("draw.latent") && silent.contains("`noise`"), "{silent}");
    assert_eq!(refusal(FunctionalNoise::new(network(3, 0.0)).initialised(1)), None);
    let silent = refusal(McDropout::new(network(3, 0.0)).initialised(1)).unwrap();
    assert!(silent.contains("draw.dropout"), "{silent}");
    assert_eq!(refusal(McDropout::new(network(0, 0.3)).initialised(1)), None);
}

#[test]
fn a_loss_is_learned() {
    let config = SwinConfig { residual: true, noise: 4, ..tiny() };
    let posterior = FunctionalNoise::new(config.init(&Device::default())).initialised(1);
    let loss = |posterior: &FunctionalNoise<Swin>| {
        let outputs = draws(posterior, &config);
        let target = stream_values(0, 4, outputs[0].len(), 1.0, 0.3);
        let fair = |cell: usize| {
            let [a, b, c] = [0, 1, 2].map(|draw| outputs[draw][cell]);
            let error: f32 = [a, b, c].iter().map(|x| (x - target[cell]).abs()).sum();
            error / 3.0 - ((a - b).abs() + (a - c).abs() + (b - c).abs()) / 6.0
        };
        (0..target.len()).map(fair).sum::<f32>() / target.len() as f32
    };
    let before = loss(&posterior);
    let settings = Settings {
        schedule: Schedule::Constant { rate: 3e-3 },
        optimizer: OptimizerConfig::adam(),
        ..settings()
    };
    let mut trainer = Trainer::new(posterior, EnsembleCrps::fair(), settings);
    trainer.fit(&data(&config), None, Length::Steps(40)).unwrap();
    let after = loss(trainer.posterior());
    assert!(after < 0.9 * before, "{before} to {after}");
}
