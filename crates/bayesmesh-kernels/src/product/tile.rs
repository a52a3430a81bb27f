//! The innermost loops: a tile of a product.

use super::element::Element;
use super::packed::{LINES, Line};
use super::{HEIGHT, WIDTH};

/// Sums of a tile, row by row.
#[repr(C, align(64))]
pub(super) struct Tile(pub [[f32; WIDTH]; HEIGHT]);

impl Default for Tile {
    fn default() -> Self {
        Self([[0.0; WIDTH]; HEIGHT])
    }
}

/// A way to make tiles.
pub(super) trait Tiles<E> {
    /// Makes rows of a tile, of which so many columns count, from groups of the left matrix and a
    /// panel of the right one.
    ///
    /// # Safety
    ///
    /// `left` may be read at all sums of a step of `rows` and a step of as many groups as the panel
    /// has, and the machine has what the tiles are made with.
    unsafe fn make(
        &self,
        left: *const u8,
        steps: (usize, usize),
        rows: usize,
        panel: &[Line],
        columns: usize,
        tile: &mut Tile,
    );
}

/// Plain Rust, with fused multiply-adds or without.
#[derive(Clone, Copy)]
pub(super) struct Plain<const FUSED: bool>;

impl<E: Element, const FUSED: bool> Tiles<E> for Plain<FUSED> {
    #[inline(always)]
    unsafe fn make(
        &self,
        left: *const u8,
        steps: (usize, usize),
        rows: usize,
        panel: &[Line],
        columns: usize,
        tile: &mut Tile,
    ) {
        /// So many rows of sixteen columns: as many sums as 16 registers of 256 bits hold.
        #[inline(always)]
        unsafe fn part<E: Element, const FUSED: bool, const M: usize>(
            left: *const u8,
            (row_step, group_step): (usize, usize),
            panel: &[Line],
            column: usize,
            tile: &mut Tile,
        ) {
            let mut sums = [[0.0; 16]; M];
            for (group, lines) in panel.chunks_exact(LINES).enumerate() {
                for (row, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: as the caller says; a group has four bytes, aligned or not.
                    let word = unsafe {
                        left.add(row * row_step + group * group_step).cast::<u32>().read_unaligned()
                    };
                    E::multiply_add::<FUSED>(sums, word, &lines[column / 16].0);
                }
            }
            for (row, sums) in tile.0.iter_mut().zip(sums) {
                row[column..column + 16].copy_from_slice(&sums);
            }
        }
        for column in (0..columns).step_by(16) {
            // SAFETY: passed on.
            unsafe {
                match rows {
                    6 => part::<E, FUSED, 6>(left, steps, panel, column, tile),
                    5 => part::<E, FUSED, 5>(left, steps, panel, column, tile),
                    4 => part::<E, FUSED, 4>(left, steps, panel, column, tile),
                    3 => part::<E, FUSED, 3>(left, steps, panel, column, tile),
                    2 => part::<E, FUSED, 2>(left, steps, panel, column, tile),
                    _ => part::<E, FUSED, 1>(left, steps, panel, column, tile),
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx512, Avx512Bf16};

#[cfg(target_arch = "x86_64")]
// Counters say which register is meant.
#[allow(clippy::needless_range_loop)]
mod x86 {
    use std::arch::x86_64::*;

    use super::*;

    /// AVX-512 without an instruction for bf16.
    #[derive(Clone, Copy)]
    pub struct Avx512;

    /// AVX-512 with one.
    #[derive(Clone, Copy)]
    pub struct Avx512Bf16;

    /// The loop of a tile of M rows and V vectors: four vectors of the right matrix meet each group
    /// of the left one, so that the loads keep up with two instructions a cycle. Without closures,
    /// which would not be compiled for the features.
    macro_rules! loops {
        ($name:ident, $features:literal, |$sum:ident, $group:ident, $right:ident| $result:expr) => {
            #[inline]
            #[target_feature(enable = $features)]
            unsafe fn $name<const M: usize, const V: usize>(
                left: *const u8,
                (row_step, group_step): (usize, usize),
                panel: &[Line],
                tile: &mut Tile,
            ) {
                let mut sums = [[_mm512_setzero_ps(); V]; M];
                let mut left = left;
                for lines in panel.chunks_exact(LINES) {
                    let mut rights = [_mm512_setzero_si512(); V];
                    for v in 0..V {
                        // SAFETY: a line is sixteen words, aligned.
                        rights[v] = unsafe { _mm512_load_si512(lines[v].0.as_ptr().cast()) };
                    }
                    let mut place = left;
                    for m in 0..M {
                        // SAFETY: as the caller says; a group has four bytes, aligned or not.
                        let word = unsafe { place.cast::<i32>().read_unaligned() };
                        let $group = _mm512_set1_epi32(word);
                        place = place.wrapping_add(row_step);
                        for v in 0..V {
                            let ($sum, $right) = (sums[m][v], rights[v]);
                            sums[m][v] = $result;
                        }
                    }
                    left = left.wrapping_add(group_step);
                }
                for m in 0..M {
                    for v in 0..V {
                        // SAFETY: a row of a tile has four vectors, aligned.
                        unsafe { _mm512_store_ps(tile.0[m].as_mut_ptr().add(16 * v), sums[m][v]) }
                    }
                }
            }
        };
    }

    loops!(loop_f32, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma", |sum, group, right| {
        _mm512_fmadd_ps(_mm512_castsi512_ps(group), _mm512_castsi512_ps(right), sum)
    });
    loops!(
        loop_bf16,
        "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma",
        |sum, group, right| {
            // SAFETY: any 512 bits are of either type.
            let (group, right) = unsafe {
                (
                    std::mem::transmute::<__m512i, __m512bh>(group),
                    std::mem::transmute::<__m512i, __m512bh>(right),
                )
            };
            _mm512_dpbf16_ps(sum, group, right)
        }
    );

    /// Calls a loop for the rows and vectors there are.
    macro_rules! by_size {
        ($loop:ident, $rows:expr, $columns:expr, $arguments:tt) => {
            match ($rows, $columns.div_ceil(16)) {
                (6, 4) => $loop::<6, 4> $arguments,
                (5, 4) => $loop::<5, 4> $arguments,
                (4, 4) => $loop::<4, 4> $arguments,
                (3, 4) => $loop::<3, 4> $arguments,
                (2, 4) => $loop::<2, 4> $arguments,
                (1, 4) => $loop::<1, 4> $arguments,
                (6, 3) => $loop::<6, 3> $arguments,
                (5, 3) => $loop::<5, 3> $arguments,
                (4, 3) => $loop::<4, 3> $arguments,
                (3, 3) => $loop::<3, 3> $arguments,
                (2, 3) => $loop::<2, 3> $arguments,
                (1, 3) => $loop::<1, 3> $arguments,
                (6, 2) => $loop::<6, 2> $arguments,
                (5, 2) => $loop::<5, 2> $arguments,
                (4, 2) => $loop::<4, 2> $arguments,
                (3, 2) => $loop::<3, 2> $arguments,
                (2, 2) => $loop::<2, 2> $arguments,
                (1, 2) => $loop::<1, 2> $arguments,
                (6, _) => $loop::<6, 1> $arguments,
                (5, _) => $loop::<5, 1> $arguments,
                (4, _) => $loop::<4, 1> $arguments,
                (3, _) => $loop::<3, 1> $arguments,
                (2, _) => $loop::<2, 1> $arguments,
                _ => $loop::<1, 1> $arguments,
            }
        };
    }

    impl<E: Element> Tiles<E> for Avx512 {
        #[inline(always)]
        unsafe fn make(
            &self,
            left: *const u8,
            steps: (usize, usize),
            rows: usize,
            panel: &[Line],
            columns: usize,
            tile: &mut Tile,
        ) {
            // SAFETY: passed on.
            unsafe {
                match E::PER_GROUP {
                    1 => by_size!(loop_f32, rows, columns, (left, steps, panel, tile)),
                    _ => Tiles::<E>::make(&Plain::<true>, left, steps, rows, panel, columns, tile),
                }
            }
        }
    }

    impl<E: Element> Tiles<E> for Avx512Bf16 {
        #[inline(always)]
        unsafe fn make(
            &self,
            left: *const u8,
            steps: (usize, usize),
            rows: usize,
            panel: &[Line],
            columns: usize,
            tile: &mut Tile,
        ) {
            // SAFETY: passed on.
            unsafe {
                match E::PER_GROUP {
                    1 => by_size!(loop_f32, rows, columns, (left, steps, panel, tile)),
                    _ => by_size!(loop_bf16, rows, columns, (left, steps, panel, tile)),
                }
            }
        }
    }
}

/// Turns a block of words over its diagonal: in rounds, each of which exchanges halves of halves.
#[inline(always)]
pub(super) fn transpose(block: &mut [[u32; 16]; 16]) {
    /// Exchanges the off-diagonal parts of size N of all squares of twice the size.
    #[inline(always)]
    fn exchange<const N: usize>(block: &mut [[u32; 16]; 16]) {
        for row in (0..16).filter(|row| row & N == 0) {
            let (upper, lower) = (block[row], block[row + N]);
            for column in 0..16 {
                block[row][column] = match column & N {
                    0 => upper[column],
                    _ => lower[column - N],
                };
                block[row + N][column] = match column & N {
                    0 => upper[column + N],
                    _ => lower[column],
                };
            }
        }
    }
    exchange::<8>(block);
    exchange::<4>(block);
    exchange::<2>(block);
    exchange::<1>(block);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_turned() {
        let mut block: [[u32; 16]; 16] =
            std::array::from_fn(|i| std::array::from_fn(|j| (16 * i + j) as u32));
        transpose(&mut block);
        for (i, row) in block.iter().enumerate() {
            for (j, &value) in row.iter().enumerate() {
                assert_eq!(value, (16 * j + i) as u32);
            }
        }
    }
}
