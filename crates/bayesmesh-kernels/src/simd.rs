//! Which vector instructions a kernel runs with.
//!
//! Every kernel of this crate that goes through here is one body of plain Rust, compiled once per
//! [`Level`] and chosen at run time. The bodies use only operations that IEEE 754 rounds exactly
//! (add, multiply, divide, square root; never a fused multiply-add, never a library function), so
//! every level gives the same bits.

use std::cell::Cell;

use rayon::iter::IndexedParallelIterator;

/// A set of vector instructions, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What the compilation target guarantees: SSE2 on x86-64, NEON on aarch64.
    Baseline,
    /// 256-bit vectors (x86-64 only).
    Avx2,
    /// 512-bit vectors: AVX-512 F, BW, DQ and VL (x86-64 only).
    Avx512,
}

thread_local! {
    static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
}

impl Level {
    /// All levels, from the least to the most.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// The highest level this machine has.
    pub fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx2")
            {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Level::Avx2;
            }
        }
        Level::Baseline
    }

    /// The levels this machine has, from the least to the most.
    pub fn available() -> impl Iterator<Item = Level> {
        let highest = Level::detect();
        Level::ALL.into_iter().filter(move |&level| level <= highest)
    }

    /// Runs `body` with the kernels called on this thread held to `self`, or to the highest level
    /// the machine has if that is lower. For tests and benchmarks; the results are the same bits.
    pub fn force<R>(self, body: impl FnOnce() -> R) -> R {
        /// Puts the old level back even when `body` panics.
        struct Restore(Option<Level>);
        impl Drop for Restore {
            fn drop(&mut self) {
                FORCED.set(self.0);
            }
        }
        let _restore = Restore(FORCED.replace(Some(self.min(Level::detect()))));
        body()
    }
}

/// The level forced on this thread, else the highest the machine has.
pub(crate) fn level() -> Level {
    FORCED.get().unwrap_or_else(Level::detect)
}

/// Whether the machine multiplies bf16 in hardware, which `level` does not forbid.
pub fn has_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("fma") {
        return level() == Level::Avx512;
    }
    false
}

/// Gives every item to `body`, on the threads of the pool that this thread belongs to, and held to
/// the level that this thread is held to.
pub(crate) fn parallel<T: Send>(
    items: impl IndexedParallelIterator<Item = T>,
    body: impl Fn(T) + Sync + Send,
) {
    let forced = FORCED.get();
    items.for_each(|item| match forced {
        Some(level) => level.force(|| body(item)),
        None => body(item),
    });
}

/// The body of a kernel with its arguments. `run` must be `#[inline(always)]`, and so must all it
/// calls, or it is not compiled for the level.
pub(crate) trait Kernel {
    /// What the kernel returns.
    type Output;
    /// Does the work.
    fn run(self) -> Self::Output;
}

/// Runs a kernel at the level forced on this thread, else at the highest the machine has.
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
        fn avx512<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        #[target_feature(enable = "avx2")]
        fn avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        match level() {
            // SAFETY: `detect` saw these features, and `force` never goes above `detect`.
            Level::Avx512 => return unsafe { avx512(kernel) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(kernel) },
            Level::Baseline => {}
        }
    }
    kernel.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn force_is_scoped_and_never_exceeds_the_machine() {
        assert_eq!(FORCED.get(), None);
        Level::Avx512.force(|| {
            assert_eq!(FORCED.get(), Some(Level::detect()));
            Level::Baseline.force(|| assert_eq!(FORCED.get(), Some(Level::Baseline)));
            assert_eq!(FORCED.get(), Some(Level::detect()));
        });
        let panicked = std::panic::catch_unwind(|| Level::Baseline.force(|| panic!("expected")));
        assert!(panicked.is_err());
        assert_eq!(FORCED.get(), None);
    }
}
