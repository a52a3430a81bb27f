//! Windows of a series as examples: so many values in, the next ones out.

use std::ops::Range;
use std::sync::Arc;

use bayesmesh::data::{Checksum, Moment};
use bayesmesh::{Dataset, Result};
use burn::tensor::{Device, Tensor, TensorData};

/// Every window of a part of a normalised series, one a step: example `i` has the values
/// `i..i + inputs` of the part as inputs and the `outputs` values after them as targets.
#[derive(Clone, Debug)]
pub struct LoadWindows {
    values: Arc<Vec<f32>>,
    part: Range<usize>,
    inputs: usize,
    outputs: usize,
    stride: usize,
}

impl LoadWindows {
    /// Windows within `part` of the series, beginning every `stride` steps. A part that is shorter
    /// than a window has none.
    pub fn new(
        values: Arc<Vec<f32>>,
        part: Range<usize>,
        inputs: usize,
        outputs: usize,
        stride: usize,
    ) -> Self {
        Self { values, part, inputs, outputs, stride: stride.max(1) }
    }

    /// Where in the series the inputs of an example begin.
    pub fn start(&self, example: usize) -> usize {
        self.part.start + example * self.stride
    }

    /// Some of the windows, one after the other.
    #[must_use]
    pub fn some(&self, windows: Range<usize>) -> Self {
        let window = self.inputs + self.outputs;
        let last = windows.len().saturating_sub(1) * self.stride;
        let first = self.start(windows.start);
        let end = if windows.is_empty() { first } else { first + last + window };
        Self { part: first..end, ..self.clone() }
    }

    fn gather(&self, rows: &[usize], offset: usize, length: usize, device: &Device) -> Tensor<2> {
        let mut values = Vec::with_capacity(rows.len() * length);
        for &row in rows {
            values.extend_from_slice(&self.values[self.start(row) + offset..][..length]);
        }
        Tensor::from_data(TensorData::new(values, [rows.len(), length]), device)
    }
}

impl Dataset for LoadWindows {
    type Input = Tensor<2>;
    type Target = Tensor<2>;

    fn len(&self) -> usize {
        let window = self.inputs + self.outputs;
        match self.part.len().checked_sub(window) {
            Some(last) => last / self.stride + 1,
            None => 0,
        }
    }

    fn checksum(&self) -> Option<String> {
        let geometry = [self.inputs, self.outputs, self.stride].map(|n| n as f32);
        let values = &self.values[self.part.clone()];
        Some(Checksum::default().floats(&geometry).floats(values).text())
    }

    fn moment(&self, row: usize) -> Option<Moment> {
        Some(Moment { series: 0, time: (self.start(row) + self.inputs) as i64 })
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, Tensor<2>)> {
        Ok((
            self.gather(rows, 0, self.inputs, device),
            self.gather(rows, self.inputs, self.outputs, device),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_slices_of_the_part() {
        let values = Arc::new((0..20).map(|v| v as f32).collect::<Vec<_>>());
        let windows = LoadWindows::new(values.clone(), 5..15, 4, 2, 1);
        assert_eq!(windows.len(), 5);
        let (x, y) = windows.batch(&[0, 4], &Device::default()).unwrap();
        let x: Vec<f32> = x.into_data().try_into_vec().unwrap();
        let y: Vec<f32> = y.into_data().try_into_vec().unwrap();
        assert_eq!(x, [5., 6., 7., 8., 9., 10., 11., 12.]);
        assert_eq!(y, [9., 10., 13., 14.]);

        let every_third = LoadWindows::new(values.clone(), 5..15, 4, 2, 3);
        assert_eq!((every_third.len(), every_third.start(1)), (2, 8));
        assert_eq!(LoadWindows::new(values.clone(), 5..10, 4, 2, 1).len(), 0);

        let windows = LoadWindows::new(values, 0..20, 4, 2, 3);
        let some = windows.some(1..3);
        assert_eq!((some.len(), some.start(0), some.start(1)), (2, 3, 6));
        assert_eq!(some.moment(1), windows.moment(2));
        assert_eq!(windows.some(2..2).len(), 0);
    }
}
