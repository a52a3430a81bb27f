//! Collective calls by name, for telling ranks apart that do not make the same one.

use std::fmt::{self, Display};

use crate::communicator::{Operation, Reduce};

/// A collective call, as far as it must be equal on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    AllReduce {
        element: &'static str,
        operation: Operation,
        reduce: Reduce,
    },
    AllReduceU64 {
        operation: Operation,
    },
    TreeReduce,
    ReduceScatter {
        reduce: Reduce,
    },
    AllGather,
    AllGatherInto,
    AllGatherBytes,
    /// How the values of an [`AllToAll`](Self::AllToAll) are divided.
    AllToAllParts,
    AllToAll,
    Broadcast {
        root: usize,
    },
    BroadcastBytes {
        root: usize,
    },
    Barrier,
    Split,
    #[cfg(feature = "mpi")]
    SplitNode,
}

impl Call {
    /// Whether ranks may bring different lengths.
    pub fn is_ragged(self) -> bool {
        matches!(
            self,
            Call::AllGather
                | Call::AllGatherBytes
                | Call::AllToAllParts
                | Call::AllToAll
                | Call::BroadcastBytes { .. }
        )
    }

    /// The rank whose values all get, where there is one.
    pub fn root(self) -> Option<usize> {
        match self {
            Call::Broadcast { root } | Call::BroadcastBytes { root } => Some(root),
            _ => None,
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::AllReduce { element, operation, reduce } => {
                write!(f, "all_reduce({element}, {operation}, {reduce})")
            }
            Call::AllReduceU64 { operation } => write!(f, "all_reduce_u64({operation})"),
            Call::TreeReduce => f.write_str("tree_reduce"),
            Call::ReduceScatter { reduce } => write!(f, "reduce_scatter({reduce})"),
            Call::AllGather => f.write_str("all_gather"),
            Call::AllGatherInto => f.write_str("all_gather_into"),
            Call::AllGatherBytes => f.write_str("all_gather_bytes"),
            Call::AllToAllParts | Call::AllToAll => f.write_str("all_to_all"),
            Call::Broadcast { root } => write!(f, "broadcast(root {root})"),
            Call::BroadcastBytes { root } => write!(f, "broadcast_bytes(root {root})"),
            Call::Barrier => f.write_str("barrier"),
            Call::Split => f.write_str("split"),
            #[cfg(feature = "mpi")]
            Call::SplitNode => f.write_str("split_node"),
        }
    }
}
