//! Images unlike those that a network has learned from.

use bayesmesh_kernels::stream::{Purpose, Stream};

use super::error::Cifar10Error;
use super::files::{IMAGE_BYTES, RECORD_BYTES, SIDE};

/// A way to make images worse, in five severities: those of CIFAR-10-C (Hendrycks and Dietterich,
/// 2019), which go by the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Corruption {
    /// Independent normal noise with deviation 0.04, 0.06, 0.08, 0.09, 0.10 of a pixel's range.
    GaussianNoise,
    /// The mean over neighbours weighted by a Gaussian of 0.4, 0.6, 0.7, 0.8, 1.0 pixels; pixels at
    /// the edge go on beyond it.
    GaussianBlur,
    /// 0.75, 0.5, 0.4, 0.3, 0.15 of the difference to the mean of the channel of the image.
    Contrast,
}

/// Tensor number of the noise in the streams of made-up data; 0 and 1 belong to `synth`.
const NOISE_TENSOR: u32 = 2;

impl Corruption {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::GaussianNoise, Self::GaussianBlur, Self::Contrast];

    /// What it is called in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GaussianNoise => "gaussian noise",
            Self::GaussianBlur => "gaussian blur",
            Self::Contrast => "contrast",
        }
    }

    /// The strength of each severity.
    const fn strengths(self) -> [f32; 5] {
        match self {
            Self::GaussianNoise => [0.04, 0.06, 0.08, 0.09, 0.10],
            Self::GaussianBlur => [0.4, 0.6, 0.7, 0.8, 1.0],
            Self::Contrast => [0.75, 0.5, 0.4, 0.3, 0.15],
        }
    }
}

/// Records with their numbers, corrupted, one after the other.
pub(super) fn records<'a>(
    records: impl ExactSizeIterator<Item = (usize, &'a [u8; RECORD_BYTES])>,
    corruption: Corruption,
    severity: u8,
    seed: u64,
) -> Result<Vec<u8>, Cifar10Error> {
    let strengths = corruption.strengths();
    if !(1..=strengths.len()).contains(&usize::from(severity)) {
        return Err(Cifar10Error::Setting(format!(
            "severity {severity} of {}: choose 1 to {}",
            corruption.name(),
            strengths.len()
        )));
    }
    let strength = strengths[usize::from(severity) - 1];
    let kernel = gaussian(strength);
    let mut out = Vec::with_capacity(records.len() * RECORD_BYTES);
    let mut values = [0.0; IMAGE_BYTES];
    for (number, [label, image @ ..]) in records {
        for (value, &byte) in values.iter_mut().zip(image) {
            *value = f32::from(byte);
        }
        match corruption {
            Corruption::GaussianNoise => {
                let stream = Stream::new(seed, Purpose::Synthesis).at_tensor(NOISE_TENSOR);
                let mut noise = [0.0; IMAGE_BYTES];
                stream.at_step(number as u32).fill_normal(0, &mut noise);
                for (value, noise) in values.iter_mut().zip(noise) {
                    *value += 255.0 * strength * noise;
                }
            }
            Corruption::GaussianBlur => {
                for plane in values.chunks_exact_mut(SIDE * SIDE) {
                    blur(plane, &kernel);
                }
            }
            Corruption::Contrast => {
                for plane in values.chunks_exact_mut(SIDE * SIDE) {
                    // A sum of 1,024 bytes is exact.
                    let mean = plane.iter().sum::<f32>() / plane.len() as f32;
                    plane.iter_mut().for_each(|value| *value = mean + strength * (*value - mean));
                }
            }
        }
        out.push(*label);
        out.extend(values.iter().map(|value| value.round() as u8)); // to the nearest, 0 to 255
    }
    Ok(out)
}

/// Weights of the distances −r to r of a Gaussian that ends at four deviations.
fn gaussian(deviation: f32) -> Vec<f32> {
    let radius = (4.0 * deviation + 0.5) as i32;
    let weight = |i: i32| (-0.5 * (f64::from(i) / f64::from(deviation)).powi(2)).exp();
    let sum: f64 = (-radius..=radius).map(weight).sum();
    (-radius..=radius).map(|i| (weight(i) / sum) as f32).collect()
}

/// Weighs the neighbours in a row, then those in a column.
fn blur(plane: &mut [f32], kernel: &[f32]) {
    let radius = kernel.len() / 2;
    // Position `i + k` of the plane with its edge repeated `radius` times.
    let inside = |i: usize, k: usize| (i + k).saturating_sub(radius).min(SIDE - 1);
    let mut rows = [0.0; SIDE * SIDE];
    for (from, to) in plane.chunks_exact(SIDE).zip(rows.chunks_exact_mut(SIDE)) {
        for (x, to) in to.iter_mut().enumerate() {
            *to = kernel.iter().enumerate().map(|(k, weight)| weight * from[inside(x, k)]).sum();
        }
    }
    for (y, to) in plane.chunks_exact_mut(SIDE).enumerate() {
        to.fill(0.0);
        for (k, weight) in kernel.iter().enumerate() {
            let from = &rows[inside(y, k) * SIDE..][..SIDE];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += weight * from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blur_spreads_a_point_and_keeps_its_mass() {
        let kernel = gaussian(0.8);
        let mut plane = [0.0; SIDE * SIDE];
        plane[10 * SIDE + 20] = 1000.0;
        blur(&mut plane, &kernel);
        assert!((plane.iter().sum::<f32>() - 1000.0).abs() < 0.01);
        let peak = plane[10 * SIDE + 20];
        // Next to it e^(−½ / 0.64) of the peak, in both directions.
        for at in [10 * SIDE + 19, 9 * SIDE + 20, 11 * SIDE + 20] {
            assert!((plane[at] / peak - (-0.5f32 / 0.64).exp()).abs() < 1e-5);
        }
    }

    #[test]
    fn a_blur_leaves_a_flat_plane_as_it_is_up_to_the_corners() {
        let mut plane = [77.0; SIDE * SIDE];
        blur(&mut plane, &gaussian(1.0));
        assert!(plane.iter().all(|value| (value - 77.0).abs() < 1e-4));
    }
}
