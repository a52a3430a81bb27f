//! How long a run lasts.

use crate::data::Batches;
use crate::error::{Error, Result};

/// How long a run lasts, counted from its beginning and not from where it is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Passes over the training data.
    Epochs(usize),
    /// Optimiser steps.
    Steps(usize),
    /// Passes over the training data, but no more than so many steps.
    AtMost {
        /// Passes.
        epochs: usize,
        /// Optimiser steps.
        steps: usize,
    },
}

/// The length of a run on some examples in steps and epochs.
///
/// ```
/// use bayesmesh::trainer::{Course, Length};
///
/// let course = Course::new(Length::Epochs(3), 277, 32)?;
/// assert_eq!((course.steps(), course.epoch_steps(), course.left_out()), (24, 8, 21));
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    examples: usize,
    batch: usize,
    steps: usize,
}

impl Course {
    /// Refuses a batch that the examples do not fill, and more steps than streams can address.
    pub fn new(length: Length, examples: usize, batch: usize) -> Result<Self> {
        if batch == 0 || batch > examples {
            return Err(Error::Setting(format!(
                "a batch of {batch} cannot be taken from {examples} examples; choose a batch \
                 between 1 and {examples}"
            )));
        }
        let most = u32::MAX as usize - 1;
        let steps = match length {
            Length::Epochs(epochs) => epochs.checked_mul(examples / batch),
            Length::Steps(steps) => Some(steps),
            Length::AtMost { epochs, steps } => {
                Some(epochs.saturating_mul(examples / batch).min(steps))
            }
        };
        match steps.filter(|steps| *steps <= most) {
            Some(steps) => Ok(Self { examples, batch, steps }),
            None => {
                let asked = match length {
                    Length::Epochs(epochs) => format!("{epochs} epochs of {examples} examples"),
                    Length::Steps(steps) | Length::AtMost { steps, .. } => {
                        format!("{steps} steps")
                    }
                };
                Err(Error::Setting(format!(
                    "{asked} are more than the {most} steps that streams can address; train for \
                     fewer"
                )))
            }
        }
    }

    /// Steps of the whole run.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Steps of a pass over the examples. Batches are full: what is left over at the end of an
    /// epoch is left out.
    pub fn epoch_steps(&self) -> usize {
        self.examples / self.batch
    }

    /// Examples that each epoch leaves out because they fill no batch; others in each epoch.
    pub fn left_out(&self) -> usize {
        self.examples % self.batch
    }

    /// Whether an epoch ends after so many steps, or the run within one.
    pub fn ends_epoch(&self, steps: usize) -> bool {
        steps.is_multiple_of(self.epoch_steps()) || steps == self.steps
    }

    /// The examples of every step.
    pub(super) fn batches(&self, seed: u64) -> Batches {
        Batches::new(seed, self.examples, self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_runs_are_refused() {
        for batch in [0, 11] {
            let message = Course::new(Length::Steps(1), 10, batch).unwrap_err().to_string();
            assert!(message.contains(&batch.to_string()) && message.contains("10"), "{message}");
        }
        for length in [Length::Steps(usize::MAX), Length::Epochs(1 << 61)] {
            let message = Course::new(length, 24, 3).unwrap_err().to_string();
            assert!(message.contains("train for fewer"), "{message}");
        }
        assert!(Course::new(Length::Steps(u32::MAX as usize - 1), 10, 5).is_ok());
    }

    #[test]
    fn epochs_can_be_capped_by_steps() {
        let steps = |length| Course::new(length, 100, 10).unwrap().steps();
        assert_eq!(steps(Length::AtMost { epochs: 3, steps: 40 }), 30);
        assert_eq!(steps(Length::AtMost { epochs: 5, steps: 40 }), 40);
        assert_eq!(steps(Length::AtMost { epochs: usize::MAX, steps: 40 }), 40);
    }
}
