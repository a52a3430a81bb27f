//! The gradient of one step: what one rank computes of it.

use std::ops::Range;

use bayesmesh_comm::{MeshComm, Reduce};
use burn::tensor::{Device, Tensor};

use super::draw_sum::DrawSum;
use super::exchange::{SumLayout, Tail};
use super::overlap::{Overlap, Watched};
use super::work::Work;
use crate::data::Rows;
use crate::draw::Draw;
use crate::error::Result;
use crate::loss::{Combine, Loss, Scope, Together};
use crate::network::Network;
use crate::posterior::{Drawn, Parameters, Posterior, Tape};
use crate::trainer::Memory;
use crate::trainer::members::Members;

/// One step as one rank sees it: its draws, its rows of the batch, and the ranks beside it.
pub struct Objective<'a, P: Posterior, L: Loss> {
    pub members: &'a Members<P>,
    pub loss: &'a L,
    pub mesh: &'a MeshComm,
    /// What this rank does of every step.
    pub work: &'a Work,
    pub step: usize,
    /// Heat over the number of examples: the weight of the penalty.
    pub penalty_weight: f64,
    pub device: &'a Device,
    /// Where gradients are handed in while the last draw back-propagates.
    pub overlap: Option<&'a Overlap>,
}

/// What a rank contributes to a step.
pub struct Contribution {
    /// For each member here a vector in the layout of [`SumLayout`]; with an overlap its gradients
    /// are handed in already.
    pub sums: Vec<Vec<f32>>,
    /// How many numbers were handed in before the last backward pass ended.
    pub early: usize,
    /// Whether some of them were not complete, so that the step must be computed again.
    pub too_early: bool,
}

/// Draws with their graph: their numbers, the network and their summaries, stacked along the rows.
struct Evaluated<N> {
    draws: Range<usize>,
    drawn: Drawn<N>,
    summary: Tensor<2>,
}

impl<P: Posterior, L: Loss> Objective<'_, P, L> {
    /// This rank's part of the sum over all ranks: gradients of the data term and of a penalty that
    /// is estimated from draws, changes of running statistics, loss. `augmented` gives the inputs
    /// as a draw sees them, where it sees others than `input`.
    pub fn accumulate(
        &self,
        input: &<P::Network as Network>::Input,
        augmented: impl Fn(&Draw) -> Option<<P::Network as Network>::Input>,
        target: &L::Target,
    ) -> Result<Contribution> {
        let snapshot = |draw: usize| self.members.of_draw(draw).parameters().snapshot();
        // One for all draws that share their numbers.
        let shared = (!self.members.are_per_draw()).then(|| snapshot(self.work.draws.start));
        // Groups are of one size. They are not listed: there may be any number of them.
        let stacked = self.stacked();
        let starts = self.work.draws.clone().step_by(stacked);
        let groups = starts.map(move |first| first..first + stacked);
        let group_target = match stacked {
            1 => target.clone(),
            _ => L::Target::stack(vec![target.clone(); stacked]),
        };
        let evaluate = |draws: Range<usize>, tape: Tape| {
            let first = self.draw(draws.start).stacked(draws.len());
            let drawn = match &shared {
                Some(shared) => shared.draw(&first, tape),
                None => snapshot(draws.start).draw(&first, tape),
            };
            let augmented = draws.clone().map(|draw| augmented(&self.draw(draw)));
            let augmented: Vec<_> = augmented.collect();
            let forward = || {
                if augmented.iter().all(Option::is_none) {
                    return drawn.network.forward_draws(input.clone(), &first);
                }
                let inputs = augmented.into_iter().map(|own| own.unwrap_or_else(|| input.clone()));
                drawn.network.forward(Rows::stack(inputs.collect()), &first)
            };
            let output = self.work.settings.precision.scope(forward);
            let summary = self.loss.summary(output, &group_target);
            Evaluated { draws, drawn, summary }
        };
        match self.loss.combine() {
            Combine::Mean => Ok(self.stream(groups, evaluate, &group_target)),
            _ => self.summarise(groups, evaluate, target),
        }
    }

    /// How many draws go through the network together: one, or all of this rank at once where the
    /// posterior allows it and nothing depends on their being apart.
    fn stacked(&self) -> usize {
        let Work { settings, draws, .. } = self.work;
        let parameters = self.members.any().parameters();
        let together = P::Network::STACKS_DRAWS
            && settings.memory == Memory::Retain
            && settings.reduce == Reduce::Fast
            && !self.members.are_per_draw()
            && parameters.is_certain()
            && parameters.buffers().is_empty();
        if together { draws.len() } else { 1 }
    }

    fn draw(&self, index: usize) -> Draw {
        let Work { settings, rows, .. } = self.work;
        let draw = Draw::new(settings.seed, self.step as u32, index as u32).with_rows(rows.clone());
        self.members.of_draw(index).adapt(draw)
    }

    /// What the gradient of a member is multiplied by: that of the mean over draws for numbers that
    /// all draws share, S times as much for those of one draw.
    fn factor(&self) -> f64 {
        if self.members.are_per_draw() { self.work.settings.samples as f64 } else { 1.0 }
    }

    /// A mean over draws: each forwards and backwards on its own.
    fn stream(
        &self,
        groups: impl DoubleEndedIterator<Item = Range<usize>>,
        evaluate: impl Fn(Range<usize>, Tape) -> Evaluated<P::Network>,
        target: &L::Target,
    ) -> Contribution {
        let factor = self.factor();
        let weight = factor / self.work.cells();
        self.sum_over(groups, |draws| {
            let Evaluated { draws, drawn, summary } = evaluate(draws, Tape::Recording);
            let scalar = self.loss.value(summary, 1, target).sum() * weight as f32;
            Term { draws, drawn, loss: to_number(&scalar) / factor as f32, scalar }
        })
    }

    /// Any other combination: first what the draws say together, then what each contributes.
    fn summarise(
        &self,
        groups: impl DoubleEndedIterator<Item = Range<usize>> + Clone,
        evaluate: impl Fn(Range<usize>, Tape) -> Evaluated<P::Network>,
        target: &L::Target,
    ) -> Result<Contribution> {
        let Work { settings, draws: own, .. } = self.work;
        // In exact mode all sample ranks have the loss of all draws; in local mode each has that of
        // its own, weighted by their share.
        let (draws, first, share) = match settings.exact {
            true => (settings.samples, 0, 1.0),
            false => (own.len(), own.start, own.len() as f64 / settings.samples as f64),
        };
        let mut together = Together::new(
            self.loss.combine(),
            Scope {
                others: settings.exact.then_some(&*self.mesh.samples),
                reduce: settings.reduce,
                draws,
                own: own.start - first..own.end - first,
                weight: share / settings.batch as f64,
                factor: self.factor(),
                device: self.device.clone().without_autodiff(),
            },
        );
        let mut retained = Vec::new();
        // One group alone is no more than recomputing holds at a time.
        let retains = settings.memory == Memory::Retain || groups.clone().nth(1).is_none();
        for draws in groups.clone() {
            let count = draws.len();
            match retains {
                false => together.push(evaluate(draws, Tape::Paused).summary, count),
                true => {
                    let evaluated = evaluate(draws, Tape::Recording);
                    together.push(evaluated.summary.clone(), count);
                    retained.push(evaluated);
                }
            }
        }
        let joint = together.finish(self.loss, target)?;
        let counts_here = !settings.exact || self.mesh.coordinates.sample == 0;
        let mut loss = if counts_here { joint.value } else { 0.0 };

        let mut retained = retained.into_iter();
        Ok(self.sum_over(groups, |draws| {
            let Evaluated { draws, drawn, summary } =
                retained.next().unwrap_or_else(|| evaluate(draws, Tape::Recording));
            let combined = draws.start - first..draws.end - first;
            let weights = joint.weights(combined, summary.clone().without_autodiff());
            let scalar = (weights.autodiff() * summary).sum();
            Term { draws, drawn, loss: std::mem::take(&mut loss), scalar }
        }))
    }

    /// Adds up what groups of draws give: for all of them, or for each member on its own.
    fn sum_over(
        &self,
        mut groups: impl DoubleEndedIterator<Item = Range<usize>>,
        mut term: impl FnMut(Range<usize>) -> Term<P::Network>,
    ) -> Contribution {
        let layout = SumLayout::of(self.members.any());
        let add = |term: Term<P::Network>, into: &mut [f32]| {
            let parameters = self.members.of_draw(term.draws.start).parameters();
            self.add_scalars(&term, into);
            term.drawn.add_gradients(parameters, term.scalar.backward(), into);
            self.add_buffers(&term.drawn, parameters, into);
        };
        if self.members.are_per_draw() {
            let sums = groups.map(|draws| {
                let mut sum = vec![0.0; layout.len()];
                add(term(draws), &mut sum);
                sum
            });
            return Contribution { sums: sums.collect(), early: 0, too_early: false };
        }
        let mut sum = DrawSum::new(self.work.settings.reduce, layout.len());
        let last = self.overlap.and_then(|overlap| Some((overlap, groups.next_back()?)));
        for draws in groups {
            let term = term(draws);
            sum.add(|into| add(term, into));
        }
        match last {
            None => Contribution { sums: vec![sum.finish()], early: 0, too_early: false },
            Some((overlap, draws)) => self.hand_in(overlap, term(draws), sum),
        }
    }

    /// Adds what the last draws give to the sum over all and hands it in, part by part as soon as
    /// it is known.
    fn hand_in(&self, overlap: &Overlap, term: Term<P::Network>, sum: DrawSum) -> Contribution {
        let posterior = self.members.any();
        let (layout, parameters) = (SumLayout::of(posterior), posterior.parameters());
        let mut sum = sum.last();
        self.add_scalars(&term, &mut sum.own);
        let Watched { mut sum, too_early, early } =
            overlap.backward(parameters, &term.drawn, term.scalar, sum);
        self.add_buffers(&term.drawn, parameters, &mut sum.own);
        sum.finish(layout.values..layout.len());
        Contribution { sums: vec![sum.own], early, too_early }
    }

    /// Adds what is known before the backward pass: the loss, and the penalty of draws with its
    /// gradient. It comes first because a slot is complete when its gradient has arrived.
    fn add_scalars(&self, term: &Term<P::Network>, into: &mut [f32]) {
        let layout = SumLayout::of(self.members.any());
        into[layout.tail(Tail::Loss)] += term.loss;
        // The penalty of a draw belongs to no row: the first data shard adds it.
        if self.mesh.coordinates.data == 0 {
            let samples = self.work.settings.samples as f64;
            let weight = self.penalty_weight * self.factor() / samples;
            for index in term.draws.clone() {
                let (posterior, draw) = (self.members.of_draw(index), self.draw(index));
                let gradient = &mut into[..layout.values];
                let penalty = posterior.penalty_of_draw(&draw, weight as f32, gradient);
                into[layout.tail(Tail::Penalty)] += (penalty / samples) as f32;
            }
        }
    }

    /// Adds the changes of running statistics.
    fn add_buffers(
        &self,
        drawn: &Drawn<P::Network>,
        parameters: &Parameters<P::Network>,
        into: &mut [f32],
    ) {
        let layout = SumLayout::of(self.members.any());
        let share = self.work.rows.len() as f64 * self.factor() / self.work.cells();
        drawn.add_buffers(parameters, share as f32, &mut into[layout.buffers()]);
    }
}

/// What draws that went through the network together give to the step.
struct Term<N> {
    draws: Range<usize>,
    drawn: Drawn<N>,
    /// Their part of the loss.
    loss: f32,
    /// To back-propagate.
    scalar: Tensor<1>,
}

fn to_number(scalar: &Tensor<1>) -> f32 {
    scalar.clone().into_scalar::<f32>()
}
