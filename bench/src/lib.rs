//! Benchmarks: `benches/` of single operations, `src/bin/` of whole steps, `peers/` the competition.

/// What the kernel says of this process.
fn usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct it is given, and zeros are a valid one.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Pages that were given to this process so far without reading from a disk.
pub fn minor_faults() -> u64 {
    usage().ru_minflt as u64
}

/// The most memory this process has held so far, in MiB.
pub fn peak_mebibytes() -> f64 {
    usage().ru_maxrss as f64 / 1024.0
}
