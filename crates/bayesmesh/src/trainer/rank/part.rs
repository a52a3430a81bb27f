//! The optimiser's state and its work, divided among the ranks.
//!
//! Each rank owns a range of the flat vector. The gradient is reduce-scattered, each rank adds the
//! penalty's part, clips, steps and keeps moments for its range only, and the new values are
//! gathered. The ranks are all *peers* that have the same numbers ([`exchange`](super::exchange)):
//! the sum over them is the one that the undivided step needs as well, so that reproducible sums
//! give its bits by construction.

use std::ops::Range;
use std::sync::Arc;

use bayesmesh_comm::{Communicator, Operation, Reduce};
use bayesmesh_kernels::process_memory;
use burn::tensor::Device;

use crate::error::Result;
use crate::posterior::{Posterior, Update};
use crate::trainer::members::Member;
use crate::trainer::optimizer::{Optimizer, OptimizerState};
use crate::trainer::{OptimizerConfig, Settings};

/// Squares are summed over so many elements, at the same places on any number of ranks; then the
/// sums of the blocks in order. Ranks own whole blocks, so the norm has the same bits on all
/// meshes.
const BLOCK: usize = 1024;

/// The part of the flat vector that a rank updates: all of it, or a range that no other rank
/// updates.
pub struct Part {
    own: Range<usize>,
    /// The length of the flat vector.
    length: usize,
    /// The length of a part; the last ones may have less.
    part: usize,
    /// How much is sent at once.
    bucket_bytes: usize,
    /// The optimiser of the part; the trainer's own where nothing is divided.
    optimizer: Option<Optimizer>,
}

impl Part {
    /// All of a vector of this length.
    fn whole(length: usize) -> Self {
        Self { own: 0..length, length, part: length, bucket_bytes: 0, optimizer: None }
    }

    /// What this rank updates of a member. Where that is divided, the member has no optimiser's
    /// state until [`complete`](Self::complete), whatever happens.
    pub fn divide<P: Posterior>(
        peers: &dyn Communicator,
        member: &mut Member<P>,
        settings: &Settings,
    ) -> Result<Self> {
        let parameters = member.posterior.parameters();
        let length = parameters.values().len();
        if !settings.shard_optimizer {
            return Ok(Self::whole(length));
        }
        // Of a state that ranks of this process share, each copies its part.
        let whole = std::mem::replace(&mut member.optimizer, Optimizer::Divided);
        Self::of(peers, length, &whole, settings, parameters.device())
    }

    /// Gives a member the optimiser's state of all ranks, where it is kept. Collective.
    pub fn complete<P: Posterior>(
        mut self,
        peers: &dyn Communicator,
        member: &mut Member<P>,
        config: OptimizerConfig,
        keep: bool,
    ) -> Result<()> {
        if let Some(own) = self.optimizer.take() {
            // What the steps have freed would stay beside the whole state.
            process_memory::give_back_freed();
            let device = member.posterior.parameters().device();
            member.optimizer = self.gather(peers, own.into_state(), config, device, keep)?;
        }
        Ok(())
    }

    /// The optimiser with the state of all ranks, on those that keep it; on the others it is of no
    /// use. Collective.
    pub fn gathered<P: Posterior>(
        &self,
        peers: &dyn Communicator,
        member: &Member<P>,
        config: OptimizerConfig,
        keep: bool,
    ) -> Result<Optimizer> {
        let own = self.optimizer.as_ref().map(Optimizer::state).unwrap_or_default();
        self.gather(peers, own, config, member.posterior.parameters().device(), keep)
    }

    /// The part of this rank, with its part of an optimiser's state.
    fn of(
        peers: &dyn Communicator,
        length: usize,
        whole: &Optimizer,
        settings: &Settings,
        device: &Device,
    ) -> Result<Self> {
        let part = length.div_ceil(BLOCK).div_ceil(peers.size()) * BLOCK;
        let start = (peers.rank() * part).min(length);
        let own = start..(start + part).min(length);
        let mut optimizer = settings.optimizer.build();
        optimizer.restore(whole.part(own.clone()), own.len(), device)?;
        let bucket_bytes = settings.bucket_bytes;
        Ok(Self { own, length, part, bucket_bytes, optimizer: Some(optimizer) })
    }

    /// The elements that this rank updates.
    pub fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    /// Whether other ranks update other elements.
    pub fn is_divided(&self) -> bool {
        self.optimizer.is_some()
    }

    /// Sums the own elements of a gradient over the ranks among which the vector is divided.
    pub fn reduce_scatter(
        &self,
        peers: &dyn Communicator,
        gradient: &mut [f32],
        reduce: Reduce,
    ) -> Result<()> {
        let mut bucket = Vec::new();
        for piece in self.pieces(peers) {
            bucket.clear();
            for rank in 0..peers.size() {
                bucket.extend_from_slice(&gradient[self.place(rank, &piece)]);
                bucket.resize((rank + 1) * piece.len(), 0.0);
            }
            let sums = peers.reduce_scatter(&mut bucket, reduce)?;
            let own = self.place(peers.rank(), &piece);
            let sums = &bucket[sums][..own.len()];
            gradient[own].copy_from_slice(sums);
        }
        Ok(())
    }

    /// Completes the elements from `start` on of a vector that is divided like the flat one, where
    /// the own ones are right: by those of the others, as far as they are among them. Collective.
    fn all_gather(&self, peers: &dyn Communicator, start: usize, values: &mut [f32]) -> Result<()> {
        let held = start..start + values.len();
        let mut bucket = Vec::new();
        for piece in self.pieces(peers) {
            bucket.clear();
            bucket.resize(piece.len() * peers.size(), 0.0);
            let of_rank = |rank: usize| {
                let place = self.place(rank, &piece);
                let is_held = held.start <= place.start && place.end <= held.end;
                let there = if is_held { place.start - start..place.end - start } else { 0..0 };
                (rank * piece.len()..rank * piece.len() + there.len(), there)
            };
            let (in_bucket, there) = of_rank(peers.rank());
            bucket[in_bucket].copy_from_slice(&values[there]);
            peers.all_gather_into(&mut bucket)?;
            for rank in (0..peers.size()).filter(|&rank| rank != peers.rank()) {
                let (in_bucket, there) = of_rank(rank);
                values[there].copy_from_slice(&bucket[in_bucket]);
            }
        }
        Ok(())
    }

    /// The pieces of a part that are sent one after another, with those of all other parts: so what
    /// is sent at once, and kept by a communicator, is of the size of a bucket.
    fn pieces(&self, peers: &dyn Communicator) -> impl Iterator<Item = Range<usize>> + use<> {
        let width = (self.bucket_bytes / size_of::<f32>() / peers.size()).max(1);
        let part = self.part;
        (0..part).step_by(width).map(move |start| start..part.min(start + width))
    }

    /// Where a piece of a rank's part is in the flat vector.
    fn place(&self, rank: usize, piece: &Range<usize>) -> Range<usize> {
        let start = rank * self.part;
        (start + piece.start).min(self.length)..(start + piece.end).min(self.length)
    }

    /// The penalty of all ranks and the norm of the whole gradient, from the own part of both.
    pub fn totals(
        &self,
        peers: &dyn Communicator,
        penalty: f64,
        gradient: &[f32],
        reduce: Reduce,
    ) -> Result<(f64, f64)> {
        let own = gradient.chunks(BLOCK).map(square);
        if !self.is_divided() {
            return Ok((penalty, own.sum::<f64>().sqrt()));
        }
        let mut totals = vec![0.0; self.length.div_ceil(BLOCK) + 1];
        let first = self.own.start.div_ceil(BLOCK);
        totals[first..].iter_mut().zip(own).for_each(|(total, own)| *total = own);
        *totals.last_mut().expect("at least one") = penalty;
        // Zeros are added to the sum of a block: that is exact in any order.
        peers.all_reduce_f64(&mut totals, Operation::Sum, reduce)?;
        let penalty = totals.pop().expect("at least one");
        Ok((penalty, totals.iter().sum::<f64>().sqrt()))
    }

    /// The first element of the whole gradient that is not finite; the same on all ranks.
    pub fn first_not_finite(
        &self,
        peers: &dyn Communicator,
        gradient: &[f32],
    ) -> Result<Option<usize>> {
        let own = gradient.iter().position(|g| !g.is_finite()).map(|at| self.own.start + at);
        if !self.is_divided() {
            return Ok(own);
        }
        let mut first = [own.map_or(f64::NEG_INFINITY, |index| -(index as f64))];
        peers.all_reduce_f64(&mut first, Operation::Max, Reduce::Fast)?;
        Ok(first[0].is_finite().then_some(-first[0] as usize))
    }

    /// Lets the posterior change the own numbers, and completes them by those of the others.
    pub fn step<P: Posterior>(
        &mut self,
        peers: &dyn Communicator,
        member: &mut Member<P>,
        mut gradient: Vec<f32>,
        at: StepAt,
    ) -> Result<()> {
        let StepAt { rate, step, seed, index } = at;
        let Member { posterior, optimizer: whole } = member;
        let device = posterior.parameters().device().clone();
        let mut values = Taken::from(posterior);
        let posterior = &mut *values.posterior;
        let values = &mut values.values;
        let range = self.own.clone();
        match &mut self.optimizer {
            None => posterior.update(&mut Update {
                range,
                values: Arc::make_mut(values).as_mut_slice(),
                gradient,
                rate,
                step,
                seed,
                member: index,
                optimizer: whole,
                device: &device,
            }),
            Some(optimizer) => {
                // The gradient of the others is of no use any more.
                gradient.copy_within(range.clone(), 0);
                gradient.truncate(range.len());
                let values = Arc::make_mut(values).as_mut_slice();
                posterior.update(&mut Update {
                    range: range.clone(),
                    values: &mut values[range],
                    gradient,
                    rate,
                    step,
                    seed,
                    member: index,
                    optimizer,
                    device: &device,
                })?;
                self.all_gather(peers, 0, values)
            }
        }
    }

    /// The optimiser with the state of all ranks, of which `state` is that of this one, where it is
    /// kept. Collective.
    fn gather(
        &self,
        peers: &dyn Communicator,
        mut state: OptimizerState,
        config: OptimizerConfig,
        device: &Device,
        keep: bool,
    ) -> Result<Optimizer> {
        for values in state.tensors.values_mut() {
            if keep {
                let own = std::mem::replace(values, vec![0.0; self.length]);
                values[self.own.clone()].copy_from_slice(&own);
                drop(own);
                self.all_gather(peers, 0, values)?;
            } else {
                self.all_gather(peers, self.own.start, values)?;
            }
        }
        if !keep {
            return Ok(Optimizer::Divided);
        }
        let mut optimizer = config.build();
        optimizer.restore(state, self.length, device)?;
        Ok(optimizer)
    }
}

/// The sum of squares, in double precision. Eight sums, added in a fixed order, because one would
/// wait for itself at every number.
fn square(block: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    let mut add = |chunk: &[f32]| {
        for (sum, &g) in sums.iter_mut().zip(chunk) {
            *sum += f64::from(g) * f64::from(g);
        }
    };
    let chunks = block.chunks_exact(8);
    let rest = chunks.remainder();
    chunks.for_each(&mut add);
    add(rest);
    sums.iter().sum()
}

/// The numbers of a posterior while a step changes them; put back however it ends.
struct Taken<'a, P: Posterior> {
    posterior: &'a mut P,
    values: Arc<Vec<f32>>,
}

impl<'a, P: Posterior> From<&'a mut P> for Taken<'a, P> {
    fn from(posterior: &'a mut P) -> Self {
        let values = posterior.parameters_mut().take_values();
        Self { posterior, values }
    }
}

impl<P: Posterior> Drop for Taken<'_, P> {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.values);
        self.posterior.parameters_mut().set_values(values);
    }
}

/// Which step of whom.
#[derive(Clone, Copy)]
pub struct StepAt {
    pub rate: f64,
    /// Steps done before.
    pub step: usize,
    pub seed: u64,
    /// The number of the member.
    pub index: usize,
}

#[cfg(test)]
mod tests {
    use bayesmesh_comm::threads;
    use burn::module::{Module, Param};
    use burn::tensor::{Tensor, TensorData};

    use super::*;
    use crate::draw::Draw;
    use crate::error::Error;
    use crate::network::Network;
    use crate::posterior::Point;

    /// Weights without a use.
    #[derive(Module, Debug)]
    struct Weights {
        weights: Param<Tensor<1>>,
    }

    impl Network for Weights {
        type Input = Tensor<2>;
        fn forward(&self, input: Tensor<2>, _: &Draw) -> Tensor<2> {
            input
        }
    }

    fn member() -> Member<Point<Weights>> {
        let values = TensorData::new(numbers(1), [LENGTH]);
        let weights = Param::from_tensor(Tensor::from_data(values, &Device::default()));
        let optimizer = Optimizer::Divided;
        Member { posterior: Point::new(Weights { weights }), optimizer }
    }

    /// Not a whole number of blocks.
    const LENGTH: usize = 5 * BLOCK + 77;

    fn numbers(seed: usize) -> Vec<f32> {
        (0..LENGTH).map(|i| ((i * 37 + seed * 101) % 1000) as f32 * 1e-3 - 0.4).collect()
    }

    /// Two steps on `ranks` ranks, each with a gradient of its own: of every rank its elements, the
    /// names and lengths of its optimiser's state, the norm, the values and the state of all.
    #[allow(clippy::type_complexity)]
    fn steps(
        ranks: usize,
        config: OptimizerConfig,
        bucket_bytes: usize,
    ) -> Vec<(Range<usize>, Vec<usize>, u64, Vec<f32>, OptimizerState)> {
        let outcome = threads::run(ranks, |world| {
            let device = Device::default();
            let settings = Settings { optimizer: config, bucket_bytes, ..Settings::default() };
            let mut part = Part::of(world, LENGTH, &config.build(), &settings, &device)?;
            let mut member = member();
            let mut norm = 0.0;
            for step in 0..2 {
                // All but the first rank add nothing, so that the sum is the same on any number.
                let mut gradient = match world.rank() {
                    0 => numbers(2 + step),
                    _ => vec![0.0; LENGTH],
                };
                part.reduce_scatter(world, &mut gradient, Reduce::Reproducible)?;
                let own = &gradient[part.own()];
                (_, norm) = part.totals(world, 0.0, own, Reduce::Reproducible)?;
                part.step(
                    world,
                    &mut member,
                    gradient,
                    StepAt { rate: 0.1, step, seed: 0, index: 0 },
                )?;
            }
            let values = member.posterior.parameters().values().to_vec();
            let held = part.optimizer.as_ref().expect("divided").state();
            let lengths = held.tensors.values().map(Vec::len).collect();
            // It is the same for one rank whether others keep it or not.
            for keeper in 0..ranks {
                let keep = world.rank() == keeper;
                let gathered = part.gathered(world, &member, config, keep)?;
                assert_eq!(gathered.is_whole(), keep);
            }
            let whole = part.gathered(world, &member, config, true)?.into_state();
            Ok::<_, Error>((part.own(), lengths, norm.to_bits(), values, whole))
        });
        outcome.unwrap()
    }

    #[test]
    fn a_rank_holds_the_state_of_its_share_only() {
        let sgd = OptimizerConfig::Sgd { momentum: 0.9, weight_decay: 0.1 };
        for (config, tensors) in [(OptimizerConfig::adam(), 2), (sgd, 1)] {
            let whole = steps(1, config, 1 << 20).remove(0);
            assert_eq!(whole.1, vec![LENGTH; tensors]);
            // On 4 and 8 ranks the blocks do not go round.
            for ranks in [2, 3, 4, 8] {
                for bucket_bytes in [1 << 20, 4000, 4] {
                    let parts = steps(ranks, config, bucket_bytes);
                    let mut next = 0;
                    for (own, held, norm, values, state) in parts {
                        assert_eq!(own.start, next);
                        next = own.end;
                        assert!(own.len() <= LENGTH.div_ceil(BLOCK).div_ceil(ranks) * BLOCK);
                        assert_eq!(held, vec![own.len(); tensors]);
                        assert_eq!(norm, whole.2, "the norm on {ranks} ranks");
                        assert!(values == whole.3, "the values on {ranks} ranks");
                        assert!(state == whole.4, "the gathered state on {ranks} ranks");
                    }
                    assert_eq!(next, LENGTH);
                }
            }
        }
    }

    #[test]
    fn the_norm_is_that_of_the_undivided_gradient() {
        let gradient = numbers(3);
        let expected: f64 = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum();
        let norms = threads::run(1, |world| {
            let (_, norm) = Part::whole(LENGTH).totals(world, 0.0, &gradient, Reduce::Fast)?;
            Ok::<_, Error>(norm)
        });
        assert!((norms.unwrap()[0] - expected.sqrt()).abs() < 1e-12 * expected.sqrt());
    }

    #[test]
    fn all_ranks_find_the_first_element_that_is_not_finite() {
        for bad in [vec![], vec![4], vec![LENGTH - 1], vec![BLOCK * 4, BLOCK * 2 + 5]] {
            let mut gradient = numbers(1);
            bad.iter().for_each(|&index| gradient[index] = f32::NAN);
            let found = threads::run(4, |world| -> Result<_> {
                let (settings, device) = (Settings::default(), Device::default());
                let whole = settings.optimizer.build();
                let part = Part::of(world, LENGTH, &whole, &settings, &device)?;
                part.first_not_finite(world, &gradient[part.own()])
            });
            assert_eq!(found.unwrap(), vec![bad.iter().min().copied(); 4]);
        }
    }

    #[test]
    fn a_divided_state_cannot_be_restored() {
        let state = Optimizer::Divided.state();
        for config in [OptimizerConfig::adam(), OptimizerConfig::sgd()] {
            let outcome = config.build().restore(state.clone(), LENGTH, &Device::default());
            assert!(outcome.unwrap_err().to_string().contains("no optimiser state"));
        }
    }
}
