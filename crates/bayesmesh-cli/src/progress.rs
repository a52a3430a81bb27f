//! The progress bar.

use std::time::{Duration, Instant};

use bayesmesh::checkpoint::Checkpoint;
use bayesmesh::trainer::{Callback, EpochReport, Flow, StepReport};
use bayesmesh_report::format_number;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::say::{self, say};

/// Standard error, where this process speaks.
fn target() -> ProgressDrawTarget {
    if say::speaks() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// How often there is a line where there is no terminal for a bar, as under `mpirun` or in a batch
/// job.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// A bar with rate and time left on standard error, or a line now and then where that is not a
/// terminal.
pub struct Progress {
    bar: ProgressBar,
    /// The step the run stood at, and when that was.
    first: (usize, Instant),
    last_line: Instant,
    /// What examples are called.
    examples: &'static str,
    /// Examples per second, a moving average.
    rate: Option<f64>,
}

impl Progress {
    /// A bar for a run that stands at `step` of `steps`, on what are called `examples`.
    pub fn new(step: usize, steps: usize, examples: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target());
        let style = "{bar:32} {pos}/{len} steps  {eta} left  {msg}";
        bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
        bar.set_position(step as u64);
        bar.reset_eta();
        bar.enable_steady_tick(Duration::from_millis(200));
        let now = Instant::now();
        Self { bar, first: (step, now), last_line: now, examples, rate: None }
    }

    /// How long the rest will take, at the rate so far.
    fn left(&self, report: &StepReport) -> f64 {
        let (first, started) = self.first;
        let each = started.elapsed().as_secs_f64() / (report.step - first).max(1) as f64;
        each * (report.steps - report.step) as f64
    }
}

impl Callback for Progress {
    fn wants_checkpoint(&self, _report: &StepReport) -> bool {
        false
    }

    fn on_step(&mut self, report: &StepReport, _checkpoint: &dyn Fn() -> Checkpoint) -> Flow {
        self.bar.set_position(report.step as u64);
        let now = report.examples as f64 / report.time.seconds.max(f64::MIN_POSITIVE);
        let rate = self.rate.map_or(now, |rate| rate + 0.05 * (now - rate));
        self.rate = Some(rate);
        let (rate, epoch) = (format_number(rate, 0), report.epoch + 1);
        let message = format!("{rate} {}/s  epoch {epoch}  loss {:.4}", self.examples, report.loss);
        if self.bar.is_hidden() && self.last_line.elapsed() >= LINE_EVERY {
            let (step, steps) = (report.step, report.steps);
            let percent = 100 * step / steps.max(1);
            let left = say::seconds(self.left(report));
            say!("{step}/{steps} steps ({percent} %)  {left} left  {message}");
            self.last_line = Instant::now();
        }
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

/// A bar that counts examples while they are predicted, from any thread.
pub struct Counter(ProgressBar);

impl Counter {
    /// A bar for so many examples, which are called `examples`.
    pub fn new(count: usize, examples: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(count as u64), target());
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
