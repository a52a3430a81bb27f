//! Files that nobody loses: [`AtomicFile`] appears complete or not at all, [`AppendFile`] grows by
//! whole records, [`Lock`] keeps two programs from writing the same folder, [`open_input`] and
//! [`read_text`] read what may be a pipe or endless, and [`FileError`] says which file it is about
//! and what to do. [`shown`] makes text of any file fit for a message.

mod append;
mod atomic;
mod error;
mod folder;
mod input;
mod lock;
mod name;
mod shown;
pub mod testing;

pub use append::AppendFile;
pub use atomic::{AtomicFile, sync_folder_of};
pub use error::FileError;
pub use folder::{create_folder, create_folder_of};
pub use input::{is_utf16, open_input, read_text};
pub use lock::{Lock, LockError};
pub use name::hidden_name;
pub use shown::shown;
