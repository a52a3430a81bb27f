//! Writes down what happens in a run.

use std::time::Instant;

use anyhow::Result;
use bayesmesh::checkpoint::{Checkpoint, Store};
use bayesmesh::trainer::{Callback, EpochReport, Flow, StepReport};
use serde_json::json;

use crate::run::{EventLog, MetricsCsv, RunFolder, TensorBoard};
use crate::say;
use crate::tasks::Validation;

/// The columns of every run; those of its validation scores follow.
const COLUMNS: [&str; 8] =
    ["epoch", "loss", "data", "kl", "gradient_norm", "rate", "seconds", "waiting"];
/// Where some of them stand.
const EPOCH: usize = 0;
const SECONDS: usize = 6;
const WAITING: usize = 7;

/// The files of a run, as a callback. Rows and events, also those of an epoch, are written before
/// the checkpoint of their step, so that a resumed run has neither gaps nor doubles.
pub struct Recorder {
    metrics: MetricsCsv,
    events: EventLog,
    board: TensorBoard,
    store: Store,
    /// Steps from one row of the metrics to the next.
    row_every: usize,
    checkpoint_every: usize,
    epoch_steps: usize,
    validation: Validation,
    best: f64,
    started: Instant,
}

/// What a recorder needs to know.
pub struct Recording {
    /// Steps of the whole run, and those already done.
    pub steps: usize,
    pub done: usize,
    pub epoch_steps: usize,
    pub checkpoint_every: usize,
    pub keep: usize,
    pub validation: Validation,
}

impl Recorder {
    /// Begins, or goes on with, the files of a run.
    pub fn new(folder: &RunFolder, recording: Recording) -> Result<Self> {
        let store = Store::create(folder.checkpoints(), recording.keep)?;
        let best = store.best()?;
        for error in best.skipped {
            say::warn(format!("{error}. It is passed over: the next best checkpoint replaces it"));
        }
        let best = best.found.and_then(|(_, best)| best.metadata.get("score")?.parse().ok());
        let done = recording.done as u64;
        let columns: Vec<String> = COLUMNS
            .iter()
            .map(|name| (*name).to_owned())
            .chain(recording.validation.columns.iter().map(|c| format!("validation_{}", c.name)))
            .collect();
        // A run whose files are gone, but for its checkpoints, goes on with new ones.
        let resumed = done > 0 || folder.metrics().exists() || folder.events().exists();
        let (metrics, events, board) = match resumed {
            true => {
                for file in [folder.metrics(), folder.events()] {
                    if done > 0 && !file.exists() {
                        let file = file.display();
                        say::warn(format!("{file} is missing: it begins again after step {done}"));
                    }
                }
                (
                    MetricsCsv::resume(folder.metrics(), &columns, done)?,
                    EventLog::resume(folder.events(), done)?,
                    TensorBoard::resume(folder.path(), done)?,
                )
            }
            false => (
                MetricsCsv::create(folder.metrics(), &columns)?,
                EventLog::create(folder.events())?,
                TensorBoard::create(folder.path())?,
            ),
        };
        let mut recorder = Self {
            metrics,
            events,
            board,
            store,
            row_every: recording.steps.div_ceil(1000).max(1),
            checkpoint_every: recording.checkpoint_every,
            epoch_steps: recording.epoch_steps,
            validation: recording.validation,
            best: best.unwrap_or(f64::INFINITY),
            started: Instant::now(),
        };
        let kind = if resumed { "resumed" } else { "started" };
        recorder.events.append(done, kind, &json!({ "steps": recording.steps }))?;
        Ok(recorder)
    }

    fn step(&mut self, report: &StepReport, checkpoint: &dyn Fn() -> Checkpoint) -> Result<()> {
        let step = report.step as u64;
        if report.step.is_multiple_of(self.row_every) || report.step == report.steps {
            let seconds = self.started.elapsed().as_secs_f64();
            let cells = [
                report.epoch as f64,
                report.loss,
                report.data,
                report.kl,
                report.gradient_norm,
                report.rate,
                seconds,
                report.time.waiting(),
            ];
            let mut cells: Vec<_> = cells.into_iter().map(Some).collect();
            cells.resize(COLUMNS.len() + self.validation.columns.len(), None);
            self.metrics.append(step, &cells)?;
            self.board.scalars(
                step,
                &[
                    ("train/loss", report.loss),
                    ("train/data", report.data),
                    ("train/kl", report.kl),
                    ("train/gradient_norm", report.gradient_norm),
                    ("train/rate", report.rate),
                ],
            )?;
        }
        if self.saves_after(report) {
            self.store.save(&checkpoint())?;
        }
        Ok(())
    }

    /// Whether a checkpoint follows a step. Where an epoch ends its row is still to come, and the
    /// checkpoint after it.
    fn saves_after(&self, report: &StepReport) -> bool {
        let ends_epoch =
            report.step.is_multiple_of(self.epoch_steps) || report.step == report.steps;
        report.step.is_multiple_of(self.checkpoint_every) && !ends_epoch
    }

    fn epoch(&mut self, report: &EpochReport, checkpoint: &dyn Fn() -> Checkpoint) -> Result<()> {
        let step = report.step as u64;
        let score = |name: &str| {
            report.validation.iter().find(|score| score.name == name).map(|score| score.value)
        };
        let columns = &self.validation.columns;
        let scores: Vec<Option<f64>> =
            columns.iter().map(|c| score(c.score).map(|value| value * c.unit)).collect();
        let mut cells = vec![None; COLUMNS.len()];
        cells[EPOCH] = Some(report.epoch as f64);
        cells[SECONDS] = Some(self.started.elapsed().as_secs_f64());
        cells[WAITING] = Some(report.time.waiting());
        cells.extend(&scores);
        self.metrics.append(step, &cells)?;
        let tags: Vec<String> = columns.iter().map(|c| format!("validation/{}", c.name)).collect();
        let scalars = tags.iter().zip(&scores);
        let scalars: Vec<_> = scalars.filter_map(|(tag, v)| Some((tag.as_str(), (*v)?))).collect();
        self.board.scalars(step, &scalars)?;
        let mut fields = json!({ "epoch": report.epoch, "loss": report.loss });
        for (column, score) in columns.iter().zip(scores) {
            fields[&column.name] = json!(score);
        }
        self.events.append(step, "epoch", &fields)?;
        if let Some(score) = score(self.validation.judge).filter(|score| *score < self.best) {
            let mut best = checkpoint();
            best.metadata.insert("score".to_owned(), score.to_string());
            self.store.save_best(&best)?;
            self.best = score;
        }
        if report.step.is_multiple_of(self.checkpoint_every) {
            self.store.save(&checkpoint())?;
        }
        Ok(())
    }
}

/// What recording came to, as the trainer takes it.
fn flow(outcome: Result<()>) -> bayesmesh::Result<Flow> {
    let failed = |error: anyhow::Error| {
        bayesmesh::Error::callback(error.context("the run could not be recorded and was stopped"))
    };
    outcome.map(|()| Flow::Continue).map_err(failed)
}

impl Callback for Recorder {
    fn wants_checkpoint(&self, report: &StepReport) -> bool {
        self.saves_after(report)
    }

    fn on_step(
        &mut self,
        report: &StepReport,
        checkpoint: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        flow(self.step(report, checkpoint))
    }

    fn on_epoch(
        &mut self,
        report: &EpochReport,
        checkpoint: &dyn Fn() -> Checkpoint,
    ) -> bayesmesh::Result<Flow> {
        flow(self.epoch(report, checkpoint))
    }
}
