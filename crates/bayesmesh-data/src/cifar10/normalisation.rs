//! From bytes to numbers that a network likes.

use super::error::Cifar10Error;
use super::files::CHANNELS;

/// A byte `v` of channel `c` becomes `(v / 255 − mean[c]) / std[c]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    /// Mean of red, green and blue, from 0 to 1.
    pub mean: [f32; CHANNELS],
    /// Deviation of red, green and blue.
    pub std: [f32; CHANNELS],
}

/// What the training images have on average.
const MEAN: [f32; CHANNELS] = [0.4914, 0.4822, 0.4465];

impl Normalisation {
    /// Mean and deviation of all pixels of the training images; the default.
    pub const PIXELS: Self = Self { mean: MEAN, std: [0.2470, 0.2435, 0.2616] };
    /// What the paper's reference code divides by: the mean of the deviations within an image.
    pub const REFERENCE: Self = Self { mean: MEAN, std: [0.2023, 0.1994, 0.2010] };

    /// For each channel, what each byte becomes.
    pub(crate) fn table(&self) -> Result<Table, Cifar10Error> {
        for channel in 0..CHANNELS {
            let (mean, std) = (self.mean[channel], self.std[channel]);
            if !(mean.is_finite() && std.is_finite() && std > 0.0) {
                return Err(Cifar10Error::Setting(format!(
                    "channel {channel}: mean {mean} and deviation {std} cannot normalise images; \
                     use numbers, and a deviation above 0"
                )));
            }
        }
        let entry = |c: usize, v: usize| (v as f32 / 255.0 - self.mean[c]) / self.std[c];
        Ok(std::array::from_fn(|c| std::array::from_fn(|v| entry(c, v))))
    }
}

impl Default for Normalisation {
    fn default() -> Self {
        Self::PIXELS
    }
}

/// Normalised values by channel and byte.
pub(crate) type Table = [[f32; 256]; CHANNELS];
