//! Training on ranks that are MPI processes is training on threads: to the bit with reproducible
//! sums, to 1e-5 with fast ones, for every loss, and with draws, data or both divided. So it is
//! with the optimiser divided.
//!
//! Started without arguments this is the driver: it starts itself under `mpirun` (or the command in
//! `BAYESMESH_MPIRUN`) on 1 to 4 ranks.

#[path = "../../bayesmesh-comm/tests/mpi/job.rs"]
mod job;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bayesmesh::comm::{Communicator, agree, launch, mpi};
use bayesmesh::loss::{
    Categorical, EnsembleCrps, Expected, ExpectedSquaredError, Gaussian, GaussianOfDraws, Mixture,
    Quantile, SquaredErrorOfMean, StudentT,
};
use bayesmesh::posterior::InitialStd;
use bayesmesh::trainer::{Length, OptimizerConfig, Schedule};
use bayesmesh::{
    Dataset, Ensemble, Loss, McDropout, MeanField, Mesh, Network, Place, Posterior, Prior, Purpose,
    Reduce, Settings, Stream, TensorDataset, Trainer,
};
use bayesmesh_models::{Mlp, MlpConfig, VitConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};

const STEPS: Length = Length::Steps(5);
/// What is allowed between sums in different orders, relative to the largest number of a tensor.
const TOLERANCE: f32 = 1e-5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["rank", "suite"] => match mpi::run(suite) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                println!("{error}");
                ExitCode::FAILURE
            }
        },
        _ => driver(),
    }
}

fn driver() -> ExitCode {
    assert!(!launch::is_launched(), "start the driver without mpirun");
    let library = mpi::library();
    let Some(launcher) = job::launcher(&library) else {
        println!("no mpirun of {library} here; set BAYESMESH_MPIRUN to it");
        return ExitCode::FAILURE;
    };
    println!("{library}, started by {}", launcher.join(" "));
    let mut code = ExitCode::SUCCESS;
    let mut jobs: Vec<(usize, &str, Vec<String>)> =
        (1..=4).map(|ranks| (ranks, "", launcher.clone())).collect();
    jobs.push((2, ", threads in turns", job::in_turns(&launcher)));
    let nodes = job::Nodes { sizes: vec![2, 2], dealt: true };
    match nodes.launcher(&library) {
        Some(launcher) => jobs.push((nodes.ranks(), " of two nodes", launcher)),
        None => println!("this machine cannot stand for several here; no training on two nodes"),
    }
    for (ranks, place, launcher) in jobs {
        let ended = job::job(&launcher, ranks, &["suite"], Duration::from_secs(600));
        let passed = ended.output.lines().any(|line| line == "suite passed");
        match job::check(&ended, ended.success() && passed, "did not pass") {
            Ok(()) => {
                print!("{}", ended.output);
                let seconds = ended.took.as_secs_f32();
                println!("training on {ranks} ranks{place} ... ok ({seconds:.1} s)");
            }
            Err(reason) => {
                println!("training on {ranks} ranks{place} ... FAILED\n{reason}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// What every rank of a job runs.
fn suite(world: &mpi::MpiCommunicator) -> Result<(), String> {
    let world: Arc<dyn Communicator> = Arc::new(world.clone());
    let regression = regression(40);
    let classification = classification(40);
    let world = &world;

    let dropout = McDropout::new(mlp(3, 0.3)).initialised(1);
    same_digest(world, "MC dropout", &dropout, SquaredErrorOfMean, &regression)?;
    close(world, "MC dropout", &dropout, SquaredErrorOfMean, &regression)?;

    let vit = MeanField::new(VitConfig::tiny().init(&Device::default()), Prior::normal(0.0, 1.0));
    let vit = vit.and_then(|vit| vit.with_initial_std(InitialStd::PerFanIn(0.3))).map_err(text)?;
    let vit = vit.initialised(1);
    let mean_probability = Mixture::new(Categorical).with_floor(1e-5).map_err(text)?;
    let images = images(11);
    same_digest(world, "tiny ViT", &vit, mean_probability, &images)?;
    close(world, "tiny ViT", &vit, mean_probability, &images)?;

    let (three, six) = (mean_field(3, 0.1)?, mean_field(6, 0.1)?);
    let wide = mean_field(3, 0.4)?;
    close(world, "expected cross entropy", &three, Expected(Categorical), &classification)?;
    close(world, "mean probability", &three, mean_probability, &classification)?;
    close(world, "expected squared error", &three, ExpectedSquaredError, &regression)?;
    close(world, "squared error of the mean", &three, SquaredErrorOfMean, &regression)?;
    close(world, "Gaussian of draws", &wide, GaussianOfDraws::default(), &regression)?;
    close(world, "ensemble CRPS", &three, EnsembleCrps::default(), &regression)?;
    close(world, "expected Gaussian", &six, Expected(Gaussian), &regression)?;
    close(world, "Gaussian mixture", &six, Mixture::new(Gaussian), &regression)?;
    let student = StudentT::new(4.0).map_err(text)?;
    close(world, "Student-t mixture", &six, Mixture::new(student), &regression)?;
    let quantile = Quantile::new(0.9).map_err(text)?;
    close(world, "quantile mixture", &three, Mixture::new(quantile), &regression)?;

    members(world, &regression)?;
    same_scores(world, &dropout, &regression)?;
    differences_are_refused(world)?;
    if world.rank() == 0 {
        println!("suite passed");
    }
    Ok(())
}

/// Reproducible sums, draws divided: the digest of as many threads, and of one where the draws go
/// round.
fn same_digest<P, L, D>(
    world: &Arc<dyn Communicator>,
    name: &str,
    posterior: &P,
    loss: L,
    data: &D,
) -> Result<(), String>
where
    P: Posterior + Clone,
    L: Loss + Clone,
    D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
{
    let settings = |ranks: usize, shard_optimizer: bool| Settings {
        samples: 4,
        batch: 7,
        mesh: Mesh::samples(ranks).expect("ranks"),
        reduce: Reduce::Reproducible,
        optimizer: OptimizerConfig::adam(),
        shard_optimizer,
        // Several pieces of the tiny ViT.
        bucket_bytes: 100_000,
        ..settings()
    };
    let of = |place, settings| Trainer::at(place, posterior.clone(), loss.clone(), settings);
    let job = || Place::Job(Arc::clone(world));
    let mut own = of(job(), settings(world.size(), false)).map_err(text)?;
    let start = own.checkpoint().digest();
    own.fit(data, None, STEPS).map_err(text)?;
    let digest = own.checkpoint().digest();
    agree(&**world, &[("digest", &digest)]).map_err(text)?;

    // The optimiser divided, in two parts and with all of its state in the end.
    let mut divided = of(job(), settings(world.size(), true)).map_err(text)?;
    divided.fit(data, None, Length::Steps(2)).map_err(text)?;
    divided.fit(data, None, STEPS).map_err(text)?;
    assert!(divided.checkpoint() == own.checkpoint(), "{name}: with the optimiser divided");
    if world.rank() == 0 {
        assert_ne!(digest, start, "{name}: five steps changed nothing");
        let goes_round = 4 % world.size() == 0;
        for ranks in [1, world.size()].into_iter().skip(usize::from(!goes_round)) {
            let mut threads = of(Place::Threads, settings(ranks, false)).map_err(text)?;
            threads.fit(data, None, STEPS).map_err(text)?;
            assert_eq!(threads.checkpoint().digest(), digest, "{name}: {ranks} threads");
        }
        println!("{name}: {} ranks, digest {}", world.size(), &digest[..12]);
    }
    Ok(())
}

/// Fast sums on every kind of mesh: one rank's parameters, tensor by tensor.
fn close<P, L, D>(
    world: &Arc<dyn Communicator>,
    name: &str,
    posterior: &P,
    loss: L,
    data: &D,
) -> Result<(), String>
where
    P: Posterior + Clone,
    L: Loss + Clone,
    D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
{
    let trainer = |place, mesh, shard_optimizer| {
        let settings = Settings { samples: 5, batch: 7, mesh, shard_optimizer, ..settings() };
        Trainer::at(place, posterior.clone(), loss.clone(), settings).map_err(text)
    };
    let start = Instant::now();
    // Only rank 0 compares; the others wait for it without using a core.
    let mut serial = trainer(Place::Threads, Mesh::serial(), false)?;
    if world.rank() == 0 {
        serial.fit(data, None, STEPS).map_err(text)?;
    }
    let mut worst = 0.0f32;
    let shapes = meshes(world.size()).into_iter();
    for (mesh, shard_optimizer) in shapes.flat_map(|mesh| [(mesh, false), (mesh, true)]) {
        let mut own = trainer(Place::Job(Arc::clone(world)), mesh, shard_optimizer)?;
        own.fit(data, None, STEPS).map_err(text)?;
        agree(&**world, &[("digest", own.checkpoint().digest())]).map_err(text)?;
        if world.rank() > 0 {
            continue;
        }
        let expected = serial.posterior().parameters();
        let (expected, values) = (expected.values(), own.posterior().parameters().values());
        assert!(distance(posterior.parameters().values(), expected) > 1e-3, "{name}: no change");
        for slot in posterior.parameters().slots() {
            // Means and deviations apart, so that small numbers count too.
            let (start, end) = (slot.range.start, slot.range.end);
            let middle = (start + slot.len()).min(end);
            for range in [start..middle, middle..end].into_iter().filter(|r| !r.is_empty()) {
                let error = distance(&expected[range.clone()], &values[range]);
                worst = worst.max(error);
                assert!(error <= TOLERANCE, "{name}: {mesh}, {}: off by {error}", slot.name);
            }
        }
    }
    if world.rank() == 0 {
        let seconds = start.elapsed().as_secs_f32();
        println!("{name}: {} ranks, off by at most {worst:e} ({seconds:.1} s)", world.size());
    }
    Ok(())
}

/// An ensemble whose members are on different processes is that of threads, and goes on from a
/// checkpoint that one process has read.
fn members(
    world: &Arc<dyn Communicator>,
    data: &TensorDataset<Tensor<2>, Tensor<2>>,
) -> Result<(), String> {
    let trainer = |place, mesh, shard_optimizer| {
        let reduce = Reduce::Reproducible;
        let settings =
            Settings { samples: 4, batch: 8, mesh, reduce, shard_optimizer, ..settings() };
        let posterior = Ensemble::new(mlp(6, 0.2));
        Trainer::at(place, posterior, Mixture::new(Gaussian), settings).map_err(text)
    };
    for mesh in meshes(world.size()) {
        let job = || Place::Job(Arc::clone(world));
        let mut own = trainer(job(), mesh, true)?;
        own.fit(data, None, Length::Steps(2)).map_err(text)?;
        let half = own.checkpoint_on(world.rank() == 0).map_err(text)?;
        assert_eq!(half.is_some(), world.rank() == 0);
        let mut resumed = trainer(job(), mesh, false)?;
        resumed.restore_from_first(half, "half").map_err(text)?;
        resumed.fit(data, None, STEPS).map_err(text)?;
        let scores = resumed.evaluate(data, 4).map_err(text)?;
        let all = resumed.checkpoint_on(true).map_err(text)?.expect("kept");
        let mut threads = trainer(Place::Threads, mesh, false)?;
        if world.rank() == 0 {
            threads.fit(data, None, STEPS).map_err(text)?;
            assert!(threads.checkpoint() == all, "members on {mesh}");
            let expected = threads.evaluate(data, 4).map_err(text)?;
            for (score, expected) in scores.iter().zip(&expected) {
                let error = (score.value - expected.value).abs();
                let same = error <= 1e-5 * expected.value.abs() || expected.value.is_nan();
                assert!(same, "{mesh}: {score:?}, {expected:?}");
            }
            println!("ensemble: {mesh}, digest {}", &all.digest()[..12]);
        }
    }
    Ok(())
}

/// Scores of the whole job are those of threads.
fn same_scores(
    world: &Arc<dyn Communicator>,
    posterior: &McDropout<Mlp>,
    data: &TensorDataset<Tensor<2>, Tensor<2>>,
) -> Result<(), String> {
    for mesh in meshes(world.size()) {
        let settings = Settings { samples: 5, batch: 7, mesh, ..settings() };
        let threads = Trainer::new(posterior.clone(), SquaredErrorOfMean, settings.clone());
        let place = Place::Job(Arc::clone(world));
        let own = Trainer::at(place, posterior.clone(), SquaredErrorOfMean, settings);
        let own = own.map_err(text)?;
        let scores = own.evaluate(data, 6).map_err(text)?;
        if world.rank() == 0 {
            let expected = threads.evaluate(data, 6).map_err(text)?;
            let (scores, expected) = (scores.scores(), expected.scores());
            assert!(!scores.is_empty() && scores.len() == expected.len());
            for (score, expected) in scores.iter().zip(expected) {
                assert_eq!(score.name, expected.name);
                let error = (score.value - expected.value).abs();
                let same = error <= 1e-5 * expected.value.abs() || expected.value.is_nan();
                assert!(same, "{mesh}: {score:?}, {expected:?}");
            }
        }
    }
    Ok(())
}

/// Ranks that would not do the same run are told so, all of them, before anything is done.
fn differences_are_refused(world: &Arc<dyn Communicator>) -> Result<(), String> {
    if world.size() == 1 {
        return Ok(());
    }
    let odd = usize::from(world.rank() == 1);
    let refused = |seed: u64, weights: u64, rows: usize, words: &str| {
        let posterior = McDropout::new(mlp(3, 0.3)).initialised(weights);
        let mesh = Mesh::samples(world.size()).expect("ranks");
        let settings = Settings { samples: 5, batch: 7, seed, mesh, ..settings() };
        let place = Place::Job(Arc::clone(world));
        let trainer = Trainer::at(place, posterior, SquaredErrorOfMean, settings);
        let mut trainer = trainer.expect("ranks that talk");
        let outcome = trainer.fit(&regression(rows), None, STEPS);
        let message = outcome.expect_err("ranks differ").to_string();
        assert!(message.contains(words), "{words:?} not in: {message}");
        assert_eq!(trainer.step(), 0);
    };
    refused(5 + odd as u64, 1, 40, "seed differs between ranks: rank 0 has `5`, rank 1 has `6`");
    refused(5, 1, 40 + odd, "number of training examples differs between ranks: rank 0 has `40`");
    refused(5, 1 + odd as u64, 40, "digest of the parameters differs between ranks");
    Ok(())
}

/// Draws divided, data divided, and both where that is possible.
fn meshes(ranks: usize) -> Vec<Mesh> {
    let pairs = [(ranks, 1), (1, ranks), (2, 2)];
    let fits = pairs.into_iter().filter(|(samples, data)| samples * data == ranks);
    fits.map(|(samples, data)| Mesh::new(samples, data).expect("ranks")).collect()
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

fn mlp(outputs: usize, dropout: f64) -> Mlp {
    let config = MlpConfig { dropout, ..MlpConfig::new(5, vec![16, 12], outputs) };
    config.init(&Device::default())
}

fn mean_field(outputs: usize, std: f32) -> Result<MeanField<Mlp>, String> {
    let posterior = MeanField::new(mlp(outputs, 0.0), Prior::normal(0.0, 1.0)).map_err(text)?;
    let posterior = posterior.with_initial_std(InitialStd::Constant(std)).map_err(text)?;
    Ok(posterior.initialised(1))
}

/// Standard normal numbers from a stream of their own.
fn numbers(tensor: u32, count: usize) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Stream::new(99, Purpose::Synthesis).at_tensor(tensor).fill_normal(0, &mut values);
    values
}

fn matrix(tensor: u32, shape: [usize; 2]) -> Tensor<2> {
    let values = numbers(tensor, shape[0] * shape[1]);
    Tensor::from_data(TensorData::new(values, shape), &Device::default())
}

/// A smooth function of five inputs with three outputs, with noise.
fn regression(rows: usize) -> TensorDataset<Tensor<2>, Tensor<2>> {
    let x = matrix(0, [rows, 5]);
    let y = (x.clone().matmul(matrix(1, [5, 3])) * 0.7).sin() + matrix(2, [rows, 3]) * 0.1;
    TensorDataset::new(x, y).expect("as many rows")
}

/// Five inputs in three classes.
fn classification(rows: usize) -> TensorDataset<Tensor<2>, Tensor<1, Int>> {
    let x = matrix(0, [rows, 5]);
    let labels = x.clone().matmul(matrix(1, [5, 3])).argmax(1).squeeze_dim(1);
    TensorDataset::new(x, labels).expect("as many rows")
}

/// Images of noise whose mean says the class.
fn images(rows: usize) -> TensorDataset<Tensor<4>, Tensor<1, Int>> {
    let VitConfig { image, channels, classes, .. } = VitConfig::tiny();
    let pixels = channels * image * image;
    let mut values = numbers(7, rows * pixels);
    let labels: Vec<i64> = (0..rows as i64).map(|row| row * 7 % classes as i64).collect();
    for (image, label) in values.chunks_mut(pixels).zip(&labels) {
        image.iter_mut().for_each(|value| *value += *label as f32 / 4.0 - 1.0);
    }
    let device = Device::default();
    let images = TensorData::new(values, [rows, channels, image, image]);
    let labels = TensorData::new(labels, [rows]);
    TensorDataset::new(Tensor::from_data(images, &device), Tensor::from_data(labels, &device))
        .expect("as many rows")
}

/// The largest distance, relative to the largest number of the first.
fn distance(left: &[f32], right: &[f32]) -> f32 {
    let scale = left.iter().fold(f32::MIN_POSITIVE, |m, l| m.max(l.abs()));
    left.iter().zip(right).fold(0.0f32, |m, (l, r)| m.max((l - r).abs())) / scale
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
