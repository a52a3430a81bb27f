//! The two-dimensional layout of ranks: samples × data.
//!
//! | strategy | mesh |
//! |---|---|
//! | serial | 1 × 1 |
//! | sampling parallelism | P × 1 |
//! | data parallelism | 1 × P |
//! | hybrid | g × P/g |

mod mesh_comm;
mod policy;

use std::fmt::{self, Display};
use std::ops::Range;
use std::str::FromStr;

use crate::error::MeshError;

pub use mesh_comm::MeshComm;
pub use policy::are_uneven;

/// How many ranks share the draws (sample axis) and how many share the batch (data axis).
///
/// Written `SAMPLESxDATA`, for example `4x2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mesh {
    samples: usize,
    data: usize,
}

/// The place of one rank on the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Coordinates {
    /// Index on the sample axis: which share of the draws.
    pub sample: usize,
    /// Index on the data axis: which share of the batch.
    pub data: usize,
}

impl Mesh {
    /// A mesh of `samples` × `data` ranks; both at least one.
    pub fn new(samples: usize, data: usize) -> Result<Self, MeshError> {
        if samples == 0 || data == 0 {
            return Err(MeshError::EmptyAxis { samples, data });
        }
        match samples.checked_mul(data) {
            Some(_) => Ok(Mesh { samples, data }),
            None => Err(MeshError::TooLarge { samples, data }),
        }
    }

    /// One rank: 1 × 1.
    pub fn serial() -> Self {
        Mesh { samples: 1, data: 1 }
    }

    /// Sampling parallelism: `ranks` × 1.
    pub fn samples(ranks: usize) -> Result<Self, MeshError> {
        Mesh::new(ranks, 1)
    }

    /// Data parallelism: 1 × `ranks`.
    pub fn data(ranks: usize) -> Result<Self, MeshError> {
        Mesh::new(1, ranks)
    }

    /// Both: `samples` × `data`, the same as [`Mesh::new`].
    pub fn hybrid(samples: usize, data: usize) -> Result<Self, MeshError> {
        Mesh::new(samples, data)
    }

    /// Ranks in all.
    pub fn size(&self) -> usize {
        self.samples * self.data
    }

    /// Ranks along the sample axis, P_s.
    pub fn samples_size(&self) -> usize {
        self.samples
    }

    /// Ranks along the data axis, P_d.
    pub fn data_size(&self) -> usize {
        self.data
    }

    /// What this mesh is called: `serial`, `sampling`, `data` or `hybrid`.
    pub fn strategy(&self) -> &'static str {
        match (self.samples, self.data) {
            (1, 1) => "serial",
            (_, 1) => "sampling",
            (1, _) => "data",
            _ => "hybrid",
        }
    }

    /// The place of `rank` (below [`size`](Self::size)): (rank mod P_s, rank div P_s), so the ranks
    /// that share rows of the batch are neighbours.
    pub fn coordinates(&self, rank: usize) -> Coordinates {
        Coordinates { sample: rank % self.samples, data: rank / self.samples }
    }

    /// Checks that `world` ranks fill the mesh, every sample rank gets at least one of `draws`
    /// draws and every data rank at least one of the `batch` rows.
    pub fn validate(&self, world: usize, draws: usize, batch: usize) -> Result<(), MeshError> {
        let mesh = *self;
        if world != self.size() {
            Err(MeshError::WorldSize { mesh, world })
        } else if draws < self.samples {
            Err(MeshError::TooFewDraws { mesh, draws })
        } else if batch < self.data {
            Err(MeshError::TooFewRows { mesh, batch })
        } else {
            Ok(())
        }
    }
}

impl Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.samples, self.data)
    }
}

impl FromStr for Mesh {
    type Err = MeshError;

    fn from_str(text: &str) -> Result<Self, MeshError> {
        let axes = text.split_once('x').and_then(|(samples, data)| {
            Some((samples.trim().parse().ok()?, data.trim().parse().ok()?))
        });
        match axes {
            Some((samples, data)) => Mesh::new(samples, data),
            None => Err(MeshError::Parse { text: text.to_owned() }),
        }
    }
}

/// The share number `index` when `total` items are divided into so many contiguous shares.
///
/// The shares follow one another and cover `0..total`; the first `total mod shares` have one item
/// more than the rest. A share that does not exist (`index >= shares`) has no items.
pub fn share(total: usize, shares: usize, index: usize) -> Range<usize> {
    if index >= shares {
        return total..total;
    }
    let (items, extra) = (total / shares, total % shares);
    let start = index * items + index.min(extra);
    start..start + items + usize::from(index < extra)
}
