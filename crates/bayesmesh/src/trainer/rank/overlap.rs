//! Gradients on their way to the other ranks while the backward pass still runs.
//!
//! The backward pass of the last draw is watched. When the gradient of a slot is complete, it is
//! taken out, goes through the backward pass of sampling into the sum over draws, and that is
//! handed to the thread that sums over ranks. What is complete when is not known beforehand: a
//! weight may be used several times. So the first step of a run only counts how often a gradient
//! arrives at each slot and in which order slots are complete, as rank 0 sees it; from then on
//! slots are handed in when as many have arrived, in that order on every rank. A slot of which
//! fewer arrive, or none, is handed in after the backward pass. If in some step more arrive than
//! ever before, a slot was handed in too early: all ranks are told with the sum, and compute that
//! step again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bayesmesh_comm::{BucketReducer, Communicator, Reduce, ReducerTime, gather_numbers};
use bayesmesh_kernels::ops::{Arrived, TapeId, Watcher, backward_watched};
use burn::module::Module;
use burn::tensor::Tensor;

use super::draw_sum::LastSum;
use crate::error::Result;
use crate::posterior::{Drawn, Leaf, Parameters, SamplingBackward, numbers};

/// Sums the vectors of a run's steps over ranks, beginning during the backward pass.
#[derive(Debug)]
pub struct Overlap(Arc<Mutex<Handover>>);

/// What the watched backward pass and the trainer share.
#[derive(Debug)]
struct Handover {
    reducer: BucketReducer,
    /// For each slot the most gradients that have arrived at it in one backward pass.
    uses: Vec<usize>,
    /// The order in which slots are handed in, as soon as it is known. Before, all wait for the end
    /// of the backward pass.
    order: Option<Vec<usize>>,
    /// The backward pass that runs now, or whose sum is not yet there.
    pass: Option<Pass>,
}

/// One backward pass.
#[derive(Debug)]
struct Pass {
    backward: SamplingBackward,
    leaves: HashMap<TapeId, usize>,
    sum: LastSum,
    /// For each slot how many gradients have arrived.
    arrivals: Vec<usize>,
    /// The slots in the order of arrivals.
    arrived: Vec<usize>,
    /// Whether a slot is complete and in the sum.
    complete: Vec<bool>,
    /// How many slots have been handed in, and how many numbers they have.
    handed_in: usize,
    numbers: usize,
}

/// What came of a watched backward pass.
#[derive(Debug)]
pub struct Watched {
    /// The sum over draws, its gradients complete.
    pub sum: LastSum,
    /// Whether a part was handed in that was not complete.
    pub too_early: bool,
    /// How many numbers were handed in before the backward pass ended.
    pub early: usize,
}

impl Overlap {
    /// Starts the thread that communicates. Collective.
    pub fn start(
        world: &dyn Communicator,
        slots: usize,
        bucket_bytes: usize,
        reduce: Reduce,
    ) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Handover {
            reducer: BucketReducer::start(world, bucket_bytes, reduce)?,
            uses: vec![0; slots],
            order: None,
            pass: None,
        }))))
    }

    /// Back-propagates the scalar of the last draw and hands in the sum of gradients over all
    /// draws.
    pub fn backward<N: Module>(
        &self,
        parameters: &Parameters<N>,
        drawn: &Drawn<N>,
        scalar: Tensor<1>,
        sum: LastSum,
    ) -> Watched {
        let leaves = drawn.leaves();
        lock(&self.0).pass = Some(Pass::new(drawn.sampling_backward(parameters), leaves, sum));
        let mut gradients = backward_watched(scalar, Hands(Arc::clone(&self.0)));

        let mut handover = lock(&self.0);
        let Handover { reducer, uses, order, pass } = &mut *handover;
        let pass = pass.as_mut().expect("put there above");
        let early = pass.numbers;
        let mut too_early = false;
        for (slot, leaf) in leaves.iter().enumerate() {
            uses[slot] = uses[slot].max(pass.arrivals[slot]);
            let rest = leaf.take(&mut gradients);
            match pass.complete[slot] {
                true => too_early |= rest.is_some(),
                false => pass.complete(slot, rest.as_ref().map(numbers)),
            }
        }
        match order {
            Some(order) => pass.hand_in(order, reducer),
            None => pass.hand_in(&(0..leaves.len()).collect::<Vec<_>>(), reducer),
        }
        Watched { sum: std::mem::take(&mut pass.sum), too_early, early }
    }

    /// Hands in what comes after the `gradients` of a vector, waits and puts the sums over ranks in
    /// its place. Collective.
    pub fn reduce(
        &self,
        world: &dyn Communicator,
        vector: &mut [f32],
        gradients: usize,
    ) -> Result<ReducerTime> {
        let mut handover = lock(&self.0);
        let Handover { reducer, order, pass, .. } = &mut *handover;
        reducer.submit(gradients, &vector[gradients..]);
        let time = reducer.wait(vector)?;
        // What it shares with the parameters must be gone before they change.
        let pass = pass.take();
        if let (None, Some(pass)) = (&order, pass) {
            let slots = pass.order().into_iter().map(|slot| slot as u64).collect::<Vec<_>>();
            let agreed = gather_numbers(world, &slots)?.swap_remove(0);
            *order = Some(agreed.into_iter().map(|slot| slot as usize).collect());
        }
        Ok(time)
    }

    /// After a part was handed in too early on some rank: the next backward pass is only watched.
    pub fn watch_again(&self) {
        lock(&self.0).order = None;
    }
}

impl Pass {
    fn new(backward: SamplingBackward, leaves: &[Box<dyn Leaf>], sum: LastSum) -> Self {
        let ids = leaves.iter().enumerate().filter_map(|(slot, leaf)| Some((leaf.id()?, slot)));
        Self {
            backward,
            leaves: ids.collect(),
            sum,
            arrivals: vec![0; leaves.len()],
            arrived: Vec::new(),
            complete: vec![false; leaves.len()],
            handed_in: 0,
            numbers: 0,
        }
    }

    /// Adds the gradient of a slot, if it has one, and finishes its part of the sum.
    fn complete(&mut self, slot: usize, gradient: Option<&[f32]>) {
        if let Some(gradient) = gradient {
            self.backward.add(slot, gradient, &mut self.sum.own);
        }
        self.sum.finish(self.backward.slots[slot].range.clone());
        self.complete[slot] = true;
    }

    /// Hands in the slots that are next in the order and complete.
    fn hand_in(&mut self, order: &[usize], reducer: &mut BucketReducer) {
        while let Some(&slot) = order.get(self.handed_in).filter(|slot| self.complete[**slot]) {
            let range = self.backward.slots[slot].range.clone();
            self.handed_in += 1;
            self.numbers += range.len();
            reducer.exchange(&mut self.sum.own, range);
        }
    }

    /// The slots in the order in which the last gradient arrived at them; those at which none did
    /// come last.
    fn order(&self) -> Vec<usize> {
        let mut last = vec![usize::MAX; self.complete.len()];
        self.arrived.iter().enumerate().for_each(|(time, &slot)| last[slot] = time);
        let mut order: Vec<usize> = (0..last.len()).collect();
        order.sort_by_key(|&slot| last[slot]);
        order
    }
}

/// What a backward pass is watched by.
#[derive(Debug)]
struct Hands(Arc<Mutex<Handover>>);

impl Watcher for Hands {
    fn arrived(&mut self, tensor: TapeId, gradient: Arrived<'_>) {
        let mut handover = lock(&self.0);
        let Handover { reducer, uses, order, pass } = &mut *handover;
        let Some(pass) = pass else { return };
        let Some(&slot) = pass.leaves.get(&tensor) else { return };
        pass.arrivals[slot] += 1;
        pass.arrived.push(slot);
        if let Some(order) = order
            && pass.arrivals[slot] == uses[slot]
        {
            gradient.take(|gradient| pass.complete(slot, Some(gradient)));
            pass.hand_in(order, reducer);
        }
    }
}

/// Nobody waits for this lock: the backward pass and the trainer are one thread.
fn lock(handover: &Mutex<Handover>) -> MutexGuard<'_, Handover> {
    handover.lock().unwrap_or_else(PoisonError::into_inner)
}
