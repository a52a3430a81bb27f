//! Distributions over the weights of a network.
//!
//! A posterior wraps an ordinary Burn module and gives, for every [`Draw`], a module of the same
//! type with other weights or other dropout masks:
//!
//! | posterior | a draw is | penalty |
//! |---|---|---|
//! | [`MeanField`] | weights `w = μ + σ(ρ)·ε` | `KL(q‖p)` |
//! | [`FunctionalNoise`] | the same weights, another random vector `z` | none |
//! | [`McDropout`] | the same weights, other masks | none (add weight decay in the optimiser) |
//! | [`Ensemble`] | a member: another network of the same kind, trained from other first weights | none (weight decay likewise) |
//! | [`Point`] | the network itself; dropout in training only | none |
//!
//! A posterior of your own is one `impl` of [`Posterior`]; `examples/own_posterior` has one. What
//! it may say, and what holds if it says nothing:
//!
//! | question | answered by | otherwise |
//! |---|---|---|
//! | how are single weights drawn, and what does their gradient mean? | a [`Family`] for each tensor | points |
//! | whose are the numbers? | [`ownership`](Posterior::ownership) | shared by all draws |
//! | what is added to the loss? | [`penalty`](Posterior::penalty), [`penalty_of_draw`](Posterior::penalty_of_draw) | nothing |
//! | how does a step change the numbers? | [`update`](Posterior::update) | by the optimiser |
//! | what happens then? | [`after_step`](Posterior::after_step) | nothing |
//! | what else must a checkpoint keep? | [`state`](Posterior::state) | nothing |

mod config;
mod divergence;
mod ensemble;
pub mod family;
mod functional_noise;
mod leaves;
mod mc_dropout;
mod mean_field;
mod parameters;
mod point;
mod randomness;
mod slot;
mod update;

pub use bayesmesh_kernels::gaussian::{Prior, Scale};
pub use config::PosteriorConfig;
pub use ensemble::Ensemble;
pub use family::Family;
pub use functional_noise::FunctionalNoise;
pub(crate) use leaves::{Leaf, SamplingBackward, numbers};
pub use mc_dropout::McDropout;
pub use mean_field::{InitialStd, Kl, MeanField, MeanFieldConfig};
pub use parameters::{Drawn, Parameters, Snapshot, Tape};
pub use point::Point;
pub use randomness::foreign_randomness;
pub use slot::Slot;
pub use update::Update;

use std::ops::Range;

use auto_impl::auto_impl;
use bayesmesh_kernels::stream::{Purpose, Stream};

use dyn_clone::DynClone;

use crate::checkpoint::NamedTensor;
use crate::draw::Draw;
use crate::error::{Error, Result};
use crate::network::Network;

/// Whose the trainable numbers of a posterior are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ownership {
    /// All draws are made from the same numbers. Every rank has them; the gradient is the mean over
    /// all draws, summed over the whole mesh.
    #[default]
    Shared,
    /// Each draw has numbers of its own: it is a *member* of an ensemble, or a chain. A member
    /// lives on the sample rank of its draw only, and its gradient is summed over the data axis
    /// only.
    ///
    /// A member's gradient is that of S times the loss, so that members whose losses are averaged
    /// are trained as each would be alone. A loss of the mixture of all trains them jointly.
    PerDraw,
}

/// A distribution over networks whose trainable numbers are one flat vector.
///
/// Where each draw has numbers of its own, a value is one member: the trainer makes as many as
/// there are draws by [`become_member`](Self::become_member).
///
/// A `Box<dyn Posterior<Network = N>>` is a posterior too, for programs that choose one when they
/// run.
#[auto_impl(Box)]
pub trait Posterior: DynClone + Send {
    /// The network it is over.
    type Network: Network;

    /// The numbers and the structure of the network.
    fn parameters(&self) -> &Parameters<Self::Network>;

    /// The numbers, to change.
    fn parameters_mut(&mut self) -> &mut Parameters<Self::Network>;

    /// Whose the numbers are.
    fn ownership(&self) -> Ownership {
        Ownership::Shared
    }

    /// Makes this member `index` as it begins, where each draw has numbers of its own. By default
    /// it is initialised like [`initialised`](Self::initialised), each member by other random
    /// numbers.
    fn become_member(&mut self, index: usize, seed: u64) {
        let stream = Stream::new(seed, Purpose::Initialisation).at_draw(index as u32);
        initialise(self.parameters_mut(), &stream);
    }

    /// The draw as this posterior understands it, e.g. without dropout.
    fn adapt(&self, draw: Draw) -> Draw {
        draw
    }

    /// Whether dropout is all that tells draws apart: then a network that does not ask its draw for
    /// any is refused.
    fn relies_on_dropout(&self) -> bool {
        false
    }

    /// Whether [latent numbers](Draw::latent) are what tells draws apart: then a network that does
    /// not ask its draw for any is refused.
    fn relies_on_latent(&self) -> bool {
        false
    }

    /// The part of the penalty, e.g. `KL(q‖p)` in closed form, that belongs to the elements `range`
    /// of the flat vector; adds `weight` times its derivatives by them to `gradient`, which has the
    /// length of the range. The parts of ranges that follow one another add up to the whole.
    ///
    /// It does not depend on the draws, so it is added once, after the sum over ranks.
    /// [`Parameters::penalty`] writes it for you where it is a sum over weights.
    fn penalty(&self, weight: f32, range: Range<usize>, gradient: &mut [f32]) -> f64 {
        let _ = (weight, range, gradient);
        0.0
    }

    /// A penalty that is estimated from draws: that of one of them, e.g. `ln q(w_s) − ln p(w_s)`.
    /// Adds `weight` times its gradient.
    fn penalty_of_draw(&self, draw: &Draw, weight: f32, gradient: &mut [f32]) -> f64 {
        let _ = (draw, weight, gradient);
        0.0
    }

    /// Changes the numbers by one step. By default the optimiser does it.
    ///
    /// It must do the same on every rank that has these numbers.
    fn update(&mut self, update: &mut Update<'_>) -> Result<()> {
        update.by_optimizer();
        Ok(())
    }

    /// Called after every step, when all numbers have changed, with the steps done so far: for
    /// moments along the way, or samples that a chain keeps.
    fn after_step(&mut self, steps: usize) {
        let _ = steps;
    }

    /// What the posterior has beside its numbers and a checkpoint must keep.
    fn state(&self) -> Vec<NamedTensor> {
        Vec::new()
    }

    /// Takes back what [`state`](Self::state) gave.
    fn restore_state(&mut self, state: Vec<NamedTensor>) -> Result<()> {
        match state.first() {
            None => Ok(()),
            Some(tensor) => Err(Error::Mismatch(format!(
                "the checkpoint has {} of a posterior, which this one has not; it belongs to \
                 another posterior",
                tensor.name
            ))),
        }
    }

    /// Sets the centre of every weight to `U(−1/√fan_in, 1/√fan_in)` (Kaiming uniform with a = √5,
    /// the default of PyTorch) from a seed; normalisation layers, [learned
    /// noise](crate::LearnedNoise) and [output scales](crate::OutputScale) keep what the
    /// network has, and [noise maps](crate::NoiseMap) start small.
    #[must_use]
    #[auto_impl(keep_default_for(Box))]
    fn initialised(mut self, seed: u64) -> Self
    where
        Self: Sized,
    {
        initialise(self.parameters_mut(), &Stream::new(seed, Purpose::Initialisation));
        self
    }
}

dyn_clone::clone_trait_object!(<N> Posterior<Network = N> where N: Network);

fn initialise<N: Network>(parameters: &mut Parameters<N>, stream: &Stream) {
    parameters.set_centres(|index, slot, values| {
        let Some(bound) = slot.initial_bound() else { return };
        stream.at_tensor(index as u32).fill_uniform(0, values);
        values.iter_mut().for_each(|u| *u = (2.0 * *u - 1.0) * bound);
    });
}
