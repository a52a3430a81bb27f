//! Images as files for the report.

use bayesmesh_data::cifar10::{Images, SIDE};

/// An image as a PNG file.
pub fn png(images: &Images, row: usize) -> Vec<u8> {
    const PIXELS: usize = SIDE * SIDE;
    let (planes, _) = images.raw(row);
    let pixels: Vec<u8> =
        (0..PIXELS).flat_map(|i| [0, PIXELS, 2 * PIXELS].map(|plane| planes[plane + i])).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIDE as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    written.expect("memory takes every image");
    file
}
