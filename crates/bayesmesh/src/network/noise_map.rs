//! How a normalisation listens to the latent numbers of a draw.

use burn::module::{Module, Param};
use burn::nn::{Initializer, LinearConfig};
use burn::tensor::{Device, Tensor};

/// A linear map from the [latent numbers](crate::Draw::latent) z of a draw to changes of the scale
/// and the shift of a normalisation (a conditional normalisation):
/// `γ′ = γ + A z`, `β′ = β + B z`.
///
/// [`Posterior::initialised`](crate::Posterior::initialised) lets `A z` and `B z` start with a
/// standard deviation of 0.1: draws differ little, but they do, so that a loss of their spread has
/// a gradient. A [`MeanField`](crate::MeanField) posterior takes the map as a point estimate unless
/// asked otherwise.
#[derive(Module, Debug)]
pub struct NoiseMap {
    /// `[latent, 2·units]`: A beside B.
    weight: Param<Tensor<2>>,
}

impl NoiseMap {
    /// The standard deviation of the changes at the start.
    pub(crate) const START: f32 = 0.1;

    /// From so many latent numbers, for a normalisation of so many units.
    pub fn new(latent: usize, units: usize, device: &Device) -> Self {
        let bound = f64::from(Self::START) * (3.0 / latent.max(1) as f64).sqrt();
        let initializer = Initializer::Uniform { min: -bound, max: bound };
        let linear = LinearConfig::new(latent, 2 * units).with_bias(false);
        Self { weight: linear.with_initializer(initializer).init(device).weight }
    }

    /// `γ′` and `β′`.
    ///
    /// # Shapes
    ///
    /// - `latent`: `[1, latent]`
    /// - `gamma`, `beta`, outputs: `[units]`
    pub fn apply(
        &self,
        latent: Tensor<2>,
        gamma: Tensor<1>,
        beta: Tensor<1>,
    ) -> (Tensor<1>, Tensor<1>) {
        let [units] = gamma.dims();
        let changes: Tensor<1> = latent.matmul(self.weight.val()).squeeze_dim(0);
        (gamma + changes.clone().narrow(0, 0, units), beta + changes.narrow(0, units, units))
    }
}
