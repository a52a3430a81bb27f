//! Windows of series as examples: so many values in, the next ones out.

use std::ops::Range;
use std::sync::Arc;

use bayesmesh::data::{Checksum, Moment};
use bayesmesh::{Dataset, Result};
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// How examples are cut from series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Values that an example gives.
    pub inputs: usize,
    /// Values after them that are predicted.
    pub outputs: usize,
    /// Steps from one example to the next.
    pub stride: usize,
    /// Whether inputs may lie before the part whose values are predicted.
    pub reach_back: bool,
    /// Whether values are taken relative to the last that is known, so that levels that were never
    /// seen can be forecast.
    pub relative: bool,
}

/// A series as networks see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaled {
    /// Its values; not a number where one is missing.
    pub values: Vec<f32>,
    /// What is known until the forecast, for each column.
    pub past: Vec<Vec<f32>>,
    /// What is known beyond, for each column.
    pub known: Vec<Vec<f32>>,
    /// What the calendar says of each step, one step more than there are values.
    pub calendar: Vec<f32>,
    /// Its number among the series, from 1, where there are several.
    pub code: Option<f32>,
    /// The step of the grid at which it begins.
    pub first: i64,
}

/// A part of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of the series.
    pub series: usize,
    /// Its steps, counted from its beginning.
    pub steps: Range<usize>,
}

/// Every window of some parts of series. An example has, in this order,
///
/// - the last `inputs` values, and for these steps what is known until the forecast, column by
///   column, and what is known beyond;
/// - for the `outputs` steps to come what is known of them, column by column;
/// - what the calendar says of the first of these;
/// - the number of its series, where there are several.
#[derive(Clone, Debug)]
pub struct SeriesWindows {
    series: Arc<Vec<Scaled>>,
    parts: Vec<Part>,
    cut: Cut,
    /// Series and first step of each example.
    places: Arc<Vec<(u32, u32)>>,
    shown: Range<usize>,
}

impl Scaled {
    /// One number for each step and nothing beside it.
    pub fn of_values(values: Vec<f32>) -> Self {
        Self { values, ..Self::default() }
    }

    /// The level from which the window that begins at `start` is counted.
    pub fn level(&self, cut: &Cut, start: usize) -> f32 {
        if cut.relative { self.values[start + cut.inputs - 1] } else { 0.0 }
    }

    /// Appends what a network is given of the window that begins at `start`. What is known beyond
    /// the forecast must be there.
    fn write_inputs(&self, cut: &Cut, start: usize, row: &mut Vec<f32>) {
        let (history, first) = (start..start + cut.inputs, start + cut.inputs);
        let level = self.level(cut, start);
        row.extend(self.values[history.clone()].iter().map(|value| value - level));
        for column in self.past.iter().chain(&self.known) {
            row.extend_from_slice(&column[history.clone()]);
        }
        for column in &self.known {
            row.extend_from_slice(&column[first..first + cut.outputs]);
        }
        let features = self.calendar.len() / (self.values.len() + 1);
        row.extend_from_slice(&self.calendar[first * features..][..features]);
        row.extend(self.code);
    }
}

impl SeriesWindows {
    /// The windows within some parts of series that are there as a whole. A part that is shorter
    /// than a window has none.
    pub fn new(series: Arc<Vec<Scaled>>, parts: Vec<Part>, cut: Cut) -> Self {
        let cut = Cut { stride: cut.stride.max(1), ..cut };
        let window = cut.inputs + cut.outputs;
        let mut places = Vec::new();
        for Part { series: number, steps } in &parts {
            let own = &series[*number];
            let back = if cut.reach_back { cut.inputs.min(steps.start) } else { 0 };
            let first = steps.start - back;
            let known = own.known.iter().map(Vec::len).min().unwrap_or(steps.end);
            let end = steps.end.min(own.values.len()).min(known);
            let Some(last) = end.checked_sub(window) else { continue };
            // The last missing value seen so far ends the windows that have it.
            let missing = |range: Range<usize>| own.values[range].iter().rposition(|v| v.is_nan());
            let (mut bad, mut seen) = (None, first);
            for start in (first..=last).step_by(cut.stride) {
                let from = seen.max(start);
                bad = missing(from..start + window).map(|at| from + at).or(bad);
                seen = start + window;
                if bad.is_none_or(|bad| bad < start) {
                    places.push((*number as u32, start as u32));
                }
            }
        }
        let shown = 0..places.len();
        Self { series, parts, cut, places: Arc::new(places), shown }
    }

    /// All windows within a part of one series of plain numbers.
    pub fn of_values(
        values: Vec<f32>,
        steps: Range<usize>,
        inputs: usize,
        outputs: usize,
        stride: usize,
    ) -> Self {
        let cut = Cut { inputs, outputs, stride, reach_back: false, relative: false };
        Self::new(Arc::new(vec![Scaled::of_values(values)]), vec![Part { series: 0, steps }], cut)
    }

    /// How examples are cut.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The series, all of their steps.
    pub fn series(&self) -> &[Scaled] {
        &self.series
    }

    /// The series of an example, and where in it its inputs begin.
    pub fn place(&self, example: usize) -> (usize, usize) {
        let (series, start) = self.places[self.shown.start + example];
        (series as usize, start as usize)
    }

    /// The level that an example's values are counted from.
    pub fn level(&self, example: usize) -> f32 {
        let (series, start) = self.place(example);
        self.series[series].level(&self.cut, start)
    }

    /// Some of the windows, one after the other.
    #[must_use]
    pub fn some(&self, windows: Range<usize>) -> Self {
        let first = self.shown.start;
        Self { shown: first + windows.start..first + windows.end, ..self.clone() }
    }

    /// At most so many of the windows, evenly chosen.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        let every = self.len().div_ceil(most.max(1)).max(1);
        let places: Vec<_> =
            self.places[self.shown.clone()].iter().step_by(every).copied().collect();
        let shown = 0..places.len();
        Self { places: Arc::new(places), shown, ..self.clone() }
    }

    /// What networks are given of windows at any places, also at the end of a series.
    pub fn inputs_at(&self, places: &[(usize, usize)], device: &Device) -> Tensor<2> {
        let mut values = Vec::new();
        for &(series, start) in places {
            self.series[series].write_inputs(&self.cut, start, &mut values);
        }
        let width = values.len() / places.len().max(1);
        Tensor::from_data(TensorData::new(values, [places.len(), width]), device)
    }

    /// The values that followed a window at any place, counted from its level; not a number where
    /// they are not known.
    pub fn truth_at(&self, (series, start): (usize, usize)) -> impl Iterator<Item = f32> {
        let own = &self.series[series];
        let level = own.level(&self.cut, start);
        let steps = start + self.cut.inputs..start + self.cut.inputs + self.cut.outputs;
        steps.map(move |step| own.values.get(step).map_or(f32::NAN, |value| value - level))
    }
}

impl Dataset for SeriesWindows {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        self.shown.len()
    }

    fn checksum(&self) -> Option<String> {
        let Cut { inputs, outputs, stride, .. } = self.cut;
        let mut sum = Checksum::default().floats(&[inputs, outputs, stride].map(|n| n as f32));
        for Part { series, steps } in &self.parts {
            let own = &self.series[*series];
            let within =
                |column: &[f32]| steps.start.min(column.len())..steps.end.min(column.len());
            let columns = own.past.iter().chain(&own.known).map(Vec::as_slice);
            for column in [own.values.as_slice()].into_iter().chain(columns) {
                sum = sum.floats(&column[within(column)]);
            }
        }
        Some(sum.text())
    }

    fn moment(&self, row: usize) -> Option<Moment> {
        let (series, start) = self.place(row);
        let time = self.series[series].first + (start + self.cut.inputs) as i64;
        Some(Moment { series: series as u64, time })
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        let places: Vec<(usize, usize)> = rows.iter().map(|&row| self.place(row)).collect();
        let targets: Vec<f32> = places.iter().flat_map(|&place| self.truth_at(place)).collect();
        let targets = TensorData::new(targets, [rows.len(), self.cut.outputs]);
        Ok((self.inputs_at(&places, device), Tensor::from_data(targets, device)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(windows: &SeriesWindows, rows: &[usize]) -> [Vec<f32>; 2] {
        let (x, y) = windows.batch(rows, &Device::default()).unwrap();
        [x, y].map(|tensor| tensor.into_data().try_into_vec().unwrap())
    }

    #[test]
    fn windows_are_slices_of_the_part() {
        let values = || (0..20).map(|v| v as f32).collect::<Vec<_>>();
        let windows = SeriesWindows::of_values(values(), 5..15, 4, 2, 1);
        assert_eq!(windows.len(), 5);
        let [x, y] = batch(&windows, &[0, 4]);
        assert_eq!(x, [5., 6., 7., 8., 9., 10., 11., 12.]);
        assert_eq!(y, [9., 10., 13., 14.]);

        let every_third = SeriesWindows::of_values(values(), 5..15, 4, 2, 3);
        assert_eq!((every_third.len(), every_third.place(1)), (2, (0, 8)));
        assert_eq!(SeriesWindows::of_values(values(), 5..10, 4, 2, 1).len(), 0);

        let windows = SeriesWindows::of_values(values(), 0..20, 4, 2, 3);
        let some = windows.some(1..3);
        assert_eq!((some.len(), some.place(0), some.place(1)), (2, (0, 3), (0, 6)));
        assert_eq!(some.moment(1), windows.moment(2));
        assert_eq!(windows.some(2..2).len(), 0);
    }

    #[test]
    fn a_row_has_what_is_known_of_the_past_and_the_future() {
        let values = vec![1.0, 2.0, 3.0, 4.0, 5.0, f32::NAN, 7.0, 8.0, 9.0];
        let series = Scaled {
            past: vec![(10..19).map(|v| v as f32).collect()],
            known: vec![(20..30).map(|v| v as f32).collect()],
            calendar: (100..120).map(|v| v as f32).collect(),
            code: Some(3.0),
            first: 40,
            values,
        };
        let cut = Cut { inputs: 2, outputs: 1, stride: 1, reach_back: true, relative: true };
        let part = Part { series: 0, steps: 4..9 };
        let windows = SeriesWindows::new(Arc::new(vec![series]), vec![part], cut);
        // Windows reach back before the part, and those with the missing value are left out.
        let places: Vec<_> = (0..windows.len()).map(|row| windows.place(row)).collect();
        assert_eq!(places, [(0, 2), (0, 6)]);
        let [x, y] = batch(&windows, &[0]);
        assert_eq!(x, [-1.0, 0.0, 12.0, 13.0, 22.0, 23.0, 24.0, 108.0, 109.0, 3.0]);
        assert_eq!((y, windows.level(0)), (vec![1.0], 4.0));
        assert_eq!(windows.moment(0), Some(Moment { series: 0, time: 44 }));
        // The forecast that begins where the values end.
        let last = windows.inputs_at(&[(0, 7)], &Device::default());
        assert_eq!(last.dims(), [1, 10]);
        assert!(windows.truth_at((0, 7)).all(f32::is_nan));
    }
}
