//! One step of a run on one rank.

use std::time::Instant;

use bayesmesh_comm::MeshComm;
use bayesmesh_kernels::stream::Purpose;

use super::Rank;
use super::exchange::{Communication, Exchange, SumLayout, Sums, Tail};
use super::objective::{Contribution, Objective};
use super::part::{Part, StepAt};
use super::work::Work;
use crate::data::Dataset;
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::loss::Loss;
use crate::network::Network;
use crate::posterior::Posterior;
use crate::trainer::Augment;
use crate::trainer::loading::{Feed, Loaded};
use crate::trainer::schedule::rise;

/// What a rank needs for the steps of a run.
pub struct Tools<'a> {
    pub mesh: &'a MeshComm,
    pub work: Work,
    pub exchange: Exchange,
    /// What this rank updates of each member here.
    pub parts: Vec<Part>,
}

/// What a step came to, before it is put into a report.
pub struct StepOutcome {
    pub data: f64,
    pub penalty: f64,
    pub penalty_weight: f64,
    pub gradient_norm: f64,
    pub rate: f64,
    /// Whether a rank wanted to stop before this step.
    pub stop: bool,
    /// Seconds for which this rank loaded the next batch itself.
    pub loaded: f64,
    pub communication: Communication,
}

impl<P: Posterior, L: Loss> Rank<P, L> {
    /// The draws of this rank on its rows of the batch, the sum over ranks, the penalty, the
    /// update.
    pub(super) fn step<D>(
        &mut self,
        tools: &mut Tools<'_>,
        feed: &dyn Feed<D>,
        train: &D,
        batch: Loaded<D>,
    ) -> Result<StepOutcome>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let settings = &tools.work.settings;
        let step = self.state.step;
        let penalty_weight = settings.heat * rise(step, settings.kl_warmup) / train.len() as f64;
        let rate = settings.schedule.rate(step);

        self.loss.check(self.plan.outputs(), &batch.target)?;
        let (sums, loaded) = loop {
            let own = self.contribute(tools, train, &batch, penalty_weight)?;
            let pause = Instant::now();
            feed.pause();
            let loaded = pause.elapsed().as_secs_f64();
            let sums = tools.exchange.sum(tools.mesh, own, self.answers.stop)?;
            if !sums.flags.too_early {
                break (sums, loaded);
            }
        };
        let Sums { mut members, flags, mut communication } = sums;
        let totals = self.penalise(tools, &mut members, penalty_weight, &mut communication)?;
        self.state.torn = true;
        self.update(tools, members, &totals, rate)?;
        self.state.torn = false;
        Ok(StepOutcome {
            data: totals.data,
            penalty: totals.penalty,
            penalty_weight,
            gradient_norm: totals.norm,
            rate,
            stop: flags.stop,
            loaded,
            communication,
        })
    }

    /// What this rank computes of the step: its draws, forwards and backwards.
    fn contribute<D>(
        &self,
        tools: &Tools<'_>,
        train: &D,
        batch: &Loaded<D>,
        penalty_weight: f64,
    ) -> Result<Contribution>
    where
        D: Dataset<Input = <P::Network as Network>::Input, Target = L::Target>,
    {
        let Tools { mesh, work, exchange, .. } = tools;
        let members = &self.state.members;
        let augmented = |draw: &Draw| {
            let stream = draw.stream(Purpose::Augmentation);
            let stream = match work.settings.augment {
                Augment::PerDraw => stream,
                Augment::PerRank => stream.at_draw(mesh.coordinates.sample as u32),
                Augment::Shared => stream.at_draw(0),
            };
            train.augment(&batch.input, &batch.rows, &stream)
        };
        let objective = Objective {
            members,
            loss: &self.loss,
            mesh,
            work,
            step: self.state.step,
            penalty_weight,
            device: &members.any().parameters().device().clone().autodiff(),
            overlap: exchange.overlap.as_ref(),
        };
        objective.accumulate(&batch.input, augmented, &batch.target)
    }

    /// Adds the penalty to the gradients of the numbers that this rank updates. Refuses what is not
    /// finite, on all ranks.
    fn penalise(
        &self,
        tools: &Tools<'_>,
        sums: &mut [Vec<f32>],
        weight: f64,
        communication: &mut Communication,
    ) -> Result<Totals> {
        let Tools { mesh, work, exchange, parts } = tools;
        let (settings, peers) = (&work.settings, exchange.peers(mesh));
        let layout = SumLayout::of(self.state.members.any());
        let mut totals = Totals::default();
        for ((member, part), sum) in self.state.members.iter().zip(parts).zip(sums.iter_mut()) {
            totals.data += f64::from(sum[layout.tail(Tail::Loss)]);
            let of_draws = f64::from(sum[layout.tail(Tail::Penalty)]);
            let buffers = sum[layout.buffers()].to_vec();
            sum.truncate(layout.values);
            totals.buffers.push(buffers);
            if part.is_divided() {
                let started = Instant::now();
                part.reduce_scatter(peers, sum, settings.reduce)?;
                communication.stand_still(started);
            }
            let own = part.own();
            let gradient = &mut sum[own.clone()];
            let penalty = member.posterior.penalty(weight as f32, own, gradient);
            let (penalty, norm) = part.totals(peers, penalty, gradient, settings.reduce)?;
            totals.penalty += of_draws + penalty / self.state.members.total() as f64;
            totals.norms.push(norm);
        }
        let squares = totals.norms.iter().map(|norm| norm * norm).sum::<f64>();
        let own = [totals.data, totals.penalty, squares];
        let [data, penalty, squares] = exchange.over_members(mesh, own)?;
        (totals.data, totals.penalty) = (data, penalty);
        totals.norm = match &totals.norms[..] {
            [norm] if !self.state.members.are_per_draw() => *norm,
            _ => (squares / self.state.members.total() as f64).sqrt(),
        };
        if (totals.data + totals.penalty).is_finite() && totals.norm.is_finite() {
            return Ok(totals);
        }
        Err(self.not_finite(tools, sums, totals.data + totals.penalty)?)
    }

    /// Clips the gradients and changes the numbers, member by member.
    fn update(
        &mut self,
        tools: &mut Tools<'_>,
        gradients: Vec<Vec<f32>>,
        totals: &Totals,
        rate: f64,
    ) -> Result<()> {
        let Tools { mesh, work, exchange, parts } = tools;
        let (settings, peers) = (&work.settings, exchange.peers(mesh));
        let state = &mut self.state;
        let first = state.members.here().start;
        let members = state.members.iter_mut().zip(parts).zip(gradients).enumerate();
        for (place, ((member, part), mut gradient)) in members {
            let norm = totals.norms[place];
            if let Some(limit) = settings.clip_norm.filter(|limit| norm > *limit) {
                let factor = (limit / norm) as f32;
                gradient[part.own()].iter_mut().for_each(|g| *g *= factor);
            }
            let (step, seed) = (state.step, settings.seed);
            part.step(peers, member, gradient, StepAt { rate, step, seed, index: first + place })?;
            let buffers = member.posterior.parameters_mut().buffers_mut();
            let changes = buffers.iter_mut().zip(&totals.buffers[place]);
            changes.for_each(|(buffer, change)| *buffer += change);
            member.posterior.after_step(state.step + 1);
        }
        Ok(())
    }

    /// What is not finite, in the same words on all ranks: the loss, or the gradient from some
    /// element on. Collective.
    fn not_finite(&self, tools: &Tools<'_>, sums: &[Vec<f32>], loss: f64) -> Result<Error> {
        let members = &self.state.members;
        let peers = tools.exchange.peers(tools.mesh);
        let mut first = None;
        for ((member, part), sum) in members.here().zip(&tools.parts).zip(sums) {
            let index = part.first_not_finite(peers, &sum[part.own()])?;
            first = first.or(index.map(|index| (member, index)));
        }
        let first = tools.exchange.first_of_members(tools.mesh, first)?;
        let what = match first {
            // A bad loss makes all gradients bad: the cause comes first.
            Some((member, index)) if loss.is_finite() => {
                let name = members.any().parameters().describe(index);
                match members.are_per_draw() {
                    true => format!("the gradient of {name} of member {member}"),
                    false => format!("the gradient of {name}"),
                }
            }
            _ => format!("the loss ({loss})"),
        };
        Ok(Error::NotFinite { step: self.state.step, what })
    }
}

/// What the gradients of all members came to.
#[derive(Default)]
struct Totals {
    data: f64,
    penalty: f64,
    /// The norm of the whole gradient, or the root mean square over members.
    norm: f64,
    /// The norm of each member's here.
    norms: Vec<f64>,
    /// The changes of the running statistics of each member here.
    buffers: Vec<Vec<f32>>,
}
