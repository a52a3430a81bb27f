//! Where the ranks of one communicator meet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use crate::error::CommError;
use crate::threads::offer::{Offer, judge};
use crate::threads::world::{World, lock};

/// How often a waiting rank looks before it goes to sleep, where every rank has a core of its own:
/// some tens of microseconds, about what sleeping and waking would cost.
const SPINS: usize = 1000;

/// The ranks of one communicator.
///
/// They meet in two ways. In [`gather`](Self::gather) a call begins: a rank may be told there that
/// another failed or left, and then has not taken part. In [`meet`](Self::meet) ranks that have
/// begun a call wait for each other within it: that always succeeds, because none of them can leave
/// before, and this is what makes it sound to lend buffers to one another.
#[derive(Debug)]
pub(super) struct Group {
    world: Arc<World>,
    /// World rank of every member.
    members: Vec<usize>,
    spins: usize,
    state: Mutex<State>,
    /// Meetings held so far; changes only under the lock of `state`.
    meetings: AtomicU64,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Ranks waiting in the current meeting.
    arrived: usize,
    /// What they brought, if it is one that begins a call.
    offers: Vec<Option<Offer>>,
    /// Outcome of the last meeting that began a call. It stays until all have arrived for the next
    /// one, so until all have read it.
    outcome: Result<Vec<Offer>, CommError>,
    /// After a split, the new group of each rank and its rank there, until fetched.
    parts: Vec<Option<(Arc<Group>, usize)>>,
}

impl Group {
    pub fn new(world: Arc<World>, members: Vec<usize>) -> Arc<Self> {
        let size = members.len();
        // More ranks than cores: whoever spins keeps the awaited one from running.
        let cores = available_parallelism().map_or(1, usize::from);
        let group = Arc::new(Group {
            spins: if world.size() <= cores { SPINS } else { 0 },
            members,
            state: Mutex::new(State {
                arrived: 0,
                offers: vec![None; size],
                outcome: Ok(Vec::new()),
                parts: Vec::new(),
            }),
            meetings: AtomicU64::new(0),
            changed: Condvar::new(),
            world,
        });
        group.world.register(&group);
        group
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The world this group is part of.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Records that the member `rank` failed.
    pub fn fail(&self, rank: usize, reason: String) {
        self.world.fail(self.members[rank], reason);
    }

    /// Begins a call: hands in `offer` for `rank`, waits for all members, and returns the offers of
    /// all in rank order if they agree.
    pub fn gather(&self, rank: usize, offer: Offer) -> Result<Vec<Offer>, CommError> {
        let mut state = lock(&self.state);
        self.check(&state)?;
        state.offers[rank] = Some(offer);
        state.arrived += 1;
        if state.arrived == self.size() {
            self.conclude(&mut state);
            self.end_meeting(&mut state);
        } else {
            let meeting = self.meetings.load(Ordering::Relaxed);
            drop(state);
            self.spin(meeting);
            state = lock(&self.state);
            while self.meetings.load(Ordering::Relaxed) == meeting {
                if let Err(error) = self.check(&state) {
                    // Withdrawn: from here on the offered buffer is no longer lent to anyone.
                    state.offers[rank] = None;
                    state.arrived -= 1;
                    return Err(error);
                }
                state = self.wait(state);
            }
        }
        state.outcome.clone()
    }

    /// Waits, within a call, until all members are here.
    pub fn meet(&self) {
        let mut state = lock(&self.state);
        state.arrived += 1;
        if state.arrived == self.size() {
            self.end_meeting(&mut state);
            return;
        }
        let meeting = self.meetings.load(Ordering::Relaxed);
        drop(state);
        self.spin(meeting);
        let mut state = lock(&self.state);
        while self.meetings.load(Ordering::Relaxed) == meeting {
            state = self.wait(state);
        }
    }

    /// After a split: the new group of `rank` and its rank there.
    pub fn take_part(&self, rank: usize) -> Option<(Arc<Group>, usize)> {
        lock(&self.state).parts.get_mut(rank).and_then(Option::take)
    }

    /// Makes waiting ranks look at the world again.
    pub fn wake(&self) {
        // A rank holds the lock from looking until it sleeps, so having held it here means that
        // rank either sees the change or hears the bell.
        drop(lock(&self.state));
        self.changed.notify_all();
    }

    /// An error if a call can no longer be completed: someone failed, or a member that has not
    /// arrived never will.
    fn check(&self, state: &State) -> Result<(), CommError> {
        self.world.check()?;
        for (rank, &member) in self.members.iter().enumerate() {
            if self.world.has_finished(member) && state.offers[rank].is_none() {
                return Err(CommError::PeerLeft { rank: member });
            }
        }
        Ok(())
    }

    /// Settles the outcome of a meeting in which all offers have been made.
    fn conclude(&self, state: &mut State) {
        let offers: Vec<Offer> = state.offers.iter_mut().filter_map(Option::take).collect();
        state.outcome = judge(&offers).map(|()| offers);
        state.parts = match &state.outcome {
            Ok(offers) => self.parts(offers),
            Err(_) => Vec::new(),
        };
    }

    /// For every rank that offered a colour, the group of that colour and its rank in it.
    fn parts(&self, offers: &[Offer]) -> Vec<Option<(Arc<Group>, usize)>> {
        let mut parts = vec![None; offers.iter().filter(|offer| offer.colour().is_some()).count()];
        for first in 0..parts.len() {
            if parts[first].is_some() {
                continue;
            }
            let ranks: Vec<usize> = (first..parts.len())
                .filter(|&rank| offers[rank].colour() == offers[first].colour())
                .collect();
            let members = ranks.iter().map(|&rank| self.members[rank]).collect();
            let group = Group::new(Arc::clone(&self.world), members);
            for (new_rank, rank) in ranks.into_iter().enumerate() {
                parts[rank] = Some((Arc::clone(&group), new_rank));
            }
        }
        parts
    }

    fn end_meeting(&self, state: &mut State) {
        state.arrived = 0;
        // Release: a rank that sees the new count while spinning locks before it reads anything,
        // but it may as well see what happened before.
        self.meetings.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    fn spin(&self, meeting: u64) {
        for _ in 0..self.spins {
            if self.meetings.load(Ordering::Acquire) != meeting {
                return;
            }
            std::hint::spin_loop();
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}
