//! Progress of predictions; that of training is the library's.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::say;

/// Standard error, where this process speaks.
fn target() -> ProgressDrawTarget {
    if say::speaks() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
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
