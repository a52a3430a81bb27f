//! Any calibration that a recipe can name.

use bayesmesh_schema::{Keys, Kinds};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How predictions are calibrated on data that were set aside for validation, so that their
/// intervals hold what they promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Kinds, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[section(default = "auto", example = "kind = \"auto\"")]
pub enum CalibrateConfig {
    /// what suits the data: `adaptive` for series, `conformal` for other values, `temperature` for
    /// classes
    #[default]
    Auto,
    /// nothing: predictions as the network makes them
    None,
    /// values: levels of intervals are shifted, output by output, to those that they keep on
    /// validation data; at least so often on new data, if these are exchangeable with them
    Conformal,
    /// values of series: the same, and then widths follow what comes true; right in the long run
    /// whatever the series does
    Adaptive(Adaptive),
    /// values: deviations are multiplied by a factor for each output
    Variance,
    /// classes: logits are divided by a temperature, and sets of classes hold the right one as
    /// often as they say
    Temperature(Temperature),
}

/// How fast intervals follow what comes true.
#[derive(Clone, Copy, Debug, PartialEq, Keys, Serialize, Deserialize)]
pub struct Adaptive {
    /// How much widths grow for a miss, as a share: that of a lead time, and that of a level.
    /// Larger is quicker and less steady.
    #[key(default = 0.005, above = 0, below = 1, also("gamma", "step", "lr"))]
    pub rate: f32,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { rate: 0.005 }
    }
}

/// Sets of classes.
#[derive(Clone, Copy, Debug, PartialEq, Keys, Serialize, Deserialize)]
pub struct Temperature {
    /// What a class adds to its score for each place that it comes after the first
    /// `penalty_from` ones (RAPS), so that sets become smaller where they are largest; 0 for none
    /// (APS).
    #[key(default = 0.0, at_least = 0, also("lambda", "regularization"))]
    pub penalty: f32,
    /// Classes without that penalty.
    #[key(default = 1, at_least = 0, also("k_reg"))]
    pub penalty_from: usize,
}

impl Default for Temperature {
    fn default() -> Self {
        Self { penalty: 0.0, penalty_from: 1 }
    }
}

/// A way of calibrating that has been chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Method {
    /// See [`CalibrateConfig::Conformal`].
    Conformal,
    /// See [`CalibrateConfig::Adaptive`].
    Adaptive(Adaptive),
    /// See [`CalibrateConfig::Variance`].
    Variance,
    /// See [`CalibrateConfig::Temperature`].
    Temperature(Temperature),
}

impl CalibrateConfig {
    /// What it is for predictions of classes or of values, of series or not; nothing for nothing.
    /// An error where the two do not go together.
    pub fn method(self, classes: bool, series: bool) -> Result<Option<Method>> {
        let wrong =
            |what: &str| Err(Error::Setting(format!("{what}; use another kind, or `auto`")));
        Ok(Some(match (self, classes) {
            (Self::None, _) => return Ok(None),
            (Self::Auto, true) => Method::Temperature(Temperature::default()),
            (Self::Auto, false) if series => Method::Adaptive(Adaptive::default()),
            (Self::Auto | Self::Conformal, false) => Method::Conformal,
            (Self::Variance, false) => Method::Variance,
            (Self::Adaptive(adaptive), false) if series => Method::Adaptive(adaptive),
            (Self::Temperature(temperature), true) => Method::Temperature(temperature),
            (Self::Adaptive(_), false) => {
                return wrong("the adaptive calibration is for series, and these data are none");
            }
            (Self::Conformal | Self::Adaptive(_) | Self::Variance, true) => {
                return wrong("this calibration is for values, and these are classes");
            }
            (Self::Temperature(_), false) => {
                return wrong("this calibration is for classes, and these are values");
            }
        }))
    }
}
