//! The progress bar.

use std::time::Duration;

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::trainer::{Callback, EpochReport, Flow, StepReport};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with rate and time left on standard error; silent where that is not a terminal.
pub struct Progress {
    bar: ProgressBar,
    /// Examples per second, a moving average.
    rate: Option<f64>,
}

impl Progress {
    /// A bar for a run that stands at `step` of `steps`.
    pub fn new(step: usize, steps: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let style = "{bar:32} {pos}/{len} steps  {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
        bar.set_position(step as u64);
        bar.reset_eta();
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, rate: None }
    }
}

impl Callback for Progress {
    fn on_step(&mut self, report: &StepReport, _checkpoint: &dyn Fn() -> Checkpoint) -> Flow {
        self.bar.set_position(report.step as u64);
        let now = report.examples as f64 / report.time.seconds.max(f64::MIN_POSITIVE);
        let rate = self.rate.map_or(now, |rate| rate + 0.05 * (now - rate));
        self.rate = Some(rate);
        let epoch = report.epoch + 1;
        let message = format!("{rate:.0} examples/s  epoch {epoch}  loss {:.4}", report.loss);
        self.bar.set_message(message);
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
