//! A linear layer with what usually follows it.

mod backward;
mod forward;
mod saved;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};

use super::dropout::{Mask, dropout};
use super::flex;
use super::fused::{self, Fused};
use super::layer_norm::layer_norm_composed;
use crate::precision::Precision;
use saved::Saved;

/// A function applied to the sums of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The sums themselves.
    #[default]
    Identity,
    /// `max(x, 0)`
    Relu,
    /// `x·Φ(x)`
    Gelu,
}

/// What follows the sums of a linear layer, in this order.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// What is applied to the sums.
    pub activation: Activation,
    /// How many times the rows are repeated, one copy after the other: once for every draw, where
    /// the draws differ only in the mask that follows.
    pub copies: usize,
    /// Dropout of the (repeated) units.
    pub mask: Option<Mask>,
    /// Whether the output goes into another of these operations, which may then get it in the
    /// numbers of its products. No difference in single precision.
    pub narrow: bool,
}

impl Default for Epilogue {
    /// Nothing follows.
    fn default() -> Self {
        Self { activation: Activation::Identity, copies: 1, mask: None, narrow: false }
    }
}

/// A linear layer `y = dropout(a(x W + b))`, with the parts of the [`Epilogue`] that are wanted.
///
/// Gradients, with `h = ∂L/∂(x W + b)`: `∂L/∂x = h Wᵀ`, `∂L/∂W = xᵀ h`, `∂L/∂b = Σ_rows h`. The
/// graph keeps x, W and, for ReLU, y, which tells what passed: `y > 0` where a sum was positive and
/// not dropped; for GELU its derivative.
///
/// In [bf16](Precision::Bf16) x, W and h are rounded where they enter a product; x and the
/// derivative are kept so.
///
/// # Shapes
///
/// - `x`: `[rows, ..., inputs]`
/// - `weight`: `[inputs, units]`
/// - `bias`: `[units]`
/// - output: `[copies·rows, ..., units]`
pub fn linear<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    epilogue: Epilogue,
) -> Tensor<D> {
    if !flex::is_flex(&x.device()) {
        return linear_composed(x, weight, bias, epilogue);
    }
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    let operation = Linear::new(epilogue);
    match bias {
        None => fused::run(operation, [x, weight]),
        Some(bias) => {
            let operation = Linear { bias: true, ..operation };
            fused::run(operation, [x, weight, bias.into_dispatch()])
        }
    }
}

/// [`linear`] from Burn's own operations, for devices without an implementation of their own.
pub fn linear_composed<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    epilogue: Epilogue,
) -> Tensor<D> {
    let mut y = x.matmul(weight.unsqueeze());
    if let Some(bias) = bias {
        y = y + bias.unsqueeze();
    }
    y = match epilogue.activation {
        Activation::Identity => y,
        Activation::Relu => activation::relu(y),
        Activation::Gelu => activation::gelu(y),
    };
    if epilogue.copies != 1 {
        y = y.repeat_dim(0, epilogue.copies);
    }
    match epilogue.mask {
        Some(mask) => dropout(y, mask),
        None => y,
    }
}

/// A linear layer with a residual connection: `y = r + x W + b`.
///
/// The product is added to r where it is made, without a pass of its own. The gradient of r is that
/// of y.
///
/// # Shapes
///
/// - `x`: `[rows, ..., inputs]`
/// - `weight`: `[inputs, units]`
/// - `bias`: `[units]`
/// - `residual`, output: `[rows, ..., units]`
pub fn linear_residual<const D: usize>(
    x: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    residual: Tensor<D>,
) -> Tensor<D> {
    if !flex::is_flex(&x.device()) {
        return linear_composed(x, weight, bias, Epilogue::default()) + residual;
    }
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    let residual = residual.into_dispatch();
    let operation =
        Linear { bias: bias.is_some(), residual: true, ..Linear::new(Epilogue::default()) };
    match bias {
        None => fused::run(operation, [x, weight, residual]),
        Some(bias) => fused::run(operation, [x, weight, bias.into_dispatch(), residual]),
    }
}

/// A [layer norm](super::layer_norm) and a [linear layer](linear) of what it gives, which is never
/// in memory as a whole: rows are normalised where the product reads them, in both passes.
///
/// The graph keeps x and two numbers a row.
///
/// # Shapes
///
/// - `x`: `[rows, ..., inputs]`
/// - `norm`: γ and β, `[inputs]`, and ε
/// - `weight`, `bias`, output: as in [`linear`]
pub fn norm_linear<const D: usize>(
    x: Tensor<D>,
    norm: (Tensor<1>, Tensor<1>, f32),
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    epilogue: Epilogue,
) -> Tensor<D> {
    if !flex::is_flex(&x.device()) {
        return norm_linear_composed(x, norm, weight, bias, epilogue);
    }
    let (gamma, beta, epsilon) = norm;
    let (gamma, beta) = (gamma.into_dispatch(), beta.into_dispatch());
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    let operation = Linear { norm: Some(epsilon), bias: bias.is_some(), ..Linear::new(epilogue) };
    match bias {
        None => fused::run(operation, [x, weight, gamma, beta]),
        Some(bias) => fused::run(operation, [x, weight, gamma, beta, bias.into_dispatch()]),
    }
}

/// [`norm_linear`] from Burn's own operations, for devices without an implementation of their own.
pub fn norm_linear_composed<const D: usize>(
    x: Tensor<D>,
    (gamma, beta, epsilon): (Tensor<1>, Tensor<1>, f32),
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    epilogue: Epilogue,
) -> Tensor<D> {
    linear_composed(layer_norm_composed(x, gamma, beta, epsilon), weight, bias, epilogue)
}

/// The inputs are x, the weight and, where the fields say so, γ and β, a bias and a residual.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub epilogue: Epilogue,
    /// ε of the normalisation before.
    pub norm: Option<f32>,
    pub bias: bool,
    pub residual: bool,
    pub precision: Precision,
}

impl Linear {
    /// Without all that is optional, in the precision of the scope.
    pub fn new(epilogue: Epilogue) -> Self {
        let precision = Precision::current();
        Self { epilogue, norm: None, bias: false, residual: false, precision }
    }

    /// Whether the output is in the numbers of products: what comes after it can tell.
    fn is_narrow(&self, units: usize) -> bool {
        let Epilogue { activation, copies, mask, narrow } = self.epilogue;
        // Rows of whole pairs; dropout, copies and the signs of ReLU are of single precision.
        let plain = copies == 1 && mask.is_none() && activation != Activation::Relu;
        self.precision == Precision::Bf16 && narrow && plain && units.is_multiple_of(2)
    }
}

impl Fused for Linear {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        self.forward_pass(inputs, saved)
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        self.backward_pass(Saved::of(self, saved), grad, wanted)
    }
}
