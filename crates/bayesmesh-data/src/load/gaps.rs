//! Filling what is missing.

use std::path::Path;

use super::error::LoadError;
use super::grid::Grid;
use super::report::{RepairEvent, RepairKind, RepairReport};
use super::rules::RepairRules;

/// All values of the grid, gaps filled by the rules.
pub(super) fn fill(
    file: &Path,
    grid: &Grid,
    rules: &RepairRules,
    report: &mut RepairReport,
) -> Result<Vec<f32>, LoadError> {
    let measured = &grid.values;
    let mut filled: Vec<Option<f64>> = measured.clone();
    let mut index = 0;
    while index < measured.len() {
        if measured[index].is_some() {
            index += 1;
            continue;
        }
        let length = measured[index..].iter().take_while(|x| x.is_none()).count();
        let kind = if length <= rules.short_gap_steps {
            interpolate(&mut filled, index, length);
            RepairKind::ShortGap
        } else {
            from_around(measured, &mut filled, index, length, grid.step);
            RepairKind::LongGap
        };
        if filled[index..index + length].contains(&None) {
            return Err(LoadError::Gap {
                file: file.to_path_buf(),
                from: grid.time(index),
                to: grid.time(index + length - 1),
                seconds: length as i64 * grid.step,
                why: "there is neither a week nor a day around it to fill it from".into(),
            });
        }
        report.note(RepairEvent {
            time: grid.time(index),
            kind,
            values: length,
            old: None,
            new: filled[index].map(|x| x as f32),
        });
        index += length;
    }
    Ok(filled.into_iter().flatten().map(|x| x as f32).collect())
}

/// A straight line between the values around the gap. (Both are there: a grid begins and ends with
/// a value.)
fn interpolate(values: &mut [Option<f64>], start: usize, length: usize) {
    let before = start.checked_sub(1).and_then(|i| values[i]);
    let after = values.get(start + length).copied().flatten();
    if let (Some(before), Some(after)) = (before, after) {
        for (i, value) in values[start..start + length].iter_mut().enumerate() {
            let weight = (i + 1) as f64 / (length + 1) as f64;
            *value = Some(before + weight * (after - before));
        }
    }
}

/// Each value from the same time a week before and after, else a day before, else a day after.
fn from_around(
    measured: &[Option<f64>],
    filled: &mut [Option<f64>],
    start: usize,
    length: usize,
    step: i64,
) {
    let day = (86_400 / step) as usize;
    let week = 7 * day;
    let at = |values: &[Option<f64>], index: Option<usize>| {
        index.and_then(|i| values.get(i).copied().flatten())
    };
    for index in start..start + length {
        let last_week = at(measured, index.checked_sub(week));
        let next_week = at(measured, Some(index + week));
        filled[index] = match (last_week, next_week) {
            (Some(last), Some(next)) => Some((last + next) / 2.0),
            // A gap of more than a day reaches back to what it filled itself.
            _ => at(filled, index.checked_sub(day)).or_else(|| at(measured, Some(index + day))),
        };
    }
}
