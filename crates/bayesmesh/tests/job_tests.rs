//! A trainer that is one rank of a job, here of threads that each have their own.

mod common;

use bayesmesh::comm::{Communicator, threads};
use bayesmesh::loss::SquaredErrorOfMean;
use bayesmesh::trainer::{Length, OptimizerConfig, Settings};
use bayesmesh::{
    Error, MeanField, Place, Posterior, Prior, Reduce, Result, TensorDataset, Trainer,
};
use common::{Mlp, numbers, regression};

const RANKS: usize = 3;

type Of = Trainer<MeanField<Mlp>, SquaredErrorOfMean>;

/// A rank whose weights were drawn with a seed.
fn rank<C>(world: &C, settings: Settings, seed: u64) -> Result<Of>
where
    C: Communicator + Clone + 'static,
{
    let posterior = MeanField::new(Mlp::new(5, 20, 3, 0.0), Prior::normal(0.0, 1.0))?;
    let place = Place::job(world.clone());
    Trainer::at(place, posterior.initialised(seed), SquaredErrorOfMean, settings)
}

fn settings(optimizer: OptimizerConfig) -> Settings {
    Settings {
        samples: RANKS,
        batch: 8,
        mesh: format!("{RANKS}x1").parse().unwrap(),
        reduce: Reduce::Reproducible,
        optimizer,
        ..Settings::default()
    }
}

#[test]
fn one_rank_reads_a_checkpoint_and_all_have_it() {
    let data = regression(30);
    let momentum = OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.0 };
    for optimizer in [OptimizerConfig::adam(), momentum, OptimizerConfig::sgd()] {
        for steps in [0, 4] {
            let outcome = threads::run(RANKS, |world| {
                let mut before = rank(world, settings(optimizer), 1)?;
                if steps > 0 {
                    before.fit(&data, None, Length::Steps(steps))?;
                }
                let saved = before.checkpoint();
                // Others would start from other weights.
                let mut after = rank(world, settings(optimizer), 2 + world.rank() as u64)?;
                let first = (world.rank() == 0).then(|| saved.clone());
                after.restore_from_first(first, "saved")?;
                assert!(after.checkpoint() == saved, "{optimizer:?} after {steps} steps");
                assert_eq!(after.digest(), saved.digest());
                before.fit(&data, None, Length::Steps(steps + 2))?;
                after.fit(&data, None, Length::Steps(steps + 2))?;
                assert!(after.checkpoint() == before.checkpoint(), "{optimizer:?} goes on");
                Ok::<_, Error>(())
            });
            outcome.unwrap();
        }
    }
}

/// As many examples, but not the same.
#[test]
fn ranks_that_see_other_examples_are_refused() {
    let messages = threads::run(2, |world| {
        let inputs = numbers(0, [20, 5]) + if world.rank() == 1 { 1e-6 } else { 0.0 };
        let data = TensorDataset::new(inputs, numbers(1, [20, 3]))?;
        let settings = Settings { mesh: "2x1".parse()?, ..settings(OptimizerConfig::adam()) };
        let mut trainer = rank(world, settings, 1)?;
        let outcome = trainer.fit(&data, None, Length::Steps(1));
        Ok::<_, Error>(outcome.unwrap_err().to_string())
    });
    for message in messages.unwrap() {
        let words = "checksum of the training examples differs between ranks";
        assert!(message.contains(words), "{message}");
    }
}

/// With a network of some size, memory and time for nothing.
#[test]
fn a_step_changes_the_parameters_in_their_place() {
    let data = regression(30);
    for overlap in [true, false] {
        let outcome = threads::run(RANKS, |world| {
            let settings = Settings { overlap, ..settings(OptimizerConfig::adam()) };
            let mut trainer = rank(world, settings, 1)?;
            let place = |trainer: &Of| trainer.posterior().parameters().values().as_ptr() as usize;
            let before = place(&trainer);
            trainer.fit(&data, None, Length::Steps(4))?;
            assert_eq!(place(&trainer), before, "with overlap: {overlap}");
            Ok::<_, Error>(())
        });
        outcome.unwrap();
    }
}
