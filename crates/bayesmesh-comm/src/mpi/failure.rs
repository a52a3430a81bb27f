//! Ending the job with one message.

use std::io::{Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::raw::{self, RawComm};

/// How long a rank that failed listens whether a lower one failed at the same time.
const LISTEN: Duration = Duration::from_millis(100);
/// How long a rank that keeps quiet waits for the one that speaks to end the job.
const QUIET: Duration = Duration::from_secs(3);
/// How long the launcher gets to pass the message on before it is asked to end everything.
const PASS_ON: Duration = Duration::from_millis(300);
/// How long all of that may take.
const LAST: Duration = Duration::from_secs(6);
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
    /// The lowest rank that has said that it failed. Held while news are received: two threads
    /// could see the same message, and one would wait for ever for another.
    failed: Mutex<usize>,
}

/// The rank that failed where none did.
const NONE: usize = usize::MAX;

impl Job {
    /// `concurrent`: whether threads may communicate at the same time.
    pub fn new(news: RawComm, concurrent: bool) -> Self {
        let (failing, failed) = (Mutex::new(()), Mutex::new(NONE));
        Job { news, node: raw::node_name(), concurrent, failing, failed }
    }

    pub fn is_concurrent(&self) -> bool {
        self.concurrent
    }

    /// Says that this rank failed and why, unless another one says that it did, and ends the job
    /// with the code. Where this rank says it, `said` follows.
    pub fn fail(&self, reason: &str, code: u8, said: impl FnOnce()) -> ! {
        // A second thread that fails waits here for the end.
        let _first = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        self.end(self.news.rank(), reason, code, said)
    }

    /// Says that another rank of this node is lost and why, unless another one says so, and ends
    /// the job.
    pub fn lost(&self, rank: usize, reason: &str) -> ! {
        let _first = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.concurrent {
            self.end(rank, reason, EXIT_CODE, || ());
        }
        // Another thread may be communicating: without a word to the others.
        self.say(rank, reason);
        raw::exit_at_once(EXIT_CODE)
    }

    fn end(&self, rank: usize, reason: &str, code: u8, said: impl FnOnce()) -> ! {
        last_resort(code);
        if self.speaks() {
            self.say(rank, reason);
            said();
            sleep(PASS_ON);
        } else {
            self.keep_quiet();
        }
        raw::abort(code)
    }

    /// If another rank has said that it failed, waits for the end of the job and, where that does
    /// not come, ends at least this process. Not for libraries with which only one thread at a time
    /// may communicate.
    pub fn end_with_others(&self) {
        if self.concurrent && self.hear() != NONE {
            last_resort(EXIT_CODE);
            self.keep_quiet();
            raw::abort(EXIT_CODE);
        }
    }

    /// The time that whoever speaks needs to end the job.
    fn keep_quiet(&self) {
        let start = Instant::now();
        while start.elapsed() < QUIET {
            self.hear();
            sleep(Duration::from_millis(10));
        }
    }

    fn say(&self, rank: usize, reason: &str) {
        // Whoever started the job may be gone, and nobody listen any more.
        let size = self.news.size();
        let _ = writeln!(stderr(), "rank {rank} of {size} on {}: {reason}", self.node);
    }

    /// Whether this rank is the one to say why the job ends: nobody failed before, and no lower
    /// rank did at the same time.
    fn speaks(&self) -> bool {
        let rank = self.news.rank();
        // Several looks, since a message may have arrived here but not yet been sorted.
        if (0..20).any(|_| self.hear() != NONE) {
            return false;
        }
        for other in (0..self.news.size()).filter(|&other| other != rank) {
            // Whoever cannot be reached cannot speak either.
            let _ = self.news.notify(other);
        }
        let start = Instant::now();
        while self.news.size() > 1 && start.elapsed() < LISTEN {
            if self.hear() < rank {
                return false;
            }
            sleep(Duration::from_millis(1));
        }
        true
    }

    /// The lowest rank that has said that it failed.
    fn hear(&self) -> usize {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(Some(rank)) = self.news.notified() {
            *failed = rank.min(*failed);
        }
        *failed
    }
}

/// Ends this process after a while whatever happens: one that was killed within MPI may have left
/// it in a state in which calls do not come back.
fn last_resort(code: u8) {
    let _ = thread::Builder::new().spawn(move || {
        sleep(LAST);
        raw::exit_at_once(code)
    });
}
