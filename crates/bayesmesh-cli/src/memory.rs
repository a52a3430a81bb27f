//! How much memory a run takes: predicted before, measured after.

use bayesmesh::{Mesh, Posterior};

use crate::recipe::{Memory, Recipe};
use crate::use_case::UseCase;

/// The most memory this process has held so far, in bytes.
pub fn peak_rss_bytes() -> Option<u64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct it is given, and zeros are a valid one.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
            return None;
        }
        usage.assume_init()
    };
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    u64::try_from(usage.ru_maxrss).ok().map(|max| max * unit)
}

/// What one rank will hold, in bytes, beside the program and the data: trainable numbers with
/// gradients, optimiser state and the copies of a step, and the activations of the draws that are
/// kept at once.
pub fn predicted_per_rank<U: UseCase>(
    recipe: &Recipe,
    posterior: &impl Posterior,
    mesh: Mesh,
) -> u64 {
    // Values, their tensors, sum over draws, sum over ranks, gradient and value tensors of the
    // optimiser, two moments and two temporaries of its step.
    const COPIES: u64 = 10;
    let numbers = posterior.parameters().values().len() as u64;
    let train = &recipe.train;
    let draws = match train.memory {
        Memory::Retain => train.samples.div_ceil(mesh.samples_size()) as u64,
        Memory::Recompute => 1,
    };
    let rows = train.batch.div_ceil(mesh.data_size()) as u64;
    4 * (COPIES * numbers + draws * rows * U::activations(recipe))
}
