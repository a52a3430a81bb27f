//! Reparameterised sampling of Gaussian weights.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, TensorData, activation};

use super::flex;
use super::fused::{self, Fused};
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
    fused::run(GaussianSample { stream, scale }, [mean.into_dispatch(), rho.into_dispatch()])
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

#[derive(Debug)]
struct GaussianSample {
    stream: Stream,
    scale: Scale,
}

impl Fused for GaussianSample {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let [mean, rho] = inputs else { unreachable!("two inputs") };
        saved.into_iter().for_each(|saved| saved.push(rho.clone()));
        flex::build(mean.layout().shape().clone(), |out| {
            let (mean, rho) = (flex::values(mean), flex::values(rho));
            gaussian::sample(&self.stream, 0, self.scale, mean, rho, out);
        })
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let grad_rho = wanted[1].then(|| {
            flex::build(grad.layout().shape().clone(), |out| {
                let (rho, grad) = (flex::values(&saved[0]), flex::values(&grad));
                gaussian::sample_backward(&self.stream, 0, self.scale, rho, grad, out);
            })
        });
        vec![wanted[0].then_some(grad), grad_rho]
    }
}
