//! A load series on a regular grid.

/// Load in MW at `start + i · step_seconds`, without gaps.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSeries {
    /// Time of the first value, in seconds since 1970-01-01T00:00:00Z.
    pub start: i64,
    /// Distance of two values in seconds.
    pub step_seconds: u32,
    /// Mean load of each step in MW; the time of a value is the beginning of its step.
    pub values: Vec<f32>,
}

impl LoadSeries {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Time of value `index` in seconds since 1970-01-01T00:00:00Z.
    pub fn time(&self, index: usize) -> i64 {
        self.start + index as i64 * i64::from(self.step_seconds)
    }

    /// Values per day (rounded down).
    pub fn steps_per_day(&self) -> usize {
        86_400 / self.step_seconds.max(1) as usize
    }
}
