//! How ranks divide the values that they give to each other.

use crate::error::CommError;

/// What a rank says before it gives its values away: how many they are, and the lengths of the
/// parts.
pub(crate) fn header(length: usize, parts: &[usize]) -> Vec<u64> {
    [length].iter().chain(parts).map(|&number| number as u64).collect()
}

/// An error if a rank of so many has not a part for each, or other parts than values.
pub(crate) fn check(rank: usize, size: usize, header: &[u64]) -> Result<(), CommError> {
    let (length, parts) = header.split_first().expect("a length");
    // Parts that overflow are not all values either.
    let total = parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    if parts.len() == size && total == *length {
        return Ok(());
    }
    let (parts, total, length) = (parts.len(), total as usize, *length as usize);
    Err(CommError::PartsMismatch { rank, parts, total, size, length })
}

/// The error of the first rank whose header is wrong.
pub(crate) fn check_all(headers: &[Vec<u64>]) -> Result<(), CommError> {
    let size = headers.len();
    headers.iter().enumerate().try_for_each(|(rank, header)| check(rank, size, header))
}
