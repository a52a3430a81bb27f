//! The mean-field Gaussian.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bayesmesh_kernels::gaussian::{self, Prior, Scale};
use bayesmesh_kernels::stream::Purpose;
use bayesmesh_schema::{Choice, Keys, Lookup};
use serde::Deserialize;

use super::divergence::SlotKl;
use super::family::{Family, Gaussian, Point};
use super::{Parameters, Posterior, Slot};
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::network::Network;

/// Where the standard deviations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InitialStd {
    /// The same for every weight.
    Constant(f32),
    /// `std·(1/√fan_in + 1e-5)`, as torch_blue does it.
    PerFanIn(f32),
}

/// How the distance to the prior is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kl {
    /// In closed form; Gaussian priors only.
    Analytic,
    /// The mean over the draws of `ln q(w) − ln p(w)`; any prior.
    MonteCarlo,
}

/// Variational inference with an independent Gaussian for every weight.
///
/// What a [`MeanField`] posterior is like, apart from the network:
/// [`init`](Self::init) puts it around one.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct MeanFieldConfig {
    /// Where the standard deviations σ start. The means start as the network's own weights.
    #[key(default = 0.01, above = 0, also("std", "sigma", "init_std"))]
    pub initial_std: f32,
    /// Multiplies the initial σ of a layer by 1/√fan_in, as its initial weights are.
    #[key(default = true)]
    pub initial_std_per_fan_in: bool,
    /// How σ is made from the trained number ρ: exp(ρ), or ln(1 + exp(ρ)).
    #[key(default = "exp", also("parameterization", "parameterisation"))]
    pub scale: Scale,
    /// Multiplies the prior of a layer by 1/√(3·fan_in).
    #[key(default = false, also("rescale_prior"))]
    pub prior_per_fan_in: bool,
    /// What a weight is believed to be before the data. For `posterior.kind = "mean-field"`.
    pub prior: Prior,
    /// How the distance KL(q‖p) to the prior is computed: in closed form, for normal priors only,
    /// or as the mean over the draws of ln q(w) − ln p(w).
    #[key(derived(kl_of_prior, "`\"analytic\"`; `\"monte-carlo\"` for a scale mixture"))]
    pub kl: Kl,
}

/// The closed form where there is one.
fn kl_of_prior(key: Lookup<'_>) -> &'static str {
    match key("prior.kind").as_deref() {
        Some("normal") => "\"analytic\"",
        _ => "\"monte-carlo\"",
    }
}

impl MeanFieldConfig {
    /// What holds unless another thing is chosen: see [`MeanField`].
    pub fn new(prior: Prior) -> Self {
        Self {
            initial_std: 0.01,
            initial_std_per_fan_in: true,
            scale: Scale::Exp,
            prior_per_fan_in: false,
            prior,
            kl: match prior {
                Prior::Normal { .. } => Kl::Analytic,
                Prior::ScaleMixture { .. } => Kl::MonteCarlo,
            },
        }
    }

    /// The posterior around a network.
    pub fn init<N: Network>(self, network: N) -> Result<MeanField<N>> {
        self.check()?;
        let posterior = MeanField {
            parameters: Parameters::new(network),
            selection: Arc::new(|slot| !slot.is_point_by_default()),
            config: self,
        };
        Ok(posterior.settle())
    }

    /// Refuses what is out of range or does not go together.
    fn check(&self) -> Result<()> {
        let positive = |std: f32| std.is_finite() && std > 0.0;
        let prior = self.prior;
        let valid = match prior {
            Prior::Normal { mean, std } => mean.is_finite() && positive(std),
            Prior::ScaleMixture { weight, std_wide, std_narrow } => {
                (0.0..=1.0).contains(&weight) && positive(std_wide) && positive(std_narrow)
            }
        };
        let problem = match () {
            () if !valid => format!(
                "prior {prior:?}: standard deviations must be positive, a mixture weight between \
                 0 and 1"
            ),
            () if !positive(self.initial_std) => format!(
                "an initial standard deviation of {} is not possible; choose a positive number",
                self.initial_std
            ),
            () if self.kl == Kl::Analytic && !matches!(prior, Prior::Normal { .. }) => {
                "a scale-mixture prior has no closed-form KL; use the Monte Carlo KL".to_owned()
            }
            () => return Ok(()),
        };
        Err(Error::Setting(problem))
    }

    /// Where σ of a tensor starts.
    fn initial_std_of(&self, slot: &Slot) -> f32 {
        let fan_in = slot.fan_in.max(1) as f32;
        // torch_blue adds 1e-5 to the factor.
        let factor = if self.initial_std_per_fan_in { 1.0 / fan_in.sqrt() + 1e-5 } else { 1.0 };
        self.initial_std * factor
    }

    fn prior_of(&self, slot: &Slot) -> Prior {
        if !self.prior_per_fan_in {
            return self.prior;
        }
        let factor = 1.0 / (3.0 * slot.fan_in.max(1) as f32).sqrt();
        // torch_blue adds 1e-5 to the factor of standard deviations.
        let rescaled = |std: f32| std * (factor + 1e-5);
        match self.prior {
            Prior::Normal { mean, std } => {
                Prior::Normal { mean: mean * factor, std: rescaled(std) }
            }
            Prior::ScaleMixture { weight, std_wide, std_narrow } => Prior::ScaleMixture {
                weight,
                std_wide: rescaled(std_wide),
                std_narrow: rescaled(std_narrow),
            },
        }
    }
}

/// Chooses tensors of a network.
type Selection = Arc<dyn Fn(&Slot) -> bool + Send + Sync>;

/// Mean-field variational inference: an independent Gaussian for every weight,
/// `q(w) = Π N(w_i; μ_i, σ(ρ_i)²)`, drawn by `w = μ + σ(ρ)·ε`.
///
/// By default all weights are distributed but those of normalisation layers and [learned
/// noise](crate::LearnedNoise). Means start at the network's own weights, σ = exp(ρ) starts at
/// `0.01·(1/√fan_in + 1e-5)`, and the KL to the prior is analytic where the prior is Gaussian.
///
/// ```
/// # use bayesmesh::{Draw, MeanField, Network, Posterior, Prior};
/// # use burn::{module::Module, nn::{Linear, LinearConfig}, tensor::{Device, Tensor}};
/// # #[derive(Module, Debug)]
/// # struct Line { linear: Linear }
/// # impl Network for Line {
/// #     type Input = Tensor<2>;
/// #     fn forward(&self, x: Tensor<2>, _: &Draw) -> Tensor<2> { self.linear.forward(x) }
/// # }
/// let network = Line { linear: LinearConfig::new(3, 2).init(&Device::default()) };
/// let posterior = MeanField::new(network, Prior::normal(0.0, 1.0))?;
/// assert_eq!(posterior.parameters().values().len(), 2 * (3 * 2 + 2)); // μ and ρ
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Clone)]
pub struct MeanField<N> {
    parameters: Parameters<N>,
    selection: Selection,
    config: MeanFieldConfig,
}

impl<N: fmt::Debug> fmt::Debug for MeanField<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeanField").field("config", &self.config).finish_non_exhaustive()
    }
}

impl<N: Network> MeanField<N> {
    /// Wraps a network. Refuses a prior whose standard deviations or weight are out of range.
    pub fn new(network: N, prior: Prior) -> Result<Self> {
        MeanFieldConfig::new(prior).init(network)
    }

    /// Chooses which tensors are distributed; the others are point estimates.
    #[must_use]
    pub fn with_selection(
        mut self,
        selection: impl Fn(&Slot) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.selection = Arc::new(selection);
        self.settle()
    }

    /// Chooses how σ is made from ρ.
    #[must_use]
    pub fn with_scale(mut self, scale: Scale) -> Self {
        self.config.scale = scale;
        self.settle()
    }

    /// Chooses where the standard deviations start; refuses what is not positive.
    pub fn with_initial_std(mut self, initial: InitialStd) -> Result<Self> {
        let (std, per_fan_in) = match initial {
            InitialStd::Constant(std) => (std, false),
            InitialStd::PerFanIn(std) => (std, true),
        };
        self.config.initial_std = std;
        self.config.initial_std_per_fan_in = per_fan_in;
        self.config.check()?;
        Ok(self.settle())
    }

    /// Scales the prior of each layer by `1/√(3·fan_in)`, as torch_blue's `rescale_prior` does.
    #[must_use]
    pub fn with_prior_per_fan_in(mut self, rescale: bool) -> Self {
        self.config.prior_per_fan_in = rescale;
        self
    }

    /// Chooses how the KL is computed; the closed form exists for Gaussian priors only.
    pub fn with_kl(mut self, kl: Kl) -> Result<Self> {
        self.config.kl = kl;
        self.config.check()?;
        Ok(self)
    }

    /// Lays the parameters out anew after a change of what is distributed and how.
    fn settle(mut self) -> Self {
        let (selection, config) = (self.selection.clone(), self.config.clone());
        self.parameters = self.parameters.with_families(|slot| {
            if !selection(slot) {
                return Some((Arc::new(Point) as Arc<dyn Family>, Vec::new()));
            }
            let rho = config.scale.inverse(config.initial_std_of(slot));
            Some((Arc::new(Gaussian(config.scale)), vec![rho]))
        });
        self
    }

    /// The distributed slots, with their index among all and (μ, ρ).
    fn gaussians(&self) -> impl Iterator<Item = (usize, &Slot, [&[f32]; 2])> {
        let slots = self.parameters.slots().iter().enumerate();
        slots.filter(|(_, slot)| !slot.family.is_certain()).map(|(index, slot)| {
            let (mean, rho) = self.parameters.values()[slot.range.clone()].split_at(slot.len());
            (index, slot, [mean, rho])
        })
    }
}

impl<N: Network> Posterior for MeanField<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        &mut self.parameters
    }

    fn penalty(&self, weight: f32, range: Range<usize>, gradient: &mut [f32]) -> f64 {
        if self.config.kl != Kl::Analytic {
            return 0.0;
        }
        let mut sum = 0.0;
        for (_, slot, values) in self.gaussians() {
            let Prior::Normal { mean, std } = self.config.prior_of(slot) else {
                unreachable!("the closed form is refused for other priors");
            };
            if slot.range.start < range.end && range.start < slot.range.end {
                let (start, prior) = (slot.range.start, (mean, std));
                sum += SlotKl { scale: self.config.scale, values, start, prior, weight }
                    .add(&range, gradient);
            }
        }
        sum
    }

    fn penalty_of_draw(&self, draw: &Draw, weight: f32, gradient: &mut [f32]) -> f64 {
        if self.config.kl != Kl::MonteCarlo {
            return 0.0;
        }
        let mut sum = 0.0;
        for (index, slot, [mean, rho]) in self.gaussians() {
            let (grad_mean, grad_rho) = gradient[slot.range.clone()].split_at_mut(slot.len());
            let stream = draw.stream(Purpose::Weights).at_tensor(index as u32);
            let prior = self.config.prior_of(slot);
            sum += gaussian::kl_monte_carlo(
                &stream,
                0,
                self.config.scale,
                mean,
                rho,
                &prior,
                weight,
                grad_mean,
                grad_rho,
            );
        }
        sum
    }
}
