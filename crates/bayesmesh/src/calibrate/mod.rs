//! Predictions that keep their promise: calibration on data that were set aside.
//!
//! A network says how sure it is, and is wrong about it. What it said of examples that it has not
//! learned from tells by how much. For values, how far out a truth lies in its prediction is one
//! number, its [`deviation`]; the rank of new deviations among those of n validation examples is
//! uniform if all are exchangeable and the network has not learned from them, whatever it is. So
//! the interval that ends at the ⌈(n + 1) L⌉-th smallest holds a new truth with a probability of at
//! least L, and of less than L + 1/(n + 1): conformal prediction, on the levels of the predicted
//! mixture. A [`LevelMap`] does so at many levels at once, and leaves a distribution with a density
//! and quantiles.
//!
//! Series are not exchangeable: a [`Follower`] goes on learning from what comes true.
//!
//! ```text
//!              Predictive ── noise, kernel, stretch ── Lens ──► Predictive
//!  validation ──► Residuals ──► ValueCalibration ───────┘
//!  series as it comes true ──► Follower ────────────────┘
//! ```

mod classes;
mod config;
mod correlation;
mod fit;
mod follower;
mod lens;
mod level_map;
mod values;

pub use classes::ClassCalibration;
pub(crate) use classes::uniform;
pub use config::{Adaptive, CalibrateConfig, Method, Temperature};
pub use follower::Follower;
pub use lens::Lens;
pub(crate) use level_map::deviation_of_tail;
pub use level_map::{LEVELS, LevelMap, deviation};
pub(crate) use values::MOST_OUTPUTS;
pub use values::ValueCalibration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::predict::Predictive;

/// How the predictions of a network are calibrated. It travels with checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    method: Method,
    examples: usize,
    learned: Learned,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Learned {
    Values(ValueCalibration),
    Classes(ClassCalibration),
}

impl Calibration {
    /// The fewest examples that something can be learned from.
    pub const LEAST_EXAMPLES: usize = 10;

    /// How it was made.
    pub fn method(&self) -> Method {
        self.method
    }

    /// From how many examples.
    pub fn examples(&self) -> usize {
        self.examples
    }

    /// That of classes; nothing where values are predicted.
    pub fn of_classes(&self) -> Option<&ClassCalibration> {
        match &self.learned {
            Learned::Classes(classes) => Some(classes),
            Learned::Values(_) => None,
        }
    }

    /// That of values; nothing where classes are predicted.
    pub fn of_values(&self) -> Option<&ValueCalibration> {
        match &self.learned {
            Learned::Values(values) => Some(values),
            Learned::Classes(_) => None,
        }
    }

    /// The calibrated prediction. For series it is that of where the [`Follower`] starts.
    pub fn apply(&self, prediction: Predictive) -> Result<Predictive> {
        match (&self.learned, prediction.predicts_classes()) {
            (Learned::Values(values), false) => values.apply(prediction),
            (Learned::Classes(classes), true) => Ok(classes.apply(prediction)),
            _ => Err(Error::Mismatch(
                "values cannot be calibrated like classes, nor classes like values".to_owned(),
            )),
        }
    }

    /// The prediction as a [`Lens`] is put before it: with a kernel around draws without noise, and
    /// stretched.
    pub fn widened(&self, prediction: Predictive) -> Predictive {
        match &self.learned {
            Learned::Values(values) => values.widened(prediction),
            Learned::Classes(_) => prediction,
        }
    }

    /// The prediction as it is seen through a lens of a [`Follower`].
    pub fn seen_through(&self, prediction: Predictive, lens: Lens) -> Predictive {
        self.widened(prediction).seen_through(lens)
    }

    /// What goes on learning from series of so many outputs; nothing where the method does not.
    pub fn follower(&self, outputs: usize) -> Option<Follower> {
        self.of_values()?.follower(outputs)
    }

    /// As a text that [`from_text`](Self::from_text) reads back.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("numbers and names can be written")
    }

    /// What [`to_text`](Self::to_text) wrote.
    pub fn from_text(text: &str) -> Result<Self> {
        let calibration: Self = serde_json::from_str(text).map_err(|error| {
            Error::Mismatch(format!(
                "the calibration in the checkpoint cannot be read: {error}; it is of another \
                 version, or damaged: calibrate anew"
            ))
        })?;
        match &calibration.learned {
            Learned::Values(values) => values.check()?,
            Learned::Classes(classes) => classes.check()?,
        }
        Ok(calibration)
    }
}
