//! What a network must tell us.

mod learned_noise;
mod noise_map;
mod output_scale;

pub use learned_noise::LearnedNoise;
pub use noise_map::NoiseMap;
pub use output_scale::OutputScale;

use burn::module::Module;
use burn::tensor::Tensor;

use crate::data::Rows;
use crate::draw::Draw;

/// A Burn module with a forward pass. Three lines around the ordinary `forward`:
///
/// ```
/// # use bayesmesh::{Draw, Network};
/// # use burn::{module::Module, nn::Linear, tensor::Tensor};
/// #[derive(Module, Debug)]
/// struct Line {
///     linear: Linear,
/// }
///
/// impl Network for Line {
///     type Input = Tensor<2>;
///     fn forward(&self, input: Tensor<2>, _draw: &Draw) -> Tensor<2> {
///         self.linear.forward(input)
///     }
/// }
/// ```
pub trait Network: Module {
    /// One batch of inputs: a tensor, a pair of them, or any type that has [`Rows`].
    type Input: Rows;

    /// The outputs for a batch, one row an example; whatever follows the batch axis is flattened.
    ///
    /// `draw` gives dropout masks and other randomness of the forward pass. A network without any
    /// ignores it. Rows must not mix: the output of an example depends on that example (batch
    /// normalisation is allowed for).
    ///
    /// # Shapes
    ///
    /// - output: `[rows, outputs]`
    fn forward(&self, input: Self::Input, draw: &Draw) -> Tensor<2>;

    /// Whether several draws may go through [`forward`](Network::forward) as one batch of
    /// `draws·rows` rows, which is faster for small networks under Monte Carlo dropout. Say so only
    /// if [`Draw::dropout`] and [`Draw::mask`] are all the randomness of the forward pass.
    const STACKS_DRAWS: bool = false;

    /// The outputs of all the [draws](Draw::count) that `draw` stands for, one draw after the
    /// other, for a batch of inputs that is the same for all of them.
    ///
    /// By default [`forward`](Network::forward) on as many copies of the batch. A network that is
    /// not random in its first layers may evaluate these only once.
    ///
    /// # Shapes
    ///
    /// - output: `[draws·rows, outputs]`
    fn forward_draws(&self, input: Self::Input, draw: &Draw) -> Tensor<2> {
        match draw.count() {
            1 => self.forward(input, draw),
            draws => self.forward(Rows::stack(vec![input; draws]), draw),
        }
    }
}
