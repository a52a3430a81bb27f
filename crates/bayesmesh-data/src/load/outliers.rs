//! Single points that cannot be real.

use super::grid::Grid;
use super::report::{RepairEvent, RepairKind, RepairReport};
use super::rules::RepairRules;
use super::time::near_clock_change;

/// Days from which each time of day has a spread of its own.
const DAYS_FOR_SLOTS: usize = 14;

/// Replaces outliers by the mean of their neighbours, the most prominent first, so that a neighbour
/// is judged without them.
pub(super) fn replace(grid: &mut Grid, rules: &RepairRules, report: &mut RepairReport) {
    let spread = Spread::of(grid);
    let floor = rules.outlier_floor * median(grid.values.iter().flatten().copied().collect());
    let is_outlier = |grid: &Grid, index: usize| {
        let (bend, prominence) = shape(&grid.values, index)?;
        let (middle, sigma) = spread.at(index);
        let far = (bend - middle).abs() > rules.outlier_sigmas * sigma;
        (far && prominence > floor).then_some(prominence)
    };
    let mut found: Vec<(usize, f64)> = (0..grid.values.len())
        .filter_map(|index| Some((index, is_outlier(grid, index)?)))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut events = Vec::new();
    for (index, _) in found {
        if is_outlier(grid, index).is_none() {
            continue;
        }
        let (Some(before), Some(old), Some(after)) =
            (grid.values[index - 1], grid.values[index], grid.values[index + 1])
        else {
            continue;
        };
        let new = (before + after) / 2.0;
        grid.values[index] = Some(new);
        let time = grid.time(index);
        let kind = match near_clock_change(time) {
            true => RepairKind::ClockChange,
            false => RepairKind::Outlier,
        };
        let (old, new) = (Some(old as f32), Some(new as f32));
        events.push(RepairEvent { time, kind, values: 1, old, new });
    }
    events.sort_by_key(|event| event.time);
    events.into_iter().for_each(|event| report.note(event));
}

/// Second difference `x[i] − (x[i−1] + x[i+1])/2`, and by how much the point is above both or below
/// both neighbours (0 if it is between them). None at the ends and next to a missing value.
fn shape(values: &[Option<f64>], index: usize) -> Option<(f64, f64)> {
    let before = (*values.get(index.checked_sub(1)?)?)?;
    let here = (*values.get(index)?)?;
    let after = (*values.get(index + 1)?)?;
    let (left, right) = (here - before, here - after);
    let prominence = if left * right > 0.0 { left.abs().min(right.abs()) } else { 0.0 };
    Some(((left + right) / 2.0, prominence))
}

/// Median and robust standard deviation of the second differences, for each time of day if the
/// series is long enough.
struct Spread(Vec<(f64, f64)>);

impl Spread {
    fn of(grid: &Grid) -> Self {
        let slots = (86_400 / grid.step) as usize;
        let slots = if grid.values.len() >= DAYS_FOR_SLOTS * slots { slots } else { 1 };
        let mut bends = vec![Vec::new(); slots];
        for index in 0..grid.values.len() {
            if let Some((bend, _)) = shape(&grid.values, index) {
                bends[index % slots].push(bend);
            }
        }
        Self(bends.into_iter().map(robust).collect())
    }

    fn at(&self, index: usize) -> (f64, f64) {
        self.0[index % self.0.len()]
    }
}

/// Median and 1.4826 · median absolute deviation (the standard deviation of a Gaussian).
fn robust(values: Vec<f64>) -> (f64, f64) {
    let middle = median(values.clone());
    let deviations = values.into_iter().map(|x| (x - middle).abs()).collect();
    (middle, 1.4826 * median(deviations))
}

/// The (upper) median; 0 of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let half = values.len() / 2;
    *values.select_nth_unstable_by(half, f64::total_cmp).1
}
