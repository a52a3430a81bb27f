//! What a step does to the trainable numbers.

use std::ops::Range;

use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::Device;

use crate::trainer::Optimizer;

/// One step's change of the trainable numbers that a rank updates: all of them, or a part where
/// the optimiser is divided among ranks.
///
/// While it lasts the numbers are here and not in the posterior's
/// [parameters](super::Posterior::parameters).
pub struct Update<'a> {
    /// Which numbers of the flat vector these are.
    pub range: Range<usize>,
    /// The numbers.
    pub values: &'a mut [f32],
    /// The gradient by them: data term and penalty, summed over draws and ranks and clipped.
    pub gradient: Vec<f32>,
    /// The learning rate of the step.
    pub rate: f64,
    /// Steps done before this one.
    pub step: usize,
    pub(crate) seed: u64,
    pub(crate) member: usize,
    pub(crate) optimizer: &'a mut Optimizer,
    pub(crate) device: &'a Device,
}

impl Update<'_> {
    /// Lets the optimiser take its step with the gradient, which is used up.
    pub fn by_optimizer(&mut self) {
        let gradient = std::mem::take(&mut self.gradient);
        self.optimizer.step(self.rate, self.values, gradient, self.device);
    }

    /// Random numbers for this step and member. Address them by places in the flat vector,
    /// `range.start..`, so that the result does not depend on how it is divided.
    pub fn noise(&self) -> Stream {
        Stream::new(self.seed, Purpose::Update)
            .at_step(self.step as u32)
            .at_draw(self.member as u32)
    }
}
