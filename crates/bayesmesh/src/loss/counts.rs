//! Likelihoods of counts.

use burn::tensor::{Tensor, TensorData};

use super::likelihood::{assert_columns, check_columns, ln_gamma};
use super::{Likelihood, Reading};
use crate::error::{Error, Result};
use crate::tensors::to_vec;

/// Logarithms of the dispersion that are told apart: below, a negative binomial is a Poisson to
/// six digits, and single precision could not tell it from one.
const LOG_DISPERSIONS: (f32, f32) = (-12.0, 8.0);

/// Counts, Poisson: the network gives the logarithm of the rate, `ln p = y·η − e^η − ln y!`,
/// outputs `[η]`.
///
/// The variance is the mean. Where counts vary more, [`NegativeBinomial`] learns how much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Poisson;

/// Counts, negative binomial: the network gives the logarithms of the mean μ and of a dispersion α,
/// so that the variance is `μ + αμ²`. With `r = 1/α`,
/// `ln p = ln Γ(y + r) − ln Γ(r) − ln y! + r ln(r/(r+μ)) + y ln(μ/(r+μ))`, outputs `[ln μ | ln α]`.
/// As α → 0 it becomes a Poisson.
#[derive(Clone, Copy, Debug, Default)]
pub struct NegativeBinomial;

const RATES: &str = "logarithms of rates";
const RATES_AND_DISPERSIONS: &str = "logarithms of means and of dispersions";

impl Likelihood for Poisson {
    type Target = Tensor<2>;

    fn log_density(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        assert_columns(&output, target.dims()[1], RATES);
        target.clone() * output.clone() - output.exp() - log_factorial(target)
    }

    fn reading(&self) -> Reading {
        Reading::LogRate
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], RATES)?;
        check_counts(target)
    }
}

impl Likelihood for NegativeBinomial {
    type Target = Tensor<2>;

    fn log_density(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        let [_, half] = target.dims();
        assert_columns(&output, 2 * half, RATES_AND_DISPERSIONS);
        let log_mean = output.clone().narrow(1, 0, half);
        let (least, most) = LOG_DISPERSIONS;
        let log_dispersion = output.narrow(1, half, half).clamp(least, most);
        let dispersion = log_dispersion.clone().exp();
        let size = (-log_dispersion.clone()).exp();
        // With Γ(y + r)/Γ(r) = r^y·e^f nothing large is left to cancel:
        // ln p = f + y ln μ − (r + y) ln(1 + αμ) − ln y!
        let spread = (dispersion * log_mean.clone().exp()).log1p();
        rising(size.clone(), target) + target.clone() * log_mean
            - (size + target.clone()) * spread
            - log_factorial(target)
    }

    fn reading(&self) -> Reading {
        Reading::LogMeanAndLogDispersion
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, 2 * target.dims()[1], RATES_AND_DISPERSIONS)?;
        check_counts(target)
    }
}

impl NegativeBinomial {
    /// The dispersion that the network's second output stands for.
    pub(crate) fn dispersion(log: f32) -> f32 {
        log.clamp(LOG_DISPERSIONS.0, LOG_DISPERSIONS.1).exp()
    }
}

/// `f = ln Γ(r + y) − ln Γ(r) − y ln r`, zero for large r.
///
/// By Stirling's series for `q = r + 8`, where it has seven digits, and eight steps back:
/// `f = (q + y − ½) ln(1 + y/q) − y + s(q + y) − s(q) + y ln(1 + 8/r) − Σ_{k<8} ln(1 + y/(r + k))`,
/// `s(x) = 1/12x − 1/360x³`.
fn rising(size: Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
    const STEPS: usize = 8;
    let shifted = size.clone() + STEPS as f32;
    let series = |x: Tensor<2>| {
        let inverse = x.recip();
        inverse.clone() * (inverse.square() * (-1.0 / 360.0) + 1.0 / 12.0)
    };
    let end = shifted.clone() + y.clone();
    let mut sum = (end.clone() - 0.5) * (y.clone() / shifted.clone()).log1p() - y.clone()
        + series(end)
        - series(shifted)
        + y.clone() * (size.clone().recip() * STEPS as f32).log1p();
    for step in 0..STEPS {
        sum = sum - (y.clone() / (size.clone() + step as f32)).log1p();
    }
    sum
}

/// `ln y!` of each target, which has no gradient.
fn log_factorial(target: &Tensor<2>) -> Tensor<2> {
    let (shape, device) = (target.dims(), target.device());
    let values = to_vec(target.clone()).into_iter();
    let values: Vec<f32> = values.map(|y| ln_gamma(f64::from(y.max(0.0)) + 1.0) as f32).collect();
    Tensor::from_data(TensorData::new(values, shape), &device)
}

/// Refuses targets that count nothing.
fn check_counts(target: &Tensor<2>) -> Result<()> {
    let values = to_vec(target.clone());
    match values.iter().position(|y| !(*y >= 0.0 && y.fract() == 0.0 && y.is_finite())) {
        None => Ok(()),
        Some(place) => Err(Error::Data(format!(
            "a target of {} (row {} of the batch) is no count: counts are whole numbers from 0 on, \
             and are not scaled; use a loss for values, or the counts themselves",
            values[place],
            place / target.dims()[1].max(1)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    fn column(values: &[f32], device: &Device) -> Tensor<2> {
        Tensor::<1>::from_floats(values, device).unsqueeze_dim(1)
    }

    fn exact_ln(mean: f64, alpha: f64, y: f64) -> f64 {
        let r = 1.0 / alpha;
        ln_gamma(y + r) - ln_gamma(r) - ln_gamma(y + 1.0)
            + r * (r / (r + mean)).ln()
            + y * (mean / (r + mean)).ln()
    }

    /// Values in double precision, and gradients against their differences.
    #[test]
    fn counts_have_the_likelihood_of_their_formula() {
        let device = Device::default().autodiff();
        for (log_mean, log_alpha, y) in [
            (0.5f32, -1.0f32, 0.0f32),
            (0.5, -1.0, 3.0),
            (-3.0, 2.0, 1.0),
            (4.0, 3.0, 250.0),
            (5.0, -6.0, 120.0),
            (7.0, 0.0, 4000.0),
        ] {
            let target = column(&[y], &device);
            let output = Tensor::<2>::from_floats([[log_mean, log_alpha]], &device).require_grad();
            let value = NegativeBinomial.log_density(output.clone(), &target);
            let of = |mean: f64, alpha: f64| exact_ln(mean.exp(), alpha.exp(), y.into());
            let (m, a) = (f64::from(log_mean), f64::from(log_alpha));
            let expected = of(m, a);
            let found = f64::from(to_vec(value.clone())[0]);
            let scale = expected.abs().max(1.0) + f64::from(y);
            assert!((found - expected).abs() < 3e-6 * scale, "{found} {expected}");
            let gradient = to_vec(output.grad(&value.sum().backward()).unwrap());
            let h = 1e-4;
            let slopes = [
                (of(m + h, a) - of(m - h, a)) / (2.0 * h),
                (of(m, a + h) - of(m, a - h)) / (2.0 * h),
            ];
            for (found, slope) in gradient.iter().zip(slopes) {
                let error = (f64::from(*found) - slope).abs();
                assert!(
                    error < 2e-4 * (slope.abs() + 1.0 + 0.01 * f64::from(y)),
                    "{found} {slope}"
                );
            }

            let rate = column(&[log_mean], &device).require_grad();
            let value = Poisson.log_density(rate.clone(), &target);
            let expected = f64::from(y) * m - m.exp() - ln_gamma(f64::from(y) + 1.0);
            let found = f64::from(to_vec(value.clone())[0]);
            assert!(
                (found - expected).abs() < 1e-5 * scale.max(expected.abs()),
                "{found} {expected}"
            );
            let slope = f64::from(y) - m.exp();
            let gradient = to_vec(rate.grad(&value.sum().backward()).unwrap())[0];
            assert!((f64::from(gradient) - slope).abs() < 1e-4 * slope.abs().max(1.0));
        }
    }

    /// They sum to one, and hardly dispersed counts are Poisson.
    #[test]
    fn probabilities_are_normalised() {
        let device = Device::default();
        let counts: Vec<f32> = (0..2000).map(|k| k as f32).collect();
        let target = column(&counts, &device);
        let sum = |density: Tensor<2>| f64::from(density.exp().sum().into_scalar::<f32>());
        let poisson = Poisson.log_density(Tensor::full([2000, 1], 2.0, &device), &target);
        assert!((sum(poisson.clone()) - 1.0).abs() < 1e-4);
        let of = |log_alpha: f32| {
            let logs = [2.0f32, log_alpha];
            let output = Tensor::<1>::from_floats(logs, &device).unsqueeze_dim::<2>(0);
            NegativeBinomial.log_density(output.repeat_dim(0, 2000), &target)
        };
        assert!((sum(of(0.5)) - 1.0).abs() < 1e-3);
        let (near, poisson) = (to_vec(of(-40.0)), to_vec(poisson));
        for (a, b) in near.iter().zip(&poisson).take(30) {
            assert!((a - b).abs() < 1e-2, "{a} {b}");
        }
    }

    #[test]
    fn what_counts_nothing_is_refused() {
        let device = Device::default();
        for wrong in [-1.0, 0.5, f32::NAN, f32::INFINITY] {
            let target = column(&[2.0, wrong], &device);
            let message = Poisson.check(1, &target).unwrap_err().to_string();
            assert!(message.contains("row 1") && message.contains("whole numbers"), "{message}");
            assert!(NegativeBinomial.check(2, &target).is_err());
        }
        let target = column(&[0.0, 7.0], &device);
        assert!(Poisson.check(1, &target).is_ok() && NegativeBinomial.check(2, &target).is_ok());
        assert!(Poisson.check(2, &target).is_err() && NegativeBinomial.check(1, &target).is_err());
    }
}
