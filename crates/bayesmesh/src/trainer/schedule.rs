//! How the learning rate and the weight of the KL change over a run.

use std::f64::consts::PI;

use bayesmesh_schema::Kinds;
use serde::Deserialize;

/// How the learning rate changes over a run.
///
/// A function of the step alone, so that a resumed run needs no state to continue. A number is a
/// constant rate: `schedule: 1e-3.into()`. A recipe has the rate beside the optimiser and knows the
/// length of its run: [`with_rate`](Self::with_rate), [`over`](Self::over).
#[derive(Clone, Copy, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[section(default = "constant", example = "kind = \"cosine\"\nwarmup = 500")]
pub enum Schedule {
    /// always `optimizer.rate`
    Constant {
        /// The learning rate.
        #[serde(skip)]
        rate: f64,
    },
    /// a linear rise to it, then constant
    Warmup {
        /// The learning rate after the rise.
        #[serde(skip)]
        rate: f64,
        /// Steps of the rise.
        #[key(required = "500", at_least = 1, also("warmup", "warmup_steps"))]
        steps: usize,
    },
    /// a linear rise to it, then half a cosine down to the end of the run
    Cosine {
        /// The largest learning rate.
        #[serde(skip)]
        rate: f64,
        /// Steps of the rise; 0 for none.
        #[key(default = 0, also("warmup_steps"))]
        warmup: usize,
        /// The step at which the floor is reached.
        #[serde(skip)]
        total: usize,
        /// The learning rate at the end.
        #[key(default = 0.0, at_least = 0, also("min_lr", "eta_min"))]
        floor: f64,
    },
}

impl From<f64> for Schedule {
    /// The same rate at every step.
    fn from(rate: f64) -> Self {
        Self::Constant { rate }
    }
}

impl Schedule {
    /// With another learning rate, the largest of the run.
    #[must_use]
    pub fn with_rate(mut self, new: f64) -> Self {
        let (Self::Constant { rate } | Self::Warmup { rate, .. } | Self::Cosine { rate, .. }) =
            &mut self;
        *rate = new;
        self
    }

    /// For a run of so many steps.
    #[must_use]
    pub fn over(mut self, steps: usize) -> Self {
        if let Self::Cosine { total, .. } = &mut self {
            *total = steps;
        }
        self
    }

    /// The largest rate, and the one it falls to.
    pub(super) fn ends(&self) -> (f64, f64) {
        match *self {
            Self::Constant { rate } | Self::Warmup { rate, .. } => (rate, rate),
            Self::Cosine { rate, floor, .. } => (rate, floor),
        }
    }

    /// The learning rate of a step, counted from zero.
    pub fn rate(&self, step: usize) -> f64 {
        match *self {
            Self::Constant { rate } => rate,
            Self::Warmup { rate, steps } => rate * rise(step, steps),
            Self::Cosine { rate, warmup, total, floor } => {
                if step < warmup {
                    return rate * rise(step, warmup);
                }
                let length = total.saturating_sub(warmup).max(1) as f64;
                let progress = ((step - warmup) as f64 / length).min(1.0);
                floor + (rate - floor) * 0.5 * (1.0 + (PI * progress).cos())
            }
        }
    }
}

/// From `1/steps` at the first step to 1 at the last one of the rise.
pub(super) fn rise(step: usize, steps: usize) -> f64 {
    match steps {
        0 => 1.0,
        steps => ((step + 1) as f64 / steps as f64).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_constant_rate() {
        let schedule: Schedule = 1e-3.into();
        assert_eq!(schedule, Schedule::Constant { rate: 1e-3 });
    }

    #[test]
    fn shapes() {
        let warmup = Schedule::Warmup { rate: 0.2, steps: 4 };
        let rates: Vec<f64> = (0..6).map(|step| warmup.rate(step)).collect();
        assert_eq!(rates, [0.05, 0.1, 0.15000000000000002, 0.2, 0.2, 0.2]);

        let cosine = Schedule::Cosine { rate: 1.0, warmup: 2, total: 12, floor: 0.1 };
        assert_eq!(cosine.rate(0), 0.5);
        assert_eq!(cosine.rate(2), 1.0);
        assert!((cosine.rate(7) - 0.55).abs() < 1e-12);
        assert!((cosine.rate(12) - 0.1).abs() < 1e-12);
        assert!((cosine.rate(99) - 0.1).abs() < 1e-12);
        assert!((2..12).all(|step| cosine.rate(step + 1) < cosine.rate(step)));
    }
}
