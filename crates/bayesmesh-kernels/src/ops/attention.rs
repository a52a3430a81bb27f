//! Multi-head self-attention.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor, activation};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use half::bf16;

use super::flex;
use super::fused::{self, Fused};
use super::softmax::Softmax;
use super::sums::dot_shifted;
use crate::elementary::exp;
use crate::precision::Precision;
use crate::product::{
    Element, Left, Packed, Sink, Store, WIDTH, product, row_of, transposed_product, write_row,
};
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
/// In [bf16](Precision::Bf16) Q, K, V, P and the gradients are rounded where they enter a product;
/// scores and the softmax are in single precision. The output is of the numbers that `qkv` is of.
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
    let operation = Attention { heads, precision: Precision::current() };
    match mask {
        None => fused::run(operation, [qkv.into_dispatch()]),
        Some(mask) => {
            let mask = mask.detach();
            fused::run(operation, [qkv.into_dispatch(), mask.into_dispatch()])
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
    precision: Precision,
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

    /// Q (0), K (1) or V (2) of a head and what follows, out of a sequence of `qkv`: rows that
    /// begin [`packed`](Self::packed) numbers apart.
    fn part<E>(self, sequence: &[E], which: usize, head: usize) -> &[E] {
        &sequence[which * self.step() + head * self.width..]
    }

    /// Numbers between the tokens of the input.
    pub fn packed(self) -> usize {
        3 * self.step()
    }

    fn scale(self) -> f32 {
        (self.width as f32).sqrt().recip()
    }

    /// `QKᵀ/√d + M` of a head.
    fn scores<E: Element>(
        self,
        sequence: &[E],
        head: usize,
        mask: Option<&[f32]>,
        scores: &mut [f32],
    ) {
        let Self { tokens, queries, width, .. } = self;
        let [query, key] = [0, 1].map(|which| self.part(sequence, which, head));
        // What follows an odd width is the next head: it meets zeros.
        let query = Left::rows(query, queries, width, self.packed());
        let key = Packed::<E>::of_transposed(key, width, tokens, self.packed());
        product(query, &key, &mut Scores { scores, mask, tokens, scale: self.scale() });
    }

    /// The attention of a sequence: `qkv` is `[tokens, 3·heads·width]`, the mask
    /// `[queries, tokens]`, the output `[queries, heads·width]`; the logs, `[heads, queries]`, are
    /// for the backward pass.
    pub fn attend<E: Element>(
        self,
        qkv: &[E],
        mask: Option<&[f32]>,
        output: &mut [E],
        logs: &mut [f32],
    ) {
        let Self { tokens, queries, width, .. } = self;
        let mut scores = flex::scratch::<f32>(queries * tokens);
        let mut rows = flex::scratch::<E>(queries * flex::row_step::<E>(tokens));
        for (head, logs) in logs.chunks_exact_mut(queries).enumerate() {
            self.scores(qkv, head, mask, &mut scores);
            dispatch(Softmax { rows: &mut scores, logs: Some(logs), width: tokens });
            let weights = entering(&scores, queries, tokens, &mut rows);
            let value = self.part(qkv, 2, head);
            let value = Packed::<E>::of(value, tokens, width, self.packed());
            let to = &mut output[head * width..];
            product(weights, &value, &mut Store { to, step: self.step(), factor: 1.0 });
        }
    }

    /// The gradient of `qkv` from that of the output; rows of queries that there are not are not
    /// written.
    pub fn attend_backward<E: Element>(
        self,
        qkv: &[E],
        mask: Option<&[f32]>,
        logs: &[f32],
        grad: &[E],
        grad_qkv: &mut [E],
    ) {
        let Self { tokens, queries, width, .. } = self;
        let (step, packed) = (self.step(), self.packed());
        let mut weights = flex::scratch::<f32>(queries * tokens);
        let mut slopes = flex::scratch::<f32>(queries * tokens);
        let mut rows = flex::scratch::<E>(queries * flex::row_step::<E>(tokens.max(width)));
        for (head, logs) in logs.chunks_exact(queries).enumerate() {
            let [query, key, value] = [0, 1, 2].map(|which| self.part(qkv, which, head));
            let grad = &grad[head * width..];
            self.scores(qkv, head, mask, &mut weights);
            {
                let left = self.rows_of_head(grad, &mut rows);
                let value = Packed::<E>::of_transposed(value, width, tokens, packed);
                product(left, &value, &mut Store { to: &mut slopes, step: tokens, factor: 1.0 });
            }
            dispatch(Slopes { logs, weights: &mut weights, slopes: &mut slopes, tokens });

            let key = Packed::<E>::of(key, tokens, width, packed);
            let to = &mut grad_qkv[head * width..];
            let left = entering(&slopes, queries, tokens, &mut rows);
            product(left, &key, &mut Store { to, step: packed, factor: self.scale() });

            let left = Packed::<E>::of(&slopes, queries, tokens, tokens);
            let query = Packed::<E>::of(query, queries, width, packed);
            let to = &mut grad_qkv[step + head * width..];
            transposed_product(
                &left,
                &query,
                &mut Store { to, step: packed, factor: self.scale() },
            );

            let left = Packed::<E>::of(&weights, queries, tokens, tokens);
            let grad = Packed::<E>::of(grad, queries, width, step);
            let to = &mut grad_qkv[2 * step + head * width..];
            transposed_product(&left, &grad, &mut Store { to, step: packed, factor: 1.0 });
        }
    }

    /// The columns of a head of the output as the left matrix of a product; copied where the last
    /// group of the last row would be beyond the end.
    fn rows_of_head<'a, E: Element>(self, head: &'a [E], rows: &'a mut [E]) -> Left<'a, E> {
        let Self { queries, width, .. } = self;
        let padded = flex::row_step::<E>(width);
        if padded == width {
            return Left::rows(head, queries, width, self.step());
        }
        for (to, from) in rows.chunks_exact_mut(padded).zip(head.chunks(self.step())) {
            to[..width].copy_from_slice(&from[..width]);
            to[width..].fill(E::default());
        }
        Left::rows(rows, queries, width, padded)
    }
}

/// Rows in single precision as the left matrix of a product, rounded where it wants that.
fn entering<'a, E: Element>(
    values: &[f32],
    count: usize,
    width: usize,
    rows: &'a mut [E],
) -> Left<'a, E> {
    let step = flex::row_step::<E>(width);
    flex::enter(values, width, &mut rows[..count * step]);
    Left::rows(&rows[..count * step], count, width, step)
}

/// Scales a product and adds the mask.
struct Scores<'a> {
    scores: &'a mut [f32],
    mask: Option<&'a [f32]>,
    tokens: usize,
    scale: f32,
}

impl Sink for Scores<'_> {
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn take(&mut self, row: usize, column: usize, tile: &mut [[f32; WIDTH]], columns: usize) {
        for (index, sums) in tile.iter_mut().enumerate() {
            let first = (row + index) * self.tokens + column;
            for i in 0..WIDTH {
                sums[i] *= self.scale;
            }
            if let Some(mask) = self.mask {
                let mask = row_of(&mask[first..], columns);
                for i in 0..WIDTH {
                    sums[i] += mask[i];
                }
            }
            write_row!(&mut self.scores[first..], columns, |i| sums[i]);
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
        match self.precision {
            Precision::F32 => self.forward_in::<f32>(inputs, saved),
            Precision::Bf16 => self.forward_in::<bf16>(inputs, saved),
        }
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        match self.precision {
            Precision::F32 => self.backward_in::<f32>(&saved, &grad),
            Precision::Bf16 => self.backward_in::<bf16>(&saved, &grad),
        }
    }
}

impl Attention {
    fn forward_in<E: Element>(
        &self,
        inputs: &[FlexTensor],
        saved: Option<&mut Vec<FlexTensor>>,
    ) -> FlexTensor {
        let kind = inputs[0].dtype();
        let (qkv, masks) = (flex::converted::<E>(inputs[0].clone()), inputs.get(1));
        let sizes = Sizes::of(&qkv, self.heads);
        let Sizes { tokens, heads, .. } = sizes;
        let [sequences, _, packed] = qkv.layout().shape().dims();
        let mut logs = flex::scratch(sequences * heads * tokens);
        let mut output = flex::scratch::<E>(sequences * tokens * packed / 3);
        let outputs = output.par_chunks_mut((tokens * packed / 3).max(1));
        let outputs = outputs.zip(logs.par_chunks_mut((heads * tokens).max(1)));
        let sequences_of = flex::of::<E>(&qkv).par_chunks((tokens * packed).max(1));
        parallel(sequences_of.zip(outputs).enumerate(), |(sequence, (qkv, (output, logs)))| {
            sizes.attend(qkv, mask_of(masks, sequence, tokens), output, logs);
        });
        let output = flex::from_vec(output, Shape::new([sequences, tokens, packed / 3]));
        if let Some(saved) = saved {
            saved.push(qkv);
            saved.push(flex::from_vec(logs, Shape::new([sequences, heads, tokens])));
            saved.extend(masks.cloned());
        }
        flex::as_kind(output, kind)
    }

    fn backward_in<E: Element>(
        &self,
        saved: &[FlexTensor],
        grad: &FlexTensor,
    ) -> Vec<Option<FlexTensor>> {
        let (qkv, logs, masks) = (&saved[0], &saved[1], saved.get(2));
        let kind = grad.dtype();
        let grad = flex::converted::<E>(grad.clone());
        let sizes = Sizes::of(qkv, self.heads);
        let Sizes { tokens, heads, .. } = sizes;
        let whole = (tokens * sizes.packed()).max(1);
        let inputs = flex::of::<E>(qkv).par_chunks(whole);
        let inputs = inputs.zip(flex::of::<E>(&grad).par_chunks((whole / 3).max(1)));
        let inputs = inputs.zip(flex::values(logs).par_chunks((heads * tokens).max(1)));
        let mut grad_qkv = flex::scratch::<E>(flex::of::<E>(qkv).len());
        let both = inputs.zip(grad_qkv.par_chunks_mut(whole)).enumerate();
        parallel(both, |(sequence, (((qkv, grad), logs), grad_qkv))| {
            let mask = mask_of(masks, sequence, tokens);
            sizes.attend_backward(qkv, mask, logs, grad, grad_qkv);
        });
        let grad_qkv = flex::from_vec(grad_qkv, qkv.layout().shape().clone());
        vec![Some(flex::as_kind(grad_qkv, kind)), None]
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
