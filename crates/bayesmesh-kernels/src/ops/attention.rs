//! Multi-head self-attention.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor, activation};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::flex;
use super::fused::{self, Fused};
use super::matrix::{Matrix, Onto};
use super::softmax::Softmax;
use super::sums::dot_shifted;
use crate::elementary::exp;
use crate::simd::{Kernel, dispatch, parallel};

/// Self-attention of every head from a packed tensor of queries, keys and values:
/// `O = softmax(QKᵀ/√d + M) V`, heads side by side.
///
/// The last axis of `qkv` holds Q of all heads, then K, then V; d is the width of a head. The mask
/// M is added to the scores; of several masks, number `n mod masks` belongs to sequence n, as with
/// the windows of shifted-window attention, where it is large and negative for pairs that are no
/// neighbours. It gets no gradient.
///
/// Neither pass holds the scores of more than one head of one sequence at a time. The graph keeps
/// `qkv` and one number for every query, `ℓ = ln Σ exp(score)`, with which the backward pass
/// makes `P = exp(score − ℓ)` again:
///
/// ```text
/// ∂V = Pᵀ ∂O      ∂P = ∂O Vᵀ      ∂S = P ∘ (∂P − Σ_keys ∂P∘P)
/// ∂Q = ∂S K/√d    ∂K = ∂Sᵀ Q/√d
/// ```
///
/// # Shapes
///
/// - `qkv`: `[sequences, tokens, 3·heads·d]`
/// - `mask`: `[masks, tokens, tokens]`
/// - output: `[sequences, tokens, heads·d]`
///
/// # Panics
///
/// If the last axis cannot be divided by three times the heads, or the mask is of another shape.
pub fn attention(qkv: Tensor<3>, heads: usize, mask: Option<Tensor<3>>) -> Tensor<3> {
    let [sequences, tokens, packed] = qkv.dims();
    assert!(
        heads > 0 && packed.is_multiple_of(3 * heads),
        "attention: a last axis of {packed} is not queries, keys and values of {heads} heads"
    );
    if let Some(mask) = &mask {
        let [masks, rows, columns] = mask.dims();
        assert!(
            [rows, columns] == [tokens, tokens] && masks > 0 && sequences.is_multiple_of(masks),
            "attention: {masks} masks of {rows} x {columns} for {sequences} sequences of {tokens}"
        );
    }
    if !flex::is_flex(&qkv.device()) {
        return attention_composed(qkv, heads, mask);
    }
    match mask {
        None => fused::run(Attention { heads }, [qkv.into_dispatch()]),
        Some(mask) => {
            let mask = mask.detach();
            fused::run(Attention { heads }, [qkv.into_dispatch(), mask.into_dispatch()])
        }
    }
}

/// [`attention`] from Burn's own operations, for devices without an implementation of their own.
pub fn attention_composed(qkv: Tensor<3>, heads: usize, mask: Option<Tensor<3>>) -> Tensor<3> {
    let [sequences, tokens, packed] = qkv.dims();
    let width = packed / (3 * heads);
    let parts = qkv.reshape([sequences, tokens, 3, heads, width]).permute([2, 0, 3, 1, 4]);
    let part = |i: usize| parts.clone().narrow(0, i, 1).squeeze_dim::<4>(0);
    let mut scores = part(0).matmul(part(1).swap_dims(2, 3)) * (width as f32).sqrt().recip();
    if let Some(mask) = mask {
        let [masks, ..] = mask.dims();
        let split: Tensor<5> = scores.reshape([sequences / masks, masks, heads, tokens, tokens]);
        let mask: Tensor<5> = mask.detach().unsqueeze_dim::<4>(1).unsqueeze();
        scores = (split + mask).reshape([sequences, heads, tokens, tokens]);
    }
    let output = activation::softmax(scores, 3).matmul(part(2));
    output.swap_dims(1, 2).reshape([sequences, tokens, heads * width])
}

#[derive(Debug)]
struct Attention {
    heads: usize,
}

/// The sizes of the attention within a sequence.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Tokens, all of which are attended to.
    pub tokens: usize,
    /// Those of them that attend: the first ones. The output has rows for these only.
    pub queries: usize,
    pub heads: usize,
    /// The width of a head.
    pub width: usize,
}

impl Sizes {
    fn of(qkv: &FlexTensor, heads: usize) -> Self {
        let [_, tokens, packed] = qkv.layout().shape().dims();
        Self { tokens, queries: tokens, heads, width: packed / (3 * heads) }
    }

    /// Numbers between the tokens of the output, a third of those of the input.
    pub fn step(self) -> usize {
        self.heads * self.width
    }

    /// Q (0), K (1) or V (2) of a head, out of a sequence of `qkv`.
    fn part(self, sequence: &[f32], which: usize, head: usize) -> Matrix<'_> {
        let from = which * self.step() + head * self.width;
        let tokens = if which == 0 { self.queries } else { self.tokens };
        Matrix::view(&sequence[from..], tokens, self.width, 3 * self.step())
    }

    /// The columns of a head, out of a sequence of the output.
    fn head(self, sequence: &[f32], head: usize) -> Matrix<'_> {
        Matrix::view(&sequence[head * self.width..], self.queries, self.width, self.step())
    }

    /// `QKᵀ/√d + M` of a head.
    fn scores(self, sequence: &[f32], head: usize, mask: Option<&[f32]>, scores: &mut [f32]) {
        let onto = match mask {
            None => Onto::Nothing,
            Some(mask) => {
                scores.copy_from_slice(mask);
                Onto::Sum
            }
        };
        let keys = self.part(sequence, 1, head).transposed();
        self.part(sequence, 0, head).times_onto(keys, self.scale(), onto, scores, self.tokens);
    }

    fn scale(self) -> f32 {
        (self.width as f32).sqrt().recip()
    }

    /// The attention of a sequence: `qkv` is `[tokens, 3·heads·width]`, the mask
    /// `[queries, tokens]`, the output `[queries, heads·width]`; the logs, `[heads, queries]`, are
    /// for the backward pass.
    pub fn attend(self, qkv: &[f32], mask: Option<&[f32]>, output: &mut [f32], logs: &mut [f32]) {
        let Self { tokens, queries, .. } = self;
        let mut scores = flex::scratch(queries * tokens);
        for (head, logs) in logs.chunks_exact_mut(queries).enumerate() {
            self.scores(qkv, head, mask, &mut scores);
            dispatch(Softmax { rows: &mut scores, logs: Some(logs), width: tokens });
            let columns = &mut output[head * self.width..];
            let weights = Matrix::new(&scores, queries, tokens);
            let values = self.part(qkv, 2, head);
            weights.times_onto(values, 1.0, Onto::Nothing, columns, self.step());
        }
    }

    /// The gradient of `qkv` from that of the output; rows of queries that there are not are not
    /// written.
    pub fn attend_backward(
        self,
        qkv: &[f32],
        mask: Option<&[f32]>,
        logs: &[f32],
        grad: &[f32],
        grad_qkv: &mut [f32],
    ) {
        let Self { tokens, queries, width, .. } = self;
        let packed = 3 * self.step();
        let mut weights = flex::scratch(queries * tokens);
        let mut slopes = flex::scratch(queries * tokens);
        for (head, logs) in logs.chunks_exact(queries).enumerate() {
            let [query, key, value] = [0, 1, 2].map(|i| self.part(qkv, i, head));
            let grad = self.head(grad, head);
            let column = |which: usize| which * self.step() + head * width;
            self.scores(qkv, head, mask, &mut weights);
            grad.times_onto(value.transposed(), 1.0, Onto::Nothing, &mut slopes, tokens);
            dispatch(Slopes { logs, weights: &mut weights, slopes: &mut slopes, tokens });
            let weights = Matrix::new(&weights, queries, tokens).transposed();
            let slopes = Matrix::new(&slopes, queries, tokens);
            let mut write = |which, left: Matrix, right: Matrix, factor| {
                let columns = &mut grad_qkv[column(which)..];
                left.times_onto(right, factor, Onto::Nothing, columns, packed);
            };
            write(0, slopes, key, self.scale());
            write(1, slopes.transposed(), query, self.scale());
            write(2, weights, grad, 1.0);
        }
    }
}

/// The mask of a sequence, of those there are.
fn mask_of(masks: Option<&FlexTensor>, sequence: usize, tokens: usize) -> Option<&[f32]> {
    let masks = flex::values(masks?);
    let size = tokens * tokens;
    Some(&masks[sequence % (masks.len() / size) * size..][..size])
}

impl Fused for Attention {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let (qkv, masks) = (&inputs[0], inputs.get(1));
        let sizes = Sizes::of(qkv, self.heads);
        let Sizes { tokens, heads, .. } = sizes;
        let [sequences, _, packed] = qkv.layout().shape().dims();
        let mut logs = flex::scratch(sequences * heads * tokens);
        let output = flex::build(Shape::new([sequences, tokens, packed / 3]), |output| {
            let qkv = flex::values(qkv).par_chunks((tokens * packed).max(1));
            let outputs = output.par_chunks_mut((tokens * packed / 3).max(1));
            let outputs = outputs.zip(logs.par_chunks_mut((heads * tokens).max(1)));
            parallel(qkv.zip(outputs).enumerate(), |(sequence, (qkv, (output, logs)))| {
                sizes.attend(qkv, mask_of(masks, sequence, tokens), output, logs);
            });
        });
        if let Some(saved) = saved {
            saved.push(qkv.clone());
            saved.push(flex::from_vec(logs, Shape::new([sequences, heads, tokens])));
            saved.extend(masks.cloned());
        }
        output
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let (qkv, logs, masks) = (&saved[0], &saved[1], saved.get(2));
        let sizes = Sizes::of(qkv, self.heads);
        let Sizes { tokens, heads, .. } = sizes;
        let packed = 3 * sizes.step();
        let grad_qkv = flex::build(qkv.layout().shape().clone(), |grad_qkv| {
            let whole = (tokens * packed).max(1);
            let inputs = flex::values(qkv).par_chunks(whole);
            let inputs = inputs.zip(flex::values(&grad).par_chunks((whole / 3).max(1)));
            let inputs = inputs.zip(flex::values(logs).par_chunks((heads * tokens).max(1)));
            let both = inputs.zip(grad_qkv.par_chunks_mut(whole)).enumerate();
            parallel(both, |(sequence, (((qkv, grad), logs), grad_qkv))| {
                let mask = mask_of(masks, sequence, tokens);
                sizes.attend_backward(qkv, mask, logs, grad, grad_qkv);
            });
        });
        vec![Some(grad_qkv), None]
    }
}

/// From scores and `∂P` to `P` and `∂S`, in place.
struct Slopes<'a> {
    logs: &'a [f32],
    /// The scores, then P.
    weights: &'a mut [f32],
    /// `∂P`, then `∂S`.
    slopes: &'a mut [f32],
    tokens: usize,
}

impl Kernel for Slopes<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let tokens = self.tokens.max(1);
        let rows = self.weights.chunks_exact_mut(tokens).zip(self.slopes.chunks_exact_mut(tokens));
        for ((weights, slopes), log) in rows.zip(self.logs) {
            for weight in weights.iter_mut() {
                *weight = exp(*weight - log);
            }
            let mean = dot_shifted(weights, slopes, 0.0);
            for (slope, weight) in slopes.iter_mut().zip(weights) {
                *slope = *weight * (*slope - mean);
            }
        }
    }
}
