//! What a network must tell us.

use burn::module::Module;
use burn::tensor::Tensor;

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
    /// One batch of inputs.
    type Input: Clone + Send;

    /// The outputs for a batch, one row an example; whatever follows the batch axis is flattened.
    ///
    /// `draw` gives dropout masks and other randomness of the forward pass. A network without any
    /// ignores it.
    ///
    /// # Shapes
    ///
    /// - output: `[rows, outputs]`
    fn forward(&self, input: Self::Input, draw: &Draw) -> Tensor<2>;
}
