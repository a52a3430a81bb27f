//! The mean-field Gaussian.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bayesmesh_kernels::gaussian::{self, Prior, Scale};
use bayesmesh_kernels::stream::Purpose;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kl {
    /// In closed form; Gaussian priors only.
    Analytic,
    /// The mean over the draws of `ln q(w) − ln p(w)`; any prior.
    MonteCarlo,
}

/// Chooses tensors of a network.
type Selection = Arc<dyn Fn(&Slot) -> bool + Send + Sync>;

/// Mean-field variational inference: an independent Gaussian for every weight,
/// `q(w) = Π N(w_i; μ_i, σ(ρ_i)²)`, drawn by `w = μ + σ(ρ)·ε`.
///
/// By default all weights are distributed but those of normalisation layers and
/// [learned noise](crate::LearnedNoise). Means start at the network's own weights, σ = exp(ρ) starts
/// at `0.01·(1/√fan_in + 1e-5)`, and the KL to the prior is analytic where the prior is Gaussian.
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
    scale: Scale,
    initial_std: InitialStd,
    prior: Prior,
    prior_per_fan_in: bool,
    kl: Kl,
}

impl<N: fmt::Debug> fmt::Debug for MeanField<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeanField")
            .field("scale", &self.scale)
            .field("initial_std", &self.initial_std)
            .field("prior", &self.prior)
            .field("kl", &self.kl)
            .finish_non_exhaustive()
    }
}

impl<N: Network> MeanField<N> {
    /// Wraps a network. Refuses a prior whose standard deviations or weight are out of range.
    pub fn new(network: N, prior: Prior) -> Result<Self> {
        let positive = |std: f32| std.is_finite() && std > 0.0;
        let valid = match prior {
            Prior::Normal { mean, std } => mean.is_finite() && positive(std),
            Prior::ScaleMixture { weight, std_wide, std_narrow } => {
                (0.0..=1.0).contains(&weight) && positive(std_wide) && positive(std_narrow)
            }
        };
        if !valid {
            return Err(Error::Setting(format!(
                "prior {prior:?}: standard deviations must be positive, a mixture weight between \
                 0 and 1"
            )));
        }
        let posterior = Self {
            parameters: Parameters::new(network),
            selection: Arc::new(|slot| !slot.is_point_by_default()),
            scale: Scale::Exp,
            initial_std: InitialStd::PerFanIn(0.01),
            kl: match prior {
                Prior::Normal { .. } => Kl::Analytic,
                Prior::ScaleMixture { .. } => Kl::MonteCarlo,
            },
            prior,
            prior_per_fan_in: false,
        };
        Ok(posterior.settle())
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
        self.scale = scale;
        self.settle()
    }

    /// Chooses where the standard deviations start; refuses what is not positive.
    pub fn with_initial_std(mut self, initial: InitialStd) -> Result<Self> {
        let (InitialStd::Constant(std) | InitialStd::PerFanIn(std)) = initial;
        if !(std.is_finite() && std > 0.0) {
            return Err(Error::Setting(format!(
                "an initial standard deviation of {std} is not possible; choose a positive number"
            )));
        }
        self.initial_std = initial;
        Ok(self.settle())
    }

    /// Scales the prior of each layer by `1/√(3·fan_in)`, as torch_blue's `rescale_prior` does.
    #[must_use]
    pub fn with_prior_per_fan_in(mut self, rescale: bool) -> Self {
        self.prior_per_fan_in = rescale;
        self
    }

    /// Chooses how the KL is computed; the closed form exists for Gaussian priors only.
    pub fn with_kl(mut self, kl: Kl) -> Result<Self> {
        if kl == Kl::Analytic && !matches!(self.prior, Prior::Normal { .. }) {
            return Err(Error::Setting(
                "a scale-mixture prior has no closed-form KL; use the Monte Carlo KL".to_owned(),
            ));
        }
        self.kl = kl;
        Ok(self)
    }

    /// Lays the parameters out anew after a change of what is distributed and how.
    fn settle(mut self) -> Self {
        let (selection, scale, initial) = (self.selection.clone(), self.scale, self.initial_std);
        self.parameters = self.parameters.with_families(|slot| {
            if !selection(slot) {
                return Some((Arc::new(Point) as Arc<dyn Family>, Vec::new()));
            }
            let std = match initial {
                InitialStd::Constant(std) => std,
                InitialStd::PerFanIn(std) => {
                    std * (1.0 / (slot.fan_in.max(1) as f32).sqrt() + 1e-5)
                }
            };
            Some((Arc::new(Gaussian(scale)), vec![scale.inverse(std)]))
        });
        self
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
        if self.kl != Kl::Analytic {
            return 0.0;
        }
        let mut sum = 0.0;
        for (_, slot, values) in self.gaussians() {
            let Prior::Normal { mean, std } = self.prior_of(slot) else {
                unreachable!("`with_kl` refuses the closed form for other priors");
            };
            if slot.range.start < range.end && range.start < slot.range.end {
                let (start, prior) = (slot.range.start, (mean, std));
                sum += SlotKl { scale: self.scale, values, start, prior, weight }
                    .add(&range, gradient);
            }
        }
        sum
    }

    fn penalty_of_draw(&self, draw: &Draw, weight: f32, gradient: &mut [f32]) -> f64 {
        if self.kl != Kl::MonteCarlo {
            return 0.0;
        }
        let mut sum = 0.0;
        for (index, slot, [mean, rho]) in self.gaussians() {
            let (grad_mean, grad_rho) = gradient[slot.range.clone()].split_at_mut(slot.len());
            let stream = draw.stream(Purpose::Weights).at_tensor(index as u32);
            let prior = self.prior_of(slot);
            sum += gaussian::kl_monte_carlo(
                &stream, 0, self.scale, mean, rho, &prior, weight, grad_mean, grad_rho,
            );
        }
        sum
    }
}
