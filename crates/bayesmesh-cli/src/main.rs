//! The bayesmesh program.
fn main() {}
