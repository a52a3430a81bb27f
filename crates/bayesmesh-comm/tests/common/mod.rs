//! Shared by the integration tests; each of them uses a part.
#![allow(dead_code, unused_imports)]

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

pub use bayesmesh_comm::conformance::values;
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
