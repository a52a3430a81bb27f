//! Any posterior that a recipe can name.

use std::ops::Range;

use anyhow::Result;
use bayesmesh::checkpoint::NamedTensor;
use bayesmesh::posterior::{InitialStd, Kl, Ownership, Parameters, Update};
use bayesmesh::{Draw, McDropout, MeanField, Network, Point, Posterior, Prior, Scale};

use crate::recipe;

/// Any posterior that a recipe can name: one type, so that the trainer is compiled once for a
/// network.
#[derive(Clone)]
pub enum AnyPosterior<N: Network> {
    MeanField(MeanField<N>),
    McDropout(McDropout<N>),
    Point(Point<N>),
}

macro_rules! for_posterior {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            AnyPosterior::MeanField($inner) => $call,
            AnyPosterior::McDropout($inner) => $call,
            AnyPosterior::Point($inner) => $call,
        }
    };
}

impl<N: Network> Posterior for AnyPosterior<N> {
    type Network = N;

    fn parameters(&self) -> &Parameters<N> {
        for_posterior!(self, posterior => posterior.parameters())
    }

    fn parameters_mut(&mut self) -> &mut Parameters<N> {
        for_posterior!(self, posterior => posterior.parameters_mut())
    }

    fn ownership(&self) -> Ownership {
        for_posterior!(self, posterior => posterior.ownership())
    }

    fn member(&self, index: usize, seed: u64) -> Self {
        match self {
            Self::MeanField(posterior) => Self::MeanField(posterior.member(index, seed)),
            Self::McDropout(posterior) => Self::McDropout(posterior.member(index, seed)),
            Self::Point(posterior) => Self::Point(posterior.member(index, seed)),
        }
    }

    fn update(&mut self, update: &mut Update<'_>) -> bayesmesh::Result<()> {
        for_posterior!(self, posterior => posterior.update(update))
    }

    fn after_step(&mut self, steps: usize) {
        for_posterior!(self, posterior => posterior.after_step(steps))
    }

    fn state(&self) -> Vec<NamedTensor> {
        for_posterior!(self, posterior => posterior.state())
    }

    fn restore_state(&mut self, state: Vec<NamedTensor>) -> bayesmesh::Result<()> {
        for_posterior!(self, posterior => posterior.restore_state(state))
    }

    fn adapt(&self, draw: Draw) -> Draw {
        for_posterior!(self, posterior => posterior.adapt(draw))
    }

    fn relies_on_dropout(&self) -> bool {
        for_posterior!(self, posterior => posterior.relies_on_dropout())
    }

    fn penalty(&self, weight: f32, range: Range<usize>, gradient: &mut [f32]) -> f64 {
        for_posterior!(self, posterior => posterior.penalty(weight, range, gradient))
    }

    fn penalty_of_draw(&self, draw: &Draw, weight: f32, gradient: &mut [f32]) -> f64 {
        for_posterior!(self, posterior => posterior.penalty_of_draw(draw, weight, gradient))
    }
}

/// The posterior that a recipe describes, around a network.
pub fn posterior<N: Network>(posterior: &recipe::Posterior, network: N) -> Result<AnyPosterior<N>> {
    Ok(match posterior {
        recipe::Posterior::McDropout => AnyPosterior::McDropout(McDropout::new(network)),
        recipe::Posterior::Point => AnyPosterior::Point(Point::new(network)),
        recipe::Posterior::MeanField(settings) => {
            let prior = match settings.prior {
                recipe::Prior::Normal { mean, std } => Prior::normal(mean as f32, std as f32),
                recipe::Prior::ScaleMixture { weight, std_wide, std_narrow } => {
                    Prior::ScaleMixture {
                        weight: weight as f32,
                        std_wide: std_wide as f32,
                        std_narrow: std_narrow as f32,
                    }
                }
            };
            let std = settings.initial_std as f32;
            let mean_field = MeanField::new(network, prior)?
                .with_scale(match settings.scale {
                    recipe::Scale::Exp => Scale::Exp,
                    recipe::Scale::Softplus => Scale::Softplus,
                })
                .with_initial_std(match settings.initial_std_per_fan_in {
                    true => InitialStd::PerFanIn(std),
                    false => InitialStd::Constant(std),
                })?
                .with_prior_per_fan_in(settings.prior_per_fan_in)
                .with_kl(match settings.kl {
                    recipe::Kl::Analytic => Kl::Analytic,
                    recipe::Kl::MonteCarlo => Kl::MonteCarlo,
                })?;
            AnyPosterior::MeanField(mean_field)
        }
    })
}
