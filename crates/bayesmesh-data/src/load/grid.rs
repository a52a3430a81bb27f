//! From observations in any order to a regular grid with holes.

use std::collections::HashMap;
use std::path::Path;

use super::error::LoadError;
use super::report::{RepairEvent, RepairKind, RepairReport};
use super::rules::RepairRules;

/// Fewer values are no series: the step and the outliers could not be told.
const MIN_VALUES: usize = 24;

/// Supported distances of rows in seconds.
const STEPS: [i64; 3] = [900, 1800, 3600];

/// One row: a time in seconds since 1970-01-01T00:00:00Z and the load in the file's unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub time: i64,
    pub load: Option<f64>,
}

/// Load in MW at `start + i · step`; the first and the last value are there.
#[derive(Debug)]
pub(super) struct Grid {
    pub start: i64,
    pub step: i64,
    pub values: Vec<Option<f64>>,
}

impl Grid {
    /// Sorts, removes duplicates, finds the step, converts to MW, and trims. `notes` are events of
    /// the caller with loads in the file's unit.
    pub(super) fn new(
        file: &Path,
        column: &str,
        mut rows: Vec<Observation>,
        energy: bool,
        rules: &RepairRules,
        report: &mut RepairReport,
        mut notes: Vec<RepairEvent>,
    ) -> Result<Self, LoadError> {
        let too_short = |found| LoadError::TooShort {
            file: file.to_path_buf(),
            column: column.to_owned(),
            found,
            needed: MIN_VALUES,
        };
        if rows.len() < MIN_VALUES {
            return Err(too_short(rows.len()));
        }
        sort(&mut rows, &mut notes);
        let rows = without_duplicates(rows, &mut notes);
        let step = most_common(rows.windows(2).map(|pair| pair[1].time - pair[0].time));
        let step = step.ok_or_else(|| too_short(rows.len()))?;
        if !STEPS.contains(&step) {
            return Err(LoadError::Step { file: file.to_path_buf(), seconds: step });
        }
        let to_mw = if energy { 3600.0 / step as f64 } else { 1.0 };
        let mut rows = on_grid(file, rows, step, &mut notes)?;
        for row in &mut rows {
            if let Some(load) = row.load.filter(|&load| load <= 0.0) {
                notes.push(event(RepairKind::NotPositive, row.time, Some(load)));
                row.load = None;
            }
        }
        for mut note in notes {
            note.old = note.old.map(|x| (f64::from(x) * to_mw) as f32);
            note.new = note.new.map(|x| (f64::from(x) * to_mw) as f32);
            report.note(note);
        }

        let measured = rows.iter().filter(|row| row.load.is_some()).count();
        if measured < MIN_VALUES {
            return Err(too_short(measured));
        }
        let rows = trimmed(&rows, report);
        check_gaps(file, rows, step, rules)?;
        let start = rows[0].time;
        let steps = (rows[rows.len() - 1].time - start) / step;
        let mut values = vec![None; steps as usize + 1];
        for row in rows {
            values[((row.time - start) / step) as usize] = row.load.map(|load| load * to_mw);
        }
        Ok(Self { start, step, values })
    }

    /// Time of value `index`.
    pub(super) fn time(&self, index: usize) -> i64 {
        self.start + index as i64 * self.step
    }
}

fn event(kind: RepairKind, time: i64, old: Option<f64>) -> RepairEvent {
    RepairEvent { time, kind, values: 1, old: old.map(|x| x as f32), new: None }
}

fn sort(rows: &mut [Observation], notes: &mut Vec<RepairEvent>) {
    for pair in rows.windows(2) {
        if pair[1].time < pair[0].time {
            notes.push(event(RepairKind::Unsorted, pair[1].time, pair[1].load));
        }
    }
    // Stable: of equal times the first in the file stays first.
    rows.sort_by_key(|row| row.time);
}

/// Of rows with equal time the first that has a load, else the first.
fn without_duplicates(rows: Vec<Observation>, notes: &mut Vec<RepairEvent>) -> Vec<Observation> {
    let mut kept: Vec<Observation> = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(last) = kept.last_mut().filter(|last| last.time == row.time) else {
            kept.push(row);
            continue;
        };
        let kind = match (last.load, row.load) {
            (Some(first), Some(second)) if first != second => RepairKind::ConflictingDuplicate,
            _ => RepairKind::Duplicate,
        };
        let dropped = if last.load.is_none() { std::mem::replace(last, row) } else { row };
        let mut note = event(kind, row.time, dropped.load);
        if kind == RepairKind::ConflictingDuplicate {
            note.new = last.load.map(|x| x as f32);
        }
        notes.push(note);
    }
    kept
}

/// The most common value, the smallest of those equally common.
fn most_common(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(value, count)| (count, -value)).map(|(value, _)| value)
}

/// The rows whose times are congruent, dropping a few that are not.
fn on_grid(
    file: &Path,
    rows: Vec<Observation>,
    step: i64,
    notes: &mut Vec<RepairEvent>,
) -> Result<Vec<Observation>, LoadError> {
    let phase = |row: &Observation| row.time.rem_euclid(step);
    let common = most_common(rows.iter().map(phase));
    let total = rows.len();
    let (on, off): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| Some(phase(row)) == common);
    if 100 * off.len() > total {
        let first = off[0].time;
        let (file, off) = (file.to_path_buf(), off.len());
        return Err(LoadError::OffGrid { file, off, rows: total, step, first });
    }
    notes.extend(off.iter().map(|row| event(RepairKind::OffGrid, row.time, row.load)));
    Ok(on)
}

/// The rows from the first to the last that has a load.
fn trimmed<'a>(rows: &'a [Observation], report: &mut RepairReport) -> &'a [Observation] {
    let has_load = |row: &Observation| row.load.is_some();
    let first = rows.iter().position(has_load).unwrap_or(0);
    let end = rows.iter().rposition(has_load).map_or(rows.len(), |last| last + 1);
    for (kind, part) in
        [(RepairKind::TrimmedStart, &rows[..first]), (RepairKind::TrimmedEnd, &rows[end..])]
    {
        if let Some(row) = part.first() {
            let values = part.len();
            report.note(RepairEvent { time: row.time, kind, values, old: None, new: None });
        }
    }
    &rows[first..end]
}

/// Refuses gaps that are too long, before memory is taken for them.
fn check_gaps(
    file: &Path,
    rows: &[Observation],
    step: i64,
    rules: &RepairRules,
) -> Result<(), LoadError> {
    let mut last = rows[0].time;
    for row in rows.iter().filter(|row| row.load.is_some()) {
        let seconds = row.time - last - step;
        if seconds > rules.long_gap_seconds.max((rules.short_gap_steps as i64).saturating_mul(step))
        {
            let hours = rules.long_gap_seconds as f64 / 3600.0;
            return Err(LoadError::Gap {
                file: file.to_path_buf(),
                from: last + step,
                to: row.time - step,
                seconds,
                why: format!("gaps of more than {hours:.0} hours are not filled"),
            });
        }
        last = row.time;
    }
    Ok(())
}
