//! The picture of a field: one pixel for each cell, which the browser smooths as it enlarges it.

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter};

use super::grid::MapGrid;
use super::palette::{COLORS, Palette};
use super::range::Range;

/// A PNG file of the field, with a palette, in which cells without value are transparent. `None`
/// if the field has not the size of the grid.
pub(crate) fn png(
    grid: &MapGrid,
    values: &[f32],
    range: &Range,
    palette: Palette,
) -> Option<Vec<u8>> {
    if grid.cells() != Some(values.len()) {
        return None;
    }
    let columns = grid.columns();
    let width = columns.clone().count();
    let cells = values.chunks(values.len() / grid.rows());
    let pixels: Vec<u8> = cells
        .flat_map(|row| columns.clone().map(move |column| index(row[column], range)))
        .collect();
    encode(width, grid.rows(), &pixels, palette).ok()
}

/// Zero for a cell without value, else one more than the number of its colour.
fn index(value: f32, range: &Range) -> u8 {
    range.place(value).map_or(0, |place| 1 + (place * (COLORS - 1) as f64).round() as u8)
}

fn encode(
    width: usize,
    height: usize,
    pixels: &[u8],
    palette: Palette,
) -> Result<Vec<u8>, EncodingError> {
    let size =
        |length: usize| u32::try_from(length).map_err(|_| png::EncodingError::LimitsExceeded);
    let colors = (0..COLORS).flat_map(|i| palette.color(i as f64 / (COLORS - 1) as f64));
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, size(width)?, size(height)?);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_palette([0; 3].into_iter().chain(colors).collect::<Vec<u8>>());
    // Only the first entry is transparent; the others need no entry here.
    encoder.set_trns(vec![0]);
    encoder.set_compression(Compression::Balanced);
    encoder.set_filter(Filter::Adaptive);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range { from: 0.0, to: 10.0, below: false, above: false };

    /// Width, height and the pixels of a PNG file as red, green, blue and opacity.
    fn decode(png: &[u8]) -> (usize, usize, Vec<[u8; 4]>) {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().expect("a PNG file");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("a picture");
        assert_eq!(info.color_type, ColorType::Rgba);
        let pixels = bytes.chunks(4).map(|p| [p[0], p[1], p[2], p[3]]).collect();
        (info.width as usize, info.height as usize, pixels)
    }

    #[test]
    fn a_picture_has_the_colours_of_its_values() {
        let grid = MapGrid::global(2, 4);
        let values = [0.0, 5.0, 10.0, f32::NAN, -3.0, 99.0, 2.5, f32::INFINITY];
        let png = png(&grid, &values, &RANGE, Palette::Viridis).expect("a picture");
        let (width, height, pixels) = decode(&png);
        assert_eq!((width, height), (5, 2));
        let color = |place: f64| {
            let [red, green, blue] = Palette::Viridis.color(place);
            [red, green, blue, 255]
        };
        // The middle of the drawing is column 0; column 2 is at both of its ends.
        let is_missing = |i: usize| pixels[i][3] == 0;
        assert_eq!([pixels[0], pixels[4], pixels[2], pixels[3]], [1.0, 1.0, 0.0, 0.5].map(color));
        assert_eq!([pixels[7], pixels[8]], [0.0, 1.0].map(color));
        assert!(is_missing(1) && is_missing(6));
        // A quarter of the way lies between two of the colours.
        let distance = |a: [u8; 4], b: [u8; 4]| (0..4).map(|i| a[i].abs_diff(b[i])).max();
        assert!(distance(pixels[5], color(0.25)) <= Some(2), "{:?}", pixels[5]);
    }

    #[test]
    fn a_field_of_one_cell_is_a_picture_and_one_of_another_size_is_none() {
        let picture = |rows, columns, values: &[f32]| {
            png(&MapGrid::global(rows, columns), values, &RANGE, Palette::BlueRed)
        };
        assert_eq!(decode(&picture(1, 1, &[5.0]).expect("a picture")).0, 1);
        assert_eq!(picture(1, 2, &[5.0]), None);
        assert_eq!(picture(0, 0, &[]), None);
    }

    #[test]
    fn a_picture_of_the_size_of_the_paper_is_small() {
        let grid = MapGrid::global(121, 240);
        let value = |i: usize| {
            let (row, column) = ((i / 240) as f32, (i % 240) as f32);
            5.0 + 3.0 * (0.11 * row).sin() * (0.13 * column + 0.05 * row).cos()
                + (row * column).sin()
        };
        let values: Vec<f32> = (0..121 * 240).map(value).collect();
        let png = png(&grid, &values, &RANGE, Palette::Viridis).expect("a picture");
        assert!(png.len() < 25_000, "{} bytes", png.len());
    }
}
