//! Making sure that all ranks were started with the same things.

use crate::communicator::Communicator;
use crate::error::CommError;
use crate::texts::gather_texts;

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
    let texts: Vec<&str> =
        values.iter().flat_map(|(name, value)| [name.as_ref(), value.as_ref()]).collect();
    let all = gather_texts(comm, &texts)?;
    for (rank, other) in all.iter().enumerate().skip(1).filter(|(_, other)| **other != all[0]) {
        let names = all[0].iter().chain(other).step_by(2);
        let mut values = names.map(|name| (name, value(&all[0], name), value(other, name)));
        if let Some((name, first, other)) = values.find(|(_, first, other)| first != other) {
            return Err(CommError::Disagreement { key: name.clone(), first, rank, other });
        }
    }
    Ok(())
}

/// The value of a name, for a message.
fn value(values: &[String], name: &str) -> String {
    let found = values.chunks_exact(2).find(|pair| pair[0] == name);
    found.map_or("nothing".to_owned(), |pair| format!("`{}`", pair[1]))
}
