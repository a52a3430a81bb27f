//! Random crops and flips.

use std::iter::repeat_n;

use bayesmesh_kernels::stream::Stream;

use super::files::{CHANNELS, SIDE};

/// Black pixels on each side of an image before it is cropped.
const PADDING: usize = 4;

/// How an image is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Variation {
    /// Rows and columns of the padded image before the crop, 0 to 8; 4 and 4 is the image itself.
    down: usize,
    right: usize,
    /// Whether the crop is mirrored, left to right.
    flip: bool,
}

impl Variation {
    /// Of example `row`: elements `4 · row` (down), `+ 1` (right) and `+ 2` (flip) of the stream,
    /// one block of its generator.
    fn of(row: usize, stream: &Stream) -> Self {
        let mut bits = [0; 4];
        stream.fill_bits(4 * row as u64, &mut bits);
        let offset = |bits: u32| ((u64::from(bits) * (2 * PADDING as u64 + 1)) >> 32) as usize;
        Self { down: offset(bits[0]), right: offset(bits[1]), flip: bits[2] >> 31 == 1 }
    }

    /// Appends a plane of an image, varied.
    ///
    /// A row of the result is a piece of a row of the plane between pieces of padding: two fills
    /// and a copy, no decision for a pixel.
    #[inline]
    fn append(self, plane: &[f32], black: f32, out: &mut Vec<f32>) {
        let (above, below) = outside(self.down);
        let (left, right) = outside(self.right);
        out.extend(repeat_n(black, above * SIDE));
        for row in plane[below * SIDE..(SIDE - above) * SIDE].chunks_exact(SIDE) {
            let piece = &row[right..SIDE - left];
            if self.flip {
                out.extend(repeat_n(black, right));
                out.extend(piece.iter().rev());
                out.extend(repeat_n(black, left));
            } else {
                out.extend(repeat_n(black, left));
                out.extend_from_slice(piece);
                out.extend(repeat_n(black, right));
            }
        }
        out.extend(repeat_n(black, below * SIDE));
    }
}

/// How far a crop at `offset` reaches beyond the beginning and beyond the end of an image.
fn outside(offset: usize) -> (usize, usize) {
    (PADDING.saturating_sub(offset), offset.saturating_sub(PADDING))
}

/// The images `[rows, 3, 32, 32]` varied, each by the numbers that the stream has for its row;
/// `black` is the value of the padding in each channel.
pub(super) fn augment(
    images: &[f32],
    rows: &[usize],
    stream: &Stream,
    black: [f32; CHANNELS],
) -> Vec<f32> {
    let mut out = Vec::with_capacity(images.len());
    for (image, &row) in images.chunks_exact(CHANNELS * SIDE * SIDE).zip(rows) {
        let variation = Variation::of(row, stream);
        for (plane, black) in image.chunks_exact(SIDE * SIDE).zip(black) {
            variation.append(plane, black, &mut out);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use bayesmesh_kernels::stream::Purpose;

    use super::*;

    const BLACK: [f32; CHANNELS] = [-1.0, -2.0, -3.0];

    /// Pixel by pixel, from what the words say.
    fn slow(image: &[f32], variation: Variation) -> Vec<f32> {
        let Variation { down, right, flip } = variation;
        let pixel = |c: usize, y: usize, x: usize| {
            let x = if flip { SIDE - 1 - x } else { x };
            let (y, x) = (y + down, x + right);
            let inside = PADDING..PADDING + SIDE;
            if inside.contains(&y) && inside.contains(&x) {
                image[(c * SIDE + y - PADDING) * SIDE + x - PADDING]
            } else {
                BLACK[c]
            }
        };
        let mut out = Vec::new();
        for c in 0..CHANNELS {
            for y in 0..SIDE {
                out.extend((0..SIDE).map(|x| pixel(c, y, x)));
            }
        }
        out
    }

    #[test]
    fn every_crop_and_flip_equals_the_slow_way() {
        let image: Vec<f32> = (0..CHANNELS * SIDE * SIDE).map(|i| i as f32).collect();
        for down in 0..=2 * PADDING {
            for right in 0..=2 * PADDING {
                for flip in [false, true] {
                    let variation = Variation { down, right, flip };
                    let mut out = Vec::new();
                    for (plane, black) in image.chunks_exact(SIDE * SIDE).zip(BLACK) {
                        variation.append(plane, black, &mut out);
                    }
                    assert_eq!(out, slow(&image, variation), "{variation:?}");
                }
            }
        }
    }

    #[test]
    fn a_batch_is_its_images_one_by_one() {
        let image: Vec<f32> = (0..CHANNELS * SIDE * SIDE).map(|i| i as f32).collect();
        let rows = [7, 40_000, 7, 0];
        let stream = Stream::new(5, Purpose::Augmentation).at_step(3).at_draw(1);
        let batch = augment(&image.repeat(4), &rows, &stream, BLACK);
        let expected = rows.map(|row| slow(&image, Variation::of(row, &stream))).concat();
        assert_eq!(batch, expected);
    }

    #[test]
    fn variations_are_uniform_and_independent() {
        let count = 162 * 200;
        let mut found = [0u32; 162];
        for i in 0..count {
            let stream = Stream::new(1, Purpose::Augmentation).at_step(i as u32 / 500);
            let Variation { down, right, flip } = Variation::of(i, &stream);
            found[(down * 9 + right) * 2 + usize::from(flip)] += 1;
        }
        // χ² with 161 degrees of freedom: mean 161, deviation √322 = 17.9; 5 deviations.
        let expected = count as f64 / 162.0;
        let chi2: f64 = found.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        assert!((chi2 - 161.0).abs() < 90.0, "{chi2}");
    }
}
