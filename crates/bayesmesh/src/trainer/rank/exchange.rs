//! Who sums what with whom.
//!
//! | numbers | gradient and running statistics | loss, penalty |
//! |---|---|---|
//! | shared by all draws | summed over the whole mesh | the same |
//! | of one draw each | summed over the data axis | then over the sample axis |
//!
//! The ranks that a member's numbers are summed over are its *peers*. Flags, e.g. that somebody
//! wants to stop, are told to all ranks as integers.

use std::ops::Range;
use std::time::Instant;

use bayesmesh_comm::{
    Communicator, MeshComm, Operation, Reduce, all_reduce_buckets, gather_numbers,
};

use super::objective::Contribution;
use super::overlap::Overlap;
use crate::error::Result;
use crate::posterior::{Ownership, Posterior};
use crate::trainer::Settings;

/// What comes after the gradients and the running statistics in the vector that ranks sum.
#[derive(Clone, Copy, Debug)]
pub enum Tail {
    /// The data term of the loss.
    Loss,
    /// The penalty as far as it is estimated from draws.
    Penalty,
}

impl Tail {
    const LEN: usize = 2;
}

/// The layout of the vector that ranks sum: `[gradient | changes of running statistics | tail]`.
#[derive(Clone, Copy, Debug)]
pub struct SumLayout {
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

/// What summing over ranks took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Communication {
    /// Seconds, in all and not hidden behind computing.
    pub seconds: f64,
    pub exposed: f64,
    /// The share of the gradient handed in before the backward pass ended.
    pub overlapped: f64,
}

impl Communication {
    /// Adds a call during which nothing was computed.
    pub fn stand_still(&mut self, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        self.seconds += seconds;
        self.exposed += seconds;
    }
}

/// What ranks tell each other beside numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// Somebody wants to stop.
    pub stop: bool,
    /// Somebody handed in gradients that were not complete.
    pub too_early: bool,
}

/// The sums of a step over ranks, member by member.
pub struct Sums {
    /// As [`SumLayout`] says. Where the optimiser is divided, the gradients are not summed yet.
    pub members: Vec<Vec<f32>>,
    pub flags: Flags,
    pub communication: Communication,
}

/// Sums over ranks, for a whole run.
pub struct Exchange {
    layout: SumLayout,
    ownership: Ownership,
    bucket_bytes: usize,
    reduce: Reduce,
    divided: bool,
    /// Takes gradients during the backward pass.
    pub overlap: Option<Overlap>,
}

impl Exchange {
    /// Collective.
    pub fn start<P: Posterior>(
        mesh: &MeshComm,
        posterior: &P,
        settings: &Settings,
    ) -> Result<Self> {
        let &Settings { bucket_bytes, reduce, shard_optimizer: divided, .. } = settings;
        let ownership = posterior.ownership();
        // Nothing can go early where nobody is to be summed with, or where nobody needs all of the
        // sum.
        let overlaps = settings.overlap && mesh.world.size() > 1 && !divided;
        let overlap = match overlaps && ownership == Ownership::Shared {
            true => {
                let slots = posterior.parameters().slots().len();
                Some(Overlap::start(&*mesh.world, slots, bucket_bytes, reduce)?)
            }
            false => None,
        };
        let layout = SumLayout::of(posterior);
        Ok(Self { layout, ownership, bucket_bytes, reduce, divided, overlap })
    }

    /// The ranks that have the same numbers, and sum their gradients.
    pub fn peers<'a>(&self, mesh: &'a MeshComm) -> &'a dyn Communicator {
        match self.ownership {
            Ownership::Shared => &*mesh.world,
            Ownership::PerDraw => &*mesh.data,
        }
    }

    /// Sums what all ranks contribute, and tells all what one wants. Collective.
    pub fn sum(&self, mesh: &MeshComm, own: Contribution, wants_stop: bool) -> Result<Sums> {
        let Contribution { sums: mut members, early, too_early } = own;
        let mut communication = Communication::default();
        let peers = self.peers(mesh);
        // Where it is divided, the gradient is not summed for all.
        let start = if self.divided { self.layout.values } else { 0 };
        for sum in &mut members {
            match &self.overlap {
                Some(overlap) => {
                    let time = overlap.reduce(peers, sum, self.layout.values)?;
                    communication.seconds += time.communication.as_secs_f64();
                    communication.exposed += time.exposed.as_secs_f64();
                }
                None if peers.size() == 1 => {}
                None => {
                    let started = Instant::now();
                    all_reduce_buckets(peers, &mut sum[start..], self.bucket_bytes, self.reduce)?;
                    communication.stand_still(started);
                }
            }
        }
        communication.overlapped = early as f64 / self.layout.values.max(1) as f64;
        let [stop, too_early] = any_says(&*mesh.world, [wants_stop, too_early])?;
        let flags = Flags { stop, too_early };
        if let Some(overlap) = self.overlap.as_ref().filter(|_| flags.too_early) {
            overlap.watch_again();
        }
        Ok(Sums { members, flags, communication })
    }

    /// The sums over all members of numbers that each rank has of its own. Collective where members
    /// are on several ranks.
    pub fn over_members<const N: usize>(
        &self,
        mesh: &MeshComm,
        mut own: [f64; N],
    ) -> Result<[f64; N]> {
        if self.ownership == Ownership::PerDraw {
            mesh.samples.all_reduce_f64(&mut own, Operation::Sum, Reduce::Reproducible)?;
        }
        Ok(own)
    }
}

impl Exchange {
    /// The first of some places, each a member and an element, that ranks have found. Collective
    /// where members are on several ranks.
    pub fn first_of_members(
        &self,
        mesh: &MeshComm,
        own: Option<(usize, usize)>,
    ) -> Result<Option<(usize, usize)>> {
        if self.ownership == Ownership::Shared {
            return Ok(own);
        }
        let own = own.map_or(Vec::new(), |(member, element)| vec![member as u64, element as u64]);
        let found = gather_numbers(&*mesh.samples, &own)?;
        let places = found.iter().filter(|place| !place.is_empty());
        Ok(places.map(|place| (place[0] as usize, place[1] as usize)).min())
    }
}

/// What at least one rank says. Collective.
fn any_says<const N: usize>(world: &dyn Communicator, own: [bool; N]) -> Result<[bool; N]> {
    if world.size() == 1 {
        return Ok(own);
    }
    let mut flags = own.map(u64::from);
    world.all_reduce_u64(&mut flags, Operation::Max)?;
    Ok(flags.map(|flag| flag > 0))
}

/// Whether at least one rank says so. Collective.
pub fn anybody(world: &dyn Communicator, own: bool) -> Result<bool> {
    Ok(any_says(world, [own])?[0])
}
