//! What examples are made of.

use crate::era5::variable::Variable;

/// What is done about fields that have values that are not numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// They are an error.
    #[default]
    Refuse,
    /// Examples that would need one are left out.
    LeaveOut,
}

/// What examples are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldsConfig {
    /// The variables of the state, in the order of channels and outputs.
    pub variables: Vec<Variable>,
    /// How many states an input has, each a lead before the next; at least 1.
    pub history: usize,
    /// How far ahead the target is, in seconds: a multiple of the store's step.
    pub lead: i64,
    /// Seconds between the times that forecasts begin at, counted from the first time; 0 for every
    /// time of the store.
    pub stride: i64,
    /// Whether land, soil type and topography are channels; the store must have them as
    /// `land_sea_mask`, `soil_type` and `geopotential_at_surface`.
    pub masks: bool,
    /// Whether what is usual at the hour of the origin and at that of the target, as the training
    /// part has it, are channels.
    pub climatology: bool,
    /// Whether the features know the day of the year. A record of a few weeks cannot tell seasons
    /// apart, and the day would be a clock that all later days are beyond.
    pub season: bool,
    /// What is done about values that are not numbers.
    pub missing: Missing,
    /// Whether the training part turns the globe at random.
    pub turn: bool,
    /// Up to so many bytes, all fields are read and normalised once and kept.
    pub memory: u64,
}

impl FieldsConfig {
    /// One state, 6 hours ahead, from every time; no masks, no turning, kept up to 2 GiB.
    pub fn new(variables: Vec<Variable>) -> Self {
        Self {
            variables,
            history: 1,
            lead: 6 * 3600,
            stride: 0,
            masks: false,
            climatology: false,
            season: true,
            missing: Missing::Refuse,
            turn: false,
            memory: 2 << 30,
        }
    }
}

/// How times are divided into training, validation and test.
///
/// An example belongs to the part that has both its origin and its target. The earlier states of
/// its input may lie in the part before.
#[derive(Clone, Debug, PartialEq)]
pub enum Split {
    /// Shares of all times, which follow one another: part k ends before time ⌊n · Σ shares⌋.
    Shares([f64; 3]),
    /// Dates in Unix seconds, before which the parts end.
    Until {
        /// The first time of the training part; the store's first if there is none.
        from: Option<i64>,
        /// Of training.
        train: i64,
        /// Of validation.
        valid: i64,
        /// Of test; the store's end if there is none.
        test: Option<i64>,
    },
}
