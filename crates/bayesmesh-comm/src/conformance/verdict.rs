//! What a check finds, and comparisons that say where things differ.

use std::fmt::Debug;

use crate::communicator::Communicator;
use crate::error::CommError;

/// What is wrong with a communicator.
#[derive(Debug, PartialEq)]
pub(super) struct Fault(pub String);

/// What a check finds.
pub(super) type Verdict = Result<(), Fault>;

impl Fault {
    /// The same, and where it was found.
    pub fn within(self, place: &str) -> Self {
        Fault(format!("{place}: {}", self.0))
    }
}

impl From<CommError> for Fault {
    fn from(error: CommError) -> Self {
        Fault(format!("a call that all ranks made failed: {error}"))
    }
}

/// A number with the bits it is made of.
pub(super) trait Bits: Copy + Debug {
    fn bits(self) -> u64;
}

impl Bits for f32 {
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Bits for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
}

impl Bits for u8 {
    fn bits(self) -> u64 {
        self.into()
    }
}

/// A fault unless the elements are equal to the bit.
pub(super) fn same_bits<T: Bits>(what: &str, found: &[T], expected: &[T]) -> Verdict {
    same(what, found, expected, |found, expected| found.bits() == expected.bits())
}

/// A fault unless the lists are equal to the bit, and in the same order.
pub(super) fn same_lists<T: Bits>(what: &str, found: &[Vec<T>], expected: &[Vec<T>]) -> Verdict {
    if found.len() != expected.len() {
        let (found, expected) = (found.len(), expected.len());
        return Err(Fault(format!("{what}: {found} lists, not {expected}")));
    }
    for (rank, (found, expected)) in found.iter().zip(expected).enumerate() {
        same_bits(&format!("{what}, of rank {rank}"), found, expected)?;
    }
    Ok(())
}

/// A fault unless the elements agree by `is_same`.
pub(super) fn same<T: Copy + Debug>(
    what: &str,
    found: &[T],
    expected: &[T],
    is_same: impl Fn(T, T) -> bool,
) -> Verdict {
    if found.len() != expected.len() {
        let (found, expected) = (found.len(), expected.len());
        return Err(Fault(format!("{what}: {found} elements, not {expected}")));
    }
    let differs = |(&found, &expected): (&T, &T)| !is_same(found, expected);
    match found.iter().zip(expected).position(differs) {
        None => Ok(()),
        Some(i) => Err(Fault(format!(
            "{what}: element {i} of {} is {:?}, not {:?}",
            found.len(),
            found[i],
            expected[i]
        ))),
    }
}

/// A fault on every rank that does not hold the bits that rank 0 holds. Collective.
pub(super) fn same_everywhere<T: Bits>(
    world: &dyn Communicator,
    what: &str,
    values: &[T],
) -> Verdict {
    let bits = |values: &[T]| -> Vec<u8> {
        values.iter().flat_map(|value| value.bits().to_le_bytes()).collect()
    };
    let all = world.all_gather_bytes(&bits(values))?;
    if all[0] == bits(values) {
        return Ok(());
    }
    Err(Fault(format!("{what}: rank {} has another result than rank 0", world.rank())))
}

/// A fault unless the condition holds.
pub(super) fn ensure(condition: bool, fault: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { Err(Fault(fault())) }
}
