//! Matrix products of the dense layers, in single precision and in bf16.
//!
//! `C = A·B`, where B is [`Packed`] once and A is read where it stands. C is never written as a
//! whole: it is made in tiles of a few rows and 64 columns, and each goes, while it is in the
//! registers' reach, to a [`Sink`] that does what follows: adds a bias, applies an activation,
//! rounds, stores.
//!
//! Both precisions have one layout. The inner axis is cut into *groups* of four bytes, one f32 or
//! two bf16, since the instruction for bf16 multiplies pairs and adds both products to one sum in
//! single precision. An instruction takes one group of A and sixteen of B.
//!
//! A sum runs over the inner axis from its beginning to its end, in one accumulator for each
//! element of C, whatever the number of threads; so threads do not change the bits. Instruction
//! sets do, within rounding: fused multiply-adds round once where there are some, and hardware
//! takes subnormal bf16 for zero.

mod element;
mod packed;
mod tile;

pub(crate) use element::Element;
pub(crate) use packed::Packed;

use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
use crate::simd::{self, Level};
use packed::Line;

/// Columns of a tile.
pub(crate) const WIDTH: usize = 64;

/// Rows of a tile at most: with four vectors each they fill the registers of AVX-512.
pub(crate) const HEIGHT: usize = 6;

/// The rows that are worth handing to a thread: whole tiles, and few enough that what is made of
/// them stays in the cache. Fixed, as all that decides about the order of sums.
pub(crate) const PIECE: usize = 32 * HEIGHT;

/// What becomes of the tiles of a product.
pub(crate) trait Sink {
    /// Takes rows of a tile that begins at this row and column of C; only the first `columns` of
    /// each have a meaning. Must be `#[inline(always)]`, or it is not compiled for the level.
    fn take(&mut self, row: usize, column: usize, tile: &mut [[f32; WIDTH]], columns: usize);
}

/// The left matrix of a product.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a, E> {
    start: *const u8,
    rows: usize,
    /// Groups of the inner axis.
    groups: usize,
    /// Bytes from one row to the next, and from one group to the next.
    row_step: usize,
    group_step: usize,
    values: PhantomData<&'a [E]>,
}

// SAFETY: it is a shared slice, with steps.
unsafe impl<E: Sync> Send for Left<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for Left<'_, E> {}

impl<'a, E: Element> Left<'a, E> {
    /// Rows of `inner` numbers that begin `step` numbers apart, the first of them with the slice.
    /// Where `inner` does not fill the last group of a row, what follows it there must be finite;
    /// it meets zeros.
    pub fn rows(values: &'a [E], rows: usize, inner: usize, step: usize) -> Self {
        let groups = inner.div_ceil(E::PER_GROUP);
        let size = size_of::<E>();
        let needed = if rows == 0 { 0 } else { (rows - 1) * step + groups * E::PER_GROUP };
        assert!(needed <= values.len(), "{rows} rows of {inner} numbers, {step} apart");
        let start = values.as_ptr().cast();
        Self { start, rows, groups, row_step: step * size, group_step: 4, values: PhantomData }
    }
}

impl<E: Element> Packed<E> {
    /// The transpose as the left matrix of a product: so many columns of one panel are its rows.
    pub fn transposed(&self, panel: usize, first: usize, count: usize) -> Left<'_, E> {
        assert!(first + count <= WIDTH, "{count} columns from {first} of a panel");
        let lines = self.panel(panel);
        Left {
            // SAFETY: a line of a panel has `WIDTH` groups; checked above.
            start: unsafe { lines.as_ptr().cast::<u8>().add(4 * first) },
            rows: count,
            groups: self.groups(),
            row_step: 4,
            group_step: 4 * WIDTH,
            values: PhantomData,
        }
    }
}

/// Makes `left · right` tile by tile.
pub(crate) fn product<E: Element>(left: Left<E>, right: &Packed<E>, sink: &mut impl Sink) {
    assert_eq!(left.groups, right.groups(), "the inner sizes of a product");
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn avx512<E: Element>(left: Left<E>, right: &Packed<E>, sink: &mut impl Sink) {
            // SAFETY: `left` and `right` have as many groups, as checked above.
            unsafe { all_tiles(left, right, sink, tile::Avx512) }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
        fn avx512_bf16<E: Element>(left: Left<E>, right: &Packed<E>, sink: &mut impl Sink) {
            // SAFETY: as above.
            unsafe { all_tiles(left, right, sink, tile::Avx512Bf16) }
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2<E: Element>(left: Left<E>, right: &Packed<E>, sink: &mut impl Sink) {
            // SAFETY: as above.
            unsafe { all_tiles(left, right, sink, tile::Plain::<true>) }
        }
        let fma = is_x86_feature_detected!("fma");
        match simd::level() {
            // SAFETY: the features are there, here and below.
            Level::Avx512 if simd::has_bf16() => return unsafe { avx512_bf16(left, right, sink) },
            // SAFETY: as above.
            Level::Avx512 if fma => return unsafe { avx512(left, right, sink) },
            // SAFETY: as above.
            Level::Avx2 if fma => return unsafe { avx2(left, right, sink) },
            _ => {}
        }
    }
    // SAFETY: as above. Without a fused instruction `mul_add` is a call of a library.
    unsafe {
        match cfg!(target_arch = "aarch64") {
            true => all_tiles(left, right, sink, tile::Plain::<true>),
            false => all_tiles(left, right, sink, tile::Plain::<false>),
        }
    }
}

/// Makes `leftᵀ · right` tile by tile.
pub(crate) fn transposed_product<E: Element>(
    left: &Packed<E>,
    right: &Packed<E>,
    sink: &mut impl Sink,
) {
    /// Tells in which panel a tile is.
    struct From<'a, S>(usize, &'a mut S);

    impl<S: Sink> Sink for From<'_, S> {
        #[inline(always)]
        fn take(&mut self, row: usize, column: usize, tile: &mut [[f32; WIDTH]], columns: usize) {
            self.1.take(self.0 + row, column, tile, columns);
        }
    }
    for panel in 0..left.panels() {
        let first = panel * WIDTH;
        let count = (left.columns() - first).min(WIDTH);
        product(left.transposed(panel, 0, count), right, &mut From(first, &mut *sink));
    }
}

/// # Safety
///
/// Both matrices have as many groups, and the machine has what the tiles are made with.
#[inline(always)]
unsafe fn all_tiles<E: Element>(
    left: Left<E>,
    right: &Packed<E>,
    sink: &mut impl Sink,
    tiles: impl tile::Tiles<E>,
) {
    let mut tile = tile::Tile::default();
    for panel in 0..right.panels() {
        let lines: &[Line] = right.panel(panel);
        let columns = (right.columns() - panel * WIDTH).min(WIDTH);
        for row in (0..left.rows).step_by(HEIGHT) {
            let rows = (left.rows - row).min(HEIGHT);
            // SAFETY: the rows are within those of `left`, and both have as many groups.
            unsafe {
                let start = left.start.add(row * left.row_step);
                let steps = (left.row_step, left.group_step);
                tiles.make(start, steps, rows, lines, columns, &mut tile);
            }
            sink.take(row, panel * WIDTH, &mut tile.0[..rows], columns);
        }
    }
}

/// Stores a product in rows that begin `step` numbers apart.
pub(crate) struct Store<'a, E> {
    /// The first number of the product and what follows.
    pub to: &'a mut [E],
    /// Numbers between the beginnings of rows.
    pub step: usize,
    /// By what the product is multiplied.
    pub factor: f32,
}

impl<E: Element> Sink for Store<'_, E> {
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn take(&mut self, row: usize, column: usize, tile: &mut [[f32; WIDTH]], columns: usize) {
        for (index, sums) in tile.iter().enumerate() {
            let to = &mut self.to[(row + index) * self.step + column..];
            write_row!(to, columns, |i| E::of(sums[i] * self.factor));
        }
    }
}

/// Numbers for a row of a tile, of which so many count.
#[inline(always)]
pub(crate) fn row_of<E: Element>(from: &[E], columns: usize) -> [E; WIDTH] {
    match from.first_chunk::<WIDTH>() {
        Some(row) => *row,
        None => {
            let mut row = [E::default(); WIDTH];
            row[..columns].copy_from_slice(&from[..columns]);
            row
        }
    }
}

/// Writes the columns of a row that count, each from its index: where it belongs, if the row is a
/// whole one, for what was just stored piece by piece is slow to load at once. A macro, because a
/// closure would not be compiled for the level.
macro_rules! write_row {
    ($to:expr, $columns:expr, |$i:ident| $value:expr) => {{
        let to: &mut [_] = $to;
        match to.first_chunk_mut::<WIDTH>() {
            Some(to) if $columns == WIDTH => {
                for $i in 0..WIDTH {
                    to[$i] = $value;
                }
            }
            _ => {
                for ($i, to) in to[..$columns].iter_mut().enumerate() {
                    *to = $value;
                }
            }
        }
    }};
}
pub(crate) use write_row;

/// Adds a product to what is there, in rows without gaps.
pub(crate) struct AddTo<'a> {
    /// The sums.
    pub sums: &'a mut [f32],
    /// Columns of the product.
    pub columns: usize,
}

impl Sink for AddTo<'_> {
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    fn take(&mut self, row: usize, column: usize, tile: &mut [[f32; WIDTH]], columns: usize) {
        for (index, tile) in tile.iter().enumerate() {
            let sums = &mut self.sums[(row + index) * self.columns + column..];
            let before = row_of(sums, columns);
            write_row!(sums, columns, |i| before[i] + tile[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<E: Element>(seed: u32, len: usize) -> Vec<E> {
        let mut state = seed.wrapping_mul(2_654_435_761) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as f32 / u32::MAX as f32 - 0.5
        };
        (0..len).map(|_| E::of(next())).collect()
    }

    /// Products of all layouts against double precision, at all levels and around all sizes of
    /// tiles. The error of a sum of n products is below n roundings of the sum of their sizes.
    fn check<E: Element>() {
        let sizes = [(1, 1, 1), (2, 3, 5), (6, 16, 64), (7, 33, 65), (13, 64, 130), (70, 100, 48)];
        for level in Level::available() {
            for (rows, inner, columns) in sizes {
                // Rows of the left matrix end with a whole group.
                let step = inner + inner % 2 + 4;
                let mut a = numbers::<E>(1, rows * step);
                for row in a.chunks_mut(step) {
                    row[inner..].fill(E::default());
                }
                let b = numbers::<E>(2, inner * (columns + 3));
                let bt: Vec<E> = (0..columns * (inner + 1))
                    .map(|i| (i / (inner + 1), i % (inner + 1)))
                    .map(|(c, k)| if k < inner { b[k * (columns + 3) + c] } else { E::default() })
                    .collect();
                let at: Vec<E> = (0..inner * rows)
                    .map(|i| (i / rows, i % rows))
                    .map(|(k, r)| a[r * step + k])
                    .collect();
                level.force(|| {
                    let rights = [
                        Packed::<E>::of(&b, inner, columns, columns + 3),
                        Packed::<E>::of_transposed(&bt, inner, columns, inner + 1),
                    ];
                    let turned = Packed::<E>::of(&at, inner, rows, rows);
                    for right in &rights {
                        let mut c = vec![f32::NAN; rows * columns];
                        let left = Left::rows(&a, rows, inner, step);
                        let store = |to| Store { to, step: columns, factor: 1.0 };
                        product(left, right, &mut store(&mut c[..]));
                        let mut d = vec![1.0; rows * columns];
                        for panel in 0..turned.panels() {
                            let first = panel * WIDTH;
                            let count = (rows - first).min(WIDTH);
                            let left = turned.transposed(panel, 0, count);
                            let sums = &mut d[first * columns..][..count * columns];
                            product(left, right, &mut AddTo { sums, columns });
                        }
                        for row in 0..rows {
                            for column in 0..columns {
                                let (mut sum, mut size) = (0.0, 0.0);
                                for k in 0..inner {
                                    let a = a[row * step + k].single();
                                    let b = b[k * (columns + 3) + column].single();
                                    sum += f64::from(a) * f64::from(b);
                                    size += (f64::from(a) * f64::from(b)).abs();
                                }
                                let bound = (inner as f64 + 1.0) * 6e-8 * size + 1e-30;
                                let (c, d) = (c[row * columns + column], d[row * columns + column]);
                                assert!((f64::from(c) - sum).abs() <= bound, "{level:?} {c} {sum}");
                                let more = (f64::from(d) - 1.0 - sum).abs();
                                assert!(more <= bound + 1.2e-7 * (1.0 + sum.abs()), "{d} {sum}");
                            }
                        }
                    }
                });
            }
        }
    }

    #[test]
    fn products_in_single_precision() {
        check::<f32>();
    }

    #[test]
    fn products_in_bf16() {
        check::<element::bf16>();
    }

    #[test]
    fn rows_beyond_the_slice_are_refused() {
        let values = [0.0f32; 9];
        Left::rows(&values, 2, 4, 5);
        assert!(std::panic::catch_unwind(|| Left::rows(&values, 2, 5, 5)).is_err());
    }
}
