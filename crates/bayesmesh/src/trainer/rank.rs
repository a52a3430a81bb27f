//! The loop that every rank runs.

use std::time::Instant;

use bayesmesh_comm::{MeshComm, Operation, Reduce, all_reduce_buckets, share};
use bayesmesh_kernels::stream::Purpose;

use super::callbacks::Answers;
use super::fit::Course;
use super::loader::{Feed, Loaded};
use super::objective::{Contribution, Objective, SumLayout, Tail};
use super::overlap::Overlap;
use super::part::Part;
use super::schedule::rise;
use super::{Augment, EpochReport, Settings, StepReport, Time, Trainer};
use crate::data::Dataset;
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::Posterior;

/// What a step came to, before it is put into a report.
struct StepOutcome {
    data: f64,
    kl: f64,
    kl_weight: f64,
    gradient_norm: f64,
    rate: f64,
    stop: bool,
    /// Seconds for which this rank loaded the next batch itself.
    loaded: f64,
    communication: Communication,
}

/// What summing the gradients over ranks took.
#[derive(Default)]
struct Communication {
    /// Seconds, in all and not hidden behind computing.
    seconds: f64,
    exposed: f64,
    /// The share of the gradient handed in before the backward pass ended.
    overlapped: f64,
}

impl Communication {
    /// Adds a call during which nothing was computed.
    fn stand_still(&mut self, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        self.seconds += seconds;
        self.exposed += seconds;
    }
}

/// How a rank takes part in a run.
struct Role<'a> {
    part: &'a mut Part,
    /// Takes gradients during the backward pass.
    overlap: Option<Overlap>,
}

impl<P: Posterior, L: Loss> Trainer<P, L> {
    pub(super) fn run<D>(
        &mut self,
        mesh: &MeshComm,
        feed: &impl Feed<D>,
        train: &D,
        valid: Option<&D>,
        course: &Course,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let mut part = self.divide(&*mesh.world)?;
        let before = std::mem::take(&mut self.time);
        let mut answers = Answers::default();
        let outcome = self.steps(mesh, &mut part, feed, train, valid, course, &mut answers);
        self.callbacks.iter_mut().for_each(|callback| callback.on_end());
        if outcome.is_ok() {
            self.time = self.time.longest(&*mesh.world)?;
        }
        self.time += before;
        // What is not finite is seen by all ranks at once; other errors leave some behind.
        match outcome {
            Ok(()) | Err(Error::NotFinite { .. }) => {
                let complete = self.complete(&*mesh.world, &part);
                answers.failure.map_or(outcome, Err).and(complete)
            }
            Err(_) => outcome,
        }
    }

    #[allow(clippy::too_many_arguments)] // all there is to a run
    fn steps<D>(
        &mut self,
        mesh: &MeshComm,
        part: &mut Part,
        feed: &impl Feed<D>,
        train: &D,
        valid: Option<&D>,
        course: &Course,
        answers: &mut Answers,
    ) -> Result<()>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let (steps, epoch_steps) = (course.steps, course.batches.steps_per_epoch());
        let mut role = Role { overlap: self.overlap(mesh, part)?, part };
        let (mut epoch_loss, mut epoch_count) = (0.0, 0);
        let mut epoch_time = Time::default();

        while self.step < steps {
            let started = Instant::now();
            let loaded = feed.take(self.step)?;
            let waited = started.elapsed().as_secs_f64();
            let outcome = self.one_step(mesh, &mut role, feed, train, loaded, answers.stop)?;
            let time = Time {
                seconds: started.elapsed().as_secs_f64(),
                waited: waited + outcome.loaded,
                communication: outcome.communication.seconds,
                exposed: outcome.communication.exposed,
            };
            self.time += time;
            let loss = outcome.data + outcome.kl_weight * outcome.kl;
            let epoch = self.step / epoch_steps;
            self.step += 1;
            epoch_loss += loss;
            epoch_count += 1;
            epoch_time += time;
            let report = StepReport {
                step: self.step,
                steps,
                epoch,
                loss,
                data: outcome.data,
                kl: outcome.kl,
                gradient_norm: outcome.gradient_norm,
                rate: outcome.rate,
                examples: self.settings.batch,
                time,
                overlapped: outcome.communication.overlapped,
            };
            let epoch_ends = self.step.is_multiple_of(epoch_steps) || self.step == steps;
            self.tell(
                &*mesh.world,
                role.part,
                |callback| callback.wants_checkpoint(&report),
                |callback, checkpoint| callback.on_step(&report, checkpoint),
                answers,
            )?;

            if epoch_ends {
                let draws = self.settings.validation_draws.unwrap_or(self.settings.samples);
                let validation = match valid {
                    Some(valid) => self.evaluate_on(mesh, valid, draws)?,
                    None => Vec::new(),
                };
                let report = EpochReport {
                    epoch,
                    step: self.step,
                    loss: epoch_loss / epoch_count as f64,
                    validation,
                    time: epoch_time,
                };
                self.tell(
                    &*mesh.world,
                    role.part,
                    |_| true,
                    |callback, checkpoint| callback.on_epoch(&report, checkpoint),
                    answers,
                )?;
                (epoch_loss, epoch_count) = (0.0, 0);
                epoch_time = Time::default();
                // At the end of an epoch all agree at once, so that what a callback has judged is
                // what it gets.
                let mut votes = [if answers.stop { 1.0 } else { 0.0 }];
                mesh.world.all_reduce_f64(&mut votes, Operation::Max, Reduce::Fast)?;
                if votes[0] > 0.0 {
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

    fn one_step<D>(
        &mut self,
        mesh: &MeshComm,
        role: &mut Role<'_>,
        feed: &impl Feed<D>,
        train: &D,
        loaded: Loaded<D>,
        wants_stop: bool,
    ) -> Result<StepOutcome>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let Role { part, overlap } = role;
        let settings = &self.settings;
        let device = self.posterior.parameters().device().clone().autodiff();
        let at = mesh.coordinates;
        let rows = share(settings.batch, mesh.mesh.data_size(), at.data);
        let draws = share(settings.samples, mesh.mesh.samples_size(), at.sample);
        let step = self.step as u32;
        let kl_weight = settings.heat * rise(self.step, settings.kl_warmup) / train.len() as f64;

        let Loaded { rows: shard, input, target } = loaded;
        let augmented = |draw: &Draw| {
            let stream = draw.stream(Purpose::Augmentation);
            let stream = match settings.augment {
                Augment::PerDraw => stream,
                Augment::PerRank => stream.at_draw(at.sample as u32),
                Augment::Shared => stream.at_draw(0),
            };
            train.augment(&input, &shard, &stream)
        };
        let objective = Objective {
            posterior: &self.posterior,
            loss: &self.loss,
            mesh,
            draws,
            samples: settings.samples,
            rows,
            batch: settings.batch,
            exact: settings.exact,
            reduce: settings.reduce,
            memory: settings.memory,
            kl_weight,
            seed: settings.seed,
            step,
            device: &device,
            overlap: overlap.as_ref(),
        };
        let layout = SumLayout::of(&self.posterior);
        // Where it is divided, the gradient is not summed for all.
        let start = if part.is_divided() { layout.values } else { 0 };
        let (world, bucket_bytes, reduce) = (&*mesh.world, settings.bucket_bytes, settings.reduce);
        let (sum, loaded, mut communication) = loop {
            let Contribution { mut sum, early } =
                objective.accumulate(&input, augmented, &target)?;
            let pause = Instant::now();
            feed.pause();
            let loaded = pause.elapsed().as_secs_f64();
            sum[layout.tail(Tail::Stop)] = if wants_stop { 1.0 } else { 0.0 };
            let mut communication =
                self.sum_over_ranks(mesh, overlap.as_ref(), &mut sum[start..])?;
            communication.overlapped = early as f64 / layout.values.max(1) as f64;
            match overlap.as_ref().filter(|_| sum[layout.tail(Tail::TooEarly)] > 0.0) {
                Some(overlap) => overlap.watch_again(),
                None => break (sum, loaded, communication),
            }
        };

        let data = f64::from(sum[layout.tail(Tail::Loss)]);
        let kl_of_draws = f64::from(sum[layout.tail(Tail::Kl)]);
        let stop = sum[layout.tail(Tail::Stop)] > 0.0;
        let buffer_changes = sum[layout.buffers()].to_vec();
        let mut gradient = sum;
        gradient.truncate(layout.values);
        let started = Instant::now();
        part.reduce_scatter(world, &mut gradient, bucket_bytes, reduce)?;
        if part.is_divided() {
            communication.stand_still(started);
        }
        let own = part.own();
        let kl = self.posterior.kl(kl_weight as f32, own.clone(), &mut gradient[own.clone()]);
        let (kl, gradient_norm) = part.totals(world, kl, &gradient[own.clone()], reduce)?;
        let kl = kl_of_draws + kl;
        if !((data + kl).is_finite() && gradient_norm.is_finite()) {
            let first = part.first_not_finite(world, &gradient[own])?;
            return Err(self.not_finite(data + kl, first));
        }
        if let Some(limit) = self.settings.clip_norm.filter(|limit| gradient_norm > *limit) {
            let factor = (limit / gradient_norm) as f32;
            gradient[own].iter_mut().for_each(|g| *g *= factor);
        }
        let rate = self.settings.schedule.rate(self.step);
        let parameters = self.posterior.parameters_mut();
        let plain = parameters.device().clone();
        let values = parameters.values_mut();
        part.step(world, &mut self.optimizer, rate, values, gradient, &plain)?;
        for (buffer, change) in parameters.buffers_mut().iter_mut().zip(buffer_changes) {
            *buffer += change;
        }
        Ok(StepOutcome { data, kl, kl_weight, gradient_norm, rate, stop, loaded, communication })
    }

    /// What sums gradients over ranks while they are computed; nothing where nobody is to be
    /// summed with, or where nobody needs all of the sum. Collective.
    fn overlap(&self, mesh: &MeshComm, part: &Part) -> Result<Option<Overlap>> {
        if !self.settings.overlap || mesh.world.size() == 1 || part.is_divided() {
            return Ok(None);
        }
        let Settings { bucket_bytes, reduce, .. } = self.settings;
        let slots = self.posterior.parameters().slots().len();
        Overlap::start(&*mesh.world, slots, bucket_bytes, reduce).map(Some)
    }

    fn sum_over_ranks(
        &self,
        mesh: &MeshComm,
        overlap: Option<&Overlap>,
        sum: &mut [f32],
    ) -> Result<Communication> {
        let mut communication = Communication::default();
        match overlap {
            Some(overlap) => {
                let gradients = SumLayout::of(&self.posterior).values;
                let time = overlap.reduce(&*mesh.world, sum, gradients)?;
                communication.seconds = time.communication.as_secs_f64();
                communication.exposed = time.exposed.as_secs_f64();
            }
            None if mesh.world.size() == 1 => {}
            None => {
                let Settings { bucket_bytes, reduce, .. } = self.settings;
                let started = Instant::now();
                all_reduce_buckets(&*mesh.world, sum, bucket_bytes, reduce)?;
                communication.stand_still(started);
            }
        }
        Ok(communication)
    }

    /// What is not finite: the loss, or the gradient from its element `first` on.
    fn not_finite(&self, loss: f64, first: Option<usize>) -> Error {
        // A bad loss makes all gradients bad: the cause comes first.
        let what = match first {
            Some(index) if loss.is_finite() => {
                format!("the gradient of {}", self.posterior.parameters().describe(index))
            }
            _ => format!("the loss ({loss})"),
        };
        Error::NotFinite { step: self.step, what }
    }
}
