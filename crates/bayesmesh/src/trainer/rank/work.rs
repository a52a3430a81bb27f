//! What one rank does of every step.

use std::ops::Range;

use bayesmesh_comm::{MeshComm, share};

use crate::trainer::Settings;

/// What one rank does of every step of a run.
#[derive(Clone, Debug)]
pub struct Work {
    pub settings: Settings,
    /// The draws that it evaluates, out of all S.
    pub draws: Range<usize>,
    /// The rows of the batch on which it does, out of all B.
    pub rows: Range<usize>,
}

impl Work {
    pub fn new(settings: &Settings, mesh: &MeshComm) -> Self {
        let at = mesh.coordinates;
        Self {
            settings: settings.clone(),
            draws: share(settings.samples, mesh.mesh.samples_size(), at.sample),
            rows: share(settings.batch, mesh.mesh.data_size(), at.data),
        }
    }

    /// S·B, over which the loss is a mean.
    pub fn cells(&self) -> f64 {
        self.settings.samples as f64 * self.settings.batch as f64
    }
}
