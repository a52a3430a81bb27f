//! Noticing that the job is over for others.
//!
//! A process that is killed cannot say so. Most launchers notice it and end the job; some do not
//! (`srun --mpi=pmi2`), and the other ranks would wait for ever. So every rank watches the next one
//! of its node, the last one the first: whichever die, one that lives watches one that does not. It
//! also listens whether any rank says that it failed, and ends where the launcher does not end it.

use std::io::ErrorKind;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::failure::Job;
use super::raw::RawComm;
use crate::error::CommError;

/// How long it may take to notice.
const EVERY: Duration = Duration::from_millis(500);
/// How long a process may be gone before this rank has heard that all are done.
const GRACE: Duration = Duration::from_secs(1);

/// Watches other ranks until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    /// Dropped to end the thread.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch. Collective.
    pub fn start(world: &RawComm, job: &Arc<Job>) -> Result<Self, CommError> {
        let next = Process::next(world)?;
        if world.size() == 1 {
            return Ok(Watch { over: None, thread: None });
        }
        let (over, ends) = channel();
        let job = Arc::clone(job);
        let body = move || watch(&job, next, &ends);
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(body);
        let thread = thread.map_err(|error| CommError::Thread { reason: error.to_string() })?;
        Ok(Watch { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Ends the job where that is due; comes back when nobody wants to know any more.
fn watch(job: &Job, next: Option<Process>, ends: &Receiver<()>) {
    let is_over = |after| ends.recv_timeout(after) != Err(RecvTimeoutError::Timeout);
    while !is_over(EVERY) {
        let Some(process) = next.filter(Process::is_gone) else {
            job.end_with_others();
            continue;
        };
        if is_over(GRACE) {
            return;
        }
        let reason = format!(
            "process {} is gone without a word: it was killed, perhaps because memory ran out, or \
             has crashed; the system's or the batch system's log may say more",
            process.id
        );
        job.lost(process.rank, &reason);
    }
}

/// A rank as the system knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Process {
    /// In the world.
    rank: usize,
    id: u32,
    /// Tells it from a later process of the same id.
    started: u64,
}

impl Process {
    /// The next rank of this node, if there is another and it can be seen: processes in containers
    /// of their own do not see each other. It need not live any more. Collective.
    fn next(world: &RawComm) -> Result<Option<Self>, CommError> {
        let node = world.split_node()?;
        let (id, space) = (process::id(), id_space());
        let started = match look(id) {
            Seen::Alive { started } => started,
            Seen::Gone | Seen::Nothing => 0,
        };
        let of_next = |own| Ok(node.gather_one(own)?[(node.rank() + 1) % node.size()]);
        let next = Process {
            rank: of_next(world.rank() as u64)? as usize,
            id: of_next(id.into())? as u32,
            started: of_next(started)?,
        };
        let is_seen = of_next(space)? == space && space > 0 && next.started > 0;
        Ok(Some(next).filter(|_| node.size() > 1 && is_seen))
    }

    fn is_gone(&self) -> bool {
        match look(self.id) {
            Seen::Alive { started } => started != self.started,
            Seen::Gone => true,
            Seen::Nothing => false,
        }
    }
}

/// A number of the space that process ids of this process are from, which differs between
/// containers; zero where the system does not tell.
fn id_space() -> u64 {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// What a look at a process shows.
#[derive(Debug, PartialEq)]
enum Seen {
    /// It is there, and started so many ticks after the system did.
    Alive {
        started: u64,
    },
    Gone,
    /// The system does not tell.
    Nothing,
}

fn look(process: u32) -> Seen {
    const NO_SUCH_PROCESS: i32 = 3;
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        Ok(stat) => parse(&stat).unwrap_or(Seen::Nothing),
        Err(error) if error.kind() == ErrorKind::NotFound => Seen::Gone,
        Err(error) if error.raw_os_error() == Some(NO_SUCH_PROCESS) => Seen::Gone,
        Err(_) => Seen::Nothing,
    }
}

/// Reads a line of `/proc/N/stat`: `id (name) state …`, with the start as its 22nd field.
fn parse(stat: &str) -> Option<Seen> {
    // A name may have spaces and brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    match fields.next()? {
        "Z" | "X" | "x" => Some(Seen::Gone),
        _ => Some(Seen::Alive { started: fields.nth(18)?.parse().ok()? }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_seen_until_it_dies() {
        assert!(matches!(look(process::id()), Seen::Alive { started } if started > 0));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = child.id();
        assert!(matches!(look(id), Seen::Alive { .. }));
        child.kill().unwrap();
        // Dead, first as long as nobody has asked how it ended, then for good.
        while look(id) != Seen::Gone {
            thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!(look(id), Seen::Gone);
    }

    #[test]
    fn processes_of_one_container_have_one_space_of_ids() {
        let own = std::fs::read_link("/proc/self/ns/pid").unwrap();
        assert!(own.to_string_lossy().contains(&id_space().to_string()) && id_space() > 0);
    }

    #[test]
    fn names_do_not_confuse() {
        let stat = |name: &str, state: &str| {
            format!("7 ({name}) {state} 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9")
        };
        for name in ["a", "a b", "a) S (b"] {
            assert_eq!(parse(&stat(name, "S")), Some(Seen::Alive { started: 4711 }));
            assert_eq!(parse(&stat(name, "Z")), Some(Seen::Gone));
        }
        assert_eq!(parse("7 (a"), None);
    }

    #[test]
    fn a_later_process_of_the_same_id_is_another() {
        let Seen::Alive { started } = look(process::id()) else { panic!("this one lives") };
        let own = Process { rank: 1, id: process::id(), started };
        assert!(!own.is_gone());
        assert!(Process { started: started - 1, ..own }.is_gone());
    }
}
