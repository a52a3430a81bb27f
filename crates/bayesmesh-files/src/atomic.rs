//! Files that appear complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hidden_name;

/// Marks files under construction; see [`AtomicFile::clean`].
const SUFFIX: &str = ".bayesmesh-tmp";

/// A file that gets its name only when it is complete.
///
/// It is written under a temporary name in the same folder; [`commit`](Self::commit) syncs it,
/// renames it and syncs the folder. Dropped without that, e.g. because of an error, it is removed,
/// and a file that had the name before is untouched.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once committed.
    file: Option<BufWriter<File>>,
}

impl AtomicFile {
    /// Starts a file that will be called `path`.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = path.as_ref();
        // Renaming onto a folder would fail, but only after all the writing.
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let suffix = format!(".{}-{count}{SUFFIX}", process::id());
        let temporary = path.with_file_name(hidden_name(name, &suffix));
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        Ok(Self {
            path: path.to_path_buf(),
            temporary,
            file: Some(BufWriter::with_capacity(1 << 18, file)),
        })
    }

    /// Writes a whole file.
    pub fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
        let mut file = Self::create(path)?;
        file.write_all(contents.as_ref())?;
        file.commit()
    }

    /// Gives the file its name, in the place of one that had it before.
    pub fn commit(mut self) -> io::Result<()> {
        let file = self.buffer();
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.file = None;
        sync_folder_of(&self.path)
    }

    /// Removes what killed processes have left under construction in a folder. Only for one who
    /// knows that nobody else is writing there. Returns the removed files.
    pub fn clean(folder: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if Self::is_temporary(entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
                removed.push(entry.path());
            }
        }
        Ok(removed)
    }

    /// Whether a file of this name is one under construction.
    pub fn is_temporary(name: impl AsRef<str>) -> bool {
        name.as_ref().starts_with('.') && name.as_ref().ends_with(SUFFIX)
    }

    fn buffer(&mut self) -> &mut BufWriter<File> {
        self.file.as_mut().expect("only commit takes it away")
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.buffer().flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Taken apart so that it does not try to write the rest.
            drop(file.into_parts());
            // Nobody is left to tell; `clean` would find it.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Makes a renaming to this path last. Some network file systems cannot sync folders; they say so
/// and are taken at their word that renaming lasts without.
#[cfg(unix)]
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match File::open(folder)?.sync_all() {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

/// Elsewhere folders cannot be opened as files, and renaming is journalled.
#[cfg(not(unix))]
pub fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn the_longest_name_can_be_written() {
        let scratch = Scratch::new();
        let name = "ä".repeat(127) + "x";
        assert_eq!(name.len(), 255);
        AtomicFile::write(scratch.path().join(&name), "text").unwrap();
        assert_eq!(scratch.names(), [name]);
    }
}
