//! What a reader changed, for people.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::format::Format;
use super::series::LoadSeries;
use super::time::utc;

/// What was found, and what was done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairKind {
    /// A row earlier than the row before it; sorted.
    Unsorted,
    /// A row with the time of another and the same load; dropped.
    Duplicate,
    /// A row with the time of another and a different load; the first one kept.
    ConflictingDuplicate,
    /// A row of the second pass through the hour that is repeated in autumn; taken as winter time.
    RepeatedHour,
    /// A row in the local hour that does not exist in spring; dropped.
    SkippedHour,
    /// A row between the steps of the grid; dropped.
    OffGrid,
    /// Missing values at the beginning; trimmed.
    TrimmedStart,
    /// Missing values at the end; trimmed.
    TrimmedEnd,
    /// A load of zero or below; treated as missing, so it is also counted with the gaps.
    NotPositive,
    /// A single-point jump next to a clock change; replaced by the mean of its neighbours.
    ClockChange,
    /// A single-point jump elsewhere; replaced by the mean of its neighbours.
    Outlier,
    /// A short gap; interpolated.
    ShortGap,
    /// A longer gap; filled from the weeks (or days) around it.
    LongGap,
}

impl RepairKind {
    fn text(self) -> &'static str {
        match self {
            Self::Unsorted => "row out of order: sorted",
            Self::Duplicate => "duplicate row with the same load: dropped",
            Self::ConflictingDuplicate => "duplicate row with another load: the first kept",
            Self::RepeatedHour => "row of the repeated autumn hour's second pass: winter time",
            Self::SkippedHour => "row in the local hour that spring skips: dropped",
            Self::OffGrid => "row between the steps: dropped",
            Self::TrimmedStart => "missing value at the start: trimmed",
            Self::TrimmedEnd => "missing value at the end: trimmed",
            Self::NotPositive => "load of zero or below: treated as missing",
            Self::ClockChange => "single-point jump at a clock change: interpolated",
            Self::Outlier => "single-point outlier: interpolated",
            Self::ShortGap => "missing value in a short gap: interpolated",
            Self::LongGap => "missing value in a long gap: filled from the weeks around it",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairEvent {
    /// Time of the (first) value, in seconds since 1970-01-01T00:00:00Z.
    pub time: i64,
    /// What it was.
    pub kind: RepairKind,
    /// How many values in a row.
    pub values: usize,
    /// What stood in the file, in MW; for duplicates the load of the row dropped.
    pub old: Option<f32>,
    /// The (first) value in its place, in MW.
    pub new: Option<f32>,
}

/// What was read and everything that was changed; its `Display` is for a terminal.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairReport {
    /// The file.
    pub file: PathBuf,
    /// Its format.
    pub format: Format,
    /// Rows with a time.
    pub rows: usize,
    /// Values of the series.
    pub values: usize,
    /// Time of the first value, in seconds since 1970-01-01T00:00:00Z.
    pub start: i64,
    /// Time of the last value.
    pub end: i64,
    /// Step of the series.
    pub step_seconds: u32,
    /// Whether times had no offset and were taken as UTC.
    pub assumed_utc: bool,
    /// Whether energies per step (MWh) were converted to powers (MW).
    pub from_energy: bool,
    /// The first changes of each kind, by time.
    pub events: Vec<RepairEvent>,
    counts: BTreeMap<RepairKind, Tally>,
    listed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Tally {
    events: usize,
    values: usize,
}

impl RepairReport {
    pub(super) fn new(file: &Path, format: Format, listed: usize) -> Self {
        Self {
            file: file.to_path_buf(),
            format,
            rows: 0,
            values: 0,
            start: 0,
            end: 0,
            step_seconds: 0,
            assumed_utc: false,
            from_energy: false,
            events: Vec::new(),
            counts: BTreeMap::new(),
            listed,
        }
    }

    pub(super) fn note(&mut self, event: RepairEvent) {
        let tally = self.counts.entry(event.kind).or_default();
        tally.events += 1;
        tally.values += event.values;
        if tally.events <= self.listed {
            self.events.push(event);
        }
    }

    /// Fills in what is known only at the end.
    pub(super) fn finish(&mut self, series: &LoadSeries) {
        self.values = series.len();
        self.start = series.start;
        self.end = series.time(series.len().saturating_sub(1));
        self.step_seconds = series.step_seconds;
        for event in &mut self.events {
            if event.kind == RepairKind::NotPositive {
                let index = (event.time - series.start) / i64::from(series.step_seconds);
                event.new = usize::try_from(index).ok().and_then(|i| series.values.get(i).copied());
            }
        }
        self.events.sort_by_key(|event| (event.time, event.kind));
    }

    /// Rows or values of this kind.
    pub fn count(&self, kind: RepairKind) -> usize {
        self.counts.get(&kind).map_or(0, |tally| tally.values)
    }

    /// Values of the series that are not as measured: filled or replaced.
    pub fn replaced(&self) -> usize {
        [RepairKind::ClockChange, RepairKind::Outlier, RepairKind::ShortGap, RepairKind::LongGap]
            .into_iter()
            .map(|kind| self.count(kind))
            .sum()
    }

    /// Whether nothing had to be changed. (Telling the two passes of the autumn hour apart is no
    /// change.)
    pub fn is_clean(&self) -> bool {
        self.counts.keys().all(|&kind| kind == RepairKind::RepeatedHour)
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} ({}): {} rows",
            self.file.display(),
            self.format,
            thousands(self.rows as f64)
        )?;
        write!(
            f,
            "{} values every {} min from {} to {}",
            thousands(self.values as f64),
            self.step_seconds / 60,
            utc(self.start),
            utc(self.end)
        )?;
        if self.from_energy {
            write!(f, ", converted from MWh per step to MW")?;
        }
        if self.assumed_utc {
            write!(f, "; times without an offset were taken as UTC")?;
        }
        if self.is_clean() {
            write!(f, "\nnothing to repair")?;
        } else {
            let share = 100.0 * self.replaced() as f64 / self.values.max(1) as f64;
            let replaced = thousands(self.replaced() as f64);
            write!(f, "\nfilled or replaced: {replaced} ({share:.3} %)")?;
        }
        for (&kind, tally) in &self.counts {
            write!(f, "\n  {:>6} × {}", thousands(tally.values as f64), kind.text())?;
            if kind == RepairKind::RepeatedHour {
                // Every autumn; nothing to look at.
                continue;
            }
            for event in self.events.iter().filter(|event| event.kind == kind) {
                write!(f, "\n           {event}")?;
            }
            if tally.events > self.listed {
                write!(f, "\n           … and {} more", tally.events - self.listed)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RepairEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&utc(self.time))?;
        if self.values > 1 {
            write!(f, "  {} values", self.values)?;
        }
        let mw = |x: f32| thousands(f64::from(x));
        match (self.old, self.new) {
            (Some(old), Some(new)) => write!(f, "  {} -> {} MW", mw(old), mw(new)),
            (Some(old), None) => write!(f, "  {} MW", mw(old)),
            (None, Some(new)) if self.values == 1 => write!(f, "  -> {} MW", mw(new)),
            (None, _) => Ok(()),
        }
    }
}

/// Rounded, with commas: `-12,346`.
fn thousands(x: f64) -> String {
    let digits = format!("{:.0}", x.abs());
    let mut text = String::new();
    if x <= -0.5 {
        text.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn groups_of_three() {
        for (x, text) in [(0.0, "0"), (999.6, "1,000"), (-12_345.6, "-12,346"), (1e6, "1,000,000")]
        {
            assert_eq!(thousands(x), text);
        }
    }
}
