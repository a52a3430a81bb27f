//! The ready callbacks, and what callbacks can do to a run, on one and several ranks.

mod common;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::loss::{Categorical, Expected, SquaredErrorOfMean};
use bayesmesh::trainer::{
    BestCheckpoint, Callback, EarlyStopping, EpochReport, Flow, Length, Progress, StepReport,
};
use bayesmesh::{Error, McDropout, MeanField, Posterior, Prior, Reduce, Result, Settings, Trainer};
use bayesmesh_files::testing::{Scratch, rerun, role};
use common::{Mlp, classification, regression};

/// The meshes of the tests, each with the optimiser in one piece and divided.
const RUNS: [(&str, bool); 4] = [("1x1", false), ("2x1", false), ("1x2", false), ("2x1", true)];

fn settings(mesh: &str, shard_optimizer: bool) -> Settings {
    Settings {
        samples: 2,
        batch: 8,
        mesh: mesh.parse().unwrap(),
        shard_optimizer,
        reduce: Reduce::Reproducible,
        // Too fast: validation scores go up and down.
        schedule: 0.1.into(),
        ..Settings::default()
    }
}

fn trainer(mesh: &str, shard: bool) -> Trainer<McDropout<Mlp>, SquaredErrorOfMean> {
    let posterior = McDropout::new(Mlp::new(5, 8, 3, 0.3)).initialised(1);
    Trainer::new(posterior, SquaredErrorOfMean, settings(mesh, shard))
}

/// Keeps a score of every epoch.
#[derive(Clone, Default)]
struct Scores(Arc<Mutex<Vec<f64>>>);

impl Callback for Scores {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn on_epoch(&mut self, report: &EpochReport, _: &dyn Fn() -> Checkpoint) -> Result<Flow> {
        let score = report.validation.iter().find(|score| score.name == "rmse").unwrap();
        self.0.lock().unwrap().push(score.value);
        Ok(Flow::Continue)
    }
}

/// The epoch after which patience ends, by the definition.
fn expected_end(scores: &[f64], patience: usize) -> Option<usize> {
    let best = |end: usize| scores[..end].iter().copied().fold(f64::INFINITY, f64::min);
    (patience..scores.len()).find(|&end| best(end + 1) >= best(end + 1 - patience))
}

#[test]
fn early_stopping_ends_the_run_after_the_right_epoch() {
    let (train, valid) = (regression(40), regression(24));
    for (mesh, shard) in RUNS {
        let scores = Scores::default();
        let mut all = trainer(mesh, shard).with_callback(scores.clone());
        all.fit(&train, Some(&valid), Length::Epochs(30)).unwrap();
        let scores = scores.0.lock().unwrap().clone();
        for patience in [1, 2, 4] {
            let end = expected_end(&scores, patience).expect("scores that get worse");
            let stopping = EarlyStopping::on("rmse").patience(patience);
            let mut trainer = trainer(mesh, shard).with_callback(stopping);
            trainer.fit(&train, Some(&valid), Length::Epochs(30)).unwrap();
            assert_eq!(trainer.step(), 5 * (end + 1), "{mesh} {shard} {patience} {scores:?}");
        }
    }
}

#[test]
fn the_best_checkpoint_is_the_best_one_and_restores_to_its_score() {
    let (train, valid) = (regression(40), regression(24));
    let folder = Scratch::new();
    for (mesh, shard) in RUNS {
        let scores = Scores::default();
        let path = folder.path().join("best.safetensors");
        let best = BestCheckpoint::on("rmse").save(&path);
        let kept = best.kept();
        assert!(kept.get().is_none());
        let mut trainer = trainer(mesh, shard)
            .with_callback(scores.clone())
            .with_callback(best)
            .with_callback(EarlyStopping::on("rmse").patience(4));
        trainer.fit(&train, Some(&valid), Length::Epochs(30)).unwrap();
        let scores = scores.0.lock().unwrap().clone();

        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let best = kept.get().unwrap();
        assert_eq!(best.score, least);
        assert_eq!(scores[best.epoch], least);
        assert_eq!(best.checkpoint.step, 5 * (best.epoch as u64 + 1));
        assert!(trainer.step() > best.checkpoint.step as usize, "it went on after the best");
        assert_eq!(Checkpoint::load(&path).unwrap(), best.checkpoint);
        assert_eq!(best.checkpoint.metadata["score"].parse::<f64>().unwrap(), least);

        trainer.restore(&best.checkpoint, &path).unwrap();
        let again = trainer.evaluate(&valid, 2).unwrap();
        let again = again.iter().find(|score| score.name == "rmse").unwrap();
        assert_eq!(again.value, least, "{mesh} {shard}");
    }
}

#[test]
fn of_accuracy_more_is_better() {
    let posterior = MeanField::new(Mlp::new(5, 8, 3, 0.0), Prior::normal(0.0, 1.0)).unwrap();
    let best = BestCheckpoint::on("accuracy").higher_is_better();
    let kept = best.kept();
    let mut trainer =
        Trainer::new(posterior.initialised(1), Expected(Categorical), settings("2x1", false))
            .with_callback(best);
    let (train, valid) = (classification(40), classification(24));
    let before = trainer.evaluate(&valid, 2).unwrap().scores()[0].value;
    trainer.fit(&train, Some(&valid), Length::Epochs(10)).unwrap();
    assert!(kept.get().unwrap().score > before.max(0.5));
}

#[test]
fn a_score_that_does_not_exist_ends_the_run_with_an_error() {
    let (train, valid) = (regression(40), regression(24));
    for (mesh, shard) in RUNS {
        let stopping = EarlyStopping::on("rsme");
        let mut run = trainer(mesh, shard).with_callback(stopping);
        let error = run.fit(&train, Some(&valid), Length::Epochs(30)).unwrap_err().to_string();
        assert!(error.contains("`rsme` is not one of the validation scores"), "{error}");
        assert!(error.contains("rmse"), "{error}");
        assert_eq!(run.step(), 5, "after the first epoch");

        let mut run = trainer(mesh, shard).with_callback(BestCheckpoint::on("rmse"));
        let error = run.fit(&train, None, Length::Epochs(30)).unwrap_err().to_string();
        assert!(error.contains("no validation data"), "{error}");
    }
}

/// Fails after a step, and counts what it was told.
#[derive(Clone)]
struct Fails {
    at: usize,
    ends: Arc<Mutex<usize>>,
}

impl Callback for Fails {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn on_step(&mut self, report: &StepReport, _: &dyn Fn() -> Checkpoint) -> Result<Flow> {
        match report.step >= self.at {
            true => Err(Error::callback(format!("the disk is full at step {}", report.step))),
            false => Ok(Flow::Continue),
        }
    }

    fn on_end(&mut self) {
        *self.ends.lock().unwrap() += 1;
    }
}

#[test]
fn a_callback_that_fails_ends_the_run_with_its_error_and_the_trainer_goes_on() {
    let train = regression(40);
    for (mesh, shard) in RUNS {
        let mut whole = trainer(mesh, shard);
        whole.fit(&train, None, Length::Steps(11)).unwrap();

        let fails = Fails { at: 3, ends: Arc::default() };
        let ends = fails.ends.clone();
        let mut run = trainer(mesh, shard).with_callback(fails);
        let error = run.fit(&train, None, Length::Steps(11)).unwrap_err();
        assert!(matches!(error, Error::Callback(_)), "{error}");
        assert_eq!(error.to_string(), "the disk is full at step 3", "the first failure");
        assert_eq!(*ends.lock().unwrap(), 1);
        assert_eq!(run.step(), 4, "all ranks stop together");

        let mut run = run.without_callbacks();
        run.fit(&train, None, Length::Steps(11)).unwrap();
        assert_eq!(run.digest(), whole.digest(), "{mesh} {shard}");
    }
}

#[test]
fn a_best_checkpoint_that_cannot_be_saved_ends_the_run() {
    let folder = Scratch::new();
    let best = BestCheckpoint::on("rmse").save(folder.path().join("nowhere/best.safetensors"));
    let mut run = trainer("2x1", false).with_callback(best);
    let data = regression(24);
    let error = run.fit(&data, Some(&data), Length::Epochs(3)).unwrap_err();
    assert!(matches!(error, Error::Checkpoint(_)), "{error}");
}

#[test]
fn callbacks_change_nothing() {
    let (train, valid) = (regression(40), regression(24));
    let mut plain = trainer("2x1", false);
    plain.fit(&train, Some(&valid), Length::Epochs(3)).unwrap();
    let mut followed = trainer("2x1", false)
        .with_callback(BestCheckpoint::on("rmse"))
        .with_callback(EarlyStopping::on("rmse").patience(100))
        .with_callback(Progress::new());
    followed.fit(&train, Some(&valid), Length::Epochs(3)).unwrap();
    assert_eq!(followed.digest(), plain.digest());
}

/// Trains with progress after every step.
fn train_with_progress() {
    let progress = Progress::new().line_every(Duration::ZERO);
    let data = regression(24);
    let mut run = trainer("1x1", false).with_callback(progress);
    run.fit(&data, Some(&data), Length::Steps(7)).unwrap();
    assert_eq!(run.step(), 7);
}

#[test]
fn progress_is_lines_where_there_is_no_terminal() {
    if role().is_some() {
        return train_with_progress();
    }
    let folder = Scratch::new();
    let test = "progress_is_lines_where_there_is_no_terminal";
    let output = rerun(&[], test, folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[0].starts_with("1/7 steps (14 %)  "), "{text}");
    assert!(lines[6].starts_with("7/7 steps (100 %)  0:00 left  "), "{text}");
    assert!(lines[6].contains(" examples/s  epoch 3  loss "), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn progress_does_not_mind_that_nobody_listens() {
    if role().is_some() {
        return train_with_progress();
    }
    let folder = Scratch::new();
    let test = "progress_does_not_mind_that_nobody_listens";
    let mut command = rerun(&[], test, folder.path());
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    drop(child.stderr.take());
    assert!(child.wait().unwrap().success());
}
