//! From files to pixels.

use std::fs::File;
use std::io::{Cursor, Read as _};
use std::path::Path;

use bayesmesh_files::FileError;
use image::error::{ImageError, LimitErrorKind};
use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, RgbImage};

use super::error::ImagesError;
use super::set::CHANNELS;

/// Images of more pixels are not decoded: a small file can claim to be an enormous image.
pub const MOST_PIXELS: u64 = 100_000_000;
/// Longer files are not read.
pub const MOST_BYTES: u64 = 256 << 20;

/// An image as a network takes it.
#[derive(Clone, Debug)]
pub(super) struct Decoded {
    /// Red, green and blue, each `size` × `size` bytes, row by row.
    pub planes: Vec<u8>,
    /// Width and height in the file.
    pub original: [u32; 2],
}

/// Reads the middle of an image: the largest square of it, resized.
pub(super) fn read(path: &Path, size: usize) -> Result<Decoded, ImagesError> {
    let (square, original) = middle(read_image(path)?);
    let side = size as u32;
    let square = match square.width() == side {
        true => square,
        // The mean over what a pixel covers where the image shrinks, straight lines where it grows.
        false => imageops::resize(&square, side, side, FilterType::Triangle),
    };
    let pixels = square.as_raw();
    let mut planes = Vec::with_capacity(pixels.len());
    for channel in 0..CHANNELS {
        planes.extend(pixels.iter().skip(channel).step_by(CHANNELS));
    }
    Ok(Decoded { planes, original })
}

/// The image of a file, turned as its camera was held.
fn read_image(path: &Path) -> Result<DynamicImage, ImagesError> {
    let refuse = |problem: String| ImagesError::Image { file: path.into(), problem };
    let unreadable = |error| ImagesError::Read(FileError::new(path, "read", &error));
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(refuse("this is no file that can be read as an image".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() as u64 {
        0 => Err(refuse("the file is empty".to_owned())),
        MOST_BYTES.. => Err(refuse("the file has more than 256 MiB".to_owned())),
        _ => decode(&bytes).map_err(refuse),
    }
}

/// The image in some bytes, or what is wrong with them.
fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let reader = reader.map_err(|error| error.to_string())?;
    match reader.format() {
        Some(ImageFormat::Jpeg | ImageFormat::Png) => {}
        Some(format) => {
            let name = format.extensions_str().first().unwrap_or(&"unknown").to_uppercase();
            return Err(format!("this is a {name} file; convert it to PNG or JPEG"));
        }
        None => return Err("this is neither a PNG nor a JPEG file".to_owned()),
    }
    if is_cut_off(bytes) {
        return Err("the file is cut off; copy it again".to_owned());
    }
    let mut decoder = reader.into_decoder().map_err(words)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(format!(
            "it has {width}×{height} pixels, and images of more than {MOST_PIXELS} are not read; \
             make it smaller"
        ));
    }
    // What is no such note says nothing about how the image is turned.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder).map_err(words)?;
    image.apply_orientation(orientation);
    Ok(image)
}

fn words(error: ImageError) -> String {
    match error {
        ImageError::Limits(limit) if limit.kind() == LimitErrorKind::InsufficientMemory => {
            "it would take more than 512 MiB of memory; make it smaller".to_owned()
        }
        ImageError::Unsupported(error) => format!("it cannot be read ({error}); convert it"),
        error => format!("the file is damaged ({error}); copy it again, or remove it"),
    }
}

/// Whether the pixels of a JPEG file have no end. Decoders fill in grey what is missing.
fn is_cut_off(bytes: &[u8]) -> bool {
    const SCAN: u8 = 0xDA;
    const END: [u8; 2] = [0xFF, 0xD9];
    if !bytes.starts_with(&[0xFF, 0xD8]) {
        return false;
    }
    let mut at = 2;
    // Segments that say how long they are, up to the pixels.
    while let [0xFF, marker, high, low, ..] = bytes[at..] {
        if marker == SCAN {
            return !bytes[at..].windows(2).rev().any(|pair| pair == END);
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
        if at >= bytes.len() {
            return true;
        }
    }
    false
}

/// The largest square in the middle of an image, in colour, and the size of the whole. What is
/// transparent shows white.
fn middle(image: DynamicImage) -> (RgbImage, [u32; 2]) {
    let original = [image.width(), image.height()];
    let side = image.width().min(image.height());
    let [left, top] = original.map(|length| (length - side) / 2);
    let square = match original == [side; 2] {
        true => image,
        false => image.crop_imm(left, top, side, side),
    };
    if !square.color().has_alpha() {
        return (square.into_rgb8(), original);
    }
    let square = square.into_rgba8();
    let over_white = |&[red, green, blue, alpha]: &[u8; 4]| {
        let alpha = u32::from(alpha);
        let mix = |value: u8| ((u32::from(value) * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        [mix(red), mix(green), mix(blue)]
    };
    let (pixels, _) = square.as_raw().as_chunks();
    let pixels: Vec<u8> = pixels.iter().flat_map(over_white).collect();
    (RgbImage::from_raw(side, side, pixels).expect("three bytes for every four"), original)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of an image in a format.
    fn bytes(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn gradient(width: u32, height: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 3) as u8, (y * 5) as u8, 90]))
    }

    #[test]
    fn every_colour_type_becomes_red_green_and_blue() {
        let whole = DynamicImage::ImageRgb8(gradient(20, 20));
        let expected = whole.to_rgb8();
        for image in [
            DynamicImage::ImageRgb16(whole.to_rgb16()),
            DynamicImage::ImageRgba8(whole.to_rgba8()),
            DynamicImage::ImageRgba16(whole.to_rgba16()),
        ] {
            let read = decode(&bytes(&image, ImageFormat::Png)).unwrap();
            assert_eq!(middle(read).0, expected, "{:?}", image.color());
        }
        for grey in [
            DynamicImage::ImageLuma8(whole.to_luma8()),
            DynamicImage::ImageLuma16(whole.to_luma16()),
        ] {
            let (square, _) = middle(decode(&bytes(&grey, ImageFormat::Png)).unwrap());
            for (found, expected) in square.pixels().zip(grey.to_luma8().pixels()) {
                assert_eq!(found.0, [expected.0[0]; 3]);
            }
        }
    }

    #[test]
    fn what_is_transparent_shows_white() {
        let image =
            image::RgbaImage::from_fn(2, 1, |x, _| image::Rgba([100, 0, 200, x as u8 * 51]));
        let image = DynamicImage::ImageRgba8(image);
        let (square, original) = middle(decode(&bytes(&image, ImageFormat::Png)).unwrap());
        assert_eq!((square.as_raw().as_slice(), original), (&[255, 255, 255][..], [2, 1]));
        let fifth = image::RgbaImage::from_pixel(1, 1, image::Rgba([100, 0, 200, 51]));
        let (square, _) = middle(DynamicImage::ImageRgba8(fifth));
        assert_eq!(square.as_raw(), &[224, 204, 244]);
    }

    #[test]
    fn the_middle_is_kept() {
        let image = DynamicImage::ImageRgb8(gradient(11, 5));
        let (square, original) = middle(image.clone());
        assert_eq!((square.dimensions(), original), ((5, 5), [11, 5]));
        assert_eq!(*square.get_pixel(0, 0), *image.to_rgb8().get_pixel(3, 0));
    }

    #[test]
    fn files_that_are_cut_off_are_refused_at_every_length() {
        for format in [ImageFormat::Jpeg, ImageFormat::Png] {
            let whole = bytes(&DynamicImage::ImageRgb8(gradient(40, 40)), format);
            assert!(decode(&whole).is_ok());
            // The last bytes of a PNG file only say that it ends.
            let most = if format == ImageFormat::Png { whole.len() - 16 } else { whole.len() - 1 };
            for length in (0..most).chain([most]) {
                assert!(decode(&whole[..length]).is_err(), "{format:?} of {length} bytes");
            }
        }
    }

    #[test]
    fn other_files_are_named() {
        let problem = |bytes: &[u8]| decode(bytes).unwrap_err();
        assert!(problem(b"GIF89a\x01\x00\x01\x00").contains("GIF"));
        assert!(problem(b"what is this").contains("neither a PNG nor a JPEG"));
    }

    /// A PNG file of a few bytes that claims to be 60,000 × 60,000 pixels.
    #[test]
    fn enormous_images_are_not_decoded() {
        let mut small = bytes(&DynamicImage::ImageRgb8(gradient(4, 4)), ImageFormat::Png);
        small[16..20].copy_from_slice(&60_000u32.to_be_bytes());
        small[20..24].copy_from_slice(&60_000u32.to_be_bytes());
        let crc = crc32(&small[12..29]);
        small[29..33].copy_from_slice(&crc.to_be_bytes());
        assert!(decode(&small).unwrap_err().contains("60000×60000 pixels"));
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)))
        })
    }
}
