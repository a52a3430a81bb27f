//! Shared by the integration tests; each of them uses a part.
#![allow(dead_code)]

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use bayesmesh_comm::{CommError, RunError, ThreadCommunicator, threads};

/// Runs `test` and fails, rather than hangs, if it does not end within a minute.
pub fn watched<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (ended, end) = channel();
    let thread = thread::spawn(move || {
        let result = test();
        let _ = ended.send(());
        result
    });
    match end.recv_timeout(Duration::from_secs(60)) {
        Err(RecvTimeoutError::Timeout) => panic!("still running after a minute: ranks hang"),
        // A panic drops the sender, and `join` hands it on.
        Ok(()) | Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Runs ranks whose only errors are those of communication, under the watch of a minute.
pub fn ranks<T: Send + 'static>(
    size: usize,
    body: impl Fn(&ThreadCommunicator) -> Result<T, CommError> + Send + Sync + 'static,
) -> Result<Vec<T>, RunError<CommError>> {
    watched(move || threads::run(size, body))
}

/// Pseudo-random values of either sign whose magnitudes span 2^-12 to 2^12, so that the bits of
/// their sum depend on the order of summation.
pub fn values(seed: u64, length: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    let mut value = || {
        let mantissa = (next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        mantissa * f32::powi(2.0, (next() % 25) as i32 - 12)
    };
    (0..length).map(|_| value()).collect()
}

/// The bits, for comparisons that distinguish what `==` does not.
pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// `left[i] += right[i]`.
pub fn add(left: &mut [f32], right: &[f32]) {
    for (left, right) in left.iter_mut().zip(right) {
        *left += right;
    }
}
