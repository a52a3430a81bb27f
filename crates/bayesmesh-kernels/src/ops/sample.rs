//! Reparameterised sampling of Gaussian weights.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData, activation};

use super::flex;
use crate::gaussian::{self, Scale};
use crate::stream::Stream;

/// Draws `w = μ + σ(ρ)·ε`, where element `i` of ε is normal `i` of the stream.
///
/// Gradients: `∂L/∂μ = g` and `∂L/∂ρ = g·ε·σ'(ρ)` with `g = ∂L/∂w`. The graph keeps ρ only; ε is
/// computed again in the backward pass.
///
/// # Shapes
///
/// - `mean`, `rho`, output: `[n]`
pub fn sample(mean: Tensor<1>, rho: Tensor<1>, stream: Stream, scale: Scale) -> Tensor<1> {
    if !flex::is_flex(&mean.device()) {
        return sample_composed(mean, rho, stream, scale);
    }
    Tensor::from_dispatch(<Dispatch as SampleOps>::gaussian_sample(
        mean.into_dispatch(),
        rho.into_dispatch(),
        stream,
        scale,
    ))
}

/// [`sample`] from Burn's own operations, for devices without an implementation of their own.
///
/// Here the graph does keep ε, since the operations that need it in the backward pass are Burn's.
pub fn sample_composed(mean: Tensor<1>, rho: Tensor<1>, stream: Stream, scale: Scale) -> Tensor<1> {
    let [n] = mean.dims();
    let mut noise = vec![0.0; n];
    stream.fill_normal(0, &mut noise);
    let noise = Tensor::<1>::from_data(TensorData::new(noise, [n]), &mean.device());
    let std = match scale {
        Scale::Exp => rho.exp(),
        Scale::Softplus => activation::softplus(rho, 1.0),
    };
    mean + std * noise
}

#[backend_extension(Autodiff, Flex)]
pub(crate) trait SampleOps: Backend {
    fn gaussian_sample(
        mean: FloatTensor<Self>,
        rho: FloatTensor<Self>,
        stream: Stream,
        scale: Scale,
    ) -> FloatTensor<Self>;
}

impl SampleOps for Flex {
    fn gaussian_sample(
        mean: FloatTensor<Self>,
        rho: FloatTensor<Self>,
        stream: Stream,
        scale: Scale,
    ) -> FloatTensor<Self> {
        let (mean, rho) = (flex::contiguous(mean), flex::contiguous(rho));
        flex::build(mean.shape(), |out| {
            gaussian::sample(&stream, 0, scale, flex::values(&mean), flex::values(&rho), out)
        })
    }
}

#[derive(Debug)]
struct GaussianSample;

impl Backward<Flex, 2> for GaussianSample {
    /// ρ where its gradient is wanted, and how to make ε again.
    type State = (Option<FloatTensor<Flex>>, Stream, Scale);

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (rho, stream, scale) = ops.state;
        let [mean_node, rho_node] = ops.parents;
        let grad = flex::contiguous(grads.consume::<Flex>(&ops.node));

        if let (Some(node), Some(rho)) = (rho_node, rho) {
            let grad_rho = flex::build(grad.shape(), |out| {
                let (rho, grad) = (flex::values(&rho), flex::values(&grad));
                gaussian::sample_backward(&stream, 0, scale, rho, grad, out)
            });
            grads.register::<Flex>(node.id, grad_rho);
        }
        if let Some(node) = mean_node {
            grads.register::<Flex>(node.id, grad);
        }
    }
}

impl<C: CheckpointStrategy> SampleOps for Autodiff<Flex, C> {
    fn gaussian_sample(
        mean: FloatTensor<Self>,
        rho: FloatTensor<Self>,
        stream: Stream,
        scale: Scale,
    ) -> FloatTensor<Self> {
        let rho_tracked = rho.is_tracked();
        let (mean, mean_node) = mean.into_parts();
        let (rho, rho_node) = rho.into_parts();
        match GaussianSample.prepare::<C>([mean_node, rho_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let rho = flex::contiguous(rho);
                let state = (rho_tracked.then(|| rho.clone()), stream, scale);
                prep.finish(state, Flex::gaussian_sample(mean, rho, stream, scale))
            }
            OpsKind::UnTracked(prep) => {
                prep.finish(Flex::gaussian_sample(mean, rho, stream, scale))
            }
        }
    }
}
