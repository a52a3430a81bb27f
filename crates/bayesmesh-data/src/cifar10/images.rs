//! Selections of images as a data set.

use std::sync::Arc;

use bayesmesh::data::Checksum;
use bayesmesh::{Dataset, Error};
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::augment::augment;
use super::corrupt::{self, Corruption};
use super::error::Cifar10Error;
use super::files::{CHANNELS, CLASSES, IMAGE_BYTES, SIDE};
use super::normalisation::{Normalisation, Table};
use super::records::Records;

/// Some of the images, in some order: a data set of inputs `[rows, 3, 32, 32]` and labels `[rows]`.
///
/// Cheap to clone: the images themselves are shared.
#[derive(Clone, Debug)]
pub struct Images {
    records: Arc<Records>,
    /// The record of each row.
    numbers: Vec<u32>,
    table: Arc<Table>,
    augmented: bool,
}

impl Images {
    /// The first `limit` records, or all, normalised by the default.
    pub(super) fn first(
        records: &Arc<Records>,
        limit: Option<usize>,
        what: &str,
    ) -> Result<Self, Cifar10Error> {
        let all = records.len();
        let count = limit.unwrap_or(all);
        if !(1..=all).contains(&count) {
            return Err(Cifar10Error::Setting(format!(
                "{count} {what} images: choose 1 to {all}, there are no more"
            )));
        }
        Ok(Self {
            records: records.clone(),
            numbers: (0..count as u32).collect(),
            table: Arc::new(Normalisation::default().table()?),
            augmented: false,
        })
    }

    /// Divides the images by a seeded permutation: the second part has the share
    /// `validation_share` of them, rounded, and the first part the rest.
    pub fn split(self, validation_share: f64, seed: u64) -> Result<(Self, Self), Cifar10Error> {
        let all = self.numbers.len();
        let second = (all as f64 * validation_share).round();
        if !(0.0..1.0).contains(&validation_share) || second as usize >= all {
            return Err(Cifar10Error::Setting(format!(
                "a validation share of {validation_share} of {all} images: choose one from 0 to \
                 below 1 that leaves images to train with"
            )));
        }
        // Tensor 0 of this purpose orders the epochs of a training with the same seed.
        let order = Stream::new(seed, Purpose::Shuffle).at_tensor(1).permutation(all);
        let part = |rows: &[usize]| Self {
            numbers: rows.iter().map(|&row| self.numbers[row]).collect(),
            ..self.clone()
        };
        let (first, second) = order.split_at(all - second as usize);
        Ok((part(first), part(second)))
    }

    /// The same images, normalised in another way.
    pub fn normalised(self, normalisation: Normalisation) -> Result<Self, Cifar10Error> {
        Ok(Self { table: Arc::new(normalisation.table()?), ..self })
    }

    /// The same images, with or without augmentation of the training inputs: of the image with 4
    /// black pixels around it a random part of 32×32, and that mirrored with probability ½.
    pub fn augmented(self, augmented: bool) -> Self {
        Self { augmented, ..self }
    }

    /// The same images corrupted, with a severity from 1 to 5, in memory.
    ///
    /// The noise of an image depends on the seed and on its number in the files, not on the
    /// selection that it is part of.
    pub fn corrupted(
        &self,
        corruption: Corruption,
        severity: u8,
        seed: u64,
    ) -> Result<Self, Cifar10Error> {
        let numbers = || self.numbers.iter().map(|&number| number as usize);
        let records = numbers().map(|number| (number, self.records.record(number)));
        let records = Records::of_bytes(corrupt::records(records, corruption, severity, seed)?);
        Ok(Self {
            records: Arc::new(records),
            numbers: (0..self.numbers.len() as u32).collect(),
            table: self.table.clone(),
            augmented: false,
        })
    }

    /// The bytes of an image, red, green and blue, row by row, and its label.
    ///
    /// # Panics
    ///
    /// If there are not so many rows.
    pub fn raw(&self, row: usize) -> (&[u8; IMAGE_BYTES], u8) {
        let [label, image @ ..] = self.records.record(self.numbers[row] as usize);
        (image, *label)
    }

    /// The number of an image in the files that the selection was made from, counted from 0.
    ///
    /// # Panics
    ///
    /// If there are not so many rows.
    pub fn number(&self, row: usize) -> usize {
        self.numbers[row] as usize
    }

    /// How many images there are of each class.
    pub fn class_counts(&self) -> [usize; CLASSES.len()] {
        let mut counts = [0; CLASSES.len()];
        for row in 0..self.numbers.len() {
            counts[usize::from(self.raw(row).1)] += 1;
        }
        counts
    }
}

impl Dataset for Images {
    type Input = Tensor<4>;
    type Target = Tensor<1, Int>;

    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn checksum(&self) -> Option<String> {
        let checksum = self.numbers.iter().fold(Checksum::default(), |checksum, &number| {
            checksum.bytes(self.records.record(number as usize))
        });
        Some(checksum.text())
    }

    fn batch(
        &self,
        rows: &[usize],
        device: &Device,
    ) -> bayesmesh::Result<(Tensor<4>, Tensor<1, Int>)> {
        let mut values = Vec::with_capacity(rows.len() * IMAGE_BYTES);
        let mut labels = Vec::with_capacity(rows.len());
        for &row in rows {
            if row >= self.numbers.len() {
                return Err(Error::Data(format!(
                    "image {row} of {}: they are numbered from 0",
                    self.numbers.len()
                )));
            }
            let (image, label) = self.raw(row);
            for (plane, table) in image.chunks_exact(SIDE * SIDE).zip(&*self.table) {
                values.extend(plane.iter().map(|&byte| table[usize::from(byte)]));
            }
            labels.push(i64::from(label));
        }
        let shape = [rows.len(), CHANNELS, SIDE, SIDE];
        Ok((
            Tensor::from_data(TensorData::new(values, shape), device),
            Tensor::from_data(TensorData::new(labels, [rows.len()]), device),
        ))
    }

    fn augment(&self, input: &Tensor<4>, rows: &[usize], stream: &Stream) -> Option<Tensor<4>> {
        if !self.augmented {
            return None;
        }
        let shape = input.dims();
        let values = input.clone().without_autodiff().try_into_vec_as::<f32>();
        let values = values.expect("float tensors can be read back");
        let black = self.table.each_ref().map(|table| table[0]);
        let values = augment(&values, rows, stream, black);
        Some(Tensor::from_data(TensorData::new(values, shape), &input.device()))
    }
}
