//! Making sure that all ranks were started with the same things.

use crate::communicator::Communicator;
use crate::error::CommError;

/// An error on every rank, the same one, unless all ranks of `comm` pass the same names with the
/// same values: recipe, seed, data, version. It names the first rank that differs from rank 0, what
/// differs and both values. Collective.
///
/// ```
/// use bayesmesh_comm::{Communicator, agree, threads};
///
/// let error = threads::run(2, |comm| agree(comm, &[("seed", comm.rank().to_string())]));
/// let message = error.unwrap_err().to_string();
/// assert!(message.contains("seed differs between ranks: rank 0 has `0`, rank 1 has `1`"));
/// ```
pub fn agree(
    comm: &dyn Communicator,
    values: &[(impl AsRef<str>, impl AsRef<str>)],
) -> Result<(), CommError> {
    let texts = values.iter().flat_map(|(name, value)| [name.as_ref(), value.as_ref()]);
    let all = comm.all_gather(&encode(texts))?;
    let first = decode(&all[0]);
    for (rank, other) in all.iter().enumerate().skip(1) {
        // Most ranks agree, and then their numbers are equal.
        if *other == all[0] {
            continue;
        }
        let other = decode(other);
        let names = first.iter().chain(&other).map(|(name, _)| name);
        let mut values = names.map(|name| (name, value(&first, name), value(&other, name)));
        if let Some((name, first, other)) = values.find(|(_, first, other)| first != other) {
            return Err(CommError::Disagreement { key: name.clone(), first, rank, other });
        }
    }
    Ok(())
}

/// The value of a name, for a message.
fn value(values: &[(String, String)], name: &str) -> String {
    let found = values.iter().find(|(other, _)| other == name);
    found.map_or("nothing".to_owned(), |(_, value)| format!("`{value}`"))
}

/// The bytes of each text after their number, as floats: what a communicator gathers. Bytes are
/// exact in a float, numbers below 2^24 too.
fn encode<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<f32> {
    let mut numbers = Vec::new();
    for text in texts {
        numbers.push(text.len() as f32);
        numbers.extend(text.bytes().map(f32::from));
    }
    numbers
}

fn decode(mut numbers: &[f32]) -> Vec<(String, String)> {
    let mut text = || {
        let (&length, rest) = numbers.split_first()?;
        let (bytes, rest) = rest.split_at_checked(length as usize)?;
        numbers = rest;
        let bytes: Vec<u8> = bytes.iter().map(|&byte| byte as u8).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    std::iter::from_fn(|| Some((text()?, text()?))).collect()
}
