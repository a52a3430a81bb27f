//! The interface between ranks.

use std::fmt::{self, Debug, Display};
use std::ops::Range;
use std::str::FromStr;

use bayesmesh_schema::Choice;
use serde::Deserialize;

use crate::error::CommError;

/// In which order a reduction combines the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// Whatever order the implementation is fastest in.
    #[default]
    Fast,
    /// The fixed binary tree over the rank index described in [`tree`](crate::tree).
    Reproducible,
}

impl Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reduce::Fast => "fast",
            Reduce::Reproducible => "reproducible",
        })
    }
}

impl FromStr for Reduce {
    type Err = CommError;

    fn from_str(text: &str) -> Result<Self, CommError> {
        match text {
            "fast" => Ok(Reduce::Fast),
            "reproducible" => Ok(Reduce::Reproducible),
            _ => Err(CommError::UnknownReduce { text: text.to_owned() }),
        }
    }
}

/// How a reduction combines two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `left + right`.
    Sum,
    /// The larger of the two; NaN if either is, so that a diverged rank is not hidden.
    Max,
}

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Sum => "sum",
            Operation::Max => "max",
        })
    }
}

/// One rank's end of a group of ranks.
///
/// All methods but [`rank`](Self::rank), [`size`](Self::size),
/// [`is_concurrent`](Self::is_concurrent) and [`abort`](Self::abort) are collective: every rank of
/// the group must make the same calls in the same order, one at a time. Ranks that do not are told
/// so by an error. After an error the contents of `values` are unspecified.
///
/// Gradients and losses travel as floats, all else (counts, names, orders, checksums) as integers
/// or bytes, which arrive as they were sent.
///
/// [`conformance`](crate::conformance) checks whether an implementation keeps these promises.
pub trait Communicator: Send + Sync + Debug {
    /// This rank's index, in `0..size`.
    fn rank(&self) -> usize;

    /// How many ranks the group has.
    fn size(&self) -> usize;

    /// Combines `values` element by element over the ranks; every rank ends with the result.
    ///
    /// All ranks pass the same length. With [`Reduce::Reproducible`] the order is that of
    /// [`tree`](crate::tree).
    fn all_reduce(
        &self,
        values: &mut [f32],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError>;

    /// [`all_reduce`](Self::all_reduce) in double precision.
    fn all_reduce_f64(
        &self,
        values: &mut [f64],
        operation: Operation,
        reduce: Reduce,
    ) -> Result<(), CommError>;

    /// Combines integers element by element over the ranks; every rank ends with the result. All
    /// ranks pass the same length.
    ///
    /// A sum is taken modulo 2^64: no order of the ranks changes it, and nothing overflows.
    fn all_reduce_u64(&self, values: &mut [u64], operation: Operation) -> Result<(), CommError>;

    /// Combines whole slices over the ranks in the fixed order of [`tree`](crate::tree); every
    /// rank ends with the result.
    ///
    /// `combine(left, right)` overwrites `left` with `left ∘ right`. It sees each rank's slice
    /// whole, so it need not be element-wise (merging counts, means and squared deviations is not).
    /// It must be associative up to rounding, the same on every rank, and must not communicate.
    fn tree_reduce(
        &self,
        values: &mut [f32],
        combine: &dyn Fn(&mut [f32], &[f32]),
    ) -> Result<(), CommError>;

    /// Sums `values` element by element over the ranks, each rank getting its own
    /// [`share`](crate::share)`(values.len(), size, rank)` of the result: the elements of the range
    /// returned. The others are unspecified afterwards.
    ///
    /// All ranks pass the same length. [`all_gather_into`](Self::all_gather_into) completes it to
    /// an [`all_reduce`](Self::all_reduce): with [`Reduce::Reproducible`] to the same bits.
    fn reduce_scatter(&self, values: &mut [f32], reduce: Reduce)
    -> Result<Range<usize>, CommError>;

    /// Every rank's values, in rank order; the slices may have different lengths.
    fn all_gather(&self, values: &[f32]) -> Result<Vec<Vec<f32>>, CommError>;

    /// Every rank's bytes, in rank order; the slices may have different lengths.
    fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;

    /// Every rank gives its own [`share`](crate::share)`(values.len(), size, rank)` of `values` and
    /// gets those of the others in their places. All ranks pass the same length.
    fn all_gather_into(&self, values: &mut [f32]) -> Result<(), CommError>;

    /// Every rank gives a part of its values to each rank: `values` are as many parts as there are
    /// ranks, one after another, of `parts[r]` elements for rank r. What the ranks have for this
    /// one, in rank order, one after another.
    ///
    /// Parts may have any lengths. A rank whose parts are not one for each rank, or not all of its
    /// values, is told to all by [`CommError::PartsMismatch`].
    fn all_to_all(&self, values: &[f32], parts: &[usize]) -> Result<Vec<f32>, CommError>;

    /// Overwrites `values` on every rank with those of rank `root`; all pass the same length.
    fn broadcast(&self, values: &mut [f32], root: usize) -> Result<(), CommError>;

    /// Replaces `bytes` on every rank by those of rank `root`, however many there are: the others
    /// need not know how many to expect, and what they hold does not matter.
    fn broadcast_bytes(&self, bytes: &mut Vec<u8>, root: usize) -> Result<(), CommError>;

    /// Returns once every rank has called it.
    fn barrier(&self) -> Result<(), CommError>;

    /// Ranks of equal `colour` form a new communicator, ordered by their rank in this one.
    fn split(&self, colour: usize) -> Result<Box<dyn Communicator>, CommError>;

    /// The ranks that share memory with this one form a new communicator, ordered by their rank in
    /// this one.
    fn split_node(&self) -> Result<Box<dyn Communicator>, CommError>;

    /// Whether two threads may communicate at the same time, each on a communicator of its own.
    fn is_concurrent(&self) -> bool {
        true
    }

    /// Makes every other rank's pending and future call, on any communicator of the same world,
    /// return [`CommError::PeerFailed`] with this rank and `reason`. Only the first one counts.
    /// Where ranks are processes it ends all of them, this one too, and does not return.
    fn abort(&self, reason: &str);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduce_names_round_trip() {
        for reduce in [Reduce::Fast, Reduce::Reproducible] {
            assert_eq!(reduce.to_string().parse(), Ok(reduce));
        }
        assert_eq!(Reduce::default(), Reduce::Fast);
        let error = "quick".parse::<Reduce>().unwrap_err();
        assert!(error.to_string().contains("`quick`"), "{error}");
    }
}
