//! The parts of the MPI tests.

pub mod driver;
pub mod faults;
pub mod job;
pub mod measure;
pub mod suite;
