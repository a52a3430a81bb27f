//! The gradient of one step: what one rank computes of it.

use std::ops::Range;

use bayesmesh_comm::{MeshComm, Reduce};
use burn::tensor::{Device, Tensor};

use super::draw_sum::DrawSum;
use super::overlap::{Overlap, Watched};
use crate::data::Rows;
use crate::draw::Draw;
use crate::error::Result;
use crate::loss::{Combine, Fold, Loss, pullback};
use crate::network::Network;
use crate::posterior::{Drawn, Posterior, Tape};

/// What a rank does with its draws while the summary of all draws is not yet known.
///
/// Losses that are a mean over draws need neither: their draws stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Forget each draw and evaluate it again: one more forward pass, the memory of one draw.
    #[default]
    Recompute,
    /// Keep the graphs of all local draws: faster, memory grows with the draws of a rank. Where
    /// draws share their weights (Monte Carlo dropout) and the network allows it
    /// ([`Network::STACKS_DRAWS`]) they go through it as one batch.
    Retain,
}

/// What comes after the gradients and the running statistics in the vector that ranks sum.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tail {
    /// The data term of the loss.
    Loss,
    /// The Monte Carlo estimate of the KL.
    Kl,
    /// How many ranks want to stop.
    Stop,
    /// How many ranks handed in gradients too early.
    TooEarly,
}

impl Tail {
    pub const LEN: usize = 4;
}

/// The layout of the vector that ranks sum: `[gradient | changes of running statistics | tail]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumLayout {
    pub values: usize,
    pub buffers: usize,
}

impl SumLayout {
    pub fn of<P: Posterior>(posterior: &P) -> Self {
        Self {
            values: posterior.parameters().values().len(),
            buffers: posterior.parameters().buffers().len(),
        }
    }

    pub fn len(self) -> usize {
        self.values + self.buffers + Tail::LEN
    }

    pub fn buffers(self) -> Range<usize> {
        self.values..self.values + self.buffers
    }

    pub fn tail(self, item: Tail) -> usize {
        self.values + self.buffers + item as usize
    }
}

/// One step as one rank sees it: its draws, its rows of the batch, and the ranks beside it.
pub(super) struct Objective<'a, P: Posterior, L: Loss> {
    pub posterior: &'a P,
    pub loss: &'a L,
    pub mesh: &'a MeshComm,
    /// The draws of this rank, and of all sample ranks.
    pub draws: Range<usize>,
    pub samples: usize,
    /// The rows of this rank within the batch, and the size of the batch.
    pub rows: Range<usize>,
    pub batch: usize,
    pub exact: bool,
    pub reduce: Reduce,
    pub memory: Memory,
    /// Heat over the number of examples: the weight of the KL.
    pub kl_weight: f64,
    pub seed: u64,
    pub step: u32,
    pub device: &'a Device,
    /// Where gradients are handed in while the last draw back-propagates.
    pub overlap: Option<&'a Overlap>,
}

/// What a rank contributes to a step.
pub(super) struct Contribution {
    /// In the layout of [`SumLayout`]; with an overlap the gradients are handed in already.
    pub sum: Vec<f32>,
    /// How many numbers were handed in before the last backward pass ended.
    pub early: usize,
}

/// Draws with their graph: their numbers, the network and their summaries, stacked along the rows.
struct Evaluated<N> {
    draws: Range<usize>,
    drawn: Drawn<N>,
    summary: Tensor<2>,
}

impl<P: Posterior, L: Loss> Objective<'_, P, L> {
    /// This rank's part of the sum over all ranks: gradients of the data term and of a Monte Carlo
    /// KL, changes of running statistics, loss. `augmented` gives the inputs as a draw sees them,
    /// where it sees others than `input`.
    pub fn accumulate(
        &self,
        input: &<P::Network as Network>::Input,
        augmented: impl Fn(&Draw) -> Option<<P::Network as Network>::Input>,
        target: &L::Target,
    ) -> Result<Contribution> {
        let snapshot = self.posterior.parameters().snapshot();
        let groups = self.groups();
        // Groups are of one size: single draws, or one group of all.
        let stacked = groups[0].len();
        let group_target = match stacked {
            1 => target.clone(),
            _ => L::Target::stack(vec![target.clone(); stacked]),
        };
        let evaluate = |draws: Range<usize>, tape: Tape| {
            let first = self.draw(draws.start).stacked(draws.len());
            let drawn = snapshot.draw(&first, tape);
            let augmented = draws.clone().map(|draw| augmented(&self.draw(draw)));
            let augmented: Vec<_> = augmented.collect();
            let output = if augmented.iter().all(Option::is_none) {
                drawn.network.forward_draws(input.clone(), &first)
            } else {
                let inputs = augmented.into_iter().map(|own| own.unwrap_or_else(|| input.clone()));
                drawn.network.forward(Rows::stack(inputs.collect()), &first)
            };
            let summary = self.loss.summary(output, &group_target);
            Evaluated { draws, drawn, summary }
        };
        match self.loss.combine() {
            Combine::Mean => Ok(self.stream(&groups, evaluate, &group_target)),
            _ => self.summarise(&groups, evaluate, target),
        }
    }

    /// The local draws in the groups that go through the network together: one by one, or all at
    /// once where the posterior allows it and nothing depends on their being apart.
    fn groups(&self) -> Vec<Range<usize>> {
        let together = P::Network::STACKS_DRAWS
            && self.memory == Memory::Retain
            && self.posterior.draws_share_weights()
            && self.reduce == Reduce::Fast
            && self.posterior.parameters().buffers().is_empty();
        match together {
            true => vec![self.draws.clone()],
            false => self.draws.clone().map(|draw| draw..draw + 1).collect(),
        }
    }

    fn draw(&self, index: usize) -> Draw {
        let draw = Draw::new(self.seed, self.step, index as u32).with_rows(self.rows.clone());
        self.posterior.adapt(draw)
    }

    /// A mean over draws: each forwards and backwards on its own.
    fn stream(
        &self,
        groups: &[Range<usize>],
        evaluate: impl Fn(Range<usize>, Tape) -> Evaluated<P::Network>,
        target: &L::Target,
    ) -> Contribution {
        let weight = 1.0 / (self.samples as f64 * self.batch as f64);
        self.sum_over(groups, |draws| {
            let Evaluated { draws, drawn, summary } = evaluate(draws.clone(), Tape::Recording);
            let scalar = self.loss.value(summary, 1, target).sum() * weight as f32;
            Term { draws, drawn, loss: to_number(&scalar), scalar }
        })
    }

    /// Any other combination: first what the draws say together, then what each contributes.
    fn summarise(
        &self,
        groups: &[Range<usize>],
        evaluate: impl Fn(Range<usize>, Tape) -> Evaluated<P::Network>,
        target: &L::Target,
    ) -> Result<Contribution> {
        let mut fold = Fold::new(self.loss.combine());
        let mut retained = Vec::new();
        for draws in groups {
            let count = draws.len();
            match self.memory {
                Memory::Recompute => {
                    fold.push(evaluate(draws.clone(), Tape::Paused).summary, count)
                }
                Memory::Retain => {
                    let evaluated = evaluate(draws.clone(), Tape::Recording);
                    fold.push(evaluated.summary.clone(), count);
                    retained.push(evaluated);
                }
            }
        }
        let others = self.exact.then_some(&*self.mesh.samples);
        let combined = fold.finish(others, self.reduce)?;
        let combined = Tensor::<2>::from_data(combined, &self.device.clone().without_autodiff());

        // In exact mode all sample ranks hold the same value and its gradient g = ∂L/∂R; in local
        // mode each holds that of its own draws, weighted by their share.
        let (combined_draws, weight) = match self.exact {
            true => (self.samples, 1.0),
            false => (self.draws.len(), self.draws.len() as f64 / self.samples as f64),
        };
        let leaf = combined.clone().autodiff().require_grad();
        let rows = self.loss.value(leaf.clone(), combined_draws, target);
        let value = rows.sum() * (weight / self.batch as f64) as f32;
        let counts_here = !self.exact || self.mesh.coordinates.sample == 0;
        let mut loss = if counts_here { to_number(&value) } else { 0.0 };
        let gradient = leaf.grad(&value.backward()).unwrap_or_else(|| combined.zeros_like());

        let mut retained = retained.into_iter();
        Ok(self.sum_over(groups, |draws| {
            let Evaluated { draws, drawn, summary } =
                retained.next().unwrap_or_else(|| evaluate(draws.clone(), Tape::Recording));
            let first = if self.exact { 0 } else { self.draws.start };
            let weights = pullback(
                self.loss.combine(),
                gradient.clone(),
                combined.clone(),
                summary.clone().without_autodiff(),
                draws.start - first..draws.end - first,
                combined_draws,
            );
            let scalar = (weights.autodiff() * summary).sum();
            Term { draws, drawn, loss: std::mem::take(&mut loss), scalar }
        }))
    }

    /// Adds up what groups of draws give; the last one hands it in where there is an overlap.
    fn sum_over(
        &self,
        groups: &[Range<usize>],
        mut term: impl FnMut(&Range<usize>) -> Term<P::Network>,
    ) -> Contribution {
        let layout = SumLayout::of(self.posterior);
        let parameters = self.posterior.parameters();
        let mut sum = DrawSum::new(self.reduce, layout.len());
        let (last, others) = match (self.overlap, groups.split_last()) {
            (Some(overlap), Some((last, others))) => (Some((overlap, last)), others),
            _ => (None, groups),
        };
        for draws in others {
            let term = term(draws);
            sum.add(|into| {
                self.add_scalars(&term, into);
                term.drawn.add_gradients(parameters, term.scalar.backward(), into);
                self.add_buffers(&term, into);
            });
        }
        let Some((overlap, draws)) = last else {
            return Contribution { sum: sum.finish(), early: 0 };
        };
        let term = term(draws);
        let mut sum = sum.last();
        self.add_scalars(&term, &mut sum.own);
        let scalar = term.scalar.clone();
        let Watched { mut sum, too_early, early } =
            overlap.backward(parameters, &term.drawn, scalar, sum);
        self.add_buffers(&term, &mut sum.own);
        sum.finish(layout.values..layout.len());
        sum.own[layout.tail(Tail::TooEarly)] = if too_early { 1.0 } else { 0.0 };
        Contribution { sum: sum.own, early }
    }

    /// Adds what is known before the backward pass: the loss, and the Monte Carlo KL with its
    /// gradient. It comes first because a slot is complete when its gradient has arrived.
    fn add_scalars(&self, term: &Term<P::Network>, into: &mut [f32]) {
        let layout = SumLayout::of(self.posterior);
        into[layout.tail(Tail::Loss)] += term.loss;
        // The Monte Carlo KL of a draw belongs to no row: the first data shard adds it.
        if self.mesh.coordinates.data == 0 {
            let weight = self.kl_weight / self.samples as f64;
            for draw in term.draws.clone().map(|draw| self.draw(draw)) {
                let gradient = &mut into[..layout.values];
                let kl = self.posterior.kl_of_draw(&draw, weight as f32, gradient);
                into[layout.tail(Tail::Kl)] += (kl / self.samples as f64) as f32;
            }
        }
    }

    /// Adds the changes of running statistics.
    fn add_buffers(&self, term: &Term<P::Network>, into: &mut [f32]) {
        let layout = SumLayout::of(self.posterior);
        let share = self.rows.len() as f64 / (self.samples as f64 * self.batch as f64);
        let parameters = self.posterior.parameters();
        term.drawn.add_buffers(parameters, share as f32, &mut into[layout.buffers()]);
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
