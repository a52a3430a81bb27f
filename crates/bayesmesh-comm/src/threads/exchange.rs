//! Ranks working in each other's buffers: the only unsafe code of the crate.
//!
//! The protocol. [`Exchange::open`] returns only when all members of the group have lent their
//! buffers to the same call; none gets its buffer back (returns from the call, unwinds) before all
//! have closed theirs, which `Drop` does by waiting for the others. In between, code is divided
//! into phases by [`Group::meet`], and in each phase every element of every buffer is either
//! written by one rank and touched by no other, or written by nobody.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::call::Call;
use crate::error::CommError;
use crate::mesh::share;
use crate::threads::group::Group;
use crate::threads::offer::{Offer, Payload};
use crate::threads::world::panic_message;
use crate::tree;

/// Elements a rank reduces at a time: few enough that the blocks of all ranks stay in cache between
/// the combining and the copying back, and a whole number of cache lines so that ranks write to
/// different ones.
const BLOCK: usize = 2048;

/// The place of a rank's values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    pointer: *mut u8,
    length: usize,
}

// SAFETY: a `Buffer` by itself is only an address and a number; it is dereferenced nowhere but in
// `Exchange`, under the protocol above.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A place of no values.
    pub fn empty() -> Self {
        Buffer { pointer: std::ptr::null_mut(), length: 0 }
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.length
    }
}

/// The buffers of all members during one call.
///
/// `T` is the element of every buffer: the [`Call`], on which all ranks agree, has one kind of
/// element or names it.
pub(super) struct Exchange<'a, T> {
    group: &'a Group,
    rank: usize,
    buffers: Vec<Buffer>,
    /// This rank's own values, lent until the exchange is closed.
    own: PhantomData<&'a mut [T]>,
}

impl<'a, T: Copy> Exchange<'a, T> {
    /// Lends `values` to the other ranks, for reading and writing, and borrows theirs.
    pub fn open(
        group: &'a Group,
        rank: usize,
        call: Call,
        values: &'a mut [T],
    ) -> Result<Self, CommError> {
        let buffer = Buffer { pointer: values.as_mut_ptr().cast(), length: values.len() };
        Self::open_buffer(group, rank, call, buffer)
    }

    /// Lends `values` to the other ranks for reading only: for [`all_gather`](Self::all_gather),
    /// [`read_parts`](Self::read_parts) and [`read_from`](Self::read_from).
    pub fn open_to_read(
        group: &'a Group,
        rank: usize,
        call: Call,
        values: &'a [T],
    ) -> Result<Self, CommError> {
        let buffer = Buffer { pointer: values.as_ptr().cast_mut().cast(), length: values.len() };
        Self::open_buffer(group, rank, call, buffer)
    }

    fn open_buffer(
        group: &'a Group,
        rank: usize,
        call: Call,
        buffer: Buffer,
    ) -> Result<Self, CommError> {
        let offers = group.gather(rank, Offer { call, payload: Payload::Values(buffer) })?;
        let buffers = offers.iter().map(Offer::buffer).collect();
        Ok(Exchange { group, rank, buffers, own: PhantomData })
    }

    /// Combines element by element over the ranks in the order of [`tree`]. `combine` is applied to
    /// blocks and must not depend on where they begin or end.
    pub fn all_reduce(self, combine: impl Fn(&mut [T], &[T])) {
        let size = self.buffers.len();
        let length = self.buffers[self.rank].length;
        let blocks = share(length.div_ceil(BLOCK), size, self.rank);
        let own = blocks.start * BLOCK..length.min(blocks.end * BLOCK);
        self.reduce_own(own, 1..size, combine);
    }

    /// Combines as [`all_reduce`](Self::all_reduce) does, but each rank ends with the result for
    /// its own share only; the rest of the buffers is left in disorder.
    pub fn reduce_scatter(self, combine: impl Fn(&mut [T], &[T])) -> Range<usize> {
        let own = share(self.buffers[self.rank].length, self.buffers.len(), self.rank);
        let receivers = self.rank.max(1)..self.rank + 1;
        self.reduce_own(own.clone(), receivers, combine);
        own
    }

    /// Combines the elements `own`, which belong to no other rank, block by block; the result
    /// comes into the buffer of rank 0 and those of `receivers`, which are not 0.
    fn reduce_own(
        self,
        own: Range<usize>,
        receivers: Range<usize>,
        combine: impl Fn(&mut [T], &[T]),
    ) {
        let size = self.buffers.len();
        for start in own.clone().step_by(BLOCK) {
            let block = start..own.end.min(start + BLOCK);
            for (left, right) in tree::pairs(size) {
                // SAFETY: this rank alone touches these elements of any buffer; `left` and `right`
                // are different buffers.
                unsafe { combine(self.part_mut(left, &block), self.part(right, &block)) };
            }
            for rank in receivers.clone() {
                // SAFETY: as above, with the buffers 0 and `rank`, not 0.
                unsafe { self.part_mut(rank, &block).copy_from_slice(self.part(0, &block)) };
            }
        }
    }

    /// Combines whole buffers in the order of [`tree`], the pairs of one stride at the same time.
    ///
    /// If `combine` panics on some rank, that rank panics and all others get its failure.
    pub fn tree_reduce(self, combine: &dyn Fn(&mut [T], &[T])) -> Result<(), CommError> {
        let size = self.buffers.len();
        let all = 0..self.buffers[self.rank].length;
        let mut panic: Option<Box<dyn Any + Send>> = None;
        for stride in tree::strides(size) {
            if let Some(right) = tree::partner(self.rank, stride, size) {
                // SAFETY: in the phase of one stride, buffer `rank` is written by this rank, and
                // buffer `right` read; `right` is an odd multiple of the stride and so belongs to
                // no other pair, neither as left nor as right.
                let (left, right) =
                    unsafe { (self.part_mut(self.rank, &all), self.part(right, &all)) };
                // Caught, because this rank owes the others its presence at all later meetings.
                let outcome = catch_unwind(AssertUnwindSafe(|| combine(left, right)));
                if let Err(payload) = outcome {
                    self.group.fail(self.rank, panic_message(&*payload));
                    panic = Some(payload);
                }
            }
            self.group.meet();
        }
        if self.rank != 0 {
            // SAFETY: after the last meeting buffer 0 is only read, and every other buffer touched
            // by its own rank alone.
            unsafe { self.part_mut(self.rank, &all).copy_from_slice(self.part(0, &all)) };
        }
        let group = self.group;
        drop(self);
        match panic {
            Some(payload) => resume_unwind(payload),
            // A failure within the call was recorded before the closing meeting, so all see it.
            None => group.world().check(),
        }
    }

    /// Copies of all buffers.
    pub fn all_gather(self) -> Vec<Vec<T>> {
        (0..self.buffers.len())
            .map(|rank| {
                // SAFETY: nobody writes to any buffer during this call.
                unsafe { self.part(rank, &(0..self.buffers[rank].length)) }.to_vec()
            })
            .collect()
    }

    /// Copies of the parts of all buffers that are for this rank, one after another. A header is
    /// the length of a buffer and those of its parts, which are all of it.
    pub fn read_parts(self, headers: &[Vec<u64>]) -> Vec<T> {
        let length = |rank: usize, part: usize| headers[rank][1 + part] as usize;
        let ranks = 0..self.buffers.len();
        let mut own = Vec::with_capacity(ranks.clone().map(|rank| length(rank, self.rank)).sum());
        for rank in ranks {
            let start = (0..self.rank).map(|part| length(rank, part)).sum();
            // SAFETY: nobody writes to any buffer during this call.
            own.extend_from_slice(unsafe {
                self.part(rank, &(start..start + length(rank, self.rank)))
            });
        }
        own
    }

    /// Replaces what `values` holds, which nobody was lent, by a copy of the buffer of `root`.
    pub fn read_from(self, root: usize, values: &mut Vec<T>) {
        values.clear();
        // SAFETY: nobody writes to any buffer during this call.
        values.extend_from_slice(unsafe { self.part(root, &(0..self.buffers[root].length)) });
    }

    /// Overwrites this rank's buffer with that of `root`.
    pub fn copy_from(self, root: usize) {
        if self.rank != root {
            let all = 0..self.buffers[root].length;
            // SAFETY: the buffer of `root` is only read, every other touched by its own rank alone.
            unsafe { self.part_mut(self.rank, &all).copy_from_slice(self.part(root, &all)) };
        }
    }

    /// Overwrites the share of every other rank in this rank's buffer with what that rank has
    /// there.
    pub fn all_gather_into(self) {
        let size = self.buffers.len();
        for other in (0..size).filter(|&other| other != self.rank) {
            let theirs = share(self.buffers[self.rank].length, size, other);
            // SAFETY: the share of `other` in the buffer of `other` is written by nobody, that in
            // any other buffer touched by the owner of the buffer alone.
            unsafe {
                self.part_mut(self.rank, &theirs).copy_from_slice(self.part(other, &theirs));
            }
        }
    }

    /// The elements `range` of the buffer of `rank`.
    ///
    /// # Safety
    ///
    /// Nobody writes to them while the result lives.
    unsafe fn part(&self, rank: usize, range: &Range<usize>) -> &[T] {
        let buffer = self.buffers[rank];
        assert!(range.start <= range.end && range.end <= buffer.length);
        // SAFETY: in bounds, and alive while the exchange is open; no writers by contract.
        unsafe {
            std::slice::from_raw_parts(buffer.pointer.cast::<T>().add(range.start), range.len())
        }
    }

    /// The elements `range` of the buffer of `rank`, to write.
    ///
    /// # Safety
    ///
    /// The buffers were opened to write, and nobody else reads or writes the elements while the
    /// result lives.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part_mut(&self, rank: usize, range: &Range<usize>) -> &mut [T] {
        let buffer = self.buffers[rank];
        assert!(range.start <= range.end && range.end <= buffer.length);
        // SAFETY: in bounds, and alive while the exchange is open; exclusive by contract.
        unsafe {
            std::slice::from_raw_parts_mut(buffer.pointer.cast::<T>().add(range.start), range.len())
        }
    }
}

impl<T> Drop for Exchange<'_, T> {
    /// Closes the exchange: waits until no rank uses any buffer any more.
    fn drop(&mut self) {
        self.group.meet();
    }
}
