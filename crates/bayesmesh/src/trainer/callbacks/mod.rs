//! What a run tells while it goes on, and what listens.
//!
//! | callback | does |
//! |---|---|
//! | [`EarlyStopping`] | ends the run when a validation score no longer improves |
//! | [`BestCheckpoint`] | keeps the state with the best validation score |
//! | [`Progress`] | shows how far the run is, on standard error |

mod best_checkpoint;
mod early_stopping;
mod progress;
mod watched;

pub use best_checkpoint::{Best, BestCheckpoint, Kept};
pub use early_stopping::EarlyStopping;
pub use progress::Progress;

use std::ops::AddAssign;

use bayesmesh_comm::{Communicator, Operation, Reduce};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::metrics::Score;

/// How long steps took, on one rank or on those that took longest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    /// Seconds in all.
    pub seconds: f64,
    /// Seconds of these in which the rank waited for data or loaded them itself.
    pub waited: f64,
    /// Seconds of collective calls for gradients, waiting there for ranks that come later included.
    /// Most of it goes on beside computing.
    pub communication: f64,
    /// Seconds of these that computing did not hide: for which the rank stood still.
    pub exposed: f64,
}

impl Time {
    /// The share of the time that went into waiting for data; zero where there was no step.
    pub fn waiting(&self) -> f64 {
        self.share(self.waited)
    }

    /// The share of the time for which the rank stood still for communication; zero where there was
    /// no step.
    pub fn exposure(&self) -> f64 {
        self.share(self.exposed)
    }

    /// Of each figure the largest over the ranks. Collective.
    pub(super) fn longest(self, world: &dyn Communicator) -> Result<Self> {
        let mut all = [self.seconds, self.waited, self.communication, self.exposed];
        world.all_reduce_f64(&mut all, Operation::Max, Reduce::Fast)?;
        let [seconds, waited, communication, exposed] = all;
        Ok(Self { seconds, waited, communication, exposed })
    }

    fn share(&self, part: f64) -> f64 {
        if self.seconds > 0.0 { part / self.seconds } else { 0.0 }
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.waited += other.waited;
        self.communication += other.communication;
        self.exposed += other.exposed;
    }
}

/// What happened in one step. The same on every rank, but for the time and what went early.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Steps done so far, this one included.
    pub step: usize,
    /// Steps there will be.
    pub steps: usize,
    /// The epoch the step belongs to, counted from zero.
    pub epoch: usize,
    /// The objective: data term and weighted KL, per example.
    pub loss: f64,
    /// The data term, per example.
    pub data: f64,
    /// The penalty of the posterior, unweighted: `KL(q‖p)` of a mean field; the mean over members.
    pub kl: f64,
    /// The norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// The learning rate.
    pub rate: f64,
    /// Examples of the batch, over all ranks.
    pub examples: usize,
    /// The time of the step, from asking for its batch to the new parameters.
    pub time: Time,
    /// The share of the gradient that this rank handed over to be summed over ranks while its
    /// backward pass still ran.
    pub overlapped: f64,
}

/// What an epoch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochReport {
    /// The epoch, counted from zero.
    pub epoch: usize,
    /// Steps done so far.
    pub step: usize,
    /// The mean over the epoch's steps of the objective.
    pub loss: f64,
    /// Scores on the validation data, if there is any.
    pub validation: Vec<Score>,
    /// The time of the epoch's steps, without validation and callbacks.
    pub time: Time,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Stop. After a step: when the next one is done. After an epoch: at once.
    Stop,
}

/// Follows a run: progress bars, metric files, checkpoints, early stopping. On threads called on
/// rank 0 only, in a job on the ranks that have it; any of them can stop the run.
///
/// A callback that fails stops the run as [`Flow::Stop`] does, and [`fit`](super::Trainer::fit)
/// returns its error: the first one, if there are several. The trainer is then sound and can go on.
/// What is not an error of the library becomes one by [`Error::callback`].
///
/// ```
/// use std::fs::File;
/// use std::io::Write;
///
/// use bayesmesh::checkpoint::Checkpoint;
/// use bayesmesh::trainer::{Callback, Flow, StepReport};
/// use bayesmesh::{Error, Result};
///
/// /// Writes the loss of every step to a file.
/// struct Losses(File);
///
/// impl Callback for Losses {
///     fn wants_checkpoint(&self, _: &StepReport) -> bool {
///         false
///     }
///
///     fn on_step(&mut self, report: &StepReport, _: &dyn Fn() -> Checkpoint) -> Result<Flow> {
///         writeln!(self.0, "{} {}", report.step, report.loss).map_err(Error::callback)?;
///         Ok(Flow::Continue)
///     }
/// }
/// ```
pub trait Callback: Send {
    /// Whether [`on_step`](Self::on_step) may make a checkpoint when it gets this report.
    ///
    /// It matters where the state is on several ranks: with
    /// [`shard_optimizer`](super::Settings::shard_optimizer), or with
    /// [members](crate::posterior::Ownership) on several sample ranks. These have to send it then,
    /// so say no where you can. A checkpoint after a no is not complete, and the run ends with an
    /// error.
    fn wants_checkpoint(&self, report: &StepReport) -> bool {
        let _ = report;
        true
    }

    /// The same for [`on_epoch`](Self::on_epoch).
    fn wants_checkpoint_of_epoch(&self, report: &EpochReport) -> bool {
        let _ = report;
        true
    }

    /// After every step. `checkpoint` copies everything a resumed run needs.
    fn on_step(
        &mut self,
        report: &StepReport,
        checkpoint: &dyn Fn() -> Checkpoint,
    ) -> Result<Flow> {
        let _ = (report, checkpoint);
        Ok(Flow::Continue)
    }

    /// After every epoch, and after the last step of the run where that is within one.
    fn on_epoch(
        &mut self,
        report: &EpochReport,
        checkpoint: &dyn Fn() -> Checkpoint,
    ) -> Result<Flow> {
        let _ = (report, checkpoint);
        Ok(Flow::Continue)
    }

    /// When [`fit`](super::Trainer::fit) ends, however it ends.
    fn on_end(&mut self) {}
}

/// What the callbacks of a rank have said so far.
#[derive(Default)]
pub(super) struct Answers {
    /// Whether one of them wants to stop.
    pub stop: bool,
    /// Why the first one failed.
    pub failure: Option<Error>,
}

impl Answers {
    /// Takes an answer in.
    pub fn add(&mut self, answer: Result<Flow>) {
        match answer {
            Ok(Flow::Continue) => {}
            Ok(Flow::Stop) => self.stop = true,
            Err(error) => {
                self.stop = true;
                self.failure.get_or_insert(error);
            }
        }
    }
}
