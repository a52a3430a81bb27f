//! What follows from ranks sharing a node: who they are, what they read once for all, and the
//! processors of each.

use crate::communicator::Communicator;
use crate::error::CommError;
use crate::numbers::gather_numbers;

/// One rank of a node reads what all ranks of the node need.
///
/// The ranks take turns. Where each reads ahead what is next of its own turns, it does a P-th of
/// the reading.
///
/// ```
/// use bayesmesh_comm::{CommError, Communicator, NodeShared, threads};
///
/// threads::run(2, |comm| -> Result<(), CommError> {
///     let node = NodeShared::new(comm)?;
///     for turn in 0..4 {
///         let batch = node.share(turn, || Ok::<_, CommError>(vec![turn as f32; 3]))?;
///         assert_eq!(batch, [turn as f32; 3]);
///     }
///     Ok(())
/// })?;
/// # Ok::<(), bayesmesh_comm::RunError<CommError>>(())
/// ```
#[derive(Debug)]
pub struct NodeShared {
    node: Box<dyn Communicator>,
}

impl NodeShared {
    /// For ranks of `comm` that need the same data. Collective.
    pub fn new(comm: &dyn Communicator) -> Result<Self, CommError> {
        Ok(NodeShared { node: comm.split_node()? })
    }

    /// The ranks that share.
    pub fn node(&self) -> &dyn Communicator {
        &*self.node
    }

    /// Whether this rank is the one that reads in a turn.
    pub fn reads(&self, turn: usize) -> bool {
        self.reader(turn) == self.node.rank()
    }

    /// What the reader of the turn gets from `read`, which no other rank of the node calls.
    /// Collective among the ranks of the node.
    ///
    /// If `read` fails, the reader returns its error, and the others wait until its failure ends
    /// the run.
    pub fn share<E: From<CommError>>(
        &self,
        turn: usize,
        read: impl FnOnce() -> Result<Vec<f32>, E>,
    ) -> Result<Vec<f32>, E> {
        let reader = self.reader(turn);
        if self.reads(turn) {
            let values = read()?;
            self.node.broadcast_bytes(&mut to_bytes(&values), reader)?;
            return Ok(values);
        }
        let mut bytes = Vec::new();
        self.node.broadcast_bytes(&mut bytes, reader)?;
        Ok(to_values(&bytes))
    }

    fn reader(&self, turn: usize) -> usize {
        turn % self.node.size()
    }
}

/// How many ranks there are on each node, as far as they are next to each other in rank order, as
/// those of `mpi::run` are: a node whose ranks are not counts several times. Collective.
pub fn node_sizes(world: &dyn Communicator) -> Result<Vec<usize>, CommError> {
    let node = world.split_node()?;
    // The world rank of its first rank names a node.
    let ranks = gather_numbers(&*node, &[world.rank() as u64])?;
    Ok(runs(&gather_numbers(world, &ranks[0])?.concat()))
}

/// The processors that a rank may run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processors {
    /// How many they are.
    pub count: usize,
    /// The ranks of the node that may run on the same ones, this one included.
    pub ranks: usize,
}

impl Processors {
    /// How many there are for this rank: its share, and at least one.
    pub fn each(self) -> usize {
        (self.count / self.ranks).max(1)
    }
}

/// The processors of this rank. Collective.
///
/// A launcher may bind every rank to processors of its own, or leave all of a node to all.
pub fn node_processors(world: &dyn Communicator) -> Result<Processors, CommError> {
    let node = world.split_node()?;
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    // Which ones, where the system tells.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap_or_default();
    let all = node.all_gather_bytes(line.as_bytes())?;
    let ranks = all.iter().filter(|other| **other == line.as_bytes()).count();
    Ok(Processors { count, ranks })
}

/// The lengths of the stretches of equal names.
fn runs(names: &[u64]) -> Vec<usize> {
    names.chunk_by(|left, right| left == right).map(<[u64]>::len).collect()
}

/// What a float is as bytes; NaN keeps its bits.
const BYTES: usize = size_of::<f32>();

fn to_bytes(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; BYTES * values.len()];
    for (bytes, value) in bytes.as_chunks_mut::<BYTES>().0.iter_mut().zip(values) {
        *bytes = value.to_le_bytes();
    }
    bytes
}

fn to_values(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<BYTES>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_stretch_of_ranks() {
        assert_eq!(runs(&[0]), [1]);
        assert_eq!(runs(&[0, 0, 0, 3, 3]), [3, 2]);
        // Ranks dealt out to nodes like cards.
        assert_eq!(runs(&[0, 1, 0, 1]), [1, 1, 1, 1]);
    }

    #[test]
    fn floats_keep_their_bits() {
        let bits = [0x8000_0000, 1, 0x7fc0_1234, 0xff80_0001, 0x3f80_0000];
        let values = bits.map(f32::from_bits);
        assert_eq!(
            to_values(&to_bytes(&values)).iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
            bits
        );
    }
}
