//! Densities of a target given the outputs of one draw.

use std::f64::consts::PI;

use bayesmesh_schema::Keys;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor};
use serde::Deserialize;

use super::Reading;
use crate::data::Target;
use crate::error::{Error, Result};

/// The density of an example's target given the network's outputs for it.
///
/// Outputs are independent given a draw, so the joint density of an example is the product over its
/// outputs.
pub trait Likelihood: Clone + Send + Sync {
    /// Targets of a batch.
    type Target: Target;

    /// `ln p(y_k∣ŷ)` of each row and output.
    ///
    /// # Shapes
    ///
    /// - `output`: as [`reading`](Self::reading) says
    /// - result: `[rows, outputs]`, or `[rows, 1]` for classes
    fn log_density(&self, output: Tensor<2>, target: &Self::Target) -> Tensor<2>;

    /// How the network's outputs are read in prediction.
    fn reading(&self) -> Reading;

    /// Refuses targets that a network with so many outputs for an example cannot be held against;
    /// see [`Loss::check`](super::Loss::check).
    fn check(&self, outputs: usize, target: &Self::Target) -> Result<()> {
        let _ = (outputs, target);
        Ok(())
    }
}

/// Classes: `ln p(y∣ŷ) = ln softmax(ŷ)_y`. Targets are class numbers `[rows]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Categorical;

impl Likelihood for Categorical {
    type Target = Tensor<1, Int>;

    fn log_density(&self, output: Tensor<2>, target: &Tensor<1, Int>) -> Tensor<2> {
        log_softmax(output, 1).gather(1, target.clone().unsqueeze_dim(1))
    }

    fn reading(&self) -> Reading {
        Reading::Logits
    }

    fn check(&self, outputs: usize, target: &Tensor<1, Int>) -> Result<()> {
        let labels = target.clone().try_into_vec_as::<i64>().expect("integers can be read back");
        let wrong = |label: &i64| usize::try_from(*label).map_or(true, |label| label >= outputs);
        match labels.into_iter().enumerate().find(|(_, label)| wrong(label)) {
            None => Ok(()),
            Some((row, label)) => Err(Error::Data(format!(
                "the label {label} in row {row} of the batch is not a class: the network has \
                 {outputs} outputs, and labels count from 0 to below that; change the last layer \
                 or the labels"
            ))),
        }
    }
}

/// Heteroscedastic Gaussian: the network gives means and logarithms of variances,
/// `ln p = −½ [v + (y − m)²·e^(−v) + ln 2π]`, outputs `[m | v]`.
///
/// Where the noise is the same for every example, [`Gaussian::fixed`] is one of known noise, for
/// networks that give values only, and [`LearnedNoise`](crate::LearnedNoise) learns it beside such
/// a network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaussian;

impl Gaussian {
    /// A Gaussian of known noise, the same everywhere: `ln p = −½ [(y − ŷ)²/σ² + ln σ² + ln 2π]`.
    /// The network gives means only.
    ///
    /// ```
    /// use bayesmesh::loss::{Expected, Gaussian};
    ///
    /// let loss = Expected(Gaussian::fixed(0.1)?);
    /// # Ok::<(), bayesmesh::Error>(())
    /// ```
    pub fn fixed(std: f64) -> Result<FixedGaussian> {
        // The loss and the predictions take the variance in single precision.
        let variance = (std * std) as f32;
        if !(std > 0.0 && variance.is_normal() && (1.0 / variance).is_normal()) {
            return Err(Error::Setting(format!(
                "a Gaussian with a deviation of {std} is not possible; choose a positive number"
            )));
        }
        Ok(FixedGaussian { std })
    }
}

/// A Gaussian of known noise; see [`Gaussian::fixed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedGaussian {
    std: f64,
}

impl FixedGaussian {
    /// Deviation of the noise.
    pub fn std(&self) -> f64 {
        self.std
    }
}

impl Likelihood for FixedGaussian {
    type Target = Tensor<2>;

    fn log_density(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        assert_columns(&output, target.dims()[1], "means");
        let variance = self.std * self.std;
        let square = (target.clone() - output).square();
        square * (-0.5 / variance) as f32 - (0.5 * (2.0 * PI * variance).ln()) as f32
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], "means")
    }

    fn reading(&self) -> Reading {
        Reading::ValuesWithNoise { std: self.std as f32 }
    }
}

/// What the outputs of these likelihoods are.
const MEANS_AND_LOG_VARIANCES: &str = "means and log-variances";

/// Halves of `[rows, 2·outputs]`, each of the width of the target.
fn halves(output: Tensor<2>, target: &Tensor<2>) -> [Tensor<2>; 2] {
    let [_, half] = target.dims();
    assert_columns(&output, 2 * half, MEANS_AND_LOG_VARIANCES);
    [output.clone().narrow(1, 0, half), output.narrow(1, half, half)]
}

impl Likelihood for Gaussian {
    type Target = Tensor<2>;

    fn log_density(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        let [mean, log_variance] = halves(output, target);
        let square = (target.clone() - mean).square();
        let terms = log_variance.clone() + square * (-log_variance).exp() + (2.0 * PI).ln() as f32;
        terms * -0.5
    }

    fn reading(&self) -> Reading {
        Reading::MeanAndLogVariance
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, 2 * target.dims()[1], MEANS_AND_LOG_VARIANCES)
    }
}

/// Student's t with fixed degrees of freedom ν and a variance `e^v` from the network, hence a scale
/// `σ² = e^v·(ν−2)/ν`; with `u = ln σ²`: `ln p = ln Γ((ν+1)/2) − ln Γ(ν/2) − ½ ln(πν) − ½u −
/// (ν+1)/2 · ln(1 + (y−m)²e^(−u)/ν)`, outputs `[m | v]`. Its heavy tails forgive outliers.
/// Predictions and their scores take the Gaussian of the same mean and variance.
#[derive(Clone, Copy, Debug, Keys, Deserialize)]
pub struct StudentT {
    /// Degrees of freedom; more are closer to a Gaussian.
    #[key(default = 4.0, above = 2, also("df", "nu", "degrees_of_freedom"))]
    freedom: f64,
}

impl StudentT {
    /// With ν > 2 degrees of freedom, so that a variance exists.
    pub fn new(freedom: f64) -> Result<Self> {
        Self { freedom }.checked()
    }

    /// Refuses what is out of range.
    pub(super) fn checked(self) -> Result<Self> {
        let Self { freedom } = self;
        if !(freedom.is_finite() && freedom > 2.0) {
            return Err(Error::Setting(format!(
                "Student's t with {freedom} degrees of freedom has no variance; choose more than 2"
            )));
        }
        Ok(self)
    }
}

impl Likelihood for StudentT {
    type Target = Tensor<2>;

    fn log_density(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        let nu = self.freedom;
        let constant = ln_gamma((nu + 1.0) / 2.0) - ln_gamma(nu / 2.0) - 0.5 * (PI * nu).ln();
        let [mean, log_variance] = halves(output, target);
        let log_scale = log_variance + ((nu - 2.0) / nu).ln() as f32;
        let square = (target.clone() - mean).square() * (-log_scale.clone()).exp();
        let tail = (square / nu as f32).log1p() * (0.5 * (nu + 1.0)) as f32;
        log_scale * -0.5 - tail + constant as f32
    }

    fn reading(&self) -> Reading {
        Reading::MeanAndLogVariance
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, 2 * target.dims()[1], MEANS_AND_LOG_VARIANCES)
    }
}

/// A quantile τ by the asymmetric Laplace density, whose negative logarithm is the pinball loss:
/// `ln p = ln τ(1−τ) − ρ_τ(y − ŷ)`, `ρ_τ(u) = u·(τ − 1[u<0])`. Outputs are the quantiles.
#[derive(Clone, Copy, Debug, Keys, Deserialize)]
pub struct Quantile {
    /// The level of the quantile; 0.5 is the median.
    #[key(default = 0.5, above = 0, below = 1, also("quantile", "tau"))]
    level: f64,
}

impl Quantile {
    /// The quantile at a level between 0 and 1.
    pub fn new(level: f64) -> Result<Self> {
        Self { level }.checked()
    }

    /// Refuses what is out of range.
    pub(super) fn checked(self) -> Result<Self> {
        let Self { level } = self;
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::Setting(format!(
                "a quantile level of {level} is not possible; choose one between 0 and 1"
            )));
        }
        Ok(self)
    }
}

impl Likelihood for Quantile {
    type Target = Tensor<2>;

    fn log_density(&self, output: Tensor<2>, target: &Tensor<2>) -> Tensor<2> {
        let tau = self.level;
        assert_columns(&output, target.dims()[1], "quantiles");
        let error = target.clone() - output;
        // ρ_τ(u) = ½|u| + (τ − ½)u
        let pinball = error.clone().abs() * 0.5 + error * (tau - 0.5) as f32;
        -pinball + (tau * (1.0 - tau)).ln() as f32
    }

    fn reading(&self) -> Reading {
        Reading::Values
    }

    fn check(&self, outputs: usize, target: &Tensor<2>) -> Result<()> {
        check_columns(outputs, target.dims()[1], "quantiles")
    }
}

/// Refuses another number of outputs of the network than the targets ask for.
pub(super) fn check_columns(outputs: usize, expected: usize, what: &str) -> Result<()> {
    match outputs == expected {
        true => Ok(()),
        false => Err(Error::Mismatch(format!(
            "the network has {outputs} outputs for an example, but the loss and the targets ask \
             for {expected} ({what}); change the last layer or the targets"
        ))),
    }
}

/// The same where a loss is evaluated without a check before: it stops there, because otherwise the
/// two would be stretched over each other.
pub(super) fn assert_columns(output: &Tensor<2>, expected: usize, what: &str) {
    if let Err(error) = check_columns(output.dims()[1], expected, what) {
        panic!("{error}");
    }
}

/// `ln Γ(x)` for x > 0: Stirling's series after shifting x above 10, error below 1e-12.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let shift = (10.0 - x).ceil().max(0.0) as u32;
    let product: f64 = (0..shift).map(|k| x + k as f64).product();
    let z = x + shift as f64;
    let series = 1.0 / (12.0 * z) - 1.0 / (360.0 * z.powi(3)) + 1.0 / (1260.0 * z.powi(5))
        - 1.0 / (1680.0 * z.powi(7));
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_gamma_at_known_points() {
        for (x, expected) in [(1.0, 0.0), (2.0, 0.0), (0.5, PI.sqrt().ln()), (6.0, 120f64.ln())] {
            assert!((ln_gamma(x) - expected).abs() < 1e-11, "{x}");
        }
    }

    /// The variance that a network predicts is that of the density.
    #[test]
    fn the_variance_of_students_t_is_the_predicted_one() {
        let device = Default::default();
        let (steps, width) = (400_000, 0.005f32);
        let targets: Vec<f32> =
            (0..steps).map(|i| (i as f32 - 0.5 * steps as f32 + 0.5) * width).collect();
        let target = Tensor::<1>::from_floats(&targets[..], &device).unsqueeze_dim(1);
        let output = Tensor::<1>::from_floats([0.0, 0.7], &device).unsqueeze_dim::<2>(0);
        let likelihood = StudentT::new(6.0).unwrap();
        let density = likelihood.log_density(output.repeat_dim(0, steps), &target).exp();
        let density: Vec<f32> = density.into_data().try_into_vec().unwrap();
        let variance: f64 = targets
            .iter()
            .zip(density)
            .map(|(&y, p)| f64::from(y).powi(2) * f64::from(p) * f64::from(width))
            .sum();
        assert!((variance / 0.7f64.exp() - 1.0).abs() < 1e-3, "{variance}");
    }

    /// Each density integrates to one over the target.
    #[test]
    fn densities_are_normalised() {
        fn integral(likelihood: impl Likelihood<Target = Tensor<2>>, output: &[f32]) -> f64 {
            let device = Default::default();
            let steps = 40_000;
            let (low, high) = (-100.0f32, 100.0f32);
            let width = (high - low) / steps as f32;
            let targets: Vec<f32> = (0..steps).map(|i| low + (i as f32 + 0.5) * width).collect();
            let target = Tensor::<1>::from_floats(&targets[..], &device).unsqueeze_dim(1);
            let output = Tensor::<1>::from_floats(output, &device).unsqueeze_dim::<2>(0);
            let density = likelihood.log_density(output.repeat_dim(0, steps), &target).exp();
            density.sum().into_scalar::<f32>() as f64 * width as f64
        }
        let close = |value: f64, error: f64| assert!((value - 1.0).abs() < error, "{value}");
        close(integral(Gaussian, &[0.3, 0.5]), 1e-4);
        close(integral(Gaussian::fixed(0.7).unwrap(), &[0.3]), 1e-4);
        // The tails beyond ±100 hold 2e-6 of a t with 3 degrees of freedom and scale 1.
        close(integral(StudentT::new(3.0).unwrap(), &[0.3, 0.0]), 1e-4);
        close(integral(Quantile::new(0.2).unwrap(), &[0.3]), 1e-4);
    }

    /// Value and gradient of a known noise: those of a learned one that is the same.
    #[test]
    fn a_fixed_gaussian_is_a_gaussian_of_that_variance() {
        let device = burn::tensor::Device::default().autodiff();
        let (std, errors) = (0.3f64, [0.5f64, -1.25]);
        let output = Tensor::<2>::from_floats([[1.5], [0.75]], &device).require_grad();
        let target = Tensor::<2>::from_floats([[1.0], [2.0]], &device);
        let fixed = Gaussian::fixed(std).unwrap();
        assert_eq!(fixed.reading(), Reading::ValuesWithNoise { std: 0.3 });
        let value = fixed.log_density(output.clone(), &target);
        let logs = Tensor::<2>::full([2, 1], (2.0 * std.ln()) as f32, &device);
        let learned = Gaussian.log_density(Tensor::cat(vec![output.clone(), logs], 1), &target);
        let read = |tensor: Tensor<2>| crate::tensors::to_vec(tensor);
        let (values, expected) = (read(value.clone()), read(learned));
        let gradient = read(output.grad(&value.sum().backward()).unwrap());
        for (i, error) in errors.iter().enumerate() {
            let exact = -0.5 * (error * error / 0.09 + 0.09f64.ln() + (2.0 * PI).ln());
            assert!((f64::from(values[i]) - exact).abs() < 1e-5, "{} {exact}", values[i]);
            assert!((values[i] - expected[i]).abs() < 1e-5);
            let slope = -error / 0.09;
            assert!((f64::from(gradient[i]) - slope).abs() < 1e-5, "{} {slope}", gradient[i]);
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        for std in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-30, 1e30] {
            let message = Gaussian::fixed(std).unwrap_err().to_string();
            assert!(message.contains("positive number"), "{message}");
        }
        assert!(StudentT::new(2.0).is_err());
        assert!(StudentT::new(f64::NAN).is_err());
        assert!(Quantile::new(0.0).is_err());
        assert!(Quantile::new(1.0).is_err());
    }
}
