//! The numbers behind the repairs.

/// Thresholds of the repairs; [`RepairRules::default`] is what [`read`](super::read()) uses.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairRules {
    /// Gaps of up to this many steps are filled by linear interpolation. Default 4.
    pub short_gap_steps: usize,
    /// Longer gaps of up to this many seconds are filled, value by value, with the mean of the same
    /// UTC time one week before and one week after if both were measured, else with the value one
    /// day before, else one day after. A longer gap, or a value with none of these, is an error.
    /// Default 36 hours.
    pub long_gap_seconds: i64,
    /// An outlier's second difference `x[i] − (x[i−1] + x[i+1])/2` is farther than this many robust
    /// standard deviations (1.4826 · median absolute deviation) from the median, both taken over
    /// the second differences at the same UTC time of day (over all times when the series has fewer
    /// than 14 days). Default 8.
    pub outlier_sigmas: f64,
    /// An outlier is also above both or below both neighbours by more than this fraction of the
    /// median load. It keeps steps and ramps: their edges differ much from one neighbour only.
    /// Default 0.02.
    pub outlier_floor: f64,
    /// How many events of each kind the report lists one by one. Default 20.
    pub listed_events: usize,
}

impl Default for RepairRules {
    fn default() -> Self {
        Self {
            short_gap_steps: 4,
            long_gap_seconds: 36 * 3600,
            outlier_sigmas: 8.0,
            outlier_floor: 0.02,
            listed_events: 20,
        }
    }
}
