//! Images to try things with.

use std::io::Cursor;
use std::path::Path;

use bayesmesh_files::{AtomicFile, FileError, create_folder};
use bayesmesh_kernels::stream::{Purpose, Stream};
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

use super::error::ImagesError;
use crate::fetch::{Staging, occupied};

/// What is on the generated images.
pub const SYNTHETIC_CLASSES: [&str; 4] = ["circle", "cross", "square", "triangle"];

/// More are not needed to try things.
const MOST: usize = 100_000;

/// Writes a folder of generated images: of every class `per_class`, half of them PNG and half JPEG,
/// of 40 to 96 pixels in width and in height. The folder must be new or empty, and appears complete
/// or not at all.
///
/// A shape of any colour, size and place stands on a ground of another colour, with noise over all:
/// only its form tells the class.
pub fn write_synthetic(
    folder: impl AsRef<Path>,
    per_class: usize,
    seed: u64,
) -> Result<(), ImagesError> {
    let folder = folder.as_ref();
    if !(1..=MOST).contains(&per_class) {
        return Err(ImagesError::Setting(format!(
            "{per_class} images of each class: choose 1 to {MOST}"
        )));
    }
    if let Some(problem) = occupied(folder) {
        return Err(ImagesError::Setting(format!(
            "{}: this folder is not empty ({problem}). Remove it, or choose another one with \
             --out; nothing was changed",
            folder.display()
        )));
    }
    let staging = Staging::new(folder)?;
    let contents = staging.contents()?;
    for (class, name) in SYNTHETIC_CLASSES.into_iter().enumerate() {
        create_folder(contents.join(name)).map_err(ImagesError::Write)?;
        for number in 0..per_class {
            let stream = Stream::new(seed, Purpose::Synthesis).at_step(number as u32);
            let picture = picture(class, stream.at_draw(class as u32));
            let (ending, bytes) = encoded(picture, number % 2 == 1);
            let file = format!("{name}/{number:05}.{ending}");
            AtomicFile::write(contents.join(&file), bytes).map_err(|error| {
                ImagesError::Write(FileError::new(folder.join(&file), "write", &error))
            })?;
        }
    }
    Ok(staging.commit_contents()?)
}

/// The bytes of a file, and how its name ends.
fn encoded(picture: RgbImage, jpeg: bool) -> (&'static str, Vec<u8>) {
    let mut bytes = Cursor::new(Vec::new());
    let written = match jpeg {
        true => JpegEncoder::new_with_quality(&mut bytes, 90).encode_image(&picture),
        false => DynamicImage::ImageRgb8(picture).write_to(&mut bytes, ImageFormat::Png),
    };
    written.expect("memory takes every image");
    (if jpeg { "jpg" } else { "png" }, bytes.into_inner())
}

/// An image of a class.
fn picture(class: usize, stream: Stream) -> RgbImage {
    let mut random = [0.0; 16];
    stream.fill_uniform(0, &mut random);
    let [width, height] = [random[0], random[1]].map(|u| 40 + (57.0 * u) as u32);
    let side = width.min(height) as f32;
    let radius = side * (0.18 + 0.17 * random[2]);
    // All of it is on the middle square, which is what is looked at.
    let place = |length: u32, u: f32| length as f32 / 2.0 + (2.0 * u - 1.0) * (side / 2.0 - radius);
    let (x, y) = (place(width, random[3]), place(height, random[4]));
    let ground = [random[5], random[6], random[7]].map(|u| 40.0 + 175.0 * u);
    // Lighter or darker than the ground by at least 60, in every channel alike but for a tint.
    let away = if ground.iter().sum::<f32>() < 3.0 * 128.0 { 1.0 } else { -1.0 };
    let tint = [random[8], random[9], random[10]].map(|u| 40.0 * u);
    let shape: [f32; 3] = std::array::from_fn(|c| ground[c] + away * (60.0 + tint[c]));
    let mut noise = vec![0.0; (3 * width * height) as usize];
    stream.at_tensor(1).fill_normal(0, &mut noise);
    RgbImage::from_fn(width, height, |column, row| {
        let (u, v) = ((column as f32 + 0.5 - x) / radius, (row as f32 + 0.5 - y) / radius);
        let colour = if covers(class, u, v) { shape } else { ground };
        let at = (3 * (row * width + column)) as usize;
        Rgb(std::array::from_fn(|c| (colour[c] + 12.0 * noise[at + c]).round() as u8))
    })
}

/// Whether a shape of half-width 1 covers a point.
fn covers(class: usize, u: f32, v: f32) -> bool {
    match class {
        0 => u * u + v * v <= 1.0,
        1 => (u.abs() <= 0.33 && v.abs() <= 1.0) || (v.abs() <= 0.33 && u.abs() <= 1.0),
        2 => u.abs() <= 0.87 && v.abs() <= 0.87,
        _ => v.abs() <= 1.0 && 2.0 * u.abs() <= 1.0 + v,
    }
}
