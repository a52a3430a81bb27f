//! The right matrix of a product, in the order in which tiles read it.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use rayon::iter::IndexedParallelIterator;
use rayon::slice::ParallelSliceMut;

use super::element::Element;
use super::{WIDTH, tile};
use crate::scratch::scratch;
use crate::simd::{Kernel, dispatch, parallel};

/// Sixteen groups side by side: what one vector register holds.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Line(pub [u32; 16]);

// SAFETY: words, any bits of which are a value.
unsafe impl Zeroable for Line {}
// SAFETY: as above, and without gaps.
unsafe impl Pod for Line {}

/// Lines of a group of rows within a panel.
pub(super) const LINES: usize = WIDTH / 16;

/// A matrix `[inner, columns]` in panels of 64 columns. Within a panel, groups of rows follow each
/// other; what is beyond the last row is zero, what is beyond the last column is not read.
#[derive(Debug)]
pub(crate) struct Packed<E> {
    lines: Vec<Line>,
    inner: usize,
    columns: usize,
    element: PhantomData<E>,
}

impl<E: Element> Packed<E> {
    /// With lines that are to be filled.
    fn empty(inner: usize, columns: usize) -> Self {
        let lines = columns.div_ceil(WIDTH) * inner.div_ceil(E::PER_GROUP) * LINES;
        Self { lines: scratch(lines), inner, columns, element: PhantomData }
    }

    /// Groups of the inner axis.
    pub fn groups(&self) -> usize {
        self.inner.div_ceil(E::PER_GROUP)
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn panels(&self) -> usize {
        self.columns.div_ceil(WIDTH)
    }

    pub(super) fn panel(&self, index: usize) -> &[Line] {
        let lines = self.groups() * LINES;
        &self.lines[index * lines..][..lines]
    }

    /// A matrix whose rows of `columns` numbers begin `step` numbers apart, the first of them with
    /// the slice.
    pub fn of<S: Element>(values: &[S], inner: usize, columns: usize, step: usize) -> Self {
        let mut packed = Self::empty(inner, columns);
        packed.fill(|columns, lines| {
            let values = &values[columns.start.min(values.len())..];
            dispatch(PackRows::<S, E> {
                values,
                inner,
                step,
                columns,
                lines,
                element: PhantomData,
            });
        });
        packed
    }

    /// The transpose of a matrix whose rows of `inner` numbers begin `step` numbers apart.
    pub fn of_transposed<S: Element>(
        values: &[S],
        inner: usize,
        columns: usize,
        step: usize,
    ) -> Self {
        let mut packed = Self::empty(inner, columns);
        packed.fill(|columns, lines| {
            dispatch(PackColumns::<S, E> {
                values,
                inner,
                step,
                columns,
                lines,
                element: PhantomData,
            });
        });
        packed
    }

    /// Fills panel after panel, on the threads of the pool where there are many.
    fn fill(&mut self, fill: impl Fn(Range<usize>, &mut [Line]) + Sync + Send) {
        let (columns, lines) = (self.columns, (self.groups() * LINES).max(1));
        let columns_of = |panel: usize| panel * WIDTH..((panel + 1) * WIDTH).min(columns);
        match self.lines.len() < 1 << 12 {
            true => {
                let panels = self.lines.chunks_mut(lines).enumerate();
                panels.for_each(|(panel, lines)| fill(columns_of(panel), lines));
            }
            false => parallel(self.lines.par_chunks_mut(lines).enumerate(), |(panel, lines)| {
                fill(columns_of(panel), lines);
            }),
        }
    }
}

struct PackRows<'a, S, E> {
    /// From the first column of the panel on.
    values: &'a [S],
    inner: usize,
    step: usize,
    columns: Range<usize>,
    lines: &'a mut [Line],
    element: PhantomData<E>,
}

impl<S: Element, E: Element> Kernel for PackRows<'_, S, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { values, inner, step, .. } = self;
        let width = self.columns.len();
        for (group, lines) in self.lines.chunks_exact_mut(LINES).enumerate() {
            let index = group * E::PER_GROUP;
            let first = &values[index * step..][..width];
            let second: &[S] = match E::PER_GROUP {
                1 => first,
                _ if index + 1 < inner => &values[(index + 1) * step..][..width],
                _ => &[],
            };
            let (first_chunks, first_rest) = first.as_chunks::<16>();
            let (second_chunks, second_rest) = second.as_chunks::<16>();
            let none = ([S::default(); 16], [S::default(); 16]);
            for (index, line) in lines.iter_mut().enumerate() {
                match (first_chunks.get(index), second_chunks.get(index)) {
                    (Some(first), Some(second)) => E::interleave(first, second, &mut line.0),
                    // The row that is missing in the last group is zero.
                    (Some(first), None) if second.is_empty() => {
                        E::interleave(first, &none.1, &mut line.0);
                    }
                    _ if index == first_chunks.len() => {
                        let (mut rest, mut other) = none;
                        rest[..first_rest.len()].copy_from_slice(first_rest);
                        other[..second_rest.len()].copy_from_slice(second_rest);
                        E::interleave(&rest, &other, &mut line.0);
                    }
                    _ => break,
                }
            }
        }
    }
}

struct PackColumns<'a, S, E> {
    values: &'a [S],
    inner: usize,
    step: usize,
    columns: Range<usize>,
    lines: &'a mut [Line],
    element: PhantomData<E>,
}

impl<S: Element, E: Element> Kernel for PackColumns<'_, S, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { values, inner, step, columns, lines, .. } = self;
        let groups = lines.len() / LINES;
        // Sixteen rows of sixteen groups at a time, turned in the registers.
        let mut block = [[0u32; 16]; 16];
        for (part, sixteen) in columns.clone().step_by(16).enumerate() {
            for first in (0..groups).step_by(16) {
                for (index, line) in block.iter_mut().enumerate() {
                    let column = sixteen + index;
                    if column >= columns.end {
                        line.fill(0);
                        continue;
                    }
                    let from = first * E::PER_GROUP;
                    let row = &values[column * step..][..inner][from..];
                    E::neighbours(row, line);
                }
                tile::transpose(&mut block);
                for (line, group) in block.iter().zip(first..groups.min(first + 16)) {
                    lines[group * LINES + part].0 = *line;
                }
            }
        }
    }
}
