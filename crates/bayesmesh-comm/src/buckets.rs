//! Reducing a long vector piece by piece.

use crate::communicator::{Communicator, Operation, Reduce};
use crate::error::CommError;
use crate::numbers::gather_numbers;

/// Bucket size that keeps each message large against its latency and small against what a network
/// has, so that most of it is on its way before the last bucket is known: 1 MiB.
pub const DEFAULT_BUCKET_BYTES: usize = 1024 * 1024;

/// Sums `values` over the ranks of `comm`, at most `bucket_bytes` at a time.
///
/// The ranks are combined element by element, so the result does not depend on the bucket size.
/// All ranks pass the same length and bucket size; the total length is compared first, since
/// vectors of different length may well have equal first buckets.
pub fn all_reduce_buckets(
    comm: &dyn Communicator,
    values: &mut [f32],
    bucket_bytes: usize,
    reduce: Reduce,
) -> Result<(), CommError> {
    let bucket = bucket_bytes / size_of::<f32>();
    if bucket == 0 {
        return Err(CommError::BucketTooSmall { bytes: bucket_bytes });
    }
    check_lengths(comm, values.len())?;
    for part in values.chunks_mut(bucket) {
        comm.all_reduce(part, Operation::Sum, reduce)?;
    }
    Ok(())
}

/// An error on every rank unless all have the same `length`.
fn check_lengths(comm: &dyn Communicator, length: usize) -> Result<(), CommError> {
    let lengths = gather_numbers(comm, &[length as u64])?.concat();
    match lengths.iter().position(|&other| other != lengths[0]) {
        None => Ok(()),
        Some(other_rank) => Err(CommError::LengthMismatch {
            call: "all_reduce_buckets".to_owned(),
            rank: 0,
            length: lengths[0] as usize,
            other_rank,
            other_length: lengths[other_rank] as usize,
        }),
    }
}
