//! Large blocks of memory, kept for the next use by any thread.
//!
//! Blocks are cut from regions of the system's memory, the smallest free one that is large enough
//! first. Free neighbours become one block again. Nothing goes back to the system but by
//! [`give_back`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks from this size on are large.
const LARGE: usize = 1 << 20;
/// Large blocks begin and end at multiples of this.
const GRAIN: usize = 64 << 10;
/// The least that is asked of the system at once.
const REGION: usize = 64 << 20;
/// Regions begin at multiples of this: the size of a huge page.
const HUGE: usize = 2 << 20;

/// The allocator of our programs, on Linux: the system's for small blocks, and for large ones
/// memory that is kept when it is freed and is made of huge pages where the system has them.
/// Elsewhere it is the system's.
///
/// A training step frees and asks again for the same large blocks. glibc gives many of them back,
/// whatever it is told: what a thread other than the first has freed, if it was larger than 64 MiB
/// or the last in its heap. The kernel must then clear the pages anew, one by one, which was a
/// quarter of a step of the full-size weather transformer.
///
/// ```
/// use bayesmesh_kernels::process_memory::Allocator;
///
/// #[global_allocator]
/// static ALLOCATOR: Allocator = Allocator;
///
/// fn main() {
///     let large = vec![0_u8; 3 << 20];
///     assert_eq!(large.as_ptr() as usize % (64 << 10), 0);
/// }
/// ```
pub struct Allocator;

// SAFETY: blocks come from the system's allocator or from `FREE`, which never holds a part of a
// block in use; which of the two is a matter of the layout, that is the same when a block is freed.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match large_size(layout) {
            Some(size) => take(size),
            // SAFETY: the caller's guarantees are those of `System`.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match large_size(layout) {
            Some(size) => {
                let place = take(size);
                if !place.is_null() {
                    // SAFETY: the block is at least as large as the layout, and nobody else's.
                    unsafe { place.write_bytes(0, layout.size()) };
                }
                place
            }
            // SAFETY: the caller's guarantees are those of `System`.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        match large_size(layout) {
            Some(size) => free().put(place.expose_provenance(), size),
            // SAFETY: the caller's guarantees are those of `System`.
            None => unsafe { System.dealloc(place, layout) },
        }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the new size makes a layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (large_size(layout), large_size(new)) {
            // SAFETY: the caller's guarantees are those of `System`.
            (None, None) => unsafe { System.realloc(place, layout, size) },
            (before, after) if before == after => place,
            _ => {
                // SAFETY: both blocks hold what is copied, and the old one was made by `self`.
                unsafe {
                    let to = self.alloc(new);
                    if !to.is_null() {
                        to.copy_from_nonoverlapping(place, size.min(layout.size()));
                        self.dealloc(place, layout);
                    }
                    to
                }
            }
        }
    }
}

/// Gives the pages of all free blocks back to the system.
pub(super) fn give_back() {
    #[cfg(target_os = "linux")]
    for (&place, &size) in &free().by_place {
        // SAFETY: nobody uses the block, and the lock is held while it is given back. Its pages
        // are there again, as zeros, when it is touched.
        unsafe {
            libc::madvise(std::ptr::with_exposed_provenance_mut(place), size, libc::MADV_DONTNEED)
        };
    }
}

/// The size of the block for such a layout, if it is a large one.
fn large_size(layout: Layout) -> Option<usize> {
    let is_large = cfg!(target_os = "linux") && layout.size() >= LARGE && layout.align() <= GRAIN;
    is_large.then(|| layout.size().next_multiple_of(GRAIN))
}

/// A block of so many bytes, or null.
fn take(size: usize) -> *mut u8 {
    let mut free = free();
    let mut place = free.take(size);
    if place.is_none()
        && let Some((region, size_of_region)) = map_region(size)
    {
        free.put(region, size_of_region);
        place = free.take(size);
    }
    place.map_or(std::ptr::null_mut(), std::ptr::with_exposed_provenance_mut)
}

/// A new region of the system's memory with room for so many bytes: its place and size.
#[cfg(target_os = "linux")]
fn map_region(size: usize) -> Option<(usize, usize)> {
    let size = size.max(REGION).checked_next_multiple_of(HUGE)?;
    // Room to begin at a huge page. What is left over is never touched.
    let room = size.checked_add(HUGE)?;
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at a place of the system's choice.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), room, access, kind, -1, 0) };
    if place == libc::MAP_FAILED {
        return None;
    }
    let place = place.expose_provenance().next_multiple_of(HUGE);
    // SAFETY: within the mapping. That there are no huge pages is no error.
    unsafe {
        libc::madvise(std::ptr::with_exposed_provenance_mut(place), size, libc::MADV_HUGEPAGE)
    };
    Some((place, size))
}

#[cfg(not(target_os = "linux"))]
fn map_region(_: usize) -> Option<(usize, usize)> {
    None
}

/// The free blocks.
#[derive(Default)]
struct Free {
    /// The size of each by its place.
    by_place: BTreeMap<usize, usize>,
    /// Sizes and places.
    by_size: BTreeSet<(usize, usize)>,
}

/// Of the whole process. The tables' own nodes are small blocks: to change them never comes back
/// here.
static FREE: Mutex<Free> = Mutex::new(Free { by_place: BTreeMap::new(), by_size: BTreeSet::new() });

fn free() -> MutexGuard<'static, Free> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Free {
    /// The smallest block that is large enough, cut to size.
    fn take(&mut self, size: usize) -> Option<usize> {
        let &(whole, place) = self.by_size.range((size, 0)..).next()?;
        self.remove(place, whole);
        if whole > size {
            self.insert(place + size, whole - size);
        }
        Some(place)
    }

    /// A block that is free from now on, together with its free neighbours.
    fn put(&mut self, mut place: usize, mut size: usize) {
        if let Some((&before, &its_size)) = self.by_place.range(..place).next_back()
            && before + its_size == place
        {
            self.remove(before, its_size);
            (place, size) = (before, its_size + size);
        }
        if let Some(&its_size) = self.by_place.get(&(place + size)) {
            self.remove(place + size, its_size);
            size += its_size;
        }
        self.insert(place, size);
    }

    fn insert(&mut self, place: usize, size: usize) {
        self.by_place.insert(place, size);
        self.by_size.insert((size, place));
    }

    fn remove(&mut self, place: usize, size: usize) {
        self.by_place.remove(&place);
        self.by_size.remove(&(size, place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_block_is_cut_and_neighbours_join() {
        let mut free = Free::default();
        free.put(0, 10);
        free.put(100, 4);
        assert_eq!(free.take(3), Some(100));
        assert_eq!(free.take(10), Some(0));
        assert_eq!(free.take(2), None);
        assert_eq!(free.take(1), Some(103));
        // From both sides, and from none.
        for place in [100, 102, 101] {
            free.put(place, 1);
        }
        free.put(200, 50);
        assert_eq!(free.by_place, BTreeMap::from([(100, 3), (200, 50)]));
        assert_eq!(free.by_size, BTreeSet::from([(3, 100), (50, 200)]));
    }

    #[test]
    fn blocks_are_apart_and_keep_their_numbers() {
        let sizes = [LARGE, 3 * LARGE + 5, 70 << 20, 100, LARGE - 1, 2 * LARGE];
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                scope.spawn(move || {
                    for round in 0..8 {
                        let blocks: Vec<_> = (0_u8..)
                            .zip(sizes)
                            .map(|(i, size)| Block::new(size + round * 777, 10 * thread + i))
                            .collect();
                        let grown: Vec<_> = blocks
                            .into_iter()
                            .map(|block| {
                                let size = block.layout.size();
                                block.resized(size + size / 2).resized(size / 3)
                            })
                            .collect();
                        grown.iter().for_each(Block::check);
                        if round == 3 {
                            give_back();
                        }
                        grown.iter().for_each(Block::check);
                    }
                });
            }
        });
    }

    #[test]
    fn a_block_of_zeros_is_one_also_where_another_was() {
        for size in [LARGE, 5 * LARGE] {
            drop(Block::new(size, 7));
            let layout = Layout::from_size_align(size, 64).unwrap();
            // SAFETY: the layout is not empty, and the block is freed as it was made.
            unsafe {
                let place = Allocator.alloc_zeroed(layout);
                assert!(std::slice::from_raw_parts(place, size).iter().all(|&byte| byte == 0));
                Allocator.dealloc(place, layout);
            }
        }
    }

    /// A block that is full of one number.
    struct Block {
        place: *mut u8,
        layout: Layout,
        number: u8,
    }

    impl Block {
        fn new(size: usize, number: u8) -> Self {
            let layout = Layout::from_size_align(size, 64).unwrap();
            // SAFETY: the layout is not empty.
            let place = unsafe { Allocator.alloc(layout) };
            assert!(!place.is_null() && place.addr() % 64 == 0);
            // SAFETY: the block is of this size.
            unsafe { place.write_bytes(number, size) };
            Self { place, layout, number }
        }

        fn resized(mut self, size: usize) -> Self {
            let layout = Layout::from_size_align(size, 64).unwrap();
            let kept = size.min(self.layout.size());
            // SAFETY: the block is the allocator's, and the part behind is written anew.
            unsafe {
                self.place = Allocator.realloc(self.place, self.layout, size);
                self.place.add(kept).write_bytes(self.number, size - kept);
            }
            self.layout = layout;
            self
        }

        fn check(&self) {
            // SAFETY: the block is of this size.
            let bytes = unsafe { std::slice::from_raw_parts(self.place, self.layout.size()) };
            assert!(bytes.iter().all(|&byte| byte == self.number), "{}", self.number);
        }
    }

    impl Drop for Block {
        fn drop(&mut self) {
            // SAFETY: the block is the allocator's and was not freed.
            unsafe { Allocator.dealloc(self.place, self.layout) };
        }
    }
}
