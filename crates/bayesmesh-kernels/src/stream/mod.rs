//! Counter-based random streams.
//!
//! A [`Stream`] is a name, not a state: element `e` of a stream is a function of the seed, the
//! [`Purpose`], the step, the draw, the tensor and `e`. Whoever needs a number again, in the
//! backward pass, on another rank or in a resumed run, computes it again; no noise is stored. The
//! bits do not depend on how a range is cut into pieces, on threads, or on the vector instructions
//! of the machine ([`simd`](crate::simd)).
//!
//! The generator is Philox4x32-10 ([`philox`]) under the key `seed`, with the counter
//! `[e / 4, step, draw, tensor + purpose · 2²⁴]`; element `e` is word `e % 4` of that block.
//!
//! ```
//! use bayesmesh_kernels::stream::{Purpose, Stream};
//!
//! let stream = Stream::new(42, Purpose::Weights).at_step(7).at_draw(3).at_tensor(1);
//! let mut whole = [0.0; 1000];
//! stream.fill_normal(0, &mut whole);
//! let mut part = [0.0; 10];
//! stream.fill_normal(503, &mut part);
//! assert_eq!(part, whole[503..513]);
//! ```

pub(crate) mod fill;
pub(crate) mod normal;
pub mod philox;

use fill::fill;
use philox::philox4x32;

/// What a random number is for; part of its counter, so that no two uses share numbers.
///
/// The discriminants are part of the format: changing one changes every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// The noise of the weights of a draw.
    Weights = 0,
    /// The masks of dropout.
    Dropout = 1,
    /// The augmentation of a batch.
    Augmentation = 2,
    /// The order of the examples of an epoch.
    Shuffle = 3,
    /// The first values of parameters.
    Initialisation = 4,
    /// Made-up data.
    Synthesis = 5,
    /// The noise of a step, e.g. of Langevin dynamics.
    Update = 6,
    /// The noise of joint sample paths of a prediction.
    Paths = 7,
    /// The latent numbers of a draw, from which a network makes its functional noise.
    Latent = 8,
}

/// A sequence of 2³⁴ random numbers, named by seed, purpose, step, draw and tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    seed: u64,
    step: u32,
    draw: u32,
    /// `tensor + purpose · 2²⁴`.
    tensor_and_purpose: u32,
}

/// Bits of the last word of the counter that hold the tensor.
const TENSOR_BITS: u32 = 24;

impl Stream {
    /// The elements of a stream are numbered from 0 up to this number.
    pub const ELEMENTS: u64 = 1 << 34;
    /// The tensors of a stream are numbered from 0 up to this number.
    pub const TENSORS: u32 = 1 << TENSOR_BITS;

    /// The stream of step 0, draw 0, tensor 0.
    pub const fn new(seed: u64, purpose: Purpose) -> Self {
        Self { seed, step: 0, draw: 0, tensor_and_purpose: (purpose as u32) << TENSOR_BITS }
    }

    /// The same stream at another step (an optimiser step or an epoch, as the purpose has it).
    pub const fn at_step(self, step: u32) -> Self {
        Self { step, ..self }
    }

    /// The same stream at another draw.
    pub const fn at_draw(self, draw: u32) -> Self {
        Self { draw, ..self }
    }

    /// The same stream `draws` draws further on.
    pub const fn skip_draws(self, draws: u32) -> Self {
        self.at_draw(self.draw.wrapping_add(draws))
    }

    /// The same stream at another tensor.
    ///
    /// # Panics
    ///
    /// If `tensor` is not below [`Stream::TENSORS`], 2²⁴.
    pub const fn at_tensor(self, tensor: u32) -> Self {
        assert!(tensor < Self::TENSORS, "the tensors of a stream are numbered below 2^24");
        let purpose = self.tensor_and_purpose >> TENSOR_BITS << TENSOR_BITS;
        Self { tensor_and_purpose: purpose | tensor, ..self }
    }

    /// `out[i]` = the 32 random bits of element `start + i`.
    ///
    /// # Panics
    ///
    /// This and the other `fill` functions panic if the range passes [`Stream::ELEMENTS`], 2³⁴.
    pub fn fill_bits(&self, start: u64, out: &mut [u32]) {
        #[inline(always)]
        fn words(words: [u32; 4]) -> [u32; 4] {
            words
        }
        fill(self, start, out, words);
    }

    /// `out[i]` uniform in `[0, 1)`: the upper 24 bits of element `start + i`, over 2²⁴.
    pub fn fill_uniform(&self, start: u64, out: &mut [f32]) {
        #[inline(always)]
        fn units([a, b, c, d]: [u32; 4]) -> [f32; 4] {
            [unit(a), unit(b), unit(c), unit(d)]
        }
        fill(self, start, out, units);
    }

    /// `out[i]` standard normal. Elements `2k` and `2k + 1` are, of the words `x` and `y` of these
    /// elements, `√(−2 ln u) · cos 2πv` and `√(−2 ln u) · sin 2πv` with `u = (x + ½) / 2³²` and
    /// `v = y / 2³²` (Box and Muller); no number is beyond ±6.77.
    pub fn fill_normal(&self, start: u64, out: &mut [f32]) {
        fill(self, start, out, normal::box_muller);
    }

    /// `out[i]` = 1 with the given probability, else 0: whether [`Stream::uniform`] of element
    /// `start + i` is below `probability`.
    pub fn fill_bernoulli(&self, start: u64, probability: f32, out: &mut [f32]) {
        let bit = move |word| if unit(word) < probability { 1.0 } else { 0.0 };
        fill(self, start, out, move |[a, b, c, d]: [u32; 4]| [bit(a), bit(b), bit(c), bit(d)]);
    }

    /// Element `element` of [`Stream::fill_uniform`], on its own.
    ///
    /// # Panics
    ///
    /// If `element` is not below [`Stream::ELEMENTS`].
    pub fn uniform(&self, element: u64) -> f32 {
        unit(self.word(element))
    }

    /// An integer in `[0, bound)` from the 32 bits of one element: `⌊bound · x / 2³²⌋`. The
    /// probability of each value differs from `1 / bound` by less than 2⁻³². For a
    /// `bound` of 0 it is 0.
    ///
    /// # Panics
    ///
    /// If `element` is not below [`Stream::ELEMENTS`].
    pub fn below(&self, element: u64, bound: u32) -> u32 {
        ((u64::from(self.word(element)) * u64::from(bound)) >> 32) as u32
    }

    /// A permutation of `0..n` (Fisher and Yates): position `i`, from the last down to 1, changes
    /// places with `⌊(i + 1) · x / 2⁶⁴⌋`, `x` the 64 bits of elements `2i` (low) and `2i + 1`.
    ///
    /// # Panics
    ///
    /// If `n` is beyond 2³³.
    pub fn permutation(&self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        let mut bits = [0; fill::CHUNK];
        let mut end = n;
        while end > 0 {
            let begin = (end - 1) / (fill::CHUNK / 2) * (fill::CHUNK / 2);
            self.fill_bits(2 * begin as u64, &mut bits[..2 * (end - begin)]);
            for i in (begin..end).rev() {
                let low = u128::from(bits[2 * (i - begin)]);
                let high = u128::from(bits[2 * (i - begin) + 1]);
                order.swap(i, (((high << 32 | low) * (i as u128 + 1)) >> 64) as usize);
            }
            end = begin;
        }
        order
    }

    /// The 32 bits of one element.
    fn word(&self, element: u64) -> u32 {
        self.check_range(element, 1);
        philox4x32(self.counter((element / 4) as u32), self.key())[(element % 4) as usize]
    }

    #[inline(always)]
    fn key(&self) -> [u32; 2] {
        [self.seed as u32, (self.seed >> 32) as u32]
    }

    #[inline(always)]
    fn counter(&self, block: u32) -> [u32; 4] {
        [block, self.step, self.draw, self.tensor_and_purpose]
    }

    /// Panics if the range passes the last element: numbers would repeat.
    #[inline(always)]
    pub(crate) fn check_range(&self, start: u64, length: usize) {
        assert!(
            start.checked_add(length as u64).is_some_and(|end| end <= Self::ELEMENTS),
            "a stream has 2^34 elements; use another tensor number for more"
        );
    }
}

/// The upper 24 bits as a number in `[0, 1)`.
#[inline(always)]
pub(crate) fn unit(word: u32) -> f32 {
    (word >> 8) as i32 as f32 * (1.0 / 16_777_216.0)
}
