//! The progress bar.

use std::time::Duration;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::trainer::{Callback, EpochReport, Flow, StepReport};
use bayesmesh_report::format_number;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A bar with rate and time left on standard error; silent where that is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for a run that stands at `step` of `steps`, each of `batch` examples that are called
    /// `examples`.
    pub fn new(step: usize, steps: usize, batch: usize, examples: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let style = "{bar:32} {pos}/{len} steps  {rate}  {eta} left  {msg}";
        let style = ProgressStyle::with_template(style).expect("a valid template");
        let rate = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let rate = format_number(state.per_sec() * batch as f64, 0);
            // Text takes everything.
            let _ = write!(out, "{rate} {examples}/s");
        };
        bar.set_style(style.with_key("rate", rate));
        bar.set_position(step as u64);
        bar.reset_eta();
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }
}

impl Callback for Progress {
    fn on_step(&mut self, report: &StepReport, _checkpoint: &dyn Fn() -> Checkpoint) -> Flow {
        self.bar.set_position(report.step as u64);
        self.bar.set_message(format!("epoch {}  loss {:.4}", report.epoch + 1, report.loss));
        Flow::Continue
    }

    fn on_epoch(&mut self, _report: &EpochReport, _checkpoint: &dyn Fn() -> Checkpoint) -> Flow {
        self.bar.tick();
        Flow::Continue
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar that counts examples while they are predicted, from any thread.
pub struct Counter(ProgressBar);

impl Counter {
    /// A bar for so many examples, which are called `examples`.
    pub fn new(count: usize, examples: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr());
        let style = "{bar:32} {pos}/{len} {msg} scored  {eta} left";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
        bar.set_message(examples);
        Self(bar)
    }

    /// So many more are done.
    pub fn add(&self, count: usize) {
        self.0.inc(count as u64);
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
