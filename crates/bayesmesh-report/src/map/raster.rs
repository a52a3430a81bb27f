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
    encoder.set_compression(Compression::High);
    encoder.set_filter(Filter::Adaptive);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}
