//! Integers between ranks.

use crate::communicator::Communicator;
use crate::error::CommError;

const BYTES: usize = size_of::<u64>();

/// The numbers of every rank, in rank order; each may bring as many as it likes. Collective.
///
/// ```
/// use bayesmesh_comm::{Communicator, gather_numbers, threads};
///
/// let all = threads::run(2, |comm| gather_numbers(comm, &vec![7; comm.rank()])).unwrap();
/// assert_eq!(all[0], [vec![], vec![7]]);
/// ```
pub fn gather_numbers(
    comm: &dyn Communicator,
    numbers: &[u64],
) -> Result<Vec<Vec<u64>>, CommError> {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    let decode = |bytes: &Vec<u8>| {
        let (numbers, _) = bytes.as_chunks::<BYTES>();
        numbers.iter().map(|number| u64::from_le_bytes(*number)).collect()
    };
    Ok(comm.all_gather_bytes(&bytes)?.iter().map(decode).collect())
}
