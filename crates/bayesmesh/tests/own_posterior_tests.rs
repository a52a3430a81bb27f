//! Posteriors that are written outside of the library, those of `examples/own_posterior`: they train on any mesh
//! as on one rank, their gradients are right, and members stay apart.

mod common;
#[path = "common/scratch.rs"]
mod scratch;

#[path = "../examples/own_posterior/ensemble.rs"]
#[allow(dead_code)]
mod ensemble;
#[path = "../examples/own_posterior/laplace.rs"]
#[allow(dead_code)]
mod laplace;

use bayesmesh::loss::{Categorical, Expected, Gaussian, Mixture, SquaredErrorOfMean};
use bayesmesh::posterior::Ownership;
use bayesmesh::testing::check_meshes;
use bayesmesh::trainer::{Length, OptimizerConfig};
use bayesmesh::{
    Error, Place, Point, Posterior, Predictor, Settings, TensorDataset, Trainer, threads,
};
use burn::tensor::Tensor;
use common::{Mlp, classification, distance, regression};
use ensemble::DeepEnsemble;
use laplace::MeanFieldLaplace;
use scratch::Scratch;

type Regression = TensorDataset<Tensor<2>, Tensor<2>>;

fn settings() -> Settings {
    Settings {
        samples: 4,
        batch: 7,
        seed: 5,
        heat: 0.7,
        clip_norm: Some(2.0),
        schedule: 0.05.into(),
        ..Settings::default()
    }
}

fn laplace() -> MeanFieldLaplace<Mlp> {
    MeanFieldLaplace::new(Mlp::new(5, 8, 3, 0.2), 1.0).initialised(1)
}

fn ensemble(outputs: usize) -> DeepEnsemble<Mlp> {
    DeepEnsemble::new(Mlp::new(5, 8, outputs, 0.2))
}

#[test]
fn a_laplace_posterior_is_the_same_on_any_mesh() {
    let data = regression(40);
    check_meshes(&laplace(), &SquaredErrorOfMean, &data, &settings()).unwrap();
    check_meshes(&laplace(), &Expected(Gaussian::fixed(0.3).unwrap()), &data, &settings()).unwrap();
}

#[test]
fn an_ensemble_is_the_same_on_any_mesh() {
    let sgd = Settings { optimizer: OptimizerConfig::sgd().momentum(0.9).unwrap(), ..settings() };
    // Each for itself, and all together.
    for settings in [settings(), sgd] {
        check_meshes(&ensemble(3), &Expected(Categorical), &classification(40), &settings).unwrap();
        check_meshes(&ensemble(6), &Mixture::new(Gaussian), &regression(40), &settings).unwrap();
    }
    let uneven = Settings { samples: 5, ..settings() };
    check_meshes(&ensemble(6), &Mixture::new(Gaussian), &regression(40), &uneven).unwrap();
}

/// What the check is for: a posterior whose draws depend on the rank is found out.
#[test]
fn the_check_finds_a_run_that_depends_on_the_mesh() {
    let per_rank = Settings { exact: false, ..settings() };
    let error = check_meshes(&laplace(), &SquaredErrorOfMean, &regression(40), &per_rank);
    let message = error.unwrap_err().to_string();
    assert!(message.contains("on a mesh of 2x1"), "{message}");
    let still = Settings { schedule: 1e-12.into(), ..settings() };
    let error = check_meshes(&laplace(), &SquaredErrorOfMean, &regression(40), &still);
    assert!(error.unwrap_err().to_string().contains("nothing is compared"));
}

/// The penalty and its derivatives against finite differences, in parts as ranks add them.
#[test]
fn the_penalty_of_the_laplace_posterior_is_its_divergence() {
    let mut posterior = laplace();
    let count = posterior.parameters().values().len();
    // Scales and centres of all sizes.
    for (index, value) in posterior.parameters_mut().values_mut().iter_mut().enumerate() {
        *value = ((index * 37 % 101) as f32 / 25.0 - 2.0) * 0.9 + 0.01;
    }
    let penalty =
        |posterior: &MeanFieldLaplace<Mlp>| posterior.penalty(0.0, 0..count, &mut vec![0.0; count]);
    let mut gradient = vec![0.0; count];
    let cut = count / 3;
    let (left, right) = gradient.split_at_mut(cut);
    let parts = posterior.penalty(2.0, 0..cut, left) + posterior.penalty(2.0, cut..count, right);
    assert!((parts - penalty(&posterior)).abs() < 1e-6 * parts.abs(), "{parts}");
    for index in (0..count).step_by(7) {
        let moved = |by: f32| {
            let mut moved = posterior.clone();
            moved.parameters_mut().values_mut()[index] += by;
            penalty(&moved)
        };
        let difference = (moved(1e-2) - moved(-1e-2)) / 2e-2;
        let error = (f64::from(gradient[index]) / 2.0 - difference).abs();
        assert!(error < 2e-3 * difference.abs().max(1.0), "{index}: {error} of {difference}");
    }
    // KL(q‖q) = 0 at μ = 0 and b = s.
    let values = posterior.parameters_mut().values_mut();
    values.fill(0.0);
    assert!(penalty(&posterior).abs() < 1e-6);
}

/// A member of an ensemble whose members are averaged is the network that would be trained alone.
#[test]
fn members_that_are_averaged_are_trained_as_each_would_be_alone() {
    let data = regression(40);
    let settings = Settings { optimizer: OptimizerConfig::sgd(), clip_norm: None, ..settings() };
    let loss = Expected(Gaussian::fixed(0.5).unwrap());
    let mut together =
        Trainer::new(DeepEnsemble::new(Mlp::new(5, 8, 3, 0.0)), loss, settings.clone());
    let starts: Vec<Vec<f32>> =
        together.members().map(|member| member.parameters().values().to_vec()).collect();
    together.fit(&data, None, Length::Steps(6)).unwrap();
    for (start, member) in starts.iter().zip(together.members()) {
        let mut alone = Point::new(Mlp::new(5, 8, 3, 0.0));
        alone.parameters_mut().restore(start, &[]).unwrap();
        let mut alone = Trainer::new(alone, loss, Settings { samples: 1, ..settings.clone() });
        alone.fit(&data, None, Length::Steps(6)).unwrap();
        let (alone, member) = (alone.posterior().parameters(), member.parameters());
        assert!(distance(start, alone.values()) > 1e-3);
        let error = distance(alone.values(), member.values());
        assert!(error < 1e-6, "{error}");
    }
    assert!(starts[0] != starts[1], "members begin apart");
}

/// In a job each rank has its members only, the checkpoint has all, and any number of ranks goes on.
#[test]
fn members_live_on_their_rank_and_checkpoints_have_all() {
    let data = regression(40);
    let job = |ranks: usize, saved: Option<bayesmesh::checkpoint::Checkpoint>, steps: usize| {
        let outcome = threads::run(ranks, |world| {
            let mesh = format!("{ranks}x1").parse()?;
            let settings = Settings { mesh, ..settings() };
            let place = Place::job(world.clone());
            let mut trainer = Trainer::at(place, ensemble(6), Mixture::new(Gaussian), settings)?;
            assert_eq!(trainer.members().count(), 4 / ranks);
            if let Some(saved) = &saved {
                let own = (bayesmesh::Communicator::rank(world) == 0).then(|| saved.clone());
                trainer.restore_from_first(own, "saved")?;
            }
            trainer.fit(&data, None, Length::Steps(steps))?;
            let scores = trainer.evaluate(&data, 4)?;
            let crps = scores.score("crps")?.value;
            Ok::<_, Error>((trainer.checkpoint_on(true)?.expect("kept"), crps))
        });
        outcome.unwrap().swap_remove(0)
    };
    let (whole, crps) = job(1, None, 6);
    assert_eq!(whole.parameters.len(), 4 * 6, "six tensors of each of four members");
    assert!(whole.parameters[6].name.starts_with("member.1."), "{}", whole.parameters[6].name);
    for (first, then) in [(2, 4), (4, 2), (1, 2)] {
        let (half, _) = job(first, None, 3);
        let (resumed, other) = job(then, Some(half), 6);
        assert!(resumed == whole, "{first} ranks, then {then}");
        assert!((other - crps).abs() < 1e-6 * crps, "{other} and {crps}");
    }
}

#[test]
fn an_ensemble_has_no_more_draws_than_members() {
    let trainer = Trainer::new(ensemble(6), Mixture::new(Gaussian), settings());
    assert_eq!(trainer.posterior().ownership(), Ownership::PerDraw);
    let data: Regression = regression(5);
    let message = trainer.evaluate(&data, 5).unwrap_err().to_string();
    assert!(message.contains("at most 4"), "{message}");
    let input = common::numbers(0, [3, 5]);
    let some = trainer.predict(&input, 2).unwrap();
    let all = trainer.predict(&input, 4).unwrap();
    assert_eq!(some.values(), &all.values()[..some.values().len()]);
    assert!(all.epistemic_std().iter().all(|std| *std > 1e-3), "members differ");
}

/// Saved and read elsewhere: an ensemble by its network alone, a family of one's own by its
/// posterior.
#[test]
fn own_posteriors_predict_from_what_was_saved() {
    let (data, scratch) = (regression(40), Scratch::new());
    let input = common::numbers(3, [4, 5]);
    let path = scratch.path().join("ensemble.safetensors");
    let mut trainer = Trainer::new(ensemble(6), Mixture::new(Gaussian), settings());
    trainer.fit(&data, None, Length::Steps(3)).unwrap();
    trainer.save(&path).unwrap();
    let loaded = Predictor::load(&path, Mlp::new(5, 8, 6, 0.2)).unwrap();
    assert_eq!(loaded.predict(&input, 4).unwrap(), trainer.predict(&input, 4).unwrap());

    let path = scratch.path().join("laplace.safetensors");
    let mut trainer = Trainer::new(laplace(), SquaredErrorOfMean, settings());
    trainer.fit(&data, None, Length::Steps(3)).unwrap();
    trainer.save(&path).unwrap();
    let refused = Predictor::load(&path, Mlp::new(5, 8, 3, 0.2)).err().unwrap().to_string();
    assert!(refused.contains("`laplace`") && refused.contains("load_as"), "{refused}");
    let loaded = Predictor::load_as(&path, laplace()).unwrap();
    assert_eq!(loaded.predict(&input, 4).unwrap(), trainer.predict(&input, 4).unwrap());
}
