//! What can be wrong with the numbers handed to a metric.

use thiserror::Error;

/// Why a metric refused its input. The accumulator is then as it was before the call.
#[derive(Clone, PartialEq, Error)]
pub enum MetricError {
    /// Two inputs that belong together differ in size.
    #[error("{what}: {actual} given, {expected} expected")]
    Count {
        /// What was counted.
        what: &'static str,
        /// The count that fits the other inputs.
        expected: usize,
        /// The count given.
        actual: usize,
    },
    /// The length of a row-major table is not a positive multiple of the number of its examples.
    #[error("{what}: {actual} values do not form a table for {examples} examples")]
    Shape {
        /// The table.
        what: &'static str,
        /// Number of examples.
        examples: usize,
        /// Number of values given.
        actual: usize,
    },
    /// A label is not the index of a class.
    #[error("label {label} of example {index} is not below the number of classes, {classes}")]
    Label {
        /// Position in the labels.
        index: usize,
        /// The label.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// A probability is not finite, or outside `[0, 1]` by more than rounding explains.
    #[error(
        "probability {value} at index {index} is not in [0, 1]; pass probabilities, not logits"
    )]
    Probability {
        /// Position in the row-major table.
        index: usize,
        /// The value.
        value: f32,
    },
    /// A variance is negative or not finite.
    #[error("variance {value} at index {index} is negative or not finite")]
    Variance {
        /// Position in that input.
        index: usize,
        /// The value.
        value: f32,
    },
    /// A prediction, a target or a score is NaN or infinite.
    #[error("{what} {value} at index {index} is not finite")]
    NotFinite {
        /// Which input.
        what: &'static str,
        /// Position in that input.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A metric was asked for with a setting it cannot have.
    #[error("{setting} must be {expected}, not {actual}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What was given.
        actual: String,
    },
}

bayesmesh_comm::debug_is_display!(MetricError);
