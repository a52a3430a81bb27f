//! A run that can be done.

use super::{Course, Settings};

/// Settings that fit the ranks, the loss and the data, and the length of the run in steps. Only
/// [`Trainer::plan`](super::Trainer::plan) makes one, and checks everything before any rank starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    settings: Settings,
    course: Course,
}

impl Plan {
    pub(super) fn new(settings: Settings, course: Course) -> Self {
        Self { settings, course }
    }

    /// The settings, checked.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long the run is.
    pub fn course(&self) -> &Course {
        &self.course
    }
}
