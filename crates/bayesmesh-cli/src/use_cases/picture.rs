//! Images as files for the report.

/// A square image as a PNG file, from its red, green and blue, each `side` × `side` bytes.
pub fn png(planes: &[u8], side: usize) -> Vec<u8> {
    let area = side * side;
    let pixels: Vec<u8> =
        (0..area).flat_map(|i| [0, area, 2 * area].map(|plane| planes[plane + i])).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, side as u32, side as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    written.expect("memory takes every image");
    file
}
