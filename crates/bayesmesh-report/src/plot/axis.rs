//! Axes.

/// An axis of a plot.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// What it measures; empty for none.
    pub label: String,
    /// Its unit, shown in brackets after the label; empty for none.
    pub unit: String,
    /// How values map to positions.
    pub scale: ScaleKind,
    /// The visible range; `None` takes it from the data.
    pub range: Option<(f64, f64)>,
}

/// How the values of an axis map to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScaleKind {
    /// Equal steps are equal differences.
    #[default]
    Linear,
    /// Equal steps are equal ratios. Values that are not positive leave gaps.
    Log,
    /// Seconds since 1970-01-01 UTC, labelled by date and time of day.
    Time,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { scale: ScaleKind::Log, ..Self::linear(label) }
    }

    /// A time axis in UTC.
    pub fn time(label: impl Into<String>) -> Self {
        Self { scale: ScaleKind::Time, ..Self::linear(label) }
    }

    /// Sets the unit.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Sets the visible range.
    pub fn range(mut self, from: f64, to: f64) -> Self {
        self.range = Some((from, to));
        self
    }

    /// Label and unit as one text, e.g. "load (MW)".
    pub(crate) fn name(&self) -> String {
        match (self.label.as_str(), self.unit.as_str()) {
            (label, "") => label.to_owned(),
            ("", unit) => unit.to_owned(),
            (label, unit) => format!("{label} ({unit})"),
        }
    }
}
