//! What all groups of one run share: who failed and who has finished.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::error::CommError;
use crate::threads::group::Group;

/// The first failure of a run.
#[derive(Debug)]
pub(super) struct Failure {
    pub rank: usize,
    pub reason: String,
}

/// The ranks of one run.
#[derive(Debug)]
pub(super) struct World {
    failure: OnceLock<Failure>,
    finished: Vec<AtomicBool>,
    /// Every group that may have ranks waiting in it, so that a failure reaches all of them.
    groups: Mutex<Vec<Weak<Group>>>,
}

impl World {
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(World {
            failure: OnceLock::new(),
            finished: (0..size).map(|_| AtomicBool::new(false)).collect(),
            groups: Mutex::new(Vec::new()),
        })
    }

    /// Ranks in the run.
    pub fn size(&self) -> usize {
        self.finished.len()
    }

    /// Lets failures wake the ranks waiting in `group`. A failure before this call is seen by them
    /// anyway, since they look before they wait.
    pub fn register(&self, group: &Arc<Group>) {
        let mut groups = lock(&self.groups);
        groups.retain(|group| group.strong_count() > 0);
        groups.push(Arc::downgrade(group));
    }

    /// Records that `rank` failed, unless another did before, and wakes everybody.
    pub fn fail(&self, rank: usize, reason: String) {
        // An earlier failure is the root cause and stays.
        let _ = self.failure.set(Failure { rank, reason });
        self.wake_all();
    }

    /// Records that `rank` will not communicate any more and wakes everybody.
    pub fn finish(&self, rank: usize) {
        self.finished[rank].store(true, Ordering::Release);
        self.wake_all();
    }

    pub fn has_finished(&self, rank: usize) -> bool {
        self.finished[rank].load(Ordering::Acquire)
    }

    pub fn failure(&self) -> Option<&Failure> {
        self.failure.get()
    }

    /// An error once any rank has failed.
    pub fn check(&self) -> Result<(), CommError> {
        match self.failure() {
            None => Ok(()),
            Some(Failure { rank, reason }) => {
                Err(CommError::PeerFailed { rank: *rank, reason: reason.clone() })
            }
        }
    }

    fn wake_all(&self) {
        // A split registers its groups while it holds its parent's lock, so the list must not be
        // held while taking those.
        let groups: Vec<_> = lock(&self.groups).iter().filter_map(Weak::upgrade).collect();
        for group in groups {
            group.wake();
        }
    }
}

/// Locks a mutex of this module tree. None of them is ever held across code that can panic halfway
/// through a change, so poison means nothing here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text of a panic.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic without a message".to_owned()
    }
}
