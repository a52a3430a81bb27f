//! The loop that every rank runs.

use std::time::Instant;

use bayesmesh_comm::{MeshComm, Operation, Reduce, all_reduce_buckets, share};
use bayesmesh_kernels::stream::Purpose;
use burn::tensor::Device;

use super::loader::{Feed, Loaded};
use super::objective::{Objective, SumLayout, Tail};
use super::schedule::rise;
use super::{Augment, Course, EpochReport, Flow, StepReport, Time, Trainer};
use crate::checkpoint::Checkpoint;
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
        let (steps, epoch_steps) = (course.steps, course.batches.steps_per_epoch());
        let device = self.posterior.parameters().device().clone().autodiff();
        let mut wants_stop = false;
        let (mut epoch_loss, mut epoch_count) = (0.0, 0);
        let mut epoch_time = Time::default();

        while self.step < steps {
            let started = Instant::now();
            let loaded = feed.take(self.step)?;
            let waited = started.elapsed().as_secs_f64();
            let outcome = self.one_step(mesh, feed, train, loaded, &device, wants_stop)?;
            let time =
                Time { seconds: started.elapsed().as_secs_f64(), waited: waited + outcome.loaded };
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
            };
            let stopping = outcome.stop || self.step == steps;
            wants_stop |= self.tell(|callback, checkpoint| callback.on_step(&report, checkpoint));

            if stopping || self.step.is_multiple_of(epoch_steps) {
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
                wants_stop |=
                    self.tell(|callback, checkpoint| callback.on_epoch(&report, checkpoint));
                (epoch_loss, epoch_count) = (0.0, 0);
                epoch_time = Time::default();
                // At the end of an epoch all agree at once, so that what a callback has judged is
                // what it gets.
                let mut votes = [if wants_stop { 1.0 } else { 0.0 }];
                mesh.world.all_reduce_f64(&mut votes, Operation::Max, Reduce::Fast)?;
                if stopping || votes[0] > 0.0 {
                    break;
                }
            }
        }
        Ok(())
    }

    fn one_step<D>(
        &mut self,
        mesh: &MeshComm,
        feed: &impl Feed<D>,
        train: &D,
        loaded: Loaded<D>,
        device: &Device,
        wants_stop: bool,
    ) -> Result<StepOutcome>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let settings = &self.settings;
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
            device,
        };
        let layout = SumLayout::of(&self.posterior);
        let mut sum = objective.accumulate(&input, augmented, &target)?;
        let pause = Instant::now();
        feed.pause();
        let loaded = pause.elapsed().as_secs_f64();
        sum[layout.tail(Tail::Stop)] = if wants_stop { 1.0 } else { 0.0 };
        all_reduce_buckets(&*mesh.world, &mut sum, settings.bucket_bytes, settings.reduce)?;

        let data = f64::from(sum[layout.tail(Tail::Loss)]);
        let kl_of_draws = f64::from(sum[layout.tail(Tail::Kl)]);
        let stop = sum[layout.tail(Tail::Stop)] > 0.0;
        let buffer_changes = sum[layout.buffers()].to_vec();
        let mut gradient = sum;
        gradient.truncate(layout.values);
        let kl = kl_of_draws + self.posterior.kl(kl_weight as f32, 0..layout.values, &mut gradient);
        let gradient_norm = norm(&gradient);
        self.check_finite(data + kl, gradient_norm, &gradient)?;
        if let Some(limit) = self.settings.clip_norm.filter(|limit| gradient_norm > *limit) {
            let factor = (limit / gradient_norm) as f32;
            gradient.iter_mut().for_each(|g| *g *= factor);
        }
        let rate = self.settings.schedule.rate(self.step);
        let parameters = self.posterior.parameters_mut();
        let plain = parameters.device().clone();
        self.optimizer.step(rate, parameters.values_mut(), gradient, &plain);
        for (buffer, change) in parameters.buffers_mut().iter_mut().zip(buffer_changes) {
            *buffer += change;
        }
        Ok(StepOutcome { data, kl, kl_weight, gradient_norm, rate, stop, loaded })
    }

    fn check_finite(&self, loss: f64, norm: f64, gradient: &[f32]) -> Result<()> {
        // The squares of single precision do not overflow in double precision.
        if loss.is_finite() && norm.is_finite() {
            return Ok(());
        }
        // A bad loss makes all gradients bad: the cause comes first.
        let what = match gradient.iter().position(|g| !g.is_finite()) {
            Some(index) if loss.is_finite() => {
                format!("the gradient of {}", self.posterior.parameters().describe(index))
            }
            _ => format!("the loss ({loss})"),
        };
        Err(Error::NotFinite { step: self.step, what })
    }

    /// Calls every callback of this rank; whether one of them wants to stop.
    fn tell(
        &mut self,
        mut call: impl FnMut(&mut dyn super::Callback, &dyn Fn() -> Checkpoint) -> Flow,
    ) -> bool {
        let mut callbacks = std::mem::take(&mut self.callbacks);
        let checkpoint = || self.checkpoint();
        let mut stop = false;
        for callback in &mut callbacks {
            stop |= call(&mut **callback, &checkpoint) == Flow::Stop;
        }
        self.callbacks = callbacks;
        stop
    }
}

/// The Euclidean norm, in double precision. Eight sums, added in a fixed order, because one would
/// wait for itself at every number.
fn norm(gradient: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    let mut add = |chunk: &[f32]| {
        for (sum, &g) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(g) * f64::from(g);
        }
    };
    let chunks = gradient.chunks_exact(8);
    let rest = chunks.remainder();
    chunks.for_each(&mut add);
    add(rest);
    sums.iter().sum::<f64>().sqrt()
}
