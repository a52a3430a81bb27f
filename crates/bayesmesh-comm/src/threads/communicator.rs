//! The [`Communicator`] of thread ranks.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::communicator::{Communicator, Operation, Reduce};
use crate::error::CommError;
use crate::threads::exchange::Exchange;
use crate::threads::group::Group;
use crate::threads::offer::{Call, Offer, Payload};

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

    fn all_reduce_elements<T: Copy + PartialOrd + Add<Output = T>>(
        &self,
        element: &'static str,
        values: &mut [T],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let call = Call::AllReduce { element, operation, reduce };
        let exchange = Exchange::open(&seat.group, seat.rank, call, values)?;
        match operation {
            Operation::Sum => exchange.all_reduce(|left, right| join(left, right, |l, r| l + r)),
            Operation::Max => exchange.all_reduce(|left, right| join(left, right, larger)),
        }
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
        self.all_reduce_elements("f32", values, operation, reduce)
    }

    fn all_reduce_f64(
        &self,
        values: &mut [f64],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError> {
        self.all_reduce_elements("f64", values, operation, reduce)
    }

    fn tree_reduce(
        &self,
        values: &mut [f32],
        combine: &dyn Fn(&mut [f32], &[f32]),
    ) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        Exchange::open(&seat.group, seat.rank, Call::TreeReduce, values)?.tree_reduce(combine)
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<Vec<f32>>, CommError> {
        let Turn(seat) = &self.seat.turn()?;
        Ok(Exchange::open_to_read(&seat.group, seat.rank, values)?.all_gather())
    }

    fn broadcast(&self, values: &mut [f32], root: usize) -> Result<(), CommError> {
        let Turn(seat) = &self.seat.turn()?;
        let call = Call::Broadcast { root };
        Exchange::open(&seat.group, seat.rank, call, values)?.copy_from(root);
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

/// `left[i] = operation(left[i], right[i])`.
fn join<T: Copy>(left: &mut [T], right: &[T], operation: impl Fn(T, T) -> T) {
    for (left, &right) in left.iter_mut().zip(right) {
        *left = operation(*left, right);
    }
}

/// The larger one, or the first that is not a number.
#[expect(clippy::eq_op, reason = "only NaN differs from itself")]
fn larger<T: Copy + PartialOrd>(left: T, right: T) -> T {
    if left >= right || left != left { left } else { right }
}
