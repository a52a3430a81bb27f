//! Summing a long vector over the ranks while it is still being computed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::communicator::{Communicator, Operation, Reduce};
use crate::error::CommError;

/// What a reduction in buckets took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReducerTime {
    /// Spent in collective calls, waiting there for ranks that come later included.
    pub communication: Duration,
    /// The part of it that the caller had to wait for: what was not hidden behind its work.
    pub exposed: Duration,
    /// How many buckets there were.
    pub buckets: usize,
}

/// Sums a vector over ranks piece by piece on a thread of its own, while the caller computes the
/// pieces that are still missing.
///
/// Pieces that follow one another in the calls, not necessarily in the vector, are put into buckets
/// of a given size. The sums are those of
/// [`all_reduce_buckets`](crate::all_reduce_buckets): to the bit with [`Reduce::Reproducible`] and
/// for ranks that are threads.
///
/// ```
/// use bayesmesh_comm::{BucketReducer, CommError, Reduce, threads};
///
/// let sums = threads::run(2, |comm| -> Result<Vec<f32>, CommError> {
///     let mut reducer = BucketReducer::start(comm, 8, Reduce::Fast)?;
///     let mut gradient = vec![1.0, 2.0, 3.0, 4.0, 5.0];
///     reducer.submit(3, &gradient[3..]); // a layer whose gradient is known first
///     reducer.submit(0, &gradient[..3]);
///     reducer.wait(&mut gradient)?;
///     Ok(gradient)
/// })?;
/// assert_eq!(sums[0], [2.0, 4.0, 6.0, 8.0, 10.0]);
/// # Ok::<(), bayesmesh_comm::RunError<CommError>>(())
/// ```
#[derive(Debug)]
pub struct BucketReducer {
    worker: Worker,
    /// Values of a bucket before it is sent.
    capacity: usize,
    filling: Bucket,
    /// Buckets sent and not yet taken back.
    sent: usize,
    /// What those took that were taken back since the last wait.
    time: ReducerTime,
    /// Memory of buckets that came back.
    spare: Vec<Bucket>,
    /// Why nothing can be summed any more.
    failed: Option<CommError>,
}

/// Pieces of the vector, one after another.
#[derive(Debug, Default)]
struct Bucket {
    /// Where they belong in the vector.
    pieces: Vec<Range<usize>>,
    values: Vec<f32>,
}

/// A bucket whose values are summed, or why they are not, and how long it took.
type Reduced = (Result<Bucket, CommError>, Duration);

/// Who communicates.
#[derive(Debug)]
enum Worker {
    /// A thread, with a communicator that only it uses.
    Thread { buckets: Sender<Bucket>, sums: Receiver<Reduced>, thread: JoinHandle<()> },
    /// The caller itself while it waits: a single rank has nothing to sum, and some MPI libraries
    /// do not let two threads communicate.
    Caller { comm: Box<dyn Communicator>, reduce: Reduce, buckets: VecDeque<Bucket> },
    /// Nobody any more.
    Gone,
}

impl BucketReducer {
    /// The most bytes that [`exchange`](Self::exchange) leaves on their way: enough that a rank
    /// that is ahead seldom waits, and little against the memory of a network for which it matters.
    pub const MOST_ON_THE_WAY: usize = 64 << 20;

    /// Starts the thread, with a duplicate of `comm`: the caller goes on using `comm` as it likes.
    /// Collective. A bucket is sent when it has `bucket_bytes`.
    pub fn start(
        comm: &dyn Communicator,
        bucket_bytes: usize,
        reduce: Reduce,
    ) -> Result<Self, CommError> {
        let capacity = bucket_bytes / size_of::<f32>();
        if capacity == 0 {
            return Err(CommError::BucketTooSmall { bytes: bucket_bytes });
        }
        let alone = comm.size() == 1 || !comm.is_concurrent();
        let comm = comm.split(0)?;
        Ok(BucketReducer {
            worker: if alone {
                Worker::Caller { comm, reduce, buckets: VecDeque::new() }
            } else {
                Worker::spawn(comm, reduce)?
            },
            capacity,
            filling: Bucket::default(),
            sent: 0,
            time: ReducerTime::default(),
            spare: Vec::new(),
            failed: None,
        })
    }

    /// Hands in the elements from `offset` on, whose values on this rank are final. Every rank
    /// hands in the same pieces in the same order. The values are copied.
    pub fn submit(&mut self, offset: usize, values: &[f32]) {
        let (mut offset, mut values) = (offset, values);
        while !values.is_empty() {
            let room = self.capacity - self.filling.values.len();
            let (piece, rest) = values.split_at(room.min(values.len()));
            self.filling.pieces.push(offset..offset + piece.len());
            self.filling.values.extend_from_slice(piece);
            (offset, values) = (offset + piece.len(), rest);
            if self.filling.values.len() == self.capacity {
                self.send();
            }
        }
    }

    /// Hands in a range of `vector` as [`submit`](Self::submit) does, and puts sums that are there
    /// by now in their places. Where [so much](Self::MOST_ON_THE_WAY) is on its way it waits for
    /// the first ones, so that there is never a second copy of a long vector. An error is that of
    /// the next wait.
    ///
    /// # Panics
    ///
    /// If the range or a piece handed in before lies outside `vector`.
    pub fn exchange(&mut self, vector: &mut [f32], range: Range<usize>) {
        let most = (Self::MOST_ON_THE_WAY / size_of::<f32>() / self.capacity).max(1);
        for start in range.clone().step_by(self.capacity) {
            let piece = start..range.end.min(start + self.capacity);
            self.submit(piece.start, &vector[piece]);
            while self.failed.is_none() && self.sent > 0 {
                let reduced = if self.sent > most {
                    self.next()
                } else if let Some(reduced) = self.worker.next_if_there() {
                    reduced
                } else {
                    break;
                };
                // The next wait tells.
                let _ = self.take_back(reduced, vector);
            }
        }
    }

    /// Waits until everything handed in since the last wait is summed, and puts the sums in their
    /// places in `vector`. After an error nothing can be summed any more.
    ///
    /// # Panics
    ///
    /// If a piece lies outside `vector`.
    pub fn wait(&mut self, vector: &mut [f32]) -> Result<ReducerTime, CommError> {
        if !self.filling.values.is_empty() {
            self.send();
        }
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        while self.sent > 0 {
            let reduced = self.next();
            self.take_back(reduced, vector)?;
        }
        Ok(std::mem::take(&mut self.time))
    }

    /// Waits for the next bucket.
    fn next(&mut self) -> Reduced {
        let start = Instant::now();
        let reduced = self.worker.next();
        self.time.exposed += start.elapsed();
        reduced
    }

    /// Puts the sums of a bucket in their places.
    fn take_back(&mut self, reduced: Reduced, vector: &mut [f32]) -> Result<(), CommError> {
        let (reduced, spent) = reduced;
        self.sent -= 1;
        self.time.buckets += 1;
        self.time.communication += spent;
        match reduced {
            Ok(mut bucket) => {
                bucket.empty_into(vector);
                self.spare.push(bucket);
                Ok(())
            }
            Err(error) => {
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    fn send(&mut self) {
        let next = self.spare.pop().unwrap_or_default();
        let bucket = std::mem::replace(&mut self.filling, next);
        self.sent += 1;
        match &mut self.worker {
            // A thread that has ended did so for an error, which the next wait returns.
            Worker::Thread { buckets, .. } => drop(buckets.send(bucket)),
            Worker::Caller { buckets, .. } => buckets.push_back(bucket),
            Worker::Gone => {}
        }
    }
}

impl Drop for BucketReducer {
    /// Waits for what has been handed in: a communicator must not go while it is used.
    fn drop(&mut self) {
        let worker = std::mem::replace(&mut self.worker, Worker::Gone);
        if let Worker::Thread { buckets, thread, .. } = worker {
            drop(buckets);
            // While this rank panics the others may never come: then the thread is left alone.
            if !thread::panicking() {
                let _ = thread.join();
            }
        }
    }
}

impl Worker {
    fn spawn(comm: Box<dyn Communicator>, reduce: Reduce) -> Result<Self, CommError> {
        let (buckets, to_sum) = channel::<Bucket>();
        let (summed, sums) = channel();
        let body = move || {
            for bucket in to_sum {
                let reduced = bucket.reduce(&*comm, reduce);
                let failed = reduced.0.is_err();
                if summed.send(reduced).is_err() || failed {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("bucket reducer".to_owned()).spawn(body);
        let thread = thread.map_err(|error| CommError::Thread { reason: error.to_string() })?;
        Ok(Worker::Thread { buckets, sums, thread })
    }

    /// The next bucket in the order they were sent.
    fn next(&mut self) -> Reduced {
        let gone =
            |reason: &str| (Err(CommError::Thread { reason: reason.to_owned() }), Duration::ZERO);
        match self {
            Worker::Thread { sums, .. } => {
                sums.recv().unwrap_or_else(|_| gone("the thread that sums buckets panicked"))
            }
            Worker::Caller { comm, reduce, buckets } => match buckets.pop_front() {
                Some(bucket) => bucket.reduce(&**comm, *reduce),
                None => gone("no bucket was sent"),
            },
            Worker::Gone => gone("the reducer was dropped"),
        }
    }

    /// The next bucket if it is summed already.
    fn next_if_there(&mut self) -> Option<Reduced> {
        match self {
            Worker::Thread { sums, .. } => sums.try_recv().ok(),
            Worker::Caller { .. } | Worker::Gone => None,
        }
    }
}

impl Bucket {
    fn reduce(mut self, comm: &dyn Communicator, reduce: Reduce) -> Reduced {
        let start = Instant::now();
        let outcome = comm.all_reduce(&mut self.values, Operation::Sum, reduce);
        (outcome.map(|()| self), start.elapsed())
    }

    /// Puts the values in their places.
    fn empty_into(&mut self, vector: &mut [f32]) {
        let mut from = 0;
        for piece in self.pieces.drain(..) {
            let length = piece.len();
            vector[piece].copy_from_slice(&self.values[from..from + length]);
            from += length;
        }
        self.values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads;

    #[test]
    fn a_vector_of_any_length_has_no_second_copy_on_its_way() {
        const BUCKET: usize = 1 << 20;
        const LENGTH: usize = 5 * (BucketReducer::MOST_ON_THE_WAY / 4);
        let buckets = threads::run(2, |comm| -> Result<_, CommError> {
            let mut reducer = BucketReducer::start(comm, BUCKET, Reduce::Fast)?;
            let mut vector = vec![1.0 + comm.rank() as f32; LENGTH];
            // The last layers first, in pieces that do not fill buckets.
            for end in (1..=LENGTH).rev().step_by(1_000_003) {
                reducer.exchange(&mut vector, end.saturating_sub(1_000_003)..end);
            }
            let time = reducer.wait(&mut vector)?;
            assert!(vector.iter().all(|&sum| sum == 3.0));
            assert_eq!(time.buckets, (4 * LENGTH).div_ceil(BUCKET));
            Ok(reducer.spare.len())
        });
        for buckets in buckets.unwrap() {
            assert!(buckets <= BucketReducer::MOST_ON_THE_WAY / BUCKET + 2, "{buckets} buckets");
        }
    }
}
