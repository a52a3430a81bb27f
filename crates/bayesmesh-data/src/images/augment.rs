//! Random variations of images.

use bayesmesh_kernels::stream::Stream;

use super::set::CHANNELS;
use crate::cifar10::Normalisation;

/// Random numbers that an image may take.
const NUMBERS: usize = 32;
/// The first of them that belongs to the operations, two for each.
const FIRST: usize = 8;
/// How many operations there can be.
pub(crate) const MOST_OPERATIONS: usize = (NUMBERS - FIRST) / 2;

/// What red, green and blue count for the brightness of a pixel (ITU-R BT.601).
const LUMA: [f32; CHANNELS] = [0.299, 0.587, 0.114];

/// How training images are varied, differently for every draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmentation {
    /// A random window is cut out of the image and stretched to its size: which share of the area
    /// is lost at most.
    pub crop: f64,
    /// Whether every other image is mirrored, left to right.
    pub flip: bool,
    /// Brightness, contrast and saturation are multiplied by numbers from 1 − c to 1 + c.
    pub colour: f64,
    /// So many operations are drawn by lot for each image, as RandAugment does (Cubuk et al.,
    /// 2020): turned, sheared, moved, brighter, more contrast, more saturation, stretched to the
    /// full range, fewer grey levels, bright parts inverted, or left as it is.
    pub operations: usize,
    /// How strong these are at most, from 0 to 1.
    pub strength: f64,
}

/// Where in the image a point of the result comes from: `[x, y] = M [u, v, 1]`, all from −1 to 1.
type Affine = [[f32; 3]; 2];

const IDENTITY: Affine = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];

/// `p ∘ q`: first q, then p.
fn after(p: Affine, q: Affine) -> Affine {
    p.map(|[a, b, c]| {
        let part = |k: usize| a * q[0][k] + b * q[1][k];
        [part(0), part(1), part(2) + c]
    })
}

/// What happens to the colours.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Colour {
    Brightness(f32),
    Contrast(f32),
    Saturation(f32),
    Stretch,
    Levels(f32),
    Solarise(f32),
}

/// How one image is varied.
#[derive(Clone, Debug, PartialEq)]
struct Variation {
    from: Affine,
    colours: Vec<Colour>,
}

impl Augmentation {
    /// The variation of example `row`: elements `32·row` and those after it of the stream.
    fn variation(&self, row: usize, stream: &Stream) -> Variation {
        let mut numbers = [0.0; NUMBERS];
        stream.fill_uniform((NUMBERS * row) as u64, &mut numbers);
        let signed = |at: usize| 2.0 * numbers[at] - 1.0;
        let mut from = IDENTITY;
        if self.crop > 0.0 {
            // The area is uniform, and so is the logarithm of the ratio of the sides, 3/4 to 4/3.
            let area = 1.0 - self.crop as f32 * numbers[0];
            let ratio = (signed(1) * (4.0f32 / 3.0).ln()).exp();
            let [width, height] =
                [(area * ratio).sqrt(), (area / ratio).sqrt()].map(|s| s.min(1.0));
            let [x, y] = [(1.0 - width) * signed(2), (1.0 - height) * signed(3)];
            from = [[width, 0.0, x], [0.0, height, y]];
        }
        if self.flip && numbers[4] < 0.5 {
            from = after(from, [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
        }
        let mut colours = Vec::new();
        if self.colour > 0.0 {
            let factor = |at: usize| 1.0 + self.colour as f32 * signed(at);
            colours.extend([
                Colour::Brightness(factor(5)),
                Colour::Contrast(factor(6)),
                Colour::Saturation(factor(7)),
            ]);
        }
        for operation in 0..self.operations.min(MOST_OPERATIONS) {
            let at = FIRST + 2 * operation;
            let by = self.strength as f32 * signed(at + 1);
            match (12.0 * numbers[at]) as usize {
                0 => {
                    let (sin, cos) = (by * std::f32::consts::FRAC_PI_6).sin_cos();
                    from = after(from, [[cos, -sin, 0.0], [sin, cos, 0.0]]);
                }
                1 => from = after(from, [[1.0, 0.3 * by, 0.0], [0.0, 1.0, 0.0]]),
                2 => from = after(from, [[1.0, 0.0, 0.0], [0.3 * by, 1.0, 0.0]]),
                3 => from = after(from, [[1.0, 0.0, 0.6 * by], [0.0, 1.0, 0.0]]),
                4 => from = after(from, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.6 * by]]),
                5 => colours.push(Colour::Brightness(1.0 + 0.9 * by)),
                6 => colours.push(Colour::Contrast(1.0 + 0.9 * by)),
                7 => colours.push(Colour::Saturation(1.0 + 0.9 * by)),
                8 => colours.push(Colour::Stretch),
                // From 256 to 16 grey levels.
                9 => colours.push(Colour::Levels((8.0 - 4.0 * by.abs()).exp2())),
                10 => colours.push(Colour::Solarise(1.0 - by.abs())),
                _ => {}
            }
        }
        Variation { from, colours }
    }

    /// Normalised images `[rows, 3, size, size]` varied, each by the numbers that the stream has
    /// for its row.
    pub(super) fn apply(
        &self,
        images: &[f32],
        rows: &[usize],
        size: usize,
        stream: &Stream,
        normalisation: &Normalisation,
    ) -> Vec<f32> {
        let length = CHANNELS * size * size;
        let mut out = vec![0.0; images.len()];
        let pairs = images.chunks_exact(length).zip(out.chunks_exact_mut(length));
        for ((image, out), &row) in pairs.zip(rows) {
            let Variation { from, colours } = self.variation(row, stream);
            resample(image, size, from, out);
            if !colours.is_empty() {
                recolour(out, &colours, normalisation);
            }
        }
        out
    }
}

/// Takes every pixel from where it comes from, by straight lines between the four nearest; beyond
/// its edges an image is mirrored.
fn resample(image: &[f32], size: usize, from: Affine, out: &mut [f32]) {
    if from == IDENTITY {
        return out.copy_from_slice(image);
    }
    let area = size * size;
    let side = size as f32;
    let last = size - 1;
    let inside = |place: f32| -> usize {
        // Up and down again: 0, 1, …, last, last, …, 1, 0, 0, 1 …
        let place = (place as i64).rem_euclid(2 * size as i64) as usize;
        if place <= last { place } else { 2 * size - 1 - place }
    };
    // Of a pixel: the lower neighbour, the upper one, and how near the upper one is.
    let between = |place: f32| {
        let place = (place + 1.0) * 0.5 * side - 0.5;
        let lower = place.floor();
        (inside(lower), inside(lower + 1.0), place - lower)
    };
    for row in 0..size {
        let v = (2 * row + 1) as f32 / side - 1.0;
        for column in 0..size {
            let u = (2 * column + 1) as f32 / side - 1.0;
            let [x, y] = from.map(|[a, b, c]| a * u + b * v + c);
            let ((left, right, x), (top, bottom, y)) = (between(x), between(y));
            for channel in 0..CHANNELS {
                let plane = &image[channel * area..][..area];
                let line = |row: usize| {
                    let (a, b) = (plane[row * size + left], plane[row * size + right]);
                    a + (b - a) * x
                };
                let (upper, lower) = (line(top), line(bottom));
                out[channel * area + row * size + column] = upper + (lower - upper) * y;
            }
        }
    }
}

/// Changes the colours of a normalised image, one after the other; pixels stay from 0 to 1.
fn recolour(image: &mut [f32], colours: &[Colour], normalisation: &Normalisation) {
    let area = image.len() / CHANNELS;
    let Normalisation { mean, std } = normalisation;
    for channel in 0..CHANNELS {
        let plane = &mut image[channel * area..][..area];
        plane.iter_mut().for_each(|value| *value = *value * std[channel] + mean[channel]);
    }
    for &colour in colours {
        apply_colour(image, colour);
        image.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
    }
    for channel in 0..CHANNELS {
        let plane = &mut image[channel * area..][..area];
        plane.iter_mut().for_each(|value| *value = (*value - mean[channel]) / std[channel]);
    }
}

fn apply_colour(image: &mut [f32], colour: Colour) {
    let area = image.len() / CHANNELS;
    match colour {
        Colour::Brightness(factor) => image.iter_mut().for_each(|value| *value *= factor),
        Colour::Contrast(factor) => {
            let grey: f32 = image
                .chunks_exact(area)
                .zip(LUMA)
                .map(|(plane, weight)| weight * plane.iter().sum::<f32>() / area as f32)
                .sum();
            image.iter_mut().for_each(|value| *value = grey + factor * (*value - grey));
        }
        Colour::Saturation(factor) => {
            for pixel in 0..area {
                let places = [pixel, area + pixel, 2 * area + pixel];
                let grey: f32 =
                    places.iter().zip(LUMA).map(|(&at, weight)| weight * image[at]).sum();
                places.iter().for_each(|&at| image[at] = grey + factor * (image[at] - grey));
            }
        }
        Colour::Stretch => {
            for plane in image.chunks_exact_mut(area) {
                let (low, high) = plane
                    .iter()
                    .fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
                if high - low > 1e-3 {
                    plane.iter_mut().for_each(|value| *value = (*value - low) / (high - low));
                }
            }
        }
        Colour::Levels(levels) => {
            image.iter_mut().for_each(|value| *value = (*value * levels).floor() / levels);
        }
        Colour::Solarise(threshold) => image.iter_mut().for_each(|value| {
            *value = if *value >= threshold { 1.0 - *value } else { *value };
        }),
    }
}

#[cfg(test)]
mod tests {
    use bayesmesh_kernels::stream::Purpose;

    use super::*;

    const SIZE: usize = 12;
    const PLAIN: Normalisation = Normalisation { mean: [0.5, 0.4, 0.3], std: [0.2, 0.25, 0.3] };
    const NONE: Augmentation =
        Augmentation { crop: 0.0, flip: false, colour: 0.0, operations: 0, strength: 0.0 };

    /// Normalised numbers of pixels from 0 to 1.
    fn image(number: u32) -> Vec<f32> {
        let mut values = vec![0.0; CHANNELS * SIZE * SIZE];
        Stream::new(3, Purpose::Synthesis).at_tensor(number).fill_uniform(0, &mut values);
        for (channel, plane) in values.chunks_exact_mut(SIZE * SIZE).enumerate() {
            let (mean, std) = (PLAIN.mean[channel], PLAIN.std[channel]);
            plane.iter_mut().for_each(|value| *value = (*value - mean) / std);
        }
        values
    }

    fn stream(step: u32) -> Stream {
        Stream::new(5, Purpose::Augmentation).at_step(step).at_draw(1)
    }

    #[test]
    fn without_anything_images_stay_as_they_are() {
        let image = image(0);
        assert_eq!(NONE.apply(&image, &[4], SIZE, &stream(0), &PLAIN), image);
    }

    #[test]
    fn a_mirrored_image_is_mirrored() {
        let image = image(0);
        let flip = Augmentation { flip: true, ..NONE };
        let mut flipped = 0;
        for row in 0..200 {
            let found = flip.apply(&image, &[row], SIZE, &stream(0), &PLAIN);
            if found == image {
                continue;
            }
            flipped += 1;
            for (line, found) in image.chunks_exact(SIZE).zip(found.chunks_exact(SIZE)) {
                for (a, b) in line.iter().zip(found.iter().rev()) {
                    assert!((a - b).abs() < 1e-5, "{a} {b}");
                }
            }
        }
        // Half of 200, within five deviations of 7.
        assert!((65..135).contains(&flipped), "{flipped}");
    }

    /// A batch is its images one by one, whatever else is in it: ranks that divide it agree.
    #[test]
    fn a_batch_is_its_images_one_by_one() {
        let all = Augmentation { crop: 0.5, flip: true, colour: 0.4, operations: 3, strength: 1.0 };
        let rows = [7, 40_000, 7, 0];
        let images: Vec<Vec<f32>> = [1, 2, 1, 3].map(image).into();
        let batch = all.apply(&images.concat(), &rows, SIZE, &stream(3), &PLAIN);
        let one =
            |(image, row): (&Vec<f32>, usize)| all.apply(image, &[row], SIZE, &stream(3), &PLAIN);
        assert_eq!(batch, images.iter().zip(rows).map(one).collect::<Vec<_>>().concat());
        let length = CHANNELS * SIZE * SIZE;
        assert_eq!(batch[..length], batch[2 * length..3 * length]);
        let other = all.apply(&images.concat(), &rows, SIZE, &stream(4), &PLAIN);
        assert!(batch != other, "another step has other variations");
    }

    /// Whatever is drawn, pixels stay pixels: what was from 0 to 1 is so again.
    #[test]
    fn pixels_stay_within_their_range() {
        let all =
            Augmentation { crop: 0.9, flip: true, colour: 0.9, operations: 12, strength: 1.0 };
        for row in 0..300 {
            let found = all.apply(&image(row as u32), &[row], SIZE, &stream(0), &PLAIN);
            for (channel, plane) in found.chunks_exact(SIZE * SIZE).enumerate() {
                for value in plane {
                    let pixel = value * PLAIN.std[channel] + PLAIN.mean[channel];
                    assert!((-1e-5..1.0 + 1e-5).contains(&pixel), "row {row}: {pixel}");
                }
            }
        }
    }

    /// A window of a plane that rises evenly is a plane that rises evenly, less steeply, and never
    /// leaves the image.
    #[test]
    fn a_crop_is_a_part_of_the_image() {
        let crop = Augmentation { crop: 0.75, ..NONE };
        let ramp: Vec<f32> = (0..CHANNELS * SIZE * SIZE).map(|i| (i % SIZE) as f32).collect();
        let mut narrowest = f32::MAX;
        for row in 0..200 {
            let found = crop.apply(&ramp, &[row], SIZE, &stream(0), &PLAIN);
            let line = &found[..SIZE];
            let steps: Vec<f32> = line.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let middle = steps[SIZE / 2];
            // The outermost pixels see the mirrored edge.
            for step in &steps[1..SIZE - 2] {
                assert!((step - middle).abs() < 1e-4, "{steps:?}");
            }
            assert!(middle <= 1.0 + 1e-4 && middle > 0.4, "{middle}");
            narrowest = narrowest.min(middle);
        }
        assert!(narrowest < 0.6, "{narrowest}");
    }

    #[test]
    fn operations_are_drawn_evenly() {
        let all = Augmentation { operations: 1, strength: 1.0, ..NONE };
        let mut colours = [0; 6];
        let mut places = 0;
        for row in 0..12_000 {
            let Variation { from, colours: found } = all.variation(row, &stream(0));
            places += usize::from(from != IDENTITY);
            if let [colour] = found[..] {
                colours[match colour {
                    Colour::Brightness(_) => 0,
                    Colour::Contrast(_) => 1,
                    Colour::Saturation(_) => 2,
                    Colour::Stretch => 3,
                    Colour::Levels(_) => 4,
                    Colour::Solarise(_) => 5,
                }] += 1;
            }
        }
        // 1,000 of each, and five of places; five deviations of 30 and 54.
        assert!(colours.iter().all(|count| (850..1150).contains(count)), "{colours:?}");
        assert!((4700..5300).contains(&places), "{places}");
    }
}
