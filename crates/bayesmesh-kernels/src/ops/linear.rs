//! A linear layer with what usually follows it.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Shape, Tensor, activation};

use super::dropout::{Mask, dropout};
use super::flex;
use super::matrix::Matrix;
use crate::stream::simd::{Kernel, dispatch};

/// What follows the sums of a linear layer, in this order.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// Whether negative sums become zero.
    pub relu: bool,
    /// How many times the rows are repeated, one copy after the other: once for every draw, where
    /// the draws differ only in the mask that follows.
    pub copies: usize,
    /// Dropout of the (repeated) units.
    pub mask: Option<Mask>,
}

impl Default for Epilogue {
    /// Nothing follows.
    fn default() -> Self {
        Self { relu: false, copies: 1, mask: None }
    }
}

/// A linear layer `y = dropout(relu(x W + b))`, with the parts of the [`Epilogue`] that are wanted.
///
/// Gradients, with `h = ∂L/∂(x W + b)`: `∂L/∂x = h Wᵀ`, `∂L/∂W = xᵀ h`, `∂L/∂b = Σ_rows h`. The
/// graph keeps x, W and, for ReLU, y, which tells what passed: `y > 0` where a sum was positive and
/// not dropped.
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
    let bias = bias.unwrap_or_else(|| Tensor::zeros([weight.dims()[1]], &weight.device()));
    Tensor::from_dispatch(<Dispatch as LinearOps>::linear(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        epilogue,
    ))
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
    if epilogue.relu {
        y = activation::relu(y);
    }
    if epilogue.copies != 1 {
        y = y.repeat_dim(0, epilogue.copies);
    }
    match epilogue.mask {
        Some(mask) => dropout(y, mask),
        None => y,
    }
}

#[backend_extension(Autodiff, Flex)]
pub(crate) trait LinearOps: Backend {
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epilogue: Epilogue,
    ) -> FloatTensor<Self>;
}

impl LinearOps for Flex {
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epilogue: Epilogue,
    ) -> FloatTensor<Self> {
        let (x, weight, bias) =
            (flex::contiguous(x), flex::contiguous(weight), flex::contiguous(bias));
        let weight = matrix(&weight);
        let units = flex::values(&bias).len();
        let mut y = rows(&x).times(weight);
        dispatch(Finish { sums: &mut y, bias: flex::values(&bias), relu: epilogue.relu });
        let sums = y.len();
        for _ in 1..epilogue.copies {
            y.extend_from_within(..sums);
        }
        if let Some(mask) = epilogue.mask {
            mask.apply(&mut y);
        }
        let mut shape = x.shape();
        let last = shape.num_dims() - 1;
        shape[0] *= epilogue.copies;
        shape[last] = units;
        flex::from_vec(y, shape)
    }
}

/// A weight as a matrix.
fn matrix(weight: &FloatTensor<Flex>) -> Matrix<'_> {
    let [rows, columns] = weight.shape().dims();
    Matrix::new(flex::values(weight), rows, columns)
}

/// All axes but the last as rows.
fn rows(x: &FloatTensor<Flex>) -> Matrix<'_> {
    let values = flex::values(x);
    let columns = x.shape().as_slice().last().copied().unwrap_or(1);
    Matrix::new(values, values.len() / columns.max(1), columns)
}

/// Adds the bias to every row and applies ReLU.
struct Finish<'a> {
    sums: &'a mut [f32],
    bias: &'a [f32],
    relu: bool,
}

impl Kernel for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.sums.chunks_exact_mut(self.bias.len().max(1)) {
            for (sum, bias) in row.iter_mut().zip(self.bias) {
                let value = *sum + bias;
                // Not `max`, which would turn what is not a number into a harmless zero.
                *sum = if self.relu && value < 0.0 { 0.0 } else { value };
            }
        }
    }
}

/// `h`, the gradient before ReLU and dropout, summed over the copies.
struct PassBack<'a> {
    /// The gradient of y, for all copies.
    grad: &'a [f32],
    /// y, whose sign says what passed.
    output: &'a [f32],
    /// What dropout multiplied by.
    factor: f32,
    /// For one copy, zeros at first.
    before: &'a mut [f32],
}

impl Kernel for PassBack<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.before.len().max(1);
        for (grad, output) in self.grad.chunks_exact(n).zip(self.output.chunks_exact(n)) {
            for ((before, grad), output) in self.before.iter_mut().zip(grad).zip(output) {
                *before += if *output <= 0.0 { 0.0 } else { grad * self.factor };
            }
        }
    }
}

/// The sum of the rows.
struct SumRows<'a> {
    values: &'a [f32],
    sum: &'a mut [f32],
}

impl Kernel for SumRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.values.chunks_exact(self.sum.len().max(1)) {
            for (sum, value) in self.sum.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

#[derive(Debug)]
struct Linear;

/// What the backward pass needs.
#[derive(Clone, Debug)]
struct State {
    x: FloatTensor<Flex>,
    weight: FloatTensor<Flex>,
    /// y, if ReLU was applied.
    output: Option<FloatTensor<Flex>>,
    epilogue: Epilogue,
}

impl State {
    /// `h` from the gradient of y.
    fn before_epilogue(&self, grad: FloatTensor<Flex>) -> FloatTensor<Flex> {
        let Epilogue { copies, mask, .. } = self.epilogue;
        let shape: Shape = [grad.shape().num_elements() / copies].into();
        match (&self.output, mask) {
            (Some(output), _) => flex::build(shape, |before| {
                let (grad, output) = (flex::values(&grad), flex::values(output));
                let factor = mask.map_or(1.0, |mask| mask.factor());
                dispatch(PassBack { grad, output, factor, before });
            }),
            (None, None) if copies == 1 => grad,
            (None, _) => {
                let mut grad = flex::values(&grad).to_vec();
                if let Some(mask) = mask {
                    mask.apply(&mut grad);
                }
                flex::build(shape, |sum| dispatch(SumRows { values: &grad, sum }))
            }
        }
    }
}

impl Backward<Flex, 3> for Linear {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let state = ops.state;
        let [x_node, weight_node, bias_node] = ops.parents;
        let grad = flex::contiguous(grads.consume::<Flex>(&ops.node));
        let grad = state.before_epilogue(grad);

        let (x, weight) = (rows(&state.x), matrix(&state.weight));
        let [_, units] = state.weight.shape().dims();
        let values = flex::values(&grad);
        let grad = Matrix::new(values, values.len() / units.max(1), units);
        if let Some(node) = x_node {
            let grad_x = grad.times(weight.transposed());
            grads.register::<Flex>(node.id, flex::from_vec(grad_x, state.x.shape()));
        }
        if let Some(node) = weight_node {
            let grad_weight = x.transposed().times(grad);
            grads.register::<Flex>(node.id, flex::from_vec(grad_weight, state.weight.shape()));
        }
        if let Some(node) = bias_node {
            let grad_bias = flex::build([units].into(), |sum| dispatch(SumRows { values, sum }));
            grads.register::<Flex>(node.id, grad_bias);
        }
    }
}

impl<C: CheckpointStrategy> LinearOps for Autodiff<Flex, C> {
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epilogue: Epilogue,
    ) -> FloatTensor<Self> {
        let (x, x_node) = x.into_parts();
        let (weight, weight_node) = weight.into_parts();
        let (bias, bias_node) = bias.into_parts();
        let (x, weight) = (flex::contiguous(x), flex::contiguous(weight));
        let output = Flex::linear(x.clone(), weight.clone(), bias, epilogue);
        match Linear.prepare::<C>([x_node, weight_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let kept = epilogue.relu.then(|| output.clone());
                prep.finish(State { x, weight, output: kept, epilogue }, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}
