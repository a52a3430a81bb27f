//! From an unconstrained number to a standard deviation.

use bayesmesh_schema::Choice;
use serde::Deserialize;

use crate::elementary::{exp, ln, ln_1p_of_unit};

/// How a standard deviation `σ` is made from an unconstrained number `ρ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// `σ = exp(ρ)`.
    Exp,
    /// `σ = ln(1 + exp(ρ))`.
    Softplus,
}

impl Scale {
    /// Below this `ρ` the logarithm of the softplus is `ρ` to the last bit.
    const SOFTPLUS_IS_EXP: f32 = -17.0;

    /// `σ(ρ)`, within 2 units in the last place. A NaN passes.
    #[inline(always)]
    pub fn apply(self, rho: f32) -> f32 {
        match self {
            Scale::Exp => exp(rho),
            // A comparison, and not `max`, which would lose a NaN.
            Scale::Softplus => (if rho < 0.0 { 0.0 } else { rho }) + ln_1p_of_unit(exp(-rho.abs())),
        }
    }

    /// `σ'(ρ)`: `exp(ρ)`, or the logistic function. A NaN passes.
    #[inline(always)]
    pub fn derivative(self, rho: f32) -> f32 {
        match self {
            Scale::Exp => exp(rho),
            Scale::Softplus => {
                let small = exp(-rho.abs());
                (if rho < 0.0 { small } else { 1.0 }) / (1.0 + small)
            }
        }
    }

    /// The `ρ` with `σ(ρ) = std`; −∞ for 0, NaN for a negative `std`.
    pub fn inverse(self, std: f32) -> f32 {
        let std = f64::from(std);
        match self {
            Scale::Exp => std.ln() as f32,
            // ln(exp(s) − 1), written so that a large s does not overflow.
            Scale::Softplus => (std + (-(-std).exp_m1()).ln()) as f32,
        }
    }

    /// `ln σ(ρ)`, given `σ(ρ)`.
    #[inline(always)]
    pub(super) fn log(self, rho: f32, sigma: f32) -> f32 {
        match self {
            Scale::Exp => rho,
            Scale::Softplus => {
                if rho < Self::SOFTPLUS_IS_EXP {
                    rho
                } else {
                    ln(sigma)
                }
            }
        }
    }

    /// `σ'(ρ) / σ(ρ)`, given `σ(ρ)`.
    #[inline(always)]
    pub(super) fn log_derivative(self, rho: f32, sigma: f32) -> f32 {
        match self {
            Scale::Exp => 1.0,
            Scale::Softplus => {
                if rho < Self::SOFTPLUS_IS_EXP {
                    1.0
                } else {
                    self.derivative(rho) / sigma
                }
            }
        }
    }
}
