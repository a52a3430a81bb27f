//! A run that can be done.

use super::{Course, Settings};

/// Settings that fit the ranks, the loss and the data, and the length of the run in steps. Only
/// [`Trainer::plan`](super::Trainer::plan) makes one, and checks everything before any rank starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    settings: Settings,
    course: Course,
    /// Columns of the network's outputs.
    outputs: usize,
}

impl Plan {
    pub(super) fn new(settings: Settings, course: Course, outputs: usize) -> Self {
        Self { settings, course, outputs }
    }

    /// The settings, checked.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many outputs the network has for an example.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// How long the run is.
    pub fn course(&self) -> &Course {
        &self.course
    }
}
