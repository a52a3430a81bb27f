//! Shows how far a run is.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::{Callback, EpochReport, Flow, StepReport};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::metrics::Score;

/// How often a bar is drawn again.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Columns of a bar.
const WIDTH: usize = 32;
/// How many of the validation scores are shown.
const SCORES: usize = 2;

/// Progress on standard error: a bar that is drawn again and again where that is a terminal, and
/// goes away at the end; otherwise, as under `mpirun` or in a batch job, a line every half minute.
/// Shows steps, the time left, examples per second, the loss and the first validation scores.
///
/// ```
/// use bayesmesh::trainer::{Length, Progress};
/// # use bayesmesh::{Draw, Network, Point, Settings, TensorDataset, Trainer};
/// # use bayesmesh::loss::ExpectedSquaredError;
/// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
/// # #[derive(Module, Debug)]
/// # struct Line { linear: Linear }
/// # impl Network for Line {
/// #     type Input = Tensor<2>;
/// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
/// # }
/// # let device = Device::default();
/// # let x = Tensor::<1>::from_floats([0.0, 1.0, 2.0, 3.0], &device).unsqueeze_dim::<2>(1);
/// # let train = TensorDataset::new(x.clone(), x.clone() * 2.0)?;
/// # let valid = TensorDataset::new(x.clone() + 0.5, x * 2.0 + 1.0)?;
/// # let posterior = Point::new(Line { linear: LinearConfig::new(1, 1).init(&device) });
/// # let settings = Settings { batch: 4, schedule: 0.5.into(), ..Settings::default() };
/// # let trainer = Trainer::new(posterior, ExpectedSquaredError, settings);
///
/// let mut trainer = trainer.with_callback(Progress::new());
/// trainer.fit(&train, Some(&valid), Length::Epochs(50))?;
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Debug)]
pub struct Progress {
    /// What examples are called.
    examples: String,
    /// How often there is a line where there is no terminal.
    line_every: Duration,
    terminal: bool,
    /// Whether a bar is on the terminal.
    drawn: bool,
    run: Option<Run>,
}

/// A run under way.
#[derive(Debug)]
struct Run {
    /// The step it began at, and when that was.
    first: (usize, Instant),
    /// When something was last shown.
    shown: Option<Instant>,
    /// Examples per second, a moving average.
    rate: f64,
    /// The last scores on validation data.
    scores: Vec<Score>,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// For any run.
    pub fn new() -> Self {
        let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Self {
            examples: "examples".to_owned(),
            line_every: Duration::from_secs(30),
            terminal: io::stderr().is_terminal() && !dumb,
            drawn: false,
            run: None,
        }
    }

    /// Calls examples by another word, e.g. `images`.
    #[must_use]
    pub fn examples(mut self, name: impl Into<String>) -> Self {
        self.examples = name.into();
        self
    }

    /// Writes a line as often as this where there is no terminal.
    #[must_use]
    pub fn line_every(mut self, time: Duration) -> Self {
        self.line_every = time;
        self
    }

    /// What there is to show, now or not at all.
    fn text(&mut self, report: &StepReport, now: Instant) -> Option<String> {
        let seconds = report.time.seconds.max(f64::MIN_POSITIVE);
        let rate = report.examples as f64 / seconds;
        let run = self.run.get_or_insert_with(|| {
            let began = now.checked_sub(Duration::try_from_secs_f64(seconds).unwrap_or_default());
            let first = (report.step - 1, began.unwrap_or(now));
            let shown = if self.terminal { None } else { Some(first.1) };
            Run { first, shown, rate, scores: Vec::new() }
        });
        run.rate += 0.05 * (rate - run.rate);
        let every = if self.terminal { DRAW_EVERY } else { self.line_every };
        if run.shown.is_some_and(|shown| now.duration_since(shown) < every) {
            return None;
        }
        run.shown = Some(now);
        Some(line(run, report, now, &self.examples, self.terminal))
    }
}

/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\x1b[2K";

/// Writes to standard error; where that is closed there is nobody to tell.
fn write(text: &str) {
    let mut error = io::stderr().lock();
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

/// All there is to say after a step.
fn line(run: &Run, report: &StepReport, now: Instant, examples: &str, bar: bool) -> String {
    let StepReport { step, steps, epoch, loss, .. } = *report;
    let (first, began) = run.first;
    let each = now.duration_since(began).as_secs_f64() / (step - first).max(1) as f64;
    let left = clock(each * steps.saturating_sub(step) as f64);
    let share = step as f64 / steps.max(1) as f64;
    let mut text = match bar {
        true => {
            let full = (share * WIDTH as f64) as usize;
            let (full, rest) = ("█".repeat(full), "░".repeat(WIDTH.saturating_sub(full)));
            format!("{full}{rest} {step}/{steps} steps")
        }
        false => format!("{step}/{steps} steps ({:.0} %)", (100.0 * share).floor()),
    };
    let (rate, epoch) = (run.rate, epoch + 1);
    text += &format!("  {left} left  {rate:.0} {examples}/s  epoch {epoch}  loss {loss:.4}");
    for Score { name, value, .. } in run.scores.iter().take(SCORES) {
        text += &format!("  {name} {value:.4}");
    }
    text
}

/// Seconds as `m:ss` or `h:mm:ss`.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

impl Callback for Progress {
    fn wants_checkpoint(&self, _: &StepReport) -> bool {
        false
    }

    fn wants_checkpoint_of_epoch(&self, _: &EpochReport) -> bool {
        false
    }

    fn on_step(&mut self, report: &StepReport, _: &dyn Fn() -> Checkpoint) -> Result<Flow> {
        if let Some(text) = self.text(report, Instant::now()) {
            match self.terminal {
                // The terminal cuts off what is too long, so that it stays one line.
                true => write(&format!("{CLEAR}\x1b[?7l{text}\x1b[?7h")),
                false => write(&format!("{text}\n")),
            }
            self.drawn = self.terminal;
        }
        Ok(Flow::Continue)
    }

    fn on_epoch(&mut self, report: &EpochReport, _: &dyn Fn() -> Checkpoint) -> Result<Flow> {
        if let Some(run) = &mut self.run {
            run.scores.clone_from(&report.validation);
        }
        Ok(Flow::Continue)
    }

    fn on_end(&mut self) {
        if std::mem::take(&mut self.drawn) {
            write(CLEAR);
        }
        self.run = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::Time;

    fn report(step: usize) -> StepReport {
        StepReport {
            step,
            steps: 200,
            epoch: 2,
            loss: 0.123_45,
            data: 0.0,
            kl: 0.0,
            gradient_norm: 0.0,
            rate: 0.0,
            examples: 32,
            time: Time { seconds: 0.5, ..Time::default() },
            overlapped: 0.0,
        }
    }

    #[test]
    fn a_line_tells_steps_time_rate_loss_and_scores() {
        let now = Instant::now();
        let mut progress = Progress { terminal: false, ..Progress::new() };
        progress = progress.examples("images").line_every(Duration::ZERO);
        // Resumed at step 49: 150 steps of half a second are left.
        let text = progress.text(&report(50), now).unwrap();
        assert_eq!(text, "50/200 steps (25 %)  1:15 left  64 images/s  epoch 3  loss 0.1235");
        let validation =
            vec![Score::new("nll", 1.0), Score::new("rmse", 2.0), Score::new("mae", 3.0)];
        let epoch =
            EpochReport { epoch: 2, step: 50, loss: 0.0, validation, time: Time::default() };
        progress.on_epoch(&epoch, &|| unreachable!("not wanted")).unwrap();
        let text = progress.text(&report(51), now + Duration::from_millis(500)).unwrap();
        assert!(text.ends_with("loss 0.1235  nll 1.0000  rmse 2.0000"), "{text}");
    }

    #[test]
    fn a_bar_is_drawn_at_once_and_then_now_and_then() {
        let now = Instant::now();
        let mut progress = Progress { terminal: true, ..Progress::new() };
        let text = progress.text(&report(50), now).unwrap();
        let bar = format!("{}{} 50/200 steps  1:15 left", "█".repeat(8), "░".repeat(24));
        assert!(text.starts_with(&bar), "{text}");
        assert_eq!(progress.text(&report(51), now + DRAW_EVERY / 2), None);
        assert!(progress.text(&report(52), now + DRAW_EVERY).is_some());
        assert_eq!(progress.text(&report(53), now + DRAW_EVERY), None);
    }

    #[test]
    fn where_there_is_no_terminal_a_short_run_has_no_line() {
        let now = Instant::now();
        let mut progress = Progress { terminal: false, ..Progress::new() };
        assert_eq!(progress.text(&report(1), now), None);
        assert_eq!(progress.text(&report(2), now + Duration::from_secs(29)), None);
        assert!(progress.text(&report(3), now + Duration::from_secs(30)).is_some());
        assert_eq!(progress.text(&report(4), now + Duration::from_secs(59)), None);
    }

    #[test]
    fn times_read_as_on_a_clock() {
        assert_eq!(clock(0.2), "0:00");
        assert_eq!(clock(75.0), "1:15");
        assert_eq!(clock(3725.4), "1:02:05");
    }
}
