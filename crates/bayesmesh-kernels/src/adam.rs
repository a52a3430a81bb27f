//! Adam and AdamW on slices.

use rayon::prelude::*;

use crate::simd::{Kernel, dispatch};

/// The constants of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decay of the first and the second moment, β₁ and β₂.
    pub betas: (f32, f32),
    /// Added to the root of the second moment, ε.
    pub epsilon: f32,
    /// What draws parameters to zero.
    pub decay: Decay,
}

/// How parameters decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decay {
    /// Adam: this multiple λ of a parameter is added to its gradient.
    Penalty(f32),
    /// AdamW: this share λ of a parameter, times the learning rate, is removed from it.
    Decoupled(f32),
}

/// The moments of the gradients so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many gradients there have been, t.
    pub time: usize,
    /// The running mean of the gradients, m; empty before the first.
    pub first: Vec<f32>,
    /// The running mean of their squares, v; empty before the first.
    pub second: Vec<f32>,
}

impl Adam {
    /// One step down the gradient g, in one pass:
    ///
    /// ```text
    /// m ← β₁m + (1 − β₁)g        v ← β₂v + (1 − β₂)g²        c = √(1 − β₂ᵗ)
    /// x ← x − η · m · c / (1 − β₁ᵗ) / (√v + ε c)
    /// ```
    ///
    /// with g + λx in place of g, or (1 − ηλ)x in place of x on the right, as the [`Decay`] has it.
    /// The operations and their order are those of burn-optim's Adam.
    ///
    /// # Panics
    ///
    /// If the vectors differ in length.
    pub fn step(&self, rate: f64, values: &mut [f32], gradient: &[f32], moments: &mut Moments) {
        let n = values.len();
        if moments.time == 0 {
            moments.first = vec![0.0; n];
            moments.second = vec![0.0; n];
        }
        assert_eq!(n, gradient.len(), "as many gradients as values");
        assert_eq!(n, moments.first.len(), "as many first moments as values");
        assert_eq!(n, moments.second.len(), "as many second moments as values");
        moments.time += 1;

        let time = moments.time as i32;
        let correction = (1.0 - self.betas.1.powi(time)).sqrt();
        let (penalty, share) = match self.decay {
            Decay::Penalty(penalty) => (penalty, 0.0),
            Decay::Decoupled(share) => (0.0, share),
        };
        let constants = Constants {
            betas: self.betas,
            penalty,
            keep: (1.0 - rate * f64::from(share)) as f32,
            factor: correction / (1.0 - self.betas.0.powi(time)),
            epsilon: self.epsilon * correction,
            rate: rate as f32,
        };
        let moments = moments.first.par_chunks_mut(PIECE).zip(moments.second.par_chunks_mut(PIECE));
        let pieces = values.par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE)).zip(moments);
        pieces.for_each(|((values, gradient), (first, second))| {
            dispatch(Step { constants, values, gradient, first, second });
        });
    }
}

/// Numbers that one thread takes at a time.
const PIECE: usize = 1 << 16;

#[derive(Clone, Copy)]
struct Constants {
    betas: (f32, f32),
    penalty: f32,
    keep: f32,
    factor: f32,
    epsilon: f32,
    rate: f32,
}

struct Step<'a> {
    constants: Constants,
    values: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl Kernel for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { constants, values, gradient, first, second } = self;
        let Constants { betas, penalty, keep, factor, epsilon, rate } = constants;
        let moments = first.iter_mut().zip(second);
        for ((x, g), (m, v)) in values.iter_mut().zip(gradient).zip(moments) {
            let g = *x * penalty + g;
            *m = *m * betas.0 + g * (1.0 - betas.0);
            *v = *v * betas.1 + g * g * (1.0 - betas.1);
            *x = *x * keep - *m * factor / (v.sqrt() + epsilon) * rate;
        }
    }
}
