//! The [`Communicator`] of MPI processes.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::failure::{EXIT_CODE, Job};
use super::raw::{Element, RawComm};
use crate::call::Call;
use crate::communicator::{Communicator, Operation, Reduce};
use crate::elementwise::{self, Number};
use crate::error::CommError;
use crate::mesh::share;
use crate::parts;
use crate::tree;

/// Elements reduced at a time, few enough that the parts of all ranks stay in cache.
const BLOCK: usize = 2048;
/// Vectors of at most this many bytes over all ranks are sent whole to everybody: one message
/// costs more than its contents.
const SMALL: usize = 16 * 1024;
/// What a rank calls when its body has returned.
const FINISH: &str = "finish";
/// Longest name of a call that is sent.
const NAME: usize = 64;

/// One process's end of a group. Clones are the same end.
#[derive(Debug, Clone)]
pub struct MpiCommunicator {
    seat: Arc<Seat>,
}

/// A rank's place in a group.
#[derive(Debug)]
struct Seat {
    comm: RawComm,
    job: Arc<Job>,
    /// Held during a call; where values arrive that must not overwrite those sent.
    scratch: Mutex<Vec<f32>>,
}

impl MpiCommunicator {
    pub(super) fn new(comm: RawComm, job: Arc<Job>) -> Self {
        MpiCommunicator { seat: Arc::new(Seat { comm, job, scratch: Mutex::new(Vec::new()) }) }
    }

    /// The ranks that share memory with this one, ordered by their rank in this group. Collective.
    pub fn node(&self) -> Result<MpiCommunicator, CommError> {
        let _scratch = self.seat.begin(&Call::SplitNode, 0)?;
        let comm = self.seat.comm.split_node()?;
        Ok(MpiCommunicator::new(comm, Arc::clone(&self.seat.job)))
    }

    /// Tells the others that this rank is done, and waits until they are. Whoever still
    /// communicates on this communicator gets [`CommError::PeerLeft`].
    pub(super) fn finish(&self) -> Result<(), CommError> {
        while let Err(error) = self.seat.begin_named(FINISH, 0, 0) {
            match error {
                CommError::PeerLeft { .. } => {}
                other => return Err(other),
            }
        }
        Ok(())
    }
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> usize {
        self.seat.comm.rank()
    }

    fn size(&self) -> usize {
        self.seat.comm.size()
    }

    fn all_reduce(
        &self,
        values: &mut [f32],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        let call = Call::AllReduce { element: f32::NAME, operation, reduce };
        let mut scratch = self.seat.begin(&call, values.len())?;
        self.seat.comm.all_reduce(values, operation, reduce, &mut scratch)
    }

    fn all_reduce_f64(
        &self,
        values: &mut [f64],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        let call = Call::AllReduce { element: f64::NAME, operation, reduce };
        let _scratch = self.seat.begin(&call, values.len())?;
        self.seat.comm.all_reduce(values, operation, reduce, &mut Vec::new())
    }

    fn all_reduce_u64(&self, values: &mut [u64], operation: Operation) -> Result<(), CommError> {
        let _scratch = self.seat.begin(&Call::AllReduceU64 { operation }, values.len())?;
        self.seat.comm.all_reduce(values, operation, Reduce::Fast, &mut Vec::new())
    }

    fn tree_reduce(
        &self,
        values: &mut [f32],
        combine: &dyn Fn(&mut [f32], &[f32]),
    ) -> Result<(), CommError> {
        let mut scratch = self.seat.begin(&Call::TreeReduce, values.len())?;
        let comm = &self.seat.comm;
        let (rank, size) = (comm.rank(), comm.size());
        for stride in tree::strides(size) {
            if let Some(right) = tree::partner(rank, stride, size) {
                let theirs = sized(&mut scratch, values.len());
                comm.receive(theirs, right)?;
                combine(values, theirs);
            } else if rank % (2 * stride) == stride {
                comm.send(values, rank - stride)?;
            }
        }
        comm.broadcast(values, 0)
    }

    fn reduce_scatter(
        &self,
        values: &mut [f32],
        reduce: Reduce,
    ) -> Result<Range<usize>, CommError> {
        let mut scratch = self.seat.begin(&Call::ReduceScatter { reduce }, values.len())?;
        let comm = &self.seat.comm;
        let own = share(values.len(), comm.size(), comm.rank());
        // The tree for both modes: here it is faster than what MPI offers.
        let sums = comm.reduce_share(values, Operation::Sum, &mut scratch)?;
        values[own.clone()].copy_from_slice(sums);
        Ok(own)
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<Vec<f32>>, CommError> {
        let _scratch = self.seat.begin(&Call::AllGather, 0)?;
        self.seat.comm.all_gather(values)
    }

    fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let _scratch = self.seat.begin(&Call::AllGatherBytes, 0)?;
        self.seat.comm.all_gather(bytes)
    }

    fn all_gather_into(&self, values: &mut [f32]) -> Result<(), CommError> {
        let mut scratch = self.seat.begin(&Call::AllGatherInto, values.len())?;
        let comm = &self.seat.comm;
        let own = share(values.len(), comm.size(), comm.rank());
        let mine = sized(&mut scratch, own.len());
        mine.copy_from_slice(&values[own]);
        comm.gather(mine, &shares(values.len(), comm.size()), values)
    }

    fn all_to_all(&self, values: &[f32], parts: &[usize]) -> Result<Vec<f32>, CommError> {
        let comm = &self.seat.comm;
        let header = parts::header(values.len(), parts);
        let own_fault = parts::check(comm.rank(), comm.size(), &header).is_err();
        let name = Call::AllToAll.to_string();
        let (_scratch, faults) = self.seat.begin_named(&name, 0, own_fault.into())?;
        if faults > 0 {
            parts::check_all(&comm.all_gather(&header)?)?;
        }
        let ones = vec![1; comm.size()];
        let mut incoming = vec![0; comm.size()];
        comm.exchange_parts(&name, &header[1..], &ones, &mut incoming, &ones)?;
        let incoming: Vec<usize> = incoming.into_iter().map(|length| length as usize).collect();
        let mut received = vec![0.0; incoming.iter().sum()];
        comm.exchange_parts(&name, values, parts, &mut received, &incoming)?;
        Ok(received)
    }

    fn broadcast(&self, values: &mut [f32], root: usize) -> Result<(), CommError> {
        let _scratch = self.seat.begin(&Call::Broadcast { root }, values.len())?;
        self.seat.check_root(root)?;
        self.seat.comm.broadcast(values, root)
    }

    fn broadcast_bytes(&self, bytes: &mut Vec<u8>, root: usize) -> Result<(), CommError> {
        let own = if self.rank() == root { bytes.len() as u64 } else { 0 };
        let call = Call::BroadcastBytes { root }.to_string();
        let (_scratch, length) = self.seat.begin_named(&call, 0, own)?;
        self.seat.check_root(root)?;
        bytes.resize(length as usize, 0);
        self.seat.comm.broadcast(bytes, root)
    }

    fn barrier(&self) -> Result<(), CommError> {
        // Beginning together is all of it.
        self.seat.begin(&Call::Barrier, 0).map(drop)
    }

    fn split(&self, colour: usize) -> Result<Box<dyn Communicator>, CommError> {
        let _scratch = self.seat.begin(&Call::Split, 0)?;
        let comm = &self.seat.comm;
        // Colours of MPI are small numbers: the first rank that has it stands for a colour.
        let colours = comm.gather_one(colour as u64)?;
        let first = colours.iter().position(|&other| other == colour as u64);
        let part = comm.split(first.expect("a rank has its own colour"))?;
        Ok(Box::new(MpiCommunicator::new(part, Arc::clone(&self.seat.job))))
    }

    fn split_node(&self) -> Result<Box<dyn Communicator>, CommError> {
        Ok(Box::new(self.node()?))
    }

    fn is_concurrent(&self) -> bool {
        self.seat.job.is_concurrent()
    }

    fn abort(&self, reason: &str) {
        self.seat.job.fail(reason, EXIT_CODE, || ())
    }
}

impl Seat {
    /// Begins a call when all ranks are here, if they make the same one with equal lengths. It is
    /// under way as long as the result lives.
    fn begin(&self, call: &Call, length: usize) -> Result<MutexGuard<'_, Vec<f32>>, CommError> {
        self.begin_named(&call.to_string(), length, 0).map(|(scratch, _)| scratch)
    }

    /// The same, and the largest of the numbers that the ranks tell each other.
    fn begin_named(
        &self,
        name: &str,
        length: usize,
        told: u64,
    ) -> Result<(MutexGuard<'_, Vec<f32>>, u64), CommError> {
        // A second call at the same time, from another thread or from within a reduction, could
        // not be told apart by the other ranks.
        let scratch = match self.scratch.try_lock() {
            Ok(scratch) => scratch,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(CommError::Busy),
        };
        if self.comm.size() == 1 {
            return Ok((scratch, told));
        }
        let (name_hash, length) = (hash(name), length as u64);
        let header = [name_hash, !name_hash, length, !length, told];
        // The largest x and the largest !x are each other's complement if all x are equal.
        let [a, not_a, b, not_b, told] = self.comm.max_of(header)?;
        if a != !not_a || b != !not_b {
            return Err(self.explain(name, length)?);
        }
        Ok((scratch, told))
    }

    /// An error on all ranks, which have passed the same root, if there is no such rank.
    fn check_root(&self, root: usize) -> Result<(), CommError> {
        let size = self.comm.size();
        if root < size { Ok(()) } else { Err(CommError::RootOutOfRange { root, size }) }
    }

    /// Who calls what, when not all ranks make the same call; all come here then.
    fn explain(&self, name: &str, length: u64) -> Result<CommError, CommError> {
        let size = self.comm.size();
        let mut own = [0; NAME];
        let bytes = name.len().min(NAME);
        own[..bytes].copy_from_slice(&name.as_bytes()[..bytes]);
        let mut names = vec![0; size * NAME];
        self.comm.gather(&own, &vec![NAME; size], &mut names)?;
        let lengths = self.comm.gather_one(length)?;
        let names: Vec<String> = (names.chunks(NAME))
            .map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
            .collect();
        if let Some(rank) = names.iter().position(|name| name == FINISH) {
            return Ok(CommError::PeerLeft { rank });
        }
        if let Some(other_rank) = names.iter().position(|name| *name != names[0]) {
            return Ok(CommError::CallMismatch {
                rank: 0,
                call: names[0].clone(),
                other_rank,
                other_call: names[other_rank].clone(),
            });
        }
        let other_rank = lengths.iter().position(|&length| length != lengths[0]).unwrap_or(0);
        Ok(CommError::LengthMismatch {
            call: names[0].clone(),
            rank: 0,
            length: lengths[0] as usize,
            other_rank,
            other_length: lengths[other_rank] as usize,
        })
    }
}

impl RawComm {
    fn all_gather<T: Element>(&self, values: &[T]) -> Result<Vec<Vec<T>>, CommError> {
        let lengths = self.gather_one(values.len() as u64)?;
        let lengths: Vec<usize> = lengths.into_iter().map(|length| length as usize).collect();
        self.gather_ragged(values, &lengths)
    }

    fn all_reduce<T: Element + Number>(
        &self,
        values: &mut [T],
        operation: Operation,
        reduce: Reduce,
        scratch: &mut Vec<T>,
    ) -> Result<(), CommError> {
        let (length, size) = (values.len(), self.size());
        match (operation, reduce) {
            _ if size == 1 || length == 0 => Ok(()),
            (Operation::Sum, Reduce::Fast) => {
                let sums = sized(scratch, length);
                self.sum(values, sums)?;
                values.copy_from_slice(sums);
                Ok(())
            }
            // MPI's maximum promises nothing about NaN, so maxima are always ours.
            _ if size_of_val(values) * size <= SMALL => {
                let all = sized(scratch, length * size);
                self.gather(values, &vec![length; size], all)?;
                reduce_rows(all, length, size, operation);
                values.copy_from_slice(&all[..length]);
                Ok(())
            }
            _ => {
                let own = self.reduce_share(values, operation, scratch)?;
                self.gather(own, &shares(length, size), values)
            }
        }
    }

    /// Combines by the tree the share of `values` that belongs to this rank.
    fn reduce_share<'a, T: Element + Number>(
        &self,
        values: &[T],
        operation: Operation,
        scratch: &'a mut Vec<T>,
    ) -> Result<&'a [T], CommError> {
        let size = self.size();
        let own = share(values.len(), size, self.rank()).len();
        let rows = sized(scratch, own * size);
        let parts = shares(values.len(), size);
        self.exchange_parts("all_reduce", values, &parts, rows, &vec![own; size])?;
        reduce_rows(rows, own, size, operation);
        Ok(&rows[..own])
    }
}

/// Combines `size` rows of `length` elements by the tree; the first one is the result.
fn reduce_rows<T: Element + Number>(
    rows: &mut [T],
    length: usize,
    size: usize,
    operation: Operation,
) {
    for start in (0..length).step_by(BLOCK) {
        let width = BLOCK.min(length - start);
        for (left, right) in tree::pairs(size) {
            let (before, after) = rows.split_at_mut(right * length);
            let left = &mut before[left * length + start..][..width];
            elementwise::combine(operation, left, &after[start..][..width]);
        }
    }
}

/// How many of `total` elements belong to each rank.
fn shares(total: usize, size: usize) -> Vec<usize> {
    (0..size).map(|rank| share(total, size, rank).len()).collect()
}

/// The first `length` elements, which are made where they are missing.
fn sized<T: Element>(scratch: &mut Vec<T>, length: usize) -> &mut [T] {
    if scratch.len() < length {
        scratch.resize(length, T::default());
    }
    &mut scratch[..length]
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}
