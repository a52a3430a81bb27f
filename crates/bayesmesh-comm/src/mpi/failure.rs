//! Ending the job with one message.

use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::raw::{self, RawComm};

/// How long a rank that failed listens whether a lower one failed at the same time.
const LISTEN: Duration = Duration::from_millis(100);
/// How long a rank that keeps quiet waits for the one that speaks to end the job.
const QUIET: Duration = Duration::from_secs(3);
/// How long the launcher gets to pass the message on before it is asked to end everything.
const PASS_ON: Duration = Duration::from_millis(300);
/// What the job ends with, unless its program says otherwise.
pub(super) const EXIT_CODE: u8 = 1;

/// The job this process is a rank of.
#[derive(Debug)]
pub(super) struct Job {
    /// A communicator of all ranks on which nothing is sent but that the sender failed.
    news: RawComm,
    node: String,
    concurrent: bool,
    failing: Mutex<()>,
}

impl Job {
    /// `concurrent`: whether threads may communicate at the same time.
    pub fn new(news: RawComm, concurrent: bool) -> Self {
        Job { news, node: raw::node_name(), concurrent, failing: Mutex::new(()) }
    }

    pub fn is_concurrent(&self) -> bool {
        self.concurrent
    }

    /// Says that this rank failed and why, unless another one says that it did, and ends the job
    /// with the code. Where this rank says it, `said` follows.
    pub fn fail(&self, reason: &str, code: u8, said: impl FnOnce()) -> ! {
        // A second thread that fails waits here for the end.
        let _first = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.speaks() {
            let (rank, size) = (self.news.rank(), self.news.size());
            eprintln!("rank {rank} of {size} on {}: {reason}", self.node);
            said();
            sleep(PASS_ON);
        } else {
            let start = Instant::now();
            while start.elapsed() < QUIET {
                self.hear();
                sleep(Duration::from_millis(10));
            }
        }
        raw::abort(code)
    }

    /// Whether this rank is the one to say why the job ends: nobody failed before, and no lower
    /// rank did at the same time.
    fn speaks(&self) -> bool {
        let rank = self.news.rank();
        // Several looks, since a message may have arrived here but not yet been sorted.
        if (0..20).any(|_| self.hear().is_some()) {
            return false;
        }
        for other in (0..self.news.size()).filter(|&other| other != rank) {
            // Whoever cannot be reached cannot speak either.
            let _ = self.news.notify(other);
        }
        let start = Instant::now();
        while self.news.size() > 1 && start.elapsed() < LISTEN {
            match self.hear() {
                Some(other) if other < rank => return false,
                Some(_) => {}
                None => sleep(Duration::from_millis(1)),
            }
        }
        true
    }

    /// A rank that says it failed.
    fn hear(&self) -> Option<usize> {
        self.news.notified().ok().flatten()
    }
}
