//! How far a long piece of work is.

/// Told now and then by what takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is done, for example `reading`.
    pub what: &'static str,
    /// As much is done …
    pub done: usize,
    /// … of so much.
    pub of: usize,
}

/// For those who do not want to know.
pub fn silent(_: Progress) {}
