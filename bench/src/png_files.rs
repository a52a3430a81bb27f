//! A loader that takes time because it works: photographs in files of their own.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use bayesmesh::{Dataset, Error, Purpose, Result, Stream};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Pixels of a file and of an example, across and down.
const FILE: usize = 512;
const EXAMPLE: usize = 32;
const CLASSES: usize = 10;

/// How many there are.
const FILES: usize = 256;

/// PNG files that are read, decoded and shrunk for every batch, as image folders are.
pub struct PngFiles {
    folder: PathBuf,
}

impl PngFiles {
    /// The files `0.png`, `1.png`, … of a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Writes those that are missing: soft patches of colour with the noise of a camera.
    pub fn make(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, error))?;
        let stream = Stream::new(0, Purpose::Synthesis);
        for number in 0..FILES {
            let path = self.path(number);
            if path.exists() {
                continue;
            }
            let mut noise = vec![0.0; 3 * FILE * FILE];
            stream.at_tensor(number as u32).fill_normal(0, &mut noise);
            let pixel = |(place, noise): (usize, &f32)| {
                let (channel, x, y) = (place % 3, place / 3 % FILE, place / 3 / FILE);
                let wave = (x * (channel + 1) + y * (1 + number % CLASSES)) as f32 / 90.0;
                (128.0 + 60.0 * wave.sin() + 4.0 * noise) as u8
            };
            let pixels: Vec<u8> = noise.iter().enumerate().map(pixel).collect();
            // Under its name when it is complete.
            let part = path.with_extension("part");
            let file = File::create(&part).map_err(|error| failed(&part, error))?;
            let mut encoder = png::Encoder::new(BufWriter::new(file), FILE as u32, FILE as u32);
            encoder.set_color(png::ColorType::Rgb);
            let mut writer = encoder.write_header().map_err(|error| failed(&path, error))?;
            writer.write_image_data(&pixels).map_err(|error| failed(&path, error))?;
            writer.finish().map_err(|error| failed(&path, error))?;
            fs::rename(&part, &path).map_err(|error| failed(&path, error))?;
        }
        Ok(())
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{number}.png"))
    }

    /// The pixels of an example, channel by channel, each the mean of a square of the file.
    fn load(&self, number: usize) -> Result<Vec<f32>> {
        let path = self.path(number);
        let file = File::open(&path).map_err(|error| failed(&path, error))?;
        let reader = png::Decoder::new(BufReader::new(file)).read_info();
        let mut reader = reader.map_err(|error| failed(&path, error))?;
        let mut pixels = vec![0; 3 * FILE * FILE];
        reader.next_frame(&mut pixels).map_err(|error| failed(&path, error))?;
        const SIDE: usize = FILE / EXAMPLE;
        let mut means = vec![0.0; 3 * EXAMPLE * EXAMPLE];
        for (place, &value) in pixels.iter().enumerate() {
            let (channel, x, y) = (place % 3, place / 3 % FILE, place / 3 / FILE);
            means[(channel * EXAMPLE + y / SIDE) * EXAMPLE + x / SIDE] += f32::from(value);
        }
        let scale = 1.0 / (64 * SIDE * SIDE) as f32;
        Ok(means.into_iter().map(|sum| sum * scale - 2.0).collect())
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Data(format!("{}: {error}", path.display()))
}

impl Dataset for PngFiles {
    type Input = Tensor<4>;
    type Target = Tensor<1, Int>;

    fn len(&self) -> usize {
        FILES
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(Tensor<4>, Tensor<1, Int>)> {
        let mut pixels = Vec::with_capacity(rows.len() * 3 * EXAMPLE * EXAMPLE);
        for &row in rows {
            pixels.extend(self.load(row)?);
        }
        let labels: Vec<i64> = rows.iter().map(|row| (row % CLASSES) as i64).collect();
        let images = TensorData::new(pixels, [rows.len(), 3, EXAMPLE, EXAMPLE]);
        let labels = TensorData::new(labels, [rows.len()]);
        Ok((Tensor::from_data(images, device), Tensor::from_data(labels, device)))
    }
}
