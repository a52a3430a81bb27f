//! One Monte Carlo sample of everything that is random.

use std::cell::Cell;
use std::ops::Range;

use bayesmesh_kernels::ops::{self, Mask};
use bayesmesh_kernels::stream::{Purpose, Stream};
use burn::tensor::Tensor;

/// The step number under which predictive draws are keyed, out of reach of training steps.
const PREDICTION: u32 = u32::MAX;

/// A joint Monte Carlo sample `s` of step `t`: weight noise, dropout masks and augmentation.
///
/// A draw is an address: it names streams keyed by (seed, purpose, step, draw), so that every rank,
/// thread and resumed run that evaluates draw `s` of step `t` sees the same numbers. All that it
/// remembers is how often it was asked for dropout, so that each call has a mask of its own. A
/// network that is random in its forward pass takes the draw and asks it for
/// [`dropout`](Draw::dropout).
#[derive(Clone, Debug)]
pub struct Draw {
    seed: u64,
    step: u32,
    index: u32,
    count: u32,
    /// Which rows of the whole batch it is evaluated on; unknown where it is empty.
    rows: Range<usize>,
    dropout: bool,
    latent: bool,
    /// How many steps a forecast has gone on from itself.
    lead: u32,
    dropout_calls: Cell<u32>,
    asked: Cell<bool>,
    asked_latent: Cell<bool>,
}

impl Draw {
    /// Draw `index` of training step `step`.
    pub fn new(seed: u64, step: u32, index: u32) -> Self {
        Self {
            seed,
            step,
            index,
            count: 1,
            rows: 0..0,
            dropout: true,
            latent: false,
            lead: 0,
            dropout_calls: Cell::new(0),
            asked: Cell::new(false),
            asked_latent: Cell::new(false),
        }
    }

    /// Draw `index` for prediction: the same posterior, other random numbers than any step.
    pub fn for_prediction(seed: u64, index: u32) -> Self {
        Self::new(seed, PREDICTION, index)
    }

    /// The same draw on some rows of the whole batch.
    ///
    /// What is random per example is addressed by its row in the whole batch, so that a data shard
    /// sees the numbers that the whole batch would see.
    pub fn with_rows(mut self, rows: Range<usize>) -> Self {
        self.rows = rows;
        self
    }

    /// This draw and those after it, `count` in all, stacked along the first axis of a batch.
    pub(crate) fn stacked(mut self, count: usize) -> Self {
        self.count = count as u32;
        self
    }

    /// The same draw of a prediction that has gone on from itself for so many steps: its weights
    /// stay, what is random in the forward pass is new. Leads count below 2³¹.
    pub fn at_lead(mut self, lead: usize) -> Self {
        self.lead = lead as u32;
        self
    }

    /// The same draw with dropout switched off.
    pub fn without_dropout(mut self) -> Self {
        self.dropout = false;
        self
    }

    /// The same draw with [latent numbers](Self::latent).
    pub fn with_latent(mut self) -> Self {
        self.latent = true;
        self
    }

    /// Whether it has latent numbers.
    pub(crate) fn has_latent(&self) -> bool {
        self.latent
    }

    /// Whether dropout is on.
    pub(crate) fn drops_out(&self) -> bool {
        self.dropout
    }

    /// Whether the draw belongs to prediction rather than to a training step.
    pub fn is_for_prediction(&self) -> bool {
        self.step == PREDICTION
    }

    /// The number of the draw within its step.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// How many draws are stacked along the first axis of a batch: this one and those after it.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether the forward pass has asked for random numbers, i.e. whether it depends on the draw:
    /// for dropout of a probability above zero, or for the stream of [`Purpose::Dropout`].
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.get()
    }

    /// Whether the forward pass has asked for latent numbers.
    pub(crate) fn was_asked_for_latent(&self) -> bool {
        self.asked_latent.get()
    }

    /// The latent numbers of this draw, `z ~ N(0, I_n)`: one vector for the whole batch, the same
    /// whenever it is asked for. A network that makes its function depend on z is random in a way
    /// that can be correlated over all of its outputs
    /// ([`FunctionalNoise`](crate::FunctionalNoise)). `None` under a posterior without.
    pub fn latent(&self, n: usize) -> Option<Vec<f32>> {
        self.asked_latent.set(self.asked_latent.get() || n > 0);
        self.latent.then(|| {
            let mut latent = vec![0.0; n];
            self.stream(Purpose::Latent).fill_normal(0, &mut latent);
            latent
        })
    }

    /// Latent numbers of this draw for each example, `[rows, n]`, standard normal and independent:
    /// noise fields for networks whose outputs are fields. As with dropout, an example is addressed
    /// by its row in the whole batch. `None` under a posterior without.
    pub fn latent_of_rows(&self, rows: usize, n: usize) -> Option<Vec<f32>> {
        self.asked_latent.set(self.asked_latent.get() || n > 0);
        self.latent.then(|| {
            let mut latent = vec![0.0; rows * n];
            let stream = self.stream(Purpose::Latent).at_tensor(1);
            stream.fill_normal((self.rows.start * n) as u64, &mut latent);
            latent
        })
    }

    /// The stream of this draw for one purpose.
    ///
    /// A network whose forward pass is random in another way than by dropout takes its numbers from
    /// the stream of [`Purpose::Dropout`], at a tensor beyond the number of its dropout layers.
    pub fn stream(&self, purpose: Purpose) -> Stream {
        if purpose == Purpose::Dropout {
            self.asked.set(true);
        }
        // Predictions are addressed from the last step downwards, out of reach of training.
        let step = match purpose {
            Purpose::Weights => self.step,
            _ => self.step.wrapping_sub(self.lead),
        };
        Stream::new(self.seed, purpose).at_step(step).at_draw(self.index)
    }

    /// Inverted dropout with a mask per example and unit: `y = x·m/(1−p)`, `m ~ Bernoulli(1−p)`.
    ///
    /// The n-th call within a forward pass is the n-th dropout layer. Under a posterior without
    /// dropout (a point estimate) it returns its input.
    ///
    /// # Shapes
    ///
    /// - `x`, output: `[rows, ...]`, or the rows divided further along the first axis, e.g.
    ///   `[rows·windows, ...]`
    ///
    /// # Panics
    ///
    /// If the probability is not in `[0, 1)`.
    pub fn dropout<const D: usize>(&self, x: Tensor<D>, probability: f64) -> Tensor<D> {
        let rows = match self.rows.len() {
            0 => x.dims()[0],
            rows => rows * self.count as usize,
        };
        let units = x.shape().num_elements() / rows.max(1);
        match self.mask(units, probability) {
            Some(mask) => ops::dropout(x, mask),
            None => x,
        }
    }

    /// The mask that [`dropout`](Draw::dropout) would use now, for operations that drop out on the
    /// way ([`ops::linear`]); `None` where nothing is dropped. Counts as a dropout layer.
    ///
    /// `units` is the size of an example at this layer.
    ///
    /// # Panics
    ///
    /// If the probability is not in `[0, 1)`.
    pub fn mask(&self, units: usize, probability: f64) -> Option<Mask> {
        assert!(
            (0.0..1.0).contains(&probability),
            "a dropout probability of {probability} is not possible; choose one from 0 to below 1"
        );
        let layer = self.dropout_calls.get();
        self.dropout_calls.set(layer + 1);
        self.asked.set(self.asked.get() || probability != 0.0);
        (self.dropout && probability != 0.0).then(|| Mask {
            stream: self.stream(Purpose::Dropout).at_tensor(layer),
            draws: self.count,
            start: (self.rows.start * units) as u64,
            probability: probability as f32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trajectory_keeps_its_weights_and_has_new_noise() {
        let numbers = |lead: usize, purpose: Purpose| {
            let mut numbers = [0.0; 4];
            Draw::for_prediction(1, 2).at_lead(lead).stream(purpose).fill_normal(0, &mut numbers);
            numbers
        };
        assert_eq!(numbers(0, Purpose::Weights), numbers(3, Purpose::Weights));
        assert_ne!(numbers(0, Purpose::Latent), numbers(3, Purpose::Latent));
        assert_ne!(numbers(2, Purpose::Latent), numbers(3, Purpose::Latent));
        // An example has its own numbers, wherever its batch is divided.
        let whole = Draw::new(1, 2, 3).with_latent().with_rows(0..3).latent_of_rows(3, 6).unwrap();
        let last = Draw::new(1, 2, 3).with_latent().with_rows(2..3).latent_of_rows(1, 6).unwrap();
        assert_eq!(whole[12..], last[..]);
        assert_ne!(whole[..6], last[..]);
        let draw = Draw::for_prediction(1, 2);
        assert_eq!(draw.latent(4), None);
        assert!(draw.at_lead(7).is_for_prediction());
    }

    #[test]
    fn a_draw_knows_whether_a_network_asked_for_randomness() {
        let asked = |ask: fn(&Draw)| {
            let draw = Draw::new(1, 2, 3);
            ask(&draw);
            draw.was_asked()
        };
        let x = || Tensor::<2>::ones([2, 3], &Default::default());
        assert!(!asked(|_| ()));
        // What the library asks for itself.
        assert!(!asked(|draw| _ = draw.stream(Purpose::Weights)));
        assert!(!asked(|draw| _ = draw.stream(Purpose::Augmentation)));
        // Nothing is dropped.
        assert!(!asked(|draw| _ = draw.mask(3, 0.0)));
        assert!(asked(|draw| _ = draw.mask(3, 0.1)));
        assert!(asked(|draw| _ = draw.stream(Purpose::Dropout)));
        let draw = Draw::new(1, 2, 3);
        draw.dropout(x(), 0.5);
        assert!(draw.was_asked());
        // Latent numbers are another thing.
        let draw = Draw::new(1, 2, 3);
        assert_eq!(draw.latent(4), None);
        assert!(draw.was_asked_for_latent() && !draw.was_asked());
        // The network asks, whatever the posterior makes of it.
        let draw = Draw::new(1, 2, 3).without_dropout();
        draw.dropout(x(), 0.5);
        assert!(draw.was_asked());
    }

    #[test]
    fn latent_numbers_belong_to_the_draw_and_are_normal() {
        let latent = |step, index| Draw::new(1, step, index).with_latent().latent(4096).unwrap();
        let z = latent(2, 3);
        assert_eq!(z, Draw::new(1, 2, 3).with_rows(7..9).with_latent().latent(4096).unwrap());
        assert!(z != latent(2, 4) && z != latent(3, 3));
        let mean = z.iter().sum::<f32>() / 4096.0;
        let square = z.iter().map(|z| z * z).sum::<f32>() / 4096.0;
        assert!(mean.abs() < 0.08 && (square - 1.0).abs() < 0.1, "{mean} {square}");
    }
}
