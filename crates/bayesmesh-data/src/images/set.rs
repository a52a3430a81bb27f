//! Decoded images as a data set.

use std::path::PathBuf;
use std::sync::Arc;

use bayesmesh::data::Checksum;
use bayesmesh::{Dataset, Error};
use bayesmesh_kernels::stream::Stream;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};

use super::augment::Augmentation;
use super::decode::{self, Decoded};
use super::error::ImagesError;
use super::folder::ImageFile;
use crate::cifar10::{Normalisation, Table};

/// Red, green, blue.
pub const CHANNELS: usize = 3;

/// An image that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, and with which file.
    pub problem: String,
}

/// How images are read.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Rows and columns of the squares that they become.
    pub size: usize,
    /// Whether the pixels stay in memory; otherwise files are decoded again for every batch.
    pub keep: bool,
    /// Is told of every image that has been read.
    pub progress: &'a (dyn Fn() + Sync),
}

/// Images of one size: a data set of inputs `[rows, 3, size, size]` and labels `[rows]`. Images of
/// no known class have the label 0.
///
/// Cheap to clone: the pixels are shared.
#[derive(Clone, Debug)]
pub struct ImageSet {
    files: Arc<[ImageFile]>,
    size: usize,
    /// Red, green and blue of one image after the other, where they are kept.
    pixels: Option<Arc<[u8]>>,
    checksum: String,
    /// Sums of the bytes of each channel and of their squares.
    sums: [[u64; 2]; CHANNELS],
    normalisation: Normalisation,
    table: Arc<Table>,
    augmentation: Option<Augmentation>,
}

/// What is known of an image that has been read.
struct Known {
    file: ImageFile,
    checksum: String,
    sums: [[u64; 2]; CHANNELS],
    pixels: Vec<u8>,
}

impl ImageSet {
    /// Decodes images, on all threads; those that cannot be are left out and returned with the
    /// reason.
    pub fn read(
        files: Vec<ImageFile>,
        reading: Reading<'_>,
    ) -> Result<(Self, Vec<Broken>), ImagesError> {
        let Reading { size, keep, progress } = reading;
        let one = |file: &ImageFile| -> Result<Known, Broken> {
            let decoded = decode::read(&file.path, size);
            progress();
            let Decoded { planes, .. } = decoded
                .map_err(|error| Broken { file: file.path.clone(), problem: error.to_string() })?;
            let sums = std::array::from_fn(|channel| {
                let plane = &planes[channel * size * size..][..size * size];
                let sum = plane.iter().map(|&byte| u64::from(byte)).sum();
                [sum, plane.iter().map(|&byte| u64::from(byte).pow(2)).sum()]
            });
            let label = file.label.map_or(u64::MAX, |label| label as u64);
            let checksum = Checksum::default().bytes(&label.to_le_bytes()).bytes(&planes).text();
            let pixels = if keep { planes } else { Vec::new() };
            Ok(Known { file: file.clone(), checksum, sums, pixels })
        };
        let found: Vec<Result<Known, Broken>> = files.par_iter().map(one).collect();
        let (mut good, mut pixels, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        let (mut checksum, mut sums) = (Checksum::default(), [[0; 2]; CHANNELS]);
        for found in found {
            match found {
                Err(problem) => broken.push(problem),
                Ok(known) => {
                    checksum = checksum.bytes(known.checksum.as_bytes());
                    for (sum, own) in sums.iter_mut().flatten().zip(known.sums.iter().flatten()) {
                        *sum += own;
                    }
                    pixels.extend(known.pixels);
                    good.push(known.file);
                }
            }
        }
        let normalisation = Normalisation::default();
        let set = Self {
            files: good.into(),
            size,
            pixels: keep.then(|| pixels.into()),
            checksum: checksum.text(),
            sums,
            normalisation,
            table: Arc::new(normalisation.table()?),
            augmentation: None,
        };
        Ok((set, broken))
    }

    /// Mean and deviation of all pixels, from 0 to 1, to four digits; a deviation is at least 0.01.
    pub fn statistics(&self) -> Normalisation {
        let count = (self.files.len() * self.size * self.size).max(1) as f64;
        let rounded = |value: f64| ((1e4 * value).round() / 1e4) as f32;
        let mean = self.sums.map(|[sum, _]| sum as f64 / count);
        let mut std = [0.0; CHANNELS];
        for ((std, mean), [_, squares]) in std.iter_mut().zip(mean).zip(self.sums) {
            let variance = (squares as f64 / count - mean * mean).max(0.0);
            *std = rounded((variance.sqrt() / 255.0).max(0.01));
        }
        Normalisation { mean: mean.map(|mean| rounded(mean / 255.0)), std }
    }

    /// The same images, normalised.
    pub fn normalised(self, normalisation: Normalisation) -> Result<Self, ImagesError> {
        Ok(Self { table: Arc::new(normalisation.table()?), normalisation, ..self })
    }

    /// The same images, varied in training.
    pub fn augmented(self, augmentation: Option<Augmentation>) -> Self {
        Self { augmentation, ..self }
    }

    /// The first so many images.
    pub fn first(&self, count: usize) -> Self {
        let files: Vec<ImageFile> = self.files.iter().take(count).cloned().collect();
        Self { files: files.into(), ..self.clone() }
    }

    /// The files, in the order of the rows.
    pub fn files(&self) -> &[ImageFile] {
        &self.files
    }

    /// Rows and columns of an image.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether the pixels are in memory.
    pub fn is_kept(&self) -> bool {
        self.pixels.is_some()
    }

    /// The bytes of an image: red, green and blue, row by row.
    ///
    /// # Panics
    ///
    /// If there are not so many rows.
    pub fn planes(&self, row: usize) -> Result<Vec<u8>, ImagesError> {
        let length = CHANNELS * self.size * self.size;
        match &self.pixels {
            Some(pixels) => Ok(pixels[row * length..][..length].to_vec()),
            None => Ok(decode::read(&self.files[row].path, self.size)?.planes),
        }
    }
}

impl Dataset for ImageSet {
    type Input = Tensor<4>;
    type Target = Tensor<1, Int>;

    fn len(&self) -> usize {
        self.files.len()
    }

    fn checksum(&self) -> Option<String> {
        Some(self.checksum.clone())
    }

    fn batch(
        &self,
        rows: &[usize],
        device: &Device,
    ) -> bayesmesh::Result<(Tensor<4>, Tensor<1, Int>)> {
        let area = self.size * self.size;
        let length = CHANNELS * area;
        let mut values = Vec::with_capacity(rows.len() * length);
        let mut labels = Vec::with_capacity(rows.len());
        for &row in rows {
            let Some(file) = self.files.get(row) else {
                return Err(Error::Data(format!(
                    "image {row} of {}: they are numbered from 0",
                    self.files.len()
                )));
            };
            let decoded;
            let planes = match &self.pixels {
                Some(pixels) => &pixels[row * length..][..length],
                None => {
                    let read = decode::read(&file.path, self.size);
                    decoded = read.map_err(|error| Error::Data(error.to_string()))?;
                    &decoded.planes[..]
                }
            };
            for (plane, table) in planes.chunks_exact(area).zip(&*self.table) {
                values.extend(plane.iter().map(|&byte| table[usize::from(byte)]));
            }
            labels.push(file.label.unwrap_or(0) as i64);
        }
        let shape = [rows.len(), CHANNELS, self.size, self.size];
        Ok((
            Tensor::from_data(TensorData::new(values, shape), device),
            Tensor::from_data(TensorData::new(labels, [rows.len()]), device),
        ))
    }

    fn augment(&self, input: &Tensor<4>, rows: &[usize], stream: &Stream) -> Option<Tensor<4>> {
        let augmentation = self.augmentation?;
        let shape = input.dims();
        let values = input.clone().without_autodiff().try_into_vec_as::<f32>();
        let values = values.expect("float tensors can be read back");
        let values = augmentation.apply(&values, rows, self.size, stream, &self.normalisation);
        Some(Tensor::from_data(TensorData::new(values, shape), &input.device()))
    }
}
