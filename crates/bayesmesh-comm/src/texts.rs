//! Texts between ranks, by what communicators move.

use crate::communicator::Communicator;
use crate::error::CommError;

/// The texts of every rank, in rank order; each may bring as many as it likes. Collective.
///
/// ```
/// use bayesmesh_comm::{Communicator, gather_texts, threads};
///
/// let all = threads::run(2, |comm| gather_texts(comm, &vec!["größe"; comm.rank()])).unwrap();
/// assert_eq!(all[0], [vec![], vec!["größe"]]);
/// ```
pub fn gather_texts(
    comm: &dyn Communicator,
    texts: &[impl AsRef<str>],
) -> Result<Vec<Vec<String>>, CommError> {
    let all = comm.all_gather(&encode(texts))?;
    Ok(all.iter().map(|numbers| decode(numbers)).collect())
}

/// The bytes of each text after their number, as floats. Bytes are exact in a float, numbers below
/// 2^24 too.
fn encode(texts: &[impl AsRef<str>]) -> Vec<f32> {
    let mut numbers = Vec::new();
    for text in texts {
        let text = text.as_ref();
        numbers.push(text.len() as f32);
        numbers.extend(text.bytes().map(f32::from));
    }
    numbers
}

fn decode(mut numbers: &[f32]) -> Vec<String> {
    let text = || {
        let (&length, rest) = numbers.split_first()?;
        let (bytes, rest) = rest.split_at_checked(length as usize)?;
        numbers = rest;
        let bytes: Vec<u8> = bytes.iter().map(|&byte| byte as u8).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    std::iter::from_fn(text).collect()
}
