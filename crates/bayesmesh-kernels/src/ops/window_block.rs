//! A block of a shifted-window transformer.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::dropout::Mask;
use super::flex;
use super::fused::{self, Fused};
use super::gelu;
use super::layer_norm::{LayerNorm, layer_norm_composed};
use super::linear::{Activation, Epilogue, Linear, linear_composed};
use super::sums::add_into;
use super::window_attention::{WindowAttention, Windows, window_attention_composed};
use crate::precision::Precision;
use crate::simd::{Kernel, dispatch, parallel};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// What a [`window_block`] is made of beside its weights.
#[derive(Clone, Copy, Debug)]
pub struct WindowBlock {
    /// Where the windows are.
    pub windows: Windows,
    /// Heads of the attention.
    pub heads: usize,
    /// ε of the normalisations.
    pub epsilon: f32,
    /// Dropout of what the attention gives.
    pub attention_mask: Option<Mask>,
    /// Dropout of the hidden units of the perceptron.
    pub hidden_mask: Option<Mask>,
    /// Whether the graph keeps only the inputs of the block, and the backward pass runs it again.
    pub recompute: bool,
}

/// The weights of a [`window_block`], those of width c being its own.
#[derive(Clone, Debug)]
pub struct WindowBlockWeights {
    /// To queries, keys and values: `[c, 3c]` and `[3c]`.
    pub qkv: (Tensor<2>, Tensor<1>),
    /// After the attention: `[c, c]` and `[c]`.
    pub proj: (Tensor<2>, Tensor<1>),
    /// γ and β after the attention: `[c]`.
    pub norm1: (Tensor<1>, Tensor<1>),
    /// To the hidden units h of the perceptron: `[c, h]` and `[h]`.
    pub fc1: (Tensor<2>, Tensor<1>),
    /// From them: `[h, c]` and `[c]`.
    pub fc2: (Tensor<2>, Tensor<1>),
    /// γ and β after the perceptron: `[c]`.
    pub norm2: (Tensor<1>, Tensor<1>),
}

/// A block with normalisations after its parts:
/// `x ← x + norm(proj(attention(qkv x)))`, `x ← x + norm(fc2(gelu(fc1 x)))`.
///
/// # Shapes
///
/// - `x`, output: `[rows, tokens, c]`
///
/// # Panics
///
/// If the sizes do not fit.
pub fn window_block(x: Tensor<3>, weights: WindowBlockWeights, block: WindowBlock) -> Tensor<3> {
    let [_, tokens, width] = x.dims();
    block.windows.check(tokens);
    assert!(
        block.heads > 0 && width.is_multiple_of(block.heads),
        "{} heads do not divide a width of {width}",
        block.heads
    );
    if !flex::is_flex(&x.device()) {
        return window_block_composed(x, weights, block);
    }
    let WindowBlockWeights { qkv, proj, norm1, fc1, fc2, norm2 } = weights;
    let inputs = [
        x.into_dispatch(),
        qkv.0.into_dispatch(),
        qkv.1.into_dispatch(),
        proj.0.into_dispatch(),
        proj.1.into_dispatch(),
        norm1.0.into_dispatch(),
        norm1.1.into_dispatch(),
        fc1.0.into_dispatch(),
        fc1.1.into_dispatch(),
        fc2.0.into_dispatch(),
        fc2.1.into_dispatch(),
        norm2.0.into_dispatch(),
        norm2.1.into_dispatch(),
    ];
    let chain = block.chain();
    if block.recompute {
        return fused::run(chain, inputs);
    }
    let mut registers = inputs.to_vec();
    for step in chain.steps {
        let inputs = step.inputs.iter().map(|&input| registers[input].clone()).collect();
        registers.push(fused::run_any(step.part.operation(), inputs));
    }
    Tensor::from_dispatch(registers.pop().expect("as many as there were inputs, and more"))
}

/// [`window_block`] from Burn's own operations, for devices without an implementation of their own.
/// Nothing is computed again.
pub fn window_block_composed(
    x: Tensor<3>,
    weights: WindowBlockWeights,
    block: WindowBlock,
) -> Tensor<3> {
    let WindowBlockWeights { qkv, proj, norm1, fc1, fc2, norm2 } = weights;
    let plain = Epilogue::default();
    let after_attention = Epilogue { mask: block.attention_mask, ..plain };
    let hidden = Epilogue { activation: Activation::Gelu, mask: block.hidden_mask, ..plain };
    let z = linear_composed(x.clone(), qkv.0, Some(qkv.1.clone()), plain);
    let z = window_attention_composed(z, qkv.1, block.windows, block.heads);
    let z = linear_composed(z, proj.0, Some(proj.1), after_attention);
    let x = x + layer_norm_composed(z, norm1.0, norm1.1, block.epsilon);
    let z = linear_composed(x.clone(), fc1.0, Some(fc1.1), hidden);
    let z = linear_composed(z, fc2.0, Some(fc2.1), plain);
    x + layer_norm_composed(z, norm2.0, norm2.1, block.epsilon)
}

impl WindowBlock {
    /// The block as a chain: inputs 0 to 12, the results of its steps from 13 on.
    fn chain(&self) -> Chain {
        let linear = |activation, mask| {
            let epilogue = Epilogue { activation, mask, narrow: true, ..Epilogue::default() };
            Part::Linear(Linear { bias: true, ..Linear::new(epilogue) })
        };
        let precision = Precision::current();
        let attention = WindowAttention { windows: self.windows, heads: self.heads, precision };
        let norm = Part::Norm(LayerNorm { epsilon: self.epsilon, residual: true });
        // The bias of query, key and value is what padding has.
        let attended: &[usize] = if self.windows.are_padded() { &[13, 2] } else { &[13] };
        let steps: [(Part, &[usize]); 7] = [
            (linear(Activation::Identity, None), &[0, 1, 2]),
            (Part::Attention(attention), attended),
            (linear(Activation::Identity, self.attention_mask), &[14, 3, 4]),
            (norm, &[15, 5, 6, 0]),
            (linear(Activation::Gelu, self.hidden_mask), &[16, 7, 8]),
            (linear(Activation::Identity, None), &[17, 9, 10]),
            (norm, &[18, 11, 12, 16]),
        ];
        let steps = steps.map(|(part, inputs)| ChainStep { part, inputs: inputs.to_vec() });
        Chain { steps: steps.to_vec() }
    }
}

/// An operation of a block.
#[derive(Clone, Copy, Debug)]
enum Part {
    Linear(Linear),
    Attention(WindowAttention),
    Norm(LayerNorm),
}

impl Part {
    fn operation(self) -> fused::Operation {
        match self {
            Self::Linear(part) => std::sync::Arc::new(part),
            Self::Attention(part) => std::sync::Arc::new(part),
            Self::Norm(part) => std::sync::Arc::new(part),
        }
    }
}

#[derive(Clone, Debug)]
struct ChainStep {
    part: Part,
    /// Which of the inputs of the chain, and of the results of the steps that follow these.
    inputs: Vec<usize>,
}

/// Operations one after the other, as one that keeps its inputs only: the backward pass runs the
/// steps again, now keeping what each needs, and then backwards.
///
/// It is a tape of its own, which needs no lock. Each step computes what it would on Burn's tape,
/// and the gradients of a tensor that is used twice are added as there: the bits are the same.
#[derive(Debug)]
struct Chain {
    steps: Vec<ChainStep>,
}

impl Chain {
    /// The result of the last step. What each step needs for its backward pass is pushed on `kept`.
    fn run(
        &self,
        inputs: &[FlexTensor],
        mut kept: Option<&mut Vec<Vec<FlexTensor>>>,
    ) -> FlexTensor {
        let mut registers: Vec<Option<FlexTensor>> = inputs.iter().cloned().map(Some).collect();
        for (index, step) in self.steps.iter().enumerate() {
            let inputs = step.inputs.iter().map(|&input| registers[input].clone());
            let inputs: Vec<_> = inputs.map(|input| input.expect("needed by this step")).collect();
            let operation = step.part.operation();
            let output = match &mut kept {
                None => operation.forward(&inputs, None),
                Some(kept) => {
                    let mut saved = Vec::new();
                    let output = operation.forward(&inputs, Some(&mut saved));
                    kept.push(saved);
                    output
                }
            };
            // What nobody needs any more is freed.
            for &input in &step.inputs {
                if !self.steps[index + 1..].iter().any(|later| later.inputs.contains(&input)) {
                    registers[input] = None;
                }
            }
            registers.push(Some(output));
        }
        registers.pop().flatten().expect("the result of the last step")
    }
}

impl Fused for Chain {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        saved.into_iter().for_each(|saved| saved.extend_from_slice(inputs));
        self.run(inputs, None)
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let inputs = saved.len();
        let mut kept = Vec::with_capacity(self.steps.len());
        drop(self.run(&saved, Some(&mut kept)));
        drop(saved);
        let mut gradients: Vec<Option<FlexTensor>> = vec![None; inputs + self.steps.len()];
        gradients[inputs + self.steps.len() - 1] = Some(grad);
        for (index, step) in self.steps.iter().enumerate().rev() {
            let saved = kept.pop().expect("one for each step");
            let grad = gradients[inputs + index].take().expect("every result is used");
            let of_step: Vec<bool> =
                step.inputs.iter().map(|&input| *wanted.get(input).unwrap_or(&true)).collect();
            let found = step.part.operation().backward(saved, grad, &of_step);
            for ((&input, gradient), wanted) in step.inputs.iter().zip(found).zip(of_step) {
                if let (Some(gradient), true) = (gradient, wanted) {
                    gradients[input] = Some(match gradients[input].take() {
                        None => gradient,
                        Some(before) => sum(before, &gradient),
                    });
                }
            }
        }
        gradients.truncate(inputs);
        gradients
    }
}

/// The sum of two tensors of one shape.
fn sum(left: FlexTensor, right: &FlexTensor) -> FlexTensor {
    let mut left = flex::into_values(left);
    let blocks = left.storage_mut::<f32>().par_chunks_mut(gelu::BLOCK);
    parallel(blocks.zip(flex::values(right).par_chunks(gelu::BLOCK)), |(sum, values)| {
        dispatch(Add { sum, values });
    });
    left
}

struct Add<'a> {
    sum: &'a mut [f32],
    values: &'a [f32],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        add_into(self.sum, self.values);
    }
}
