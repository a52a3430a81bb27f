//! Group normalisation.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::flex;
use super::fused::{self, Fused};
use super::sums::add_into;
use crate::simd::{Kernel, dispatch, parallel};

/// Tokens whose numbers are added in single precision before the sum goes on in double.
const BLOCK: usize = 32;

/// Normalises groups of channels of every example over all its tokens, and scales the channels:
/// `y = x̂·γ + β` with `x̂ = (x − m)/√(v + ε)`, where m and v are the mean and the variance of the
/// group in the example. Where `rectify` says so, `max(y, 0)` comes out.
///
/// Gradients, with `h = ∂L/∂y`, zero where y was cut, `g = γ·h` and `⟨·⟩` the mean over the group:
/// `∂L/∂x = (g − ⟨g⟩ − x̂⟨g x̂⟩)/√(v + ε)`, `∂L/∂γ = Σ x̂·h`, `∂L/∂β = Σ h`. The graph keeps x and
/// two numbers a group.
///
/// # Shapes
///
/// - `x`, output: `[rows, tokens, width]`
/// - `gamma`, `beta`: `[width]`
///
/// # Panics
///
/// If the groups do not divide the width.
pub fn group_norm(
    x: Tensor<3>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    groups: usize,
    epsilon: f32,
    rectify: bool,
) -> Tensor<3> {
    let [.., width] = x.dims();
    assert!(
        groups > 0 && width.is_multiple_of(groups) && width > 0,
        "{groups} groups do not divide {width} channels"
    );
    if !flex::is_flex(&x.device()) {
        return group_norm_composed(x, gamma, beta, groups, epsilon, rectify);
    }
    let inputs = [x.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch()];
    fused::run(GroupNorm { groups, epsilon, rectify }, inputs)
}

/// [`group_norm`] from Burn's own operations, for devices without an implementation of their own.
pub fn group_norm_composed(
    x: Tensor<3>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    groups: usize,
    epsilon: f32,
    rectify: bool,
) -> Tensor<3> {
    let [rows, tokens, width] = x.dims();
    let size = width / groups;
    let x: Tensor<4> = x.reshape([rows, tokens, groups, size]);
    let mean = |x: Tensor<4>| x.mean_dim(1).mean_dim(3);
    let centred = x.clone() - mean(x);
    let variance = mean(centred.clone().square());
    let normal = (centred / (variance + epsilon).sqrt()).reshape([rows, tokens, width]);
    let scaled = normal * gamma.unsqueeze() + beta.unsqueeze();
    match rectify {
        true => burn::tensor::activation::relu(scaled),
        false => scaled,
    }
}

#[derive(Clone, Copy, Debug)]
struct GroupNorm {
    groups: usize,
    epsilon: f32,
    rectify: bool,
}

impl Fused for GroupNorm {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let [x, gamma, beta] = inputs else { unreachable!("three inputs") };
        let [rows, tokens, width] = x.layout().shape().dims();
        let mut moments = flex::scratch(2 * self.groups * rows);
        let example = (tokens * width).max(1);
        let output = flex::build(x.layout().shape().clone(), |y| {
            let examples = flex::values(x).par_chunks(example).zip(y.par_chunks_mut(example));
            let examples = examples.zip(moments.par_chunks_mut(2 * self.groups));
            parallel(examples, |((x, y), moments)| {
                let (gamma, beta) = (flex::values(gamma), flex::values(beta));
                dispatch(Normalise { norm: *self, x, gamma, beta, y, moments });
            });
        });
        if let Some(saved) = saved {
            let moments = flex::from_vec(moments, Shape::new([rows, 2 * self.groups]));
            saved.extend([x.clone(), gamma.clone(), beta.clone(), moments]);
        }
        output
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let [x, gamma, beta, moments] = &saved[..] else { unreachable!("what forward saved") };
        let [rows, tokens, width] = x.layout().shape().dims();
        let example = (tokens * width).max(1);
        // Of every example the sums for γ and β, which are then added in order.
        let mut partial = vec![0.0; rows * 2 * width];
        let grad_x = flex::build(x.layout().shape().clone(), |grad_x| {
            let inputs =
                flex::values(x).par_chunks(example).zip(flex::values(&grad).par_chunks(example));
            let inputs = inputs.zip(flex::values(moments).par_chunks(2 * self.groups));
            let outputs = grad_x.par_chunks_mut(example).zip(partial.par_chunks_mut(2 * width));
            parallel(inputs.zip(outputs), |(((x, grad), moments), (grad_x, sums))| {
                let (gamma, beta) = (flex::values(gamma), flex::values(beta));
                let norm = *self;
                dispatch(NormaliseBackward { norm, x, gamma, beta, moments, grad, grad_x, sums });
            });
        });
        let mut sums = vec![0.0; 2 * width];
        partial.chunks_exact(2 * width).for_each(|partial| add_into(&mut sums, partial));
        let of_beta = sums.split_off(width);
        vec![
            wanted[0].then_some(grad_x),
            Some(flex::from_vec(sums, Shape::new([width]))),
            Some(flex::from_vec(of_beta, Shape::new([width]))),
        ]
    }
}

/// `Σ_tokens term(channel, value, other)` of every channel: a few tokens at a time in single
/// precision, channel beside channel, then in double.
#[inline(always)]
fn channel_sums(
    values: &[f32],
    others: &[f32],
    width: usize,
    term: impl Fn(usize, f32, f32) -> f32,
) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    let mut block = vec![0.0; width];
    for (values, others) in values.chunks(BLOCK * width).zip(others.chunks(BLOCK * width)) {
        block.fill(0.0);
        for (values, others) in values.chunks_exact(width).zip(others.chunks_exact(width)) {
            for i in 0..width {
                block[i] += term(i, values[i], others[i]);
            }
        }
        for i in 0..width {
            sums[i] += f64::from(block[i]);
        }
    }
    sums
}

/// What every channel is multiplied by, and what is added: `a = γ/√(v + ε)`, `b = β − m·a`.
#[inline(always)]
fn lines(moments: &[f32], gamma: &[f32], beta: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let size = 2 * gamma.len() / moments.len();
    let scale: Vec<f32> =
        (0..gamma.len()).map(|i| gamma[i] * moments[2 * (i / size) + 1]).collect();
    let shift = (0..gamma.len()).map(|i| beta[i] - moments[2 * (i / size)] * scale[i]).collect();
    (scale, shift)
}

struct Normalise<'a> {
    norm: GroupNorm,
    x: &'a [f32],
    gamma: &'a [f32],
    beta: &'a [f32],
    y: &'a mut [f32],
    /// The mean and one over the deviation of every group.
    moments: &'a mut [f32],
}

impl Kernel for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (width, groups) = (self.gamma.len(), self.norm.groups);
        let size = width / groups;
        let count = (self.x.len() / groups) as f64;
        let sums = channel_sums(self.x, self.x, width, |_, x, _| x);
        let means: Vec<f32> =
            sums.chunks_exact(size).map(|sums| (sums.iter().sum::<f64>() / count) as f32).collect();
        let of_channels: Vec<f32> = (0..width).map(|i| means[i / size]).collect();
        let squares = channel_sums(self.x, self.x, width, |i, x, _| {
            (x - of_channels[i]) * (x - of_channels[i])
        });
        for (group, squares) in squares.chunks_exact(size).enumerate() {
            let variance = squares.iter().sum::<f64>() / count;
            let inverse = 1.0 / (variance + f64::from(self.norm.epsilon)).sqrt();
            self.moments[2 * group] = means[group];
            self.moments[2 * group + 1] = inverse as f32;
        }
        let (scale, shift) = lines(self.moments, self.gamma, self.beta);
        let tokens = self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width));
        for (x, y) in tokens {
            for i in 0..width {
                y[i] = x[i] * scale[i] + shift[i];
            }
            if self.norm.rectify {
                // What is not a number stays one.
                y.iter_mut().for_each(|y| *y = if *y < 0.0 { 0.0 } else { *y });
            }
        }
    }
}

struct NormaliseBackward<'a> {
    norm: GroupNorm,
    x: &'a [f32],
    gamma: &'a [f32],
    beta: &'a [f32],
    moments: &'a [f32],
    grad: &'a [f32],
    /// Holds h on the way.
    grad_x: &'a mut [f32],
    /// Sums for γ, then for β.
    sums: &'a mut [f32],
}

impl Kernel for NormaliseBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (width, groups) = (self.gamma.len(), self.norm.groups);
        let size = width / groups;
        let count = (self.x.len() / groups) as f64;
        match self.norm.rectify {
            false => self.grad_x.copy_from_slice(self.grad),
            true => {
                let (scale, shift) = lines(self.moments, self.gamma, self.beta);
                let tokens = self.x.chunks_exact(width).zip(self.grad.chunks_exact(width));
                for ((x, grad), h) in tokens.zip(self.grad_x.chunks_exact_mut(width)) {
                    for i in 0..width {
                        h[i] = if x[i] * scale[i] + shift[i] > 0.0 { grad[i] } else { 0.0 };
                    }
                }
            }
        }
        let [mean, inverse]: [Vec<f32>; 2] =
            [0, 1].map(|k| (0..width).map(|i| self.moments[2 * (i / size) + k]).collect());
        let of_beta = channel_sums(self.grad_x, self.x, width, |_, h, _| h);
        let of_gamma =
            channel_sums(self.grad_x, self.x, width, |i, h, x| h * ((x - mean[i]) * inverse[i]));
        // ⟨g⟩ and ⟨g x̂⟩ of every group follow from the sums of its channels.
        let group_mean = |sums: &[f64], group: usize| -> f32 {
            let channels = group * size..(group + 1) * size;
            (channels.map(|i| f64::from(self.gamma[i]) * sums[i]).sum::<f64>() / count) as f32
        };
        let mut means = [vec![0.0; width], vec![0.0; width]];
        for (means, sums) in means.iter_mut().zip([&of_beta, &of_gamma]) {
            for group in 0..groups {
                means[group * size..(group + 1) * size].fill(group_mean(sums, group));
            }
        }
        let [mean_g, mean_gx] = &means;
        for (x, h) in self.x.chunks_exact(width).zip(self.grad_x.chunks_exact_mut(width)) {
            for i in 0..width {
                let normalised = (x[i] - mean[i]) * inverse[i];
                h[i] = (h[i] * self.gamma[i] - mean_g[i] - normalised * mean_gx[i]) * inverse[i];
            }
        }
        for i in 0..width {
            self.sums[i] = of_gamma[i] as f32;
            self.sums[width + i] = of_beta[i] as f32;
        }
    }
}
