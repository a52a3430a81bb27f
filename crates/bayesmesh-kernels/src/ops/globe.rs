//! Fields on the globe as sequences of patches, and back.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::ParallelSliceMut;

use super::flex;
use super::fused::{self, Fused};
use crate::simd::parallel;

/// How fields of the globe are cut into square patches: a grid of latitudes and longitudes, and for
/// each row of a batch by how many columns it is turned eastwards first: column c goes to
/// `(c + turn) mod longitudes`. Where the patch does not divide the latitudes, rows of zeros are
/// added at the bottom.
#[derive(Clone, Debug)]
pub struct Globe {
    /// Latitudes and longitudes.
    pub grid: [usize; 2],
    /// Height and width of a patch; divides the longitudes.
    pub patch: usize,
    /// From 0 to below the longitudes, one for each row of the batch; none are zeros.
    pub turns: Arc<[usize]>,
}

impl Globe {
    /// Rows and columns of patches.
    pub fn tokens(&self) -> [usize; 2] {
        [self.grid[0].div_ceil(self.patch), self.grid[1] / self.patch]
    }

    fn check(&self, rows: usize, grid: [usize; 2]) {
        let Self { grid: [latitudes, longitudes], patch, ref turns } = *self;
        assert!(
            patch > 0 && longitudes.is_multiple_of(patch),
            "patches of {patch} columns do not divide a globe of {longitudes}"
        );
        assert!(
            grid == self.grid,
            "fields of {} x {} for a globe of {latitudes} x {longitudes}",
            grid[0],
            grid[1]
        );
        assert!(
            (turns.is_empty() || turns.len() == rows) && turns.iter().all(|t| *t < longitudes),
            "{} turns, below {longitudes} each, for {rows} rows",
            turns.len()
        );
    }

    fn turn(&self, row: usize) -> usize {
        self.turns.get(row).copied().unwrap_or(0)
    }
}

/// Cuts turned fields into patches: token `(r, c)` is the patch in row r and column c, row after
/// row, and holds its numbers in the order (row, column, channel).
///
/// # Shapes
///
/// - `fields`: `[rows, channels, latitudes, longitudes]`
/// - output: `[rows, tokens, patch²·channels]`
///
/// # Panics
///
/// If the patch does not divide the longitudes, or fields or turns do not fit.
pub fn globe_patches(fields: Tensor<4>, globe: Globe) -> Tensor<3> {
    let [rows, _, latitudes, longitudes] = fields.dims();
    globe.check(rows, [latitudes, longitudes]);
    match flex::is_flex(&fields.device()) {
        true => fused::run(Cut(globe), [fields.into_dispatch()]),
        false => globe_patches_composed(fields, &globe),
    }
}

/// [`globe_patches`] from Burn's own operations, for devices without an implementation of their
/// own.
pub fn globe_patches_composed(fields: Tensor<4>, globe: &Globe) -> Tensor<3> {
    let [rows, channels, latitudes, longitudes] = fields.dims();
    let ([down, across], patch) = (globe.tokens(), globe.patch);
    let fields = turned(fields, |row| globe.turn(row));
    let missing = down * patch - latitudes;
    let bottom = Tensor::zeros([rows, channels, missing, longitudes], &fields.device());
    let fields = if missing == 0 { fields } else { Tensor::cat(vec![fields, bottom], 2) };
    fields
        .reshape([rows, channels, down, patch, across, patch])
        .permute([0, 2, 4, 3, 5, 1])
        .reshape([rows, down * across, patch * patch * channels])
}

/// Puts fields together from patches and turns them back: the transpose of [`globe_patches`], for
/// tokens that hold their numbers in the order (channel, row, column). What is below the last
/// latitude is left out. To every channel its bias is added.
///
/// # Shapes
///
/// - `tokens`: `[rows, tokens, channels·patch²]`
/// - `bias`: `[channels]`
/// - output: `[rows, channels, latitudes, longitudes]`
///
/// # Panics
///
/// If the patch does not divide the longitudes, or tokens or turns do not fit.
pub fn globe_fields(tokens: Tensor<3>, bias: Tensor<1>, globe: Globe) -> Tensor<4> {
    let ([rows, count, units], [channels]) = (tokens.dims(), bias.dims());
    globe.check(rows, globe.grid);
    let [down, across] = globe.tokens();
    assert!(
        count == down * across && units == channels * globe.patch * globe.patch,
        "{count} tokens of {units} for {down} x {across} patches of {channels} channels"
    );
    match flex::is_flex(&tokens.device()) {
        true => fused::run(Join(globe), [tokens.into_dispatch(), bias.into_dispatch()]),
        false => globe_fields_composed(tokens, bias, &globe),
    }
}

/// [`globe_fields`] from Burn's own operations, for devices without an implementation of their own.
pub fn globe_fields_composed(tokens: Tensor<3>, bias: Tensor<1>, globe: &Globe) -> Tensor<4> {
    let ([rows, ..], [channels]) = (tokens.dims(), bias.dims());
    let ([down, across], patch, [latitudes, longitudes]) =
        (globe.tokens(), globe.patch, globe.grid);
    let fields: Tensor<4> = tokens
        .reshape([rows, down, across, channels, patch, patch])
        .permute([0, 3, 1, 4, 2, 5])
        .reshape([rows, channels, down * patch, longitudes]);
    let fields = fields.narrow(2, 0, latitudes) + bias.reshape([1, channels, 1, 1]);
    turned(fields, |row| (longitudes - globe.turn(row)) % longitudes)
}

/// Each row of a batch turned eastwards.
fn turned(fields: Tensor<4>, turn: impl Fn(usize) -> usize) -> Tensor<4> {
    let [rows, _, _, longitudes] = fields.dims();
    if (0..rows).all(|row| turn(row) == 0) {
        return fields;
    }
    let rows = (0..rows).map(|row| {
        let (field, turn) = (fields.clone().narrow(0, row, 1), turn(row));
        match turn {
            0 => field,
            _ => {
                let parts = [(longitudes - turn, turn), (0, longitudes - turn)];
                Tensor::cat(parts.map(|(from, n)| field.clone().narrow(3, from, n)).to_vec(), 3)
            }
        }
    });
    Tensor::cat(rows.collect(), 0)
}

impl Globe {
    /// Calls `copy` for each number of a latitude of a row of the batch, with its place in the
    /// fields and its place in the band of tokens; `place` says where in a token the number of a
    /// channel, a row and a column of the patch is.
    fn for_each(
        &self,
        row: usize,
        channels: usize,
        latitude: usize,
        place: impl Fn(usize, usize, usize) -> usize,
        mut copy: impl FnMut(usize, usize, usize),
    ) {
        let Self { grid: [latitudes, longitudes], patch, .. } = *self;
        let (turn, units) = (self.turn(row), channels * patch * patch);
        for channel in 0..channels {
            let from = ((row * channels + channel) * latitudes + latitude) * longitudes;
            let within: Vec<usize> =
                (0..patch).map(|column| place(channel, latitude % patch, column)).collect();
            for column in 0..longitudes {
                let at = (column + turn) % longitudes;
                copy(channel, from + column, at / patch * units + within[at % patch]);
            }
        }
    }

    /// The tokens of fields.
    fn cut(
        &self,
        fields: &[f32],
        [rows, channels]: [usize; 2],
        place: impl Fn(usize, usize, usize) -> usize + Sync,
    ) -> FlexTensor {
        let [down, across] = self.tokens();
        let units = channels * self.patch * self.patch;
        flex::build(Shape::new([rows, down * across, units]), |tokens| {
            let bands = tokens.par_chunks_mut((across * units).max(1)).enumerate();
            parallel(bands, |(band, tokens)| {
                let (row, top) = (band / down, band % down * self.patch);
                if top + self.patch > self.grid[0] {
                    tokens.fill(0.0);
                }
                for latitude in top..(top + self.patch).min(self.grid[0]) {
                    self.for_each(row, channels, latitude, &place, |_, from, to| {
                        tokens[to] = fields[from];
                    });
                }
            });
        })
    }

    /// The fields of tokens, with a bias for each channel where there is one.
    fn join(
        &self,
        tokens: &[f32],
        bias: Option<&[f32]>,
        [rows, channels]: [usize; 2],
        place: impl Fn(usize, usize, usize) -> usize,
    ) -> FlexTensor {
        let ([down, across], [latitudes, longitudes]) = (self.tokens(), self.grid);
        let band = across * channels * self.patch * self.patch;
        flex::build(Shape::new([rows, channels, latitudes, longitudes]), |fields| {
            for row in 0..rows {
                for latitude in 0..latitudes {
                    let tokens = &tokens[(row * down + latitude / self.patch) * band..][..band];
                    self.for_each(row, channels, latitude, &place, |channel, to, from| {
                        fields[to] = tokens[from] + bias.map_or(0.0, |bias| bias[channel]);
                    });
                }
            }
        })
    }
}

#[derive(Debug)]
struct Cut(Globe);

impl Cut {
    /// (row, column, channel).
    fn place(&self, channels: usize) -> impl Fn(usize, usize, usize) -> usize + Sync {
        let patch = self.0.patch;
        move |channel, row, column| (row * patch + column) * channels + channel
    }
}

impl Fused for Cut {
    fn forward(&self, inputs: &[FlexTensor], saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let [rows, channels, ..] = inputs[0].layout().shape().dims::<4>();
        // Only the shape is needed again; the tensor shares its numbers.
        saved.into_iter().for_each(|saved| saved.push(inputs[0].clone()));
        self.0.cut(flex::values(&inputs[0]), [rows, channels], self.place(channels))
    }

    fn backward(
        &self,
        saved: Vec<FlexTensor>,
        grad: FlexTensor,
        _wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let [rows, channels, ..] = saved[0].layout().shape().dims::<4>();
        let place = self.place(channels);
        vec![Some(self.0.join(flex::values(&grad), None, [rows, channels], place))]
    }
}

#[derive(Debug)]
struct Join(Globe);

impl Join {
    /// (channel, row, column).
    fn place(&self) -> impl Fn(usize, usize, usize) -> usize + Sync {
        let patch = self.0.patch;
        move |channel, row, column| (channel * patch + row) * patch + column
    }
}

impl Fused for Join {
    fn forward(&self, inputs: &[FlexTensor], _saved: Option<&mut Vec<FlexTensor>>) -> FlexTensor {
        let [tokens, bias] = inputs else { unreachable!("two inputs") };
        let ([rows, ..], [channels]) =
            (tokens.layout().shape().dims::<3>(), bias.layout().shape().dims());
        let (tokens, bias) = (flex::values(tokens), flex::values(bias));
        self.0.join(tokens, Some(bias), [rows, channels], self.place())
    }

    fn backward(
        &self,
        _saved: Vec<FlexTensor>,
        grad: FlexTensor,
        wanted: &[bool],
    ) -> Vec<Option<FlexTensor>> {
        let [rows, channels, latitudes, longitudes] = grad.layout().shape().dims();
        let grad = flex::values(&grad);
        let bias = wanted[1].then(|| {
            let area = (latitudes * longitudes).max(1);
            let mut sums = vec![0.0f64; channels];
            for (index, field) in grad.chunks_exact(area).enumerate() {
                sums[index % channels] += field.iter().map(|g| f64::from(*g)).sum::<f64>();
            }
            flex::from_vec(sums.into_iter().map(|sum| sum as f32).collect(), [channels].into())
        });
        vec![wanted[0].then(|| self.0.cut(grad, [rows, channels], self.place())), bias]
    }
}
