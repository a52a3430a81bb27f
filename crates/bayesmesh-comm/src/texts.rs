//! Texts between ranks.

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
    let all = comm.all_gather_bytes(&encode(texts))?;
    Ok(all.iter().map(|bytes| decode(bytes)).collect())
}

/// The bytes of each text after their number.
fn encode(texts: &[impl AsRef<str>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for text in texts {
        let text = text.as_ref();
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.bytes());
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Vec<String> {
    let text = || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u64::from_le_bytes(*length) as usize)?;
        bytes = rest;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    std::iter::from_fn(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_keep_their_length() {
        let texts = ["x".repeat((1 << 24) + 1), String::new(), "y".to_owned()];
        assert!(decode(&encode(&texts)) == texts);
    }
}
