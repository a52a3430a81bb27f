//! The [`Communicator`] of thread ranks.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::call::Call;
use crate::communicator::{Communicator, Operation, Reduce};
use crate::elementwise::{self, Number};
use crate::error::CommError;
use crate::parts;
use crate::threads::exchange::Exchange;
use crate::threads::group::Group;
use crate::threads::offer::{Offer, Payload};

/// One thread rank's end of a group. Clones are the same end.
///
/// Both [`Reduce`] modes combine in the order of [`tree`](crate::tree): in shared memory it costs
/// nothing.
#[derive(Debug, Clone)]
pub struct ThreadCommunicator {
    seat: Arc<Seat>,
}

/// A rank's place in a group.
#[derive(Debug)]
struct Seat {
    group: Arc<Group>,
    rank: usize,
    /// Whether a call is under way.
    busy: AtomicBool,
}

/// A call under way on a seat; ends when dropped.
struct Turn<'a>(&'a Seat);

impl ThreadCommunicator {
    pub(super) fn new(group: Arc<Group>, rank: usize) -> Self {
        ThreadCommunicator { seat: Arc::new(Seat { group, rank, busy: AtomicBool::new(false) }) }
    }

    fn all_reduce_elements<T: Number>(
        &self,
        call: Call,
        values: &mut [T],
        operation: Operation,
    ) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let exchange = Exchange::open(&seat.group, seat.rank, call, values)?;
        exchange.all_reduce(|left, right| elementwise::combine(operation, left, right));
        Ok(())
    }

    /// Begins and ends a call that exchanges no values.
    fn meet(&self, call: Call, payload: Payload) -> Result<(), CommError> {
        self.seat.group.gather(self.seat.rank, Offer { call, payload }).map(|_| ())
    }
}

impl Communicator for ThreadCommunicator {
    fn rank(&self) -> usize {
        self.seat.rank
    }

    fn size(&self) -> usize {
        self.seat.group.size()
    }

    fn all_reduce(
        &self,
        values: &mut [f32],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        let call = Call::AllReduce { element: "f32", operation, reduce };
        self.all_reduce_elements(call, values, operation)
    }

    fn all_reduce_f64(
        &self,
        values: &mut [f64],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        let call = Call::AllReduce { element: "f64", operation, reduce };
        self.all_reduce_elements(call, values, operation)
    }

    fn all_reduce_u64(&self, values: &mut [u64], operation: Operation) -> Result<(), CommError> {
        self.all_reduce_elements(Call::AllReduceU64 { operation }, values, operation)
    }

    fn tree_reduce(
        &self,
        values: &mut [f32],
        combine: &dyn Fn(&mut [f32], &[f32]),
    ) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        Exchange::open(&seat.group, seat.rank, Call::TreeReduce, values)?.tree_reduce(combine)
    }

    fn reduce_scatter(
        &self,
        values: &mut [f32],
        reduce: Reduce,
    ) -> Result<Range<usize>, CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let call = Call::ReduceScatter { reduce };
        let exchange = Exchange::open(&seat.group, seat.rank, call, values)?;
        let sum = |left: &mut [f32], right: &[f32]| {
            elementwise::combine(Operation::Sum, left, right);
        };
        Ok(exchange.reduce_scatter(sum))
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<Vec<f32>>, CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let call = Call::AllGather;
        Ok(Exchange::open_to_read(&seat.group, seat.rank, call, values)?.all_gather())
    }

    fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let call = Call::AllGatherBytes;
        Ok(Exchange::open_to_read(&seat.group, seat.rank, call, bytes)?.all_gather())
    }

    fn all_gather_into(&self, values: &mut [f32]) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        Exchange::open(&seat.group, seat.rank, Call::AllGatherInto, values)?.all_gather_into();
        Ok(())
    }

    fn all_to_all(&self, values: &[f32], parts: &[usize]) -> Result<Vec<f32>, CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let header = parts::header(values.len(), parts);
        let call = Call::AllToAllParts;
        let headers = Exchange::open_to_read(&seat.group, seat.rank, call, &header)?.all_gather();
        parts::check_all(&headers)?;
        let call = Call::AllToAll;
        Ok(Exchange::open_to_read(&seat.group, seat.rank, call, values)?.read_parts(&headers))
    }

    fn broadcast(&self, values: &mut [f32], root: usize) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let call = Call::Broadcast { root };
        Exchange::open(&seat.group, seat.rank, call, values)?.copy_from(root);
        Ok(())
    }

    fn broadcast_bytes(&self, bytes: &mut Vec<u8>, root: usize) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let call = Call::BroadcastBytes { root };
        if seat.rank == root {
            // Closed when all have read.
            drop(Exchange::open_to_read(&seat.group, seat.rank, call, bytes)?);
        } else {
            Exchange::open_to_read(&seat.group, seat.rank, call, &[])?.read_from(root, bytes);
        }
        Ok(())
    }

    fn barrier(&self) -> Result<(), CommError> {
        let _turn = self.seat.turn()?;
        self.meet(Call::Barrier, Payload::Nothing)
    }

    fn split(&self, colour: usize) -> Result<Box<dyn Communicator>, CommError> {
        let Turn(seat) = &self.seat.turn()?;
        self.meet(Call::Split, Payload::Colour(colour))?;
        let (group, rank) =
            seat.group.take_part(seat.rank).expect("a completed split has a part for every rank");
        Ok(Box::new(ThreadCommunicator::new(group, rank)))
    }

    fn split_node(&self) -> Result<Box<dyn Communicator>, CommError> {
        // Threads of one process are on one node.
        self.split(0)
    }

    fn abort(&self, reason: &str) {
        self.seat.group.fail(self.seat.rank, reason.to_owned());
    }
}

impl Seat {
    /// Takes the seat for one call. Two at once, from a second thread or from within a reduction,
    /// could not be told apart by the other ranks.
    fn turn(&self) -> Result<Turn<'_>, CommError> {
        if self.busy.swap(true, Ordering::Acquire) { Err(CommError::Busy) } else { Ok(Turn(self)) }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}
