//! The progress bar.

use std::time::Duration;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::trainer::{Callback, EpochReport, Flow, StepReport};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with rate and time left on standard error; silent where that is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar for a run that stands at `step` of `steps`.
    pub fn new(step: usize, steps: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let style = "{bar:32} {pos}/{len} steps  {per_sec}  {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
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
