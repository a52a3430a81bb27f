//! What follows from ranks sharing a node: reading once for all, and the mesh they suggest.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::communicator::Communicator;
use crate::error::CommError;
use crate::mesh::Mesh;

/// One rank of a node reads what all ranks of the node need.
///
/// The ranks take turns, so that with the next turns read ahead each does one part in P of the
/// reading.
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
    /// The length of the last turn: the next one most likely has the same, and is then one message.
    length: AtomicUsize,
}

impl NodeShared {
    /// For ranks of `comm` that need the same data. Collective.
    pub fn new(comm: &dyn Communicator) -> Result<Self, CommError> {
        Ok(NodeShared { node: comm.split_node()?, length: AtomicUsize::new(0) })
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
        let expected = self.length.load(Ordering::Relaxed);
        let own = if self.reads(turn) { Some(read()?) } else { None };
        // The bits of the length in two words, then the values if they fit.
        let mut message = vec![0.0; 2 + expected];
        if let Some(values) = &own {
            let length = values.len() as u64;
            message[0] = f32::from_bits(length as u32);
            message[1] = f32::from_bits((length >> 32) as u32);
            if values.len() == expected {
                message[2..].copy_from_slice(values);
            }
        }
        self.node.broadcast(&mut message, self.reader(turn))?;
        let length = u64::from(message[0].to_bits()) | u64::from(message[1].to_bits()) << 32;
        let length = length as usize;
        if length == expected {
            return Ok(own.unwrap_or_else(|| message.split_off(2)));
        }
        self.length.store(length, Ordering::Relaxed);
        let mut values = own.unwrap_or_else(|| vec![0.0; length]);
        self.node.broadcast(&mut values, self.reader(turn))?;
        Ok(values)
    }

    fn reader(&self, turn: usize) -> usize {
        turn % self.node.size()
    }
}

/// The mesh that the nodes suggest: samples within a node, where ranks share data, and data across
/// nodes. Collective.
///
/// Where nodes have different numbers of ranks, groups that fit into all of them share the samples.
pub fn node_mesh(world: &dyn Communicator) -> Result<Mesh, CommError> {
    let samples = node_sizes(world)?.into_iter().fold(0, greatest_common_divisor);
    Ok(Mesh::new(samples, world.size() / samples).expect("a world has ranks"))
}

/// How many ranks there are on each node, as far as they are next to each other in rank order, as
/// those of `mpi::run` are: a node whose ranks are not counts several times. Collective.
pub fn node_sizes(world: &dyn Communicator) -> Result<Vec<usize>, CommError> {
    let node = world.split_node()?;
    // The world rank of its first rank names a node; exact in an f32 below 2^24 ranks.
    let mut first = [world.rank() as f32];
    node.broadcast(&mut first, 0)?;
    Ok(runs(&world.all_gather(&first)?.concat()))
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
    /// How many there are for this rank: its part, and at least one.
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
    // Which ones, where the system tells; the bytes of a text are exact in floats.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap_or_default();
    let own: Vec<f32> = line.bytes().map(f32::from).collect();
    let ranks = node.all_gather(&own)?.iter().filter(|other| **other == own).count();
    Ok(Processors { count, ranks })
}

/// The lengths of the stretches of equal names.
fn runs(names: &[f32]) -> Vec<usize> {
    names.chunk_by(|left, right| left == right).map(<[f32]>::len).collect()
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(names: &[f32]) -> usize {
        runs(names).into_iter().fold(0, greatest_common_divisor)
    }

    #[test]
    fn samples_within_nodes_and_data_across() {
        assert_eq!(group(&[0.0]), 1);
        assert_eq!(group(&[0.0; 4]), 4);
        assert_eq!(group(&[0.0, 0.0, 2.0, 2.0, 4.0, 4.0]), 2);
        assert_eq!(group(&[0.0, 1.0, 2.0]), 1);
    }

    #[test]
    fn no_group_is_on_two_nodes() {
        assert_eq!(group(&[0.0, 0.0, 0.0, 0.0, 4.0, 4.0]), 2);
        assert_eq!(group(&[0.0, 0.0, 0.0, 3.0, 3.0]), 1);
        // Ranks dealt out to nodes like cards.
        assert_eq!(group(&[0.0, 1.0, 0.0, 1.0]), 1);
    }
}
