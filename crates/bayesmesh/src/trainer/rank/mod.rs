//! The worker: one rank of a run.
//!
//! | file | what of a step it does |
//! |---|---|
//! | `step` | the step, from the loaded batch to the changed numbers |
//! | `objective` | this rank's draws, forwards and backwards |
//! | `draw_sum` | sums over its draws |
//! | `exchange`, `overlap` | sums over ranks, after or during the backward pass |
//! | `part` | the gradient's norm, and the update of what this rank updates |
//! | `tell` | callbacks |

mod draw_sum;
mod exchange;
mod objective;
mod overlap;
mod part;
mod step;
mod tell;
mod work;

use std::sync::Arc;
use std::time::Instant;

use bayesmesh_comm::{MeshComm, agree};
use bayesmesh_kernels::process_memory;

use super::callbacks::{Answers, Callback, EpochReport, StepReport, Time};
use super::loading::Feed;
use super::plan::Plan;
use super::state::State;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::predict::{Readout, Scoring};
use exchange::{Exchange, anybody};
use part::Part;
use step::{StepOutcome, Tools};
use work::Work;

/// One rank of a run, with what it has of the state.
pub(super) struct Rank<P, L> {
    pub state: State<P>,
    /// Whether the trainer takes the state back from this rank.
    pub is_kept: bool,
    pub loss: Arc<L>,
    pub plan: Plan,
    pub readout: Readout,
    pub time: Time,
    pub callbacks: Vec<Box<dyn Callback>>,
    /// What the callbacks have said so far.
    pub answers: Answers,
}

/// What the steps of an epoch came to so far.
#[derive(Default)]
struct Epoch {
    loss: f64,
    steps: usize,
    time: Time,
}

impl<P: Posterior, L: Loss> Rank<P, L> {
    /// Does the rest of the run.
    pub fn run<D>(
        &mut self,
        mesh: &MeshComm,
        feed: &dyn Feed<D>,
        train: &D,
        valid: Option<&D>,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let settings = self.plan.settings().clone();
        if self.state.members.are_per_draw() {
            // What all ranks share has been compared before they began.
            agree(&*mesh.data, &[("digest of the members", self.state.digest())])?;
        }
        let exchange = Exchange::start(mesh, self.state.members.any(), &settings)?;
        let peers = exchange.peers(mesh);
        let members = self.state.members.iter_mut();
        let parts: Result<Vec<Part>> =
            members.map(|member| Part::divide(peers, member, &settings)).collect();
        if settings.shard_optimizer {
            // The undivided state is gone when the last rank has its part.
            process_memory::give_back_freed();
        }
        let work = Work::new(&settings, mesh);
        let mut tools = Tools { mesh, work, exchange, parts: parts? };

        let before = std::mem::take(&mut self.time);
        let mut outcome = self.steps(&mut tools, feed, train, valid);
        self.callbacks.iter_mut().for_each(|callback| callback.on_end());
        if outcome.is_ok() {
            self.time = self.time.longest(&*mesh.world)?;
        }
        self.time += before;
        // What is not finite is seen by all ranks at once; other errors leave some behind.
        if let Ok(()) | Err(Error::NotFinite { .. }) = outcome {
            let peers = tools.exchange.peers(mesh);
            for (part, member) in tools.parts.into_iter().zip(self.state.members.iter_mut()) {
                let complete = part.complete(peers, member, settings.optimizer, self.is_kept);
                outcome = outcome.and(complete);
            }
        }
        if outcome.is_ok() && anybody(&*mesh.world, self.answers.failure.is_some())? {
            let elsewhere = || Error::Rank("a callback of another rank failed".to_owned());
            self.answers.failure.get_or_insert_with(elsewhere);
        }
        outcome
    }

    /// Step after step, and at the end of each epoch its scores.
    fn steps<D>(
        &mut self,
        tools: &mut Tools<'_>,
        feed: &dyn Feed<D>,
        train: &D,
        valid: Option<&D>,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let course = *self.plan.course();
        let mut epoch = Epoch::default();
        while self.state.step < course.steps() {
            let started = Instant::now();
            let batch = feed.take(self.state.step)?;
            let waited = started.elapsed().as_secs_f64();
            let outcome = self.step(tools, feed, train, batch)?;
            let time = Time {
                seconds: started.elapsed().as_secs_f64(),
                waited: waited + outcome.loaded,
                communication: outcome.communication.seconds,
                exposed: outcome.communication.exposed,
            };
            self.state.step += 1;
            self.time += time;
            let report = self.report(&outcome, time);
            epoch.add(&report);
            self.tell(
                tools,
                |callback| callback.wants_checkpoint(&report),
                |callback, checkpoint| callback.on_step(&report, checkpoint),
            )?;
            if course.ends_epoch(self.state.step) {
                self.end_epoch(tools, std::mem::take(&mut epoch), valid)?;
                // At the end of an epoch all agree at once, so that what a callback has judged is
                // what it gets.
                if anybody(&*tools.mesh.world, self.answers.stop)? {
                    break;
                }
            }
            // Within an epoch nothing else is done: whoever stops a run may not wait for long.
            if outcome.stop {
                break;
            }
        }
        Ok(())
    }

    fn report(&self, outcome: &StepOutcome, time: Time) -> StepReport {
        StepReport {
            step: self.state.step,
            steps: self.plan.course().steps(),
            epoch: (self.state.step - 1) / self.plan.course().epoch_steps(),
            loss: outcome.data + outcome.penalty_weight * outcome.penalty,
            data: outcome.data,
            kl: outcome.penalty,
            gradient_norm: outcome.gradient_norm,
            rate: outcome.rate,
            examples: self.plan.settings().batch,
            time,
            overlapped: outcome.communication.overlapped,
        }
    }

    /// Scores the validation data and tells the callbacks.
    fn end_epoch<D>(&mut self, tools: &Tools<'_>, epoch: Epoch, valid: Option<&D>) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let settings = self.plan.settings();
        let draws = settings.validation_draws.unwrap_or(settings.samples);
        // Without standard errors over draws: nobody looks at them after every epoch.
        let scoring = Scoring::new(draws).quick();
        let members = &self.state.members;
        let validation = match valid {
            Some(valid) => {
                let evaluation = self.readout.evaluate(tools.mesh, members, valid, &scoring)?;
                evaluation.into_iter().collect()
            }
            None => Vec::new(),
        };
        let report = EpochReport {
            epoch: (self.state.step - 1) / self.plan.course().epoch_steps(),
            step: self.state.step,
            loss: epoch.loss / epoch.steps as f64,
            validation,
            time: epoch.time,
        };
        self.tell(
            tools,
            |callback| callback.wants_checkpoint_of_epoch(&report),
            |callback, checkpoint| callback.on_epoch(&report, checkpoint),
        )
    }
}

impl Epoch {
    fn add(&mut self, report: &StepReport) {
        self.loss += report.loss;
        self.steps += 1;
        self.time += report.time;
    }
}
