//! Encoded rows as examples.

use std::sync::Arc;

use bayesmesh::data::{Checksum, Target};
use bayesmesh::{Dataset, Result};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Some rows of a table with what is to be predicted of them.
#[derive(Clone, Debug)]
pub struct Examples<T> {
    /// `[rows of the table, width]`
    inputs: Arc<Vec<f32>>,
    width: usize,
    targets: Arc<T>,
    /// Which rows of the table.
    rows: Vec<usize>,
}

/// What is to be predicted of the rows of a table.
pub trait Targets: Send + Sync {
    /// Of a batch.
    type Batch: Target;

    /// Those of some rows.
    fn batch(&self, rows: &[usize], device: &Device) -> Self::Batch;

    /// Those of some rows as numbers.
    fn numbers(&self, rows: &[usize]) -> Vec<f32>;
}

/// Values: `[rows, outputs]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Row by row.
    pub values: Vec<f32>,
    /// Of each row.
    pub outputs: usize,
}

/// Numbers of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels(pub Vec<usize>);

impl<T> Examples<T> {
    /// Some rows of a table that is encoded as `[rows, width]`.
    pub fn new(inputs: Arc<Vec<f32>>, width: usize, targets: Arc<T>, rows: Vec<usize>) -> Self {
        Self { inputs, width, targets, rows }
    }

    /// Which rows of the table they are.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// What is to be predicted, of the whole table.
    pub fn targets(&self) -> &T {
        &self.targets
    }

    fn inputs_of(&self, rows: &[usize]) -> Vec<f32> {
        let mut values = Vec::with_capacity(rows.len() * self.width);
        for &row in rows {
            values.extend_from_slice(&self.inputs[row * self.width..][..self.width]);
        }
        values
    }
}

impl Targets for Values {
    type Batch = Tensor<2>;

    fn batch(&self, rows: &[usize], device: &Device) -> Tensor<2> {
        Tensor::from_data(TensorData::new(self.numbers(rows), [rows.len(), self.outputs]), device)
    }

    fn numbers(&self, rows: &[usize]) -> Vec<f32> {
        let row = |&row: &usize| &self.values[row * self.outputs..][..self.outputs];
        rows.iter().flat_map(row).copied().collect()
    }
}

impl Targets for Labels {
    type Batch = Tensor<1, Int>;

    fn batch(&self, rows: &[usize], device: &Device) -> Tensor<1, Int> {
        let labels: Vec<i64> = rows.iter().map(|&row| self.0[row] as i64).collect();
        Tensor::from_data(TensorData::new(labels, [rows.len()]), device)
    }

    fn numbers(&self, rows: &[usize]) -> Vec<f32> {
        rows.iter().map(|&row| self.0[row] as f32).collect()
    }
}

impl<T: Targets> Dataset for Examples<T> {
    type Input = Tensor<2>;
    type Target = T::Batch;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn checksum(&self) -> Option<String> {
        let shape = [self.width as f32, self.rows.len() as f32];
        let checksum = Checksum::default().floats(&shape).floats(&self.inputs_of(&self.rows));
        Some(checksum.floats(&self.targets.numbers(&self.rows)).text())
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<2>, T::Batch)> {
        let rows: Vec<usize> = rows.iter().map(|&row| self.rows[row]).collect();
        let inputs = TensorData::new(self.inputs_of(&rows), [rows.len(), self.width]);
        Ok((Tensor::from_data(inputs, device), self.targets.batch(&rows, device)))
    }
}
