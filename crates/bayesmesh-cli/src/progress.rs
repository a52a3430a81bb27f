//! Progress of predictions; that of training is the library's.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::say;

/// Standard error, where this process speaks.
fn target() -> ProgressDrawTarget {
    if say::speaks() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// A bar that counts examples while they are predicted or read, from any thread.
pub struct Counter(ProgressBar);

impl Counter {
    /// A bar for so many examples, which are called `examples`.
    pub fn new(count: usize, examples: &'static str) -> Self {
        Self::styled(count, examples, "{bar:32} {pos}/{len} {msg} scored  {eta} left")
    }

    /// The same for what is read; without a bar where it is not known how many there are, 0.
    pub fn reading(count: usize, examples: &'static str) -> Self {
        let style = match count {
            0 => "{pos} {msg} read",
            _ => "{bar:32} {pos}/{len} {msg} read  {eta} left",
        };
        Self::styled(count, examples, style)
    }

    fn styled(count: usize, examples: &'static str, style: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(count as u64), target());
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

/// A bar for data that are read or generated, one after another; it is there only where that takes
/// a while.
pub struct Reading(Option<(&'static str, ProgressBar)>);

impl Reading {
    /// No bar yet.
    pub fn new() -> Self {
        Self(None)
    }

    /// So many of so many are done of what is under way.
    pub fn show(&mut self, what: &'static str, done: usize, of: usize) {
        let bar = match &self.0 {
            Some((shown, bar)) if *shown == what => bar,
            _ => {
                self.clear();
                let bar = ProgressBar::with_draw_target(Some(of as u64), target());
                let style = "{bar:32} {pos}/{len} {msg}  {eta} left";
                bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
                bar.set_message(what);
                &self.0.insert((what, bar)).1
            }
        };
        bar.set_position(done as u64);
    }

    fn clear(&mut self) {
        if let Some((_, bar)) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.clear();
    }
}
