//! Self-attention within windows of a grid that wraps around the globe.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Device, Shape, Tensor, TensorData};
use rayon::iter::IntoParallelIterator;

use half::bf16;

use super::attention::{Sizes, attention_composed};
use super::flex;
use super::fused::{self, Fused};
use super::sums::add_into;
use crate::precision::Precision;
use crate::product::Element;
use crate::simd::parallel;

/// What is added to the score of a pair of tokens that are no neighbours.
const FAR: f32 = -10_000.0;

/// How the tokens of a grid are divided into windows.
///
/// Rows of padding are added at the bottom until the height of a window divides them. Where the
/// windows are shifted, the grid is rolled by half a window upwards and to the left before. In
/// longitude it wraps around, as the globe does. In latitude a window of the last row then holds
/// tokens from the bottom and from the top, which do not see each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Rows and columns of tokens.
    pub grid: [usize; 2],
    /// Rows and columns of a window; its columns divide those of the grid.
    pub window: [usize; 2],
    /// Whether the windows are shifted by half a window.
    pub shifted: bool,
}

/// A row of windows: which rows of tokens it has, first those of the grid, then padding.
struct Band {
    lines: Vec<usize>,
    /// How many are of the grid.
    real: usize,
    /// What is added to the scores of a window, `[queries, tokens]`, the queries being the tokens
    /// of the grid.
    mask: Option<Vec<f32>>,
}

impl Windows {
    /// Whether there is padding.
    pub fn are_padded(&self) -> bool {
        !self.grid[0].is_multiple_of(self.window[0])
    }

    fn shift(&self) -> [usize; 2] {
        if self.shifted { self.window.map(|n| n / 2) } else { [0, 0] }
    }

    fn bands(&self) -> usize {
        self.grid[0].div_ceil(self.window[0])
    }

    /// Windows side by side.
    fn across(&self) -> usize {
        self.grid[1] / self.window[1]
    }

    /// Tokens of a window.
    fn tokens(&self) -> usize {
        self.window[0] * self.window[1]
    }

    /// Whether a row of tokens came into the last band from the top.
    fn wrapped(&self, line: usize) -> bool {
        line < self.shift()[0]
    }

    /// The rows of tokens of a band, as they are in its windows.
    fn lines(&self, band: usize) -> impl Iterator<Item = usize> {
        let (rows, shift) = (self.bands() * self.window[0], self.shift()[0]);
        let first = band * self.window[0];
        (first..first + self.window[0]).map(move |line| (line + shift) % rows)
    }

    fn band(&self, index: usize) -> Band {
        let (mut lines, padding): (Vec<_>, Vec<_>) =
            self.lines(index).partition(|line| *line < self.grid[0]);
        let real = lines.len();
        lines.extend(padding);
        let far = self.shift()[0] > 0 && index + 1 == self.bands();
        let mask = far.then(|| {
            let columns = self.window[1];
            let score = |a: &usize, b: &usize| {
                if self.wrapped(*a) == self.wrapped(*b) { 0.0 } else { FAR }
            };
            let mut mask = Vec::with_capacity(real * columns * lines.len() * columns);
            for query in &lines[..real] {
                for _ in 0..columns {
                    for key in &lines {
                        mask.extend(std::iter::repeat_n(score(query, key), columns));
                    }
                }
            }
            mask
        });
        Band { lines, real, mask }
    }

    /// Calls `copy` with the places, in tokens, of every run of neighbours in one row of the grid
    /// that a window takes from its rows: in the band's n-th row, in the window, and how many.
    fn runs(&self, band: &Band, window: usize, mut copy: impl FnMut(usize, usize, usize, usize)) {
        let (columns, longitudes) = (self.window[1], self.grid[1]);
        let first = (window * columns + self.shift()[1]) % longitudes;
        let before = columns.min(longitudes - first);
        for line in 0..band.real {
            copy(line, first, line * columns, before);
            if before < columns {
                copy(line, 0, line * columns + before, columns - before);
            }
        }
    }

    /// The masks of all windows, `[windows, tokens, tokens]`, in the order in which they are cut.
    fn masks(&self, device: &Device) -> Option<Tensor<3>> {
        if self.shift()[0] == 0 {
            return None;
        }
        let (tokens, columns) = (self.tokens(), self.window[1]);
        let mut mask: Vec<f32> = Vec::new();
        for band in 0..self.bands() {
            let lines: Vec<usize> = self.lines(band).collect();
            let last = band + 1 == self.bands();
            let region = |token: usize| last && self.wrapped(lines[token / columns]);
            let far = |pair: usize| region(pair / tokens) != region(pair % tokens);
            let one: Vec<f32> =
                (0..tokens * tokens).map(|pair| if far(pair) { FAR } else { 0.0 }).collect();
            (0..self.across()).for_each(|_| mask.extend(&one));
        }
        let windows = self.bands() * self.across();
        Some(Tensor::from_data(TensorData::new(mask, [windows, tokens, tokens]), device))
    }
}

/// [`attention`](super::attention) within each of the [`Windows`] of a grid, on tokens in the order
/// of the grid: rolling, cutting into windows and putting them back are part of it.
///
/// The output is of the numbers that `qkv` is of.
///
/// Padding is attended to, and attends to nothing, since what it would get is left out. Its query,
/// key and value are `bias`, those that the layer before makes of a token of zeros.
///
/// # Shapes
///
/// - `qkv`: `[rows, tokens, 3·heads·d]`
/// - `bias`: `[3·heads·d]`
/// - output: `[rows, tokens, heads·d]`
///
/// # Panics
///
/// If the sizes do not fit.
pub fn window_attention(
    qkv: Tensor<3>,
    bias: Tensor<1>,
    windows: Windows,
    heads: usize,
) -> Tensor<3> {
    let [_, tokens, packed] = qkv.dims();
    windows.check(tokens);
    assert!(
        heads > 0 && packed.is_multiple_of(3 * heads) && bias.dims() == [packed],
        "attention: a last axis of {packed} is not queries, keys and values of {heads} heads"
    );
    if !flex::is_flex(&qkv.device()) {
        return window_attention_composed(qkv, bias, windows, heads);
    }
    let operation = WindowAttention { windows, heads, precision: Precision::current() };
    match windows.are_padded() {
        true => fused::run(operation, [qkv.into_dispatch(), bias.into_dispatch()]),
        false => fused::run(operation, [qkv.into_dispatch()]),
    }
}

impl Windows {
    pub(super) fn check(&self, tokens: usize) {
        let Self { grid: [rows, columns], window: [height, width], .. } = *self;
        assert!(
            height > 0 && width > 0 && columns.is_multiple_of(width) && tokens == rows * columns,
            "windows of {height} x {width} on {tokens} tokens of a grid of {rows} x {columns}"
        );
    }
}

/// [`window_attention`] from Burn's own operations, for devices without an implementation of their
/// own.
pub fn window_attention_composed(
    qkv: Tensor<3>,
    bias: Tensor<1>,
    windows: Windows,
    heads: usize,
) -> Tensor<3> {
    let [rows, tokens, packed] = qkv.dims();
    let Windows { grid: [height, width], window: [lines, columns], .. } = windows;
    let ([down, across], [up, left]) = ([windows.bands(), windows.across()], windows.shift());
    let mut grid: Tensor<4> = qkv.reshape([rows, height, width, packed]);
    let missing = down * lines - height;
    if missing > 0 {
        let bias: Tensor<4> = bias.reshape([1, 1, 1, packed]);
        grid = Tensor::cat(vec![grid, bias.expand([rows, missing, width, packed])], 1);
    }
    let cut = rolled(rolled(grid, 1, up), 2, left)
        .reshape([rows, down, lines, across, columns, packed])
        .permute([0, 1, 3, 2, 4, 5])
        .reshape([rows * down * across, lines * columns, packed]);
    let masks = windows.masks(&cut.device());
    let output = attention_composed(cut, heads, masks)
        .reshape([rows, down, across, lines, columns, packed / 3])
        .permute([0, 1, 3, 2, 4, 5])
        .reshape([rows, down * lines, width, packed / 3]);
    let output = rolled(rolled(output, 1, down * lines - up), 2, width - left);
    output.narrow(1, 0, height).reshape([rows, tokens, packed / 3])
}

/// Moves an axis towards its beginning, what falls out coming in at its end.
fn rolled(x: Tensor<4>, axis: usize, by: usize) -> Tensor<4> {
    let size = x.dims()[axis];
    match by % size {
        0 => x,
        by => Tensor::cat(vec![x.clone().narrow(axis, by, size - by), x.narrow(axis, 0, by)], axis),
    }
}

/// The inputs are `qkv` and, where there is padding, the bias.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowAttention {
    pub windows: Windows,
    pub heads: usize,
    pub precision: Precision,
}

/// What is done for one band of one row of the batch: the rows of tokens that are written, and the
/// logs of its windows.
struct Job<'a, E, L> {
    row: usize,
    band: &'a Band,
    lines: Vec<&'a mut [E]>,
    logs: L,
}

impl WindowAttention {
    fn sizes(&self, band: &Band, packed: usize) -> Sizes {
        Sizes {
            tokens: self.windows.tokens(),
            queries: band.real * self.windows.window[1],
            heads: self.heads,
            width: packed / (3 * self.heads),
        }
    }

    /// Divides what is written into jobs; `take` takes the logs of one off.
    fn jobs<'a, E, L>(
        &self,
        bands: &'a [Band],
        written: &'a mut [E],
        units: usize,
        mut take: impl FnMut(usize) -> L,
    ) -> Vec<Job<'a, E, L>> {
        let [height, width] = self.windows.grid;
        let lines = written.chunks_exact_mut((width * units).max(1));
        let mut lines: Vec<Option<&mut [E]>> = lines.map(Some).collect();
        let rows = lines.len() / height.max(1);
        let mut jobs = Vec::with_capacity(rows * bands.len());
        for row in 0..rows {
            for band in bands {
                let own = band.lines[..band.real].iter().map(|line| {
                    lines[row * height + line].take().expect("each row of tokens is in one band")
                });
                let lines = own.collect();
                let queries = band.real * self.windows.window[1];
                let logs = take(self.windows.across() * self.heads * queries);
                jobs.push(Job { row, band, lines, logs });
            }
        }
        jobs
    }

    /// Copies the tokens of a window out of a row of the batch.
    fn gather<E: Copy>(
        &self,
        values: &[E],
        band: &Band,
        window: usize,
        units: usize,
        into: &mut [E],
    ) {
        let width = self.windows.grid[1];
        self.windows.runs(band, window, |line, column, to, count| {
            let from = (band.lines[line] * width + column) * units;
            into[to * units..][..count * units]
                .copy_from_slice(&values[from..from + count * units]);
        });
    }

    /// Copies the tokens of a window to the rows that it is part of.
    fn scatter<E: Copy>(
        &self,
        values: &[E],
        band: &Band,
        window: usize,
        units: usize,
        lines: &mut [&mut [E]],
    ) {
        self.windows.runs(band, window, |line, column, from, count| {
            lines[line][column * units..][..count * units]
                .copy_from_slice(&values[from * units..][..count * units]);
        });
    }

    /// Room for the tokens of a window, its padding filled with the bias.
    fn room<E: Element>(&self, sizes: Sizes, bias: Option<&FlexTensor>) -> Vec<E> {
        let packed = sizes.packed();
        let mut tokens = flex::scratch::<E>(sizes.tokens * packed);
        if let Some(bias) = bias {
            for token in tokens[sizes.queries * packed..].chunks_exact_mut(packed.max(1)) {
                flex::convert(flex::values(bias), token);
            }
        }
        tokens
    }
}

impl Fused for WindowAttention {
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

impl WindowAttention {
    fn forward_in<E: Element>(
        &self,
        inputs: &[FlexTensor],
        saved: Option<&mut Vec<FlexTensor>>,
    ) -> FlexTensor {
        let kind = inputs[0].dtype();
        let (qkv, bias) = (flex::converted::<E>(inputs[0].clone()), inputs.get(1));
        let [rows, tokens, packed] = qkv.layout().shape().dims();
        let bands: Vec<Band> =
            (0..self.windows.bands()).map(|band| self.windows.band(band)).collect();
        let mut logs = flex::scratch::<f32>(rows * tokens * self.heads);
        let mut output = flex::scratch::<E>(rows * tokens * packed / 3);
        let mut rest = &mut logs[..];
        let jobs = self.jobs(&bands, &mut output, packed / 3, |count| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
            rest = later;
            now
        });
        parallel(jobs.into_par_iter(), |Job { row, band, mut lines, logs }| {
            let sizes = self.sizes(band, packed);
            let values = &flex::of::<E>(&qkv)[row * tokens * packed..][..tokens * packed];
            let mut window_qkv = self.room::<E>(sizes, bias);
            let mut window_output = flex::scratch::<E>(sizes.queries * sizes.step());
            let logs = logs.chunks_exact_mut((self.heads * sizes.queries).max(1));
            for (window, logs) in logs.enumerate() {
                self.gather(values, band, window, packed, &mut window_qkv);
                sizes.attend(&window_qkv, band.mask.as_deref(), &mut window_output, logs);
                self.scatter(&window_output, band, window, sizes.step(), &mut lines);
            }
        });
        let output = flex::from_vec(output, Shape::new([rows, tokens, packed / 3]));
        if let Some(saved) = saved {
            saved.push(qkv);
            saved.push(flex::from_vec(logs, Shape::new([rows, tokens * self.heads])));
            saved.extend(bias.cloned());
        }
        flex::as_kind(output, kind)
    }

    fn backward_in<E: Element>(
        &self,
        saved: &[FlexTensor],
        grad: &FlexTensor,
    ) -> Vec<Option<FlexTensor>> {
        let (qkv, logs, bias) = (&saved[0], &saved[1], saved.get(2));
        let kind = grad.dtype();
        let grad = flex::converted::<E>(grad.clone());
        let [_, tokens, packed] = qkv.layout().shape().dims();
        let bands: Vec<Band> =
            (0..self.windows.bands()).map(|band| self.windows.band(band)).collect();
        let mut grad_qkv = flex::scratch::<E>(flex::of::<E>(qkv).len());
        let mut rest = flex::values(logs);
        let jobs = self.jobs(&bands, &mut grad_qkv, packed, |count| {
            let (now, later) = rest.split_at(count);
            rest = later;
            now
        });
        // What each job adds to the gradient of the bias, to be added in order.
        let mut partial: Vec<Vec<f32>> = jobs.iter().map(|_| vec![0.0; packed]).collect();
        let jobs: Vec<_> = jobs.into_iter().zip(&mut partial).collect();
        parallel(jobs.into_par_iter(), |(Job { row, band, mut lines, logs }, partial)| {
            let sizes = self.sizes(band, packed);
            let (step, queries) = (sizes.step(), sizes.queries);
            let values = &flex::of::<E>(qkv)[row * tokens * packed..][..tokens * packed];
            let grad = &flex::of::<E>(&grad)[row * tokens * step..][..tokens * step];
            let mut window_qkv = self.room::<E>(sizes, bias);
            let mut window_grad = flex::scratch::<E>(queries * step);
            // Padding has no query: that part of its gradient stays zero.
            let mut window_grad_qkv = vec![E::default(); sizes.tokens * packed];
            let logs = logs.chunks_exact((self.heads * queries).max(1));
            for (window, logs) in logs.enumerate() {
                self.gather(values, band, window, packed, &mut window_qkv);
                self.gather(grad, band, window, step, &mut window_grad);
                sizes.attend_backward(
                    &window_qkv,
                    band.mask.as_deref(),
                    logs,
                    &window_grad,
                    &mut window_grad_qkv,
                );
                self.scatter(&window_grad_qkv, band, window, packed, &mut lines);
                for token in window_grad_qkv[queries * packed..].chunks_exact(packed.max(1)) {
                    for (sum, value) in partial.iter_mut().zip(token) {
                        *sum += value.single();
                    }
                }
            }
        });
        let grad_bias = bias.map(|bias| {
            let mut sum = vec![0.0; packed];
            partial.iter().for_each(|partial| add_into(&mut sum, partial));
            flex::from_vec(sum, bias.layout().shape().clone())
        });
        let grad_qkv = flex::from_vec(grad_qkv, qkv.layout().shape().clone());
        vec![Some(flex::as_kind(grad_qkv, kind)), grad_bias]
    }
}
