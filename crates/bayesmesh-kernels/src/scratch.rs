//! Memory to be written before it is read.

use bytemuck::Pod;

/// So many values without meaning, whatever the memory was used for before. Zeroing them would cost
/// as much as many of the operations here.
#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn scratch<T: Pod>(len: usize) -> Vec<T> {
    let mut values: Vec<T> = Vec::with_capacity(len);
    let start = values.as_mut_ptr();
    // SAFETY: the capacity is `len`, and any bits are a value. Rust forbids reading memory that
    // nobody has written, even where every value will do. The assembly does nothing, but the
    // compiler must assume that it writes through the pointer. So the bytes that are there count as
    // written, and the values are like any others.
    unsafe {
        std::arch::asm!("/* {} */", in(reg) start, options(nostack, preserves_flags));
        values.set_len(len);
    }
    values
}

/// So many values, where the assembly of the other one is not to be had.
#[cfg(not(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn scratch<T: Pod>(len: usize) -> Vec<T> {
    vec![T::zeroed(); len]
}
