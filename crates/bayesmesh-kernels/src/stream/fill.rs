//! Filling a slice with any range of a stream's elements.

use super::Stream;
use super::philox::philox4x32;
use crate::simd::{Kernel, dispatch};

/// Philox blocks generated at once: enough for the widest vectors, small enough that a short
/// request wastes little.
const BLOCKS: usize = 32;
/// Elements generated at once.
pub(crate) const CHUNK: usize = 4 * BLOCKS;

/// `out[i] = map(block of element start + i)[(start + i) % 4]`, the words of a block being mapped
/// four at a time. `map` must be `#[inline(always)]` or small.
pub(super) fn fill<T: Copy + Default>(
    stream: &Stream,
    start: u64,
    out: &mut [T],
    map: impl Fn([u32; 4]) -> [T; 4] + Copy,
) {
    stream.check_range(start, out.len());
    dispatch(Fill { stream, start, out, map });
}

struct Fill<'a, T, F> {
    stream: &'a Stream,
    start: u64,
    out: &'a mut [T],
    map: F,
}

impl<T: Copy + Default, F: Fn([u32; 4]) -> [T; 4] + Copy> Kernel for Fill<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // A copy, which no write to `out` can change: the key schedule stays where it is.
        let stream = *self.stream;
        let mut out = self.out;
        let mut chunk = Chunk::default();
        let mut element = self.start;
        while !out.is_empty() {
            let values = chunk.generate(&stream, element, out.len(), self.map);
            let (now, rest) = out.split_at_mut(values.len());
            now.copy_from_slice(values);
            element += now.len() as u64;
            out = rest;
        }
    }
}

/// A piece of a stream, on the stack.
pub(crate) struct Chunk<T>([[T; 4]; BLOCKS]);

impl<T: Copy + Default> Default for Chunk<T> {
    #[inline(always)]
    fn default() -> Self {
        Self([[T::default(); 4]; BLOCKS])
    }
}

impl<T> Chunk<T> {
    /// The mapped elements from `element` on: `remaining` of them if they fit, else up to the end
    /// of the chunk. The chunk begins at a whole block, so only the first of a series is short.
    #[inline(always)]
    pub(crate) fn generate(
        &mut self,
        stream: &Stream,
        element: u64,
        remaining: usize,
        map: impl Fn([u32; 4]) -> [T; 4],
    ) -> &[T] {
        let first = (element / 4) as u32;
        for (i, block) in self.0.iter_mut().enumerate() {
            // Past the last counter this wraps, and what it gives is not used.
            let counter = stream.counter(first.wrapping_add(i as u32));
            *block = map(philox4x32(counter, stream.key()));
        }
        let offset = (element % 4) as usize;
        &self.0.as_flattened()[offset..][..remaining.min(CHUNK - offset)]
    }
}
