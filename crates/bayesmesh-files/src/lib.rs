//! Files that nobody loses: [`AtomicFile`] appears complete or not at all, [`AppendFile`] grows by
//! whole records, [`Lock`] keeps two programs from writing the same folder, and [`FileError`] says
//! which file it is about and what to do.

mod append;
mod atomic;
mod error;
mod folder;
mod lock;
pub mod testing;

pub use append::AppendFile;
pub use atomic::AtomicFile;
pub use error::FileError;
pub use folder::create_folder;
pub use lock::{Lock, LockError};
