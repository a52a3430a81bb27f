//! Noise that is the same for every example, learned with the network.

use burn::module::{Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};

use super::Network;
use crate::draw::Draw;
use crate::error::{Error, Result};

/// A network that predicts values, with one trainable noise variance for each of them
/// (homoscedastic noise): appends the logarithms v of the variances to the outputs, `[ŷ | v]`, as
/// [`Gaussian`](crate::loss::Gaussian) and [`StudentT`](crate::loss::StudentT) read them.
///
/// ```
/// # use bayesmesh::{Draw, LearnedNoise, Network, Posterior, Prior, MeanField, Settings, Trainer};
/// # use bayesmesh::loss::{Expected, Gaussian};
/// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
/// # #[derive(Module, Debug)]
/// # struct Line { linear: Linear }
/// # impl Network for Line {
/// #     type Input = Tensor<2>;
/// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
/// # }
/// # let network = Line { linear: LinearConfig::new(3, 2).init(&Device::default()) };
/// let network = LearnedNoise::new(network, 2).with_initial_std(0.1)?;
/// let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?;
/// let trainer = Trainer::new(posterior, Expected(Gaussian), Settings::default());
/// # Ok::<(), bayesmesh::Error>(())
/// ```
///
/// A [`MeanField`](crate::MeanField) posterior takes v as a point estimate unless asked otherwise.
/// It is trained as a weight is, and weight decay draws it towards a variance of one.
#[derive(Module, Debug)]
pub struct LearnedNoise<N: Module> {
    network: N,
    log_variance: Param<Tensor<1>>,
}

impl<N: Network> LearnedNoise<N> {
    /// Around a network with so many outputs for an example. The noise starts at a standard
    /// deviation of one.
    pub fn new(network: N, outputs: usize) -> Self {
        let device = network.devices().into_iter().next().unwrap_or_default();
        Self { log_variance: constant(outputs, 0.0, &device), network }
    }

    /// Starts at another standard deviation, the same for every output; refuses what is not
    /// positive.
    pub fn with_initial_std(mut self, std: f32) -> Result<Self> {
        if !(std.is_finite() && std > 0.0) {
            return Err(Error::Setting(format!(
                "an initial noise of {std} is not possible; choose a positive standard deviation"
            )));
        }
        let (outputs, device) = (self.log_variance.dims()[0], self.log_variance.device());
        self.log_variance = constant(outputs, 2.0 * std.ln(), &device);
        Ok(self)
    }

    /// The network that predicts the values.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// The standard deviation of the noise of each output, `e^(v/2)`.
    pub fn std(&self) -> Vec<f32> {
        crate::tensors::to_vec((self.log_variance.val() * 0.5).exp())
    }

    /// `[rows, outputs]` to `[rows, 2·outputs]`.
    fn append(&self, values: Tensor<2>) -> Tensor<2> {
        let log_variance = self.log_variance.val();
        let ([rows, outputs], [known]) = (values.dims(), log_variance.dims());
        assert!(
            outputs == known,
            "the network has {outputs} outputs for an example, but `LearnedNoise` was made for \
             {known}"
        );
        Tensor::cat(vec![values, log_variance.unsqueeze_dim::<2>(0).expand([rows, known])], 1)
    }
}

fn constant(outputs: usize, value: f32, device: &Device) -> Param<Tensor<1>> {
    Param::from_tensor(Tensor::full([outputs], value, device))
}

// Burn's derived `Module` asks for `ModuleDisplay`, which every derived module has.
impl<N: Network + ModuleDisplay> Network for LearnedNoise<N> {
    type Input = N::Input;
    const STACKS_DRAWS: bool = N::STACKS_DRAWS;

    fn forward(&self, input: N::Input, draw: &Draw) -> Tensor<2> {
        self.append(self.network.forward(input, draw))
    }

    fn forward_draws(&self, input: N::Input, draw: &Draw) -> Tensor<2> {
        self.append(self.network.forward_draws(input, draw))
    }
}
