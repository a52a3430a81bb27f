//! Priors of a weight, in double precision.

use bayesmesh_schema::Kinds;
use serde::Deserialize;

/// `½ ln 2π`.
pub(super) const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;

/// What a weight is believed to be before the data. For `posterior.kind = "mean-field"`.
#[derive(Clone, Copy, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[section(default = "normal", example = "kind = \"normal\"\nstd = 1.0")]
pub enum Prior {
    /// N(mean, std²)
    Normal {
        /// The mean.
        #[key(default = 0.0)]
        mean: f32,
        /// The standard deviation.
        #[key(default = 1.0, above = 0, also("sigma"))]
        std: f32,
    },
    /// weight·N(0, std_wide²) + (1 − weight)·N(0, std_narrow²)
    ScaleMixture {
        /// The share of the wide component.
        #[key(default = 0.5, at_least = 0, at_most = 1, also("pi"))]
        weight: f32,
        /// The standard deviation of the wide component.
        #[key(default = 1.0, above = 0, also("sigma1"))]
        std_wide: f32,
        /// The standard deviation of the narrow component.
        #[key(default = 0.01, above = 0, also("sigma2"))]
        std_narrow: f32,
    },
}

impl Prior {
    /// The Gaussian `N(mean, std²)`.
    pub const fn normal(mean: f32, std: f32) -> Self {
        Self::Normal { mean, std }
    }

    /// `ln p(w)`.
    pub fn log_density(&self, w: f64) -> f64 {
        self.density().log_and_derivative(w).0
    }

    /// `d ln p(w) / dw`.
    pub fn log_density_derivative(&self, w: f64) -> f64 {
        self.density().log_and_derivative(w).1
    }

    /// The density with what does not depend on `w` worked out.
    pub(super) fn density(&self) -> Density {
        match *self {
            Prior::Normal { mean, std } => Density::One(mean.into(), Part::new(1.0, std)),
            Prior::ScaleMixture { weight, std_wide, std_narrow } => {
                let weight = f64::from(weight);
                Density::Two(Part::new(weight, std_wide), Part::new(1.0 - weight, std_narrow))
            }
        }
    }
}

/// A density ready to be evaluated many times.
#[derive(Clone, Copy)]
pub(super) enum Density {
    /// One normal part around a mean.
    One(f64, Part),
    /// The sum of two normal parts around 0.
    Two(Part, Part),
}

impl Density {
    /// `ln p(w)` and `d ln p(w) / dw`.
    #[inline(always)]
    pub(super) fn log_and_derivative(&self, w: f64) -> (f64, f64) {
        match self {
            Density::One(mean, part) => part.log_and_derivative(w - mean),
            Density::Two(wide, narrow) => {
                let (wide, wide_slope) = wide.log_and_derivative(w);
                let (narrow, narrow_slope) = narrow.log_and_derivative(w);
                // ln(e^a + e^b) = max(a, b) + ln(1 + e^-|a - b|): nothing overflows.
                let ratio = (-(wide - narrow).abs()).exp();
                let (larger, larger_slope, smaller_slope) = if wide > narrow {
                    (wide, wide_slope, narrow_slope)
                } else {
                    (narrow, narrow_slope, wide_slope)
                };
                let slope = (larger_slope + ratio * smaller_slope) / (1.0 + ratio);
                (larger + ratio.ln_1p(), slope)
            }
        }
    }
}

/// `share · N(0, std²)`.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The logarithm of its height at 0.
    log_height: f64,
    /// `1 / std²`.
    precision: f64,
}

impl Part {
    fn new(share: f64, std: f32) -> Self {
        let std = f64::from(std);
        Self { log_height: share.ln() - std.ln() - HALF_LN_TAU, precision: 1.0 / (std * std) }
    }

    #[inline(always)]
    fn log_and_derivative(&self, x: f64) -> (f64, f64) {
        let slope = -x * self.precision;
        (self.log_height + 0.5 * x * slope, slope)
    }
}
