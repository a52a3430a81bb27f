//! Memory that is kept, and what the process has used of it.

mod large_blocks;

pub use large_blocks::Allocator;

/// Asks the allocator of the C library to keep freed memory for the next use, where that is glibc;
/// elsewhere this does nothing. For the start of a program: it holds for the whole process.
///
/// A training step allocates and frees the same large blocks as the one before. By default glibc
/// returns such blocks to the kernel, which zeroes them when they are asked for again: 11,500 page
/// faults a draw of the paper's ViT, 5 to 15 % of the time. After this call the steady state of a
/// training loop has none or a few. Measured against it, jemalloc (also with its decay switched
/// off) and mimalloc still gave large blocks back.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt only sets numbers of the allocator, and may be called at any time.
    unsafe {
        // No block is mapped on its own, and heaps never shrink. Threads keep heaps of their own:
        // ranks that share one wait for each other, which costs small networks a third of a step.
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
        libc::mallopt(libc::M_TOP_PAD, 64 << 20);
    }
}

/// Gives memory that is free now back to the system, where the allocator is that of glibc, and what
/// an [`Allocator`] keeps; elsewhere this does nothing. For the time between two different things:
/// what one thread has freed, e.g. a checkpoint that was read, another cannot use.
pub fn give_back_freed() {
    large_blocks::give_back();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim locks what it changes, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The most memory that this process has held so far, in bytes, where the system says so.
pub fn peak_bytes() -> Option<u64> {
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    usage().map(|(peak, _)| peak * unit)
}

/// How much memory can still be had, in bytes, where the system says so: what Linux counts as
/// available, within the limit of the control group of this process. Files that are only kept in
/// memory because there is room for them count as available.
pub fn available_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let about = read("/proc/meminfo")?;
    let line = about.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = 1024 * line.trim().trim_end_matches(" kB").parse::<u64>().ok()?;
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let of_group = |name: &str| read(&format!("/sys/fs/cgroup{group}/{name}"));
    let number = |name: &str| of_group(name)?.trim().parse::<u64>().ok();
    let kept = of_group("memory.stat").unwrap_or_default();
    let kept = kept.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let kept = kept.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
    match (number("memory.max"), number("memory.current")) {
        (Some(most), Some(used)) => Some(free.min(most.saturating_sub(used.saturating_sub(kept)))),
        _ => Some(free),
    }
}

/// Pages that were given to this process so far without reading from a disk, where the system says
/// so.
pub fn minor_faults() -> Option<u64> {
    usage().map(|(_, faults)| faults)
}

/// The peak, in the system's unit, and the page faults of this process.
fn usage() -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage fills the struct it is given, and zeros are a valid one.
        let usage = unsafe {
            if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
                return None;
            }
            usage.assume_init()
        };
        Some((usage.ru_maxrss.try_into().ok()?, usage.ru_minflt.try_into().ok()?))
    }
    #[cfg(not(unix))]
    None
}
