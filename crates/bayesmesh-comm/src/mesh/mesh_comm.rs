//! A communicator arranged as a mesh.

use std::sync::Arc;

use crate::communicator::Communicator;
use crate::error::MeshError;
use crate::mesh::{Coordinates, Mesh};
use crate::texts::gather_texts;

/// A communicator with the sub-communicators of both axes of its mesh.
#[derive(Debug)]
pub struct MeshComm {
    /// The layout.
    pub mesh: Mesh,
    /// This rank's place in it.
    pub coordinates: Coordinates,
    /// All ranks.
    pub world: Arc<dyn Communicator>,
    /// The ranks that share this rank's rows and differ in their draws; its rank in here is
    /// `coordinates.sample`.
    pub samples: Box<dyn Communicator>,
    /// The ranks that share this rank's draws and differ in their rows; its rank in here is
    /// `coordinates.data`.
    pub data: Box<dyn Communicator>,
}

impl MeshComm {
    /// Arranges `world` as `mesh`. Collective: every rank of `world` calls it with the same mesh,
    /// of as many ranks as `world` has.
    pub fn new(mesh: Mesh, world: Arc<dyn Communicator>) -> Result<Self, MeshError> {
        // Compared before anything else, so that ranks configured differently all get the error.
        let meshes = gather_texts(&*world, &[mesh.to_string()])?.concat();
        if let Some(rank) = meshes.iter().position(|mesh| *mesh != meshes[0]) {
            let (first, other) = (meshes[0].clone(), meshes[rank].clone());
            return Err(MeshError::Disagreement { first, rank, other });
        }
        if world.size() != mesh.size() {
            return Err(MeshError::WorldSize { mesh, world: world.size() });
        }
        let coordinates = mesh.coordinates(world.rank());
        let samples = world.split(coordinates.data)?;
        let data = world.split(coordinates.sample)?;
        Ok(MeshComm { mesh, coordinates, world, samples, data })
    }
}
