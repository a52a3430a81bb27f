//! Distributions over the weights of a network.
//!
//! A posterior wraps an ordinary Burn module and gives, for every [`Draw`], a module of the same
//! type with other weights or other dropout masks:
//!
//! | posterior | a draw is | penalty |
//! |---|---|---|
//! | [`MeanField`] | weights `w = μ + σ(ρ)·ε` | `KL(q‖p)` |
//! | [`McDropout`] | the same weights, other masks | none (add weight decay in the optimiser) |
//! | [`Point`] | the network itself; dropout in training only | none |

mod divergence;
mod leaves;
mod mc_dropout;
mod mean_field;
mod parameters;
mod point;
mod randomness;
mod slot;

pub use bayesmesh_kernels::gaussian::{Prior, Scale};
pub(crate) use leaves::{Leaf, SamplingBackward, numbers};
pub use mc_dropout::McDropout;
pub use mean_field::{InitialStd, Kl, MeanField};
pub use parameters::{Drawn, Parameters, Snapshot, Tape};
pub use point::Point;
pub use randomness::foreign_randomness;
pub(crate) use slot::to_vec;
pub use slot::{Family, Slot};

use std::ops::Range;

use bayesmesh_kernels::stream::{Purpose, Stream};

use crate::draw::Draw;
use crate::network::Network;

/// A distribution over networks whose trainable numbers are one flat vector.
pub trait Posterior: Clone + Send {
    /// The network it is over.
    type Network: Network;

    /// The numbers and the structure of the network.
    fn parameters(&self) -> &Parameters<Self::Network>;

    /// The numbers, to change.
    fn parameters_mut(&mut self) -> &mut Parameters<Self::Network>;

    /// The draw as this posterior understands it, e.g. without dropout.
    fn adapt(&self, draw: Draw) -> Draw {
        draw
    }

    /// Whether all draws have the same weights, so that several can go through the network as one
    /// batch.
    fn draws_share_weights(&self) -> bool {
        false
    }

    /// The part of `KL(q‖p)`, in closed form, that belongs to the elements `range` of the flat
    /// vector; adds `weight` times its derivatives by them to `gradient`, which has the length of
    /// the range. Zero where there is none. The parts of ranges that follow one another add up to
    /// the whole.
    ///
    /// It does not depend on the draws, so it is added once, after the sum over ranks.
    fn kl(&self, weight: f32, range: Range<usize>, gradient: &mut [f32]) -> f64 {
        let _ = (weight, range, gradient);
        0.0
    }

    /// `ln q(w_s) − ln p(w_s)` of one draw; adds `weight` times its gradient. Zero where the
    /// penalty is in closed form or absent.
    fn kl_of_draw(&self, draw: &Draw, weight: f32, gradient: &mut [f32]) -> f64 {
        let _ = (draw, weight, gradient);
        0.0
    }

    /// Sets every point and mean to `U(−1/√fan_in, 1/√fan_in)` (Kaiming uniform with a = √5, the
    /// default of PyTorch) from a seed; normalisation layers and
    /// [learned noise](crate::LearnedNoise) keep what the network has.
    #[must_use]
    fn initialised(mut self, seed: u64) -> Self
    where
        Self: Sized,
    {
        self.parameters_mut().set_means(|index, slot, values| {
            if slot.is_point_by_default() {
                return;
            }
            let bound = 1.0 / (slot.fan_in.max(1) as f32).sqrt();
            let stream = Stream::new(seed, Purpose::Initialisation).at_tensor(index as u32);
            stream.fill_uniform(0, values);
            values.iter_mut().for_each(|u| *u = (2.0 * *u - 1.0) * bound);
        });
        self
    }
}
