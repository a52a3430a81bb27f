//! Files that grow by whole records.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::FileError;

/// A file to which records are appended, each by one write, so that they are in the file when the
/// program is killed afterwards.
#[derive(Debug)]
pub struct AppendFile {
    path: PathBuf,
    file: File,
    /// Bytes of complete records.
    length: u64,
}

impl AppendFile {
    /// A new file. Refuses one that exists.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        Self::with(path, OpenOptions::new().append(true).create_new(true))
            .map_err(|error| FileError::new(path, "create", &error))
    }

    /// A file that exists and has only complete records.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::with(path, OpenOptions::new().append(true))
            .map_err(|error| FileError::new(path, "write", &error))
    }

    fn with(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        let file = options.open(path)?;
        Ok(Self { path: path.to_path_buf(), length: file.metadata()?.len(), file })
    }

    /// Appends a record. On an error none of it stays in the file.
    pub fn append(&mut self, record: &[u8]) -> Result<(), FileError> {
        if let Err(error) = self.file.write_all(record) {
            // Readers of these files cope with a torn end, should even this fail.
            let _ = self.file.set_len(self.length);
            return Err(FileError::new(&self.path, "write", &error));
        }
        self.length += record.len() as u64;
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::{Scratch, rerun, role};

    /// With a limit on the file size that a record crosses. The signal it raises is ignored, so
    /// that the write fails instead, after having written a part.
    #[test]
    fn a_record_without_room_leaves_nothing() {
        if let Some(folder) = role() {
            let path = folder.join("file");
            let mut file = AppendFile::create(&path).unwrap();
            let mut complete = 0;
            let error = loop {
                match file.append(&[7; 50_000]) {
                    Ok(()) => complete += 50_000,
                    Err(error) => break error,
                }
                assert!(complete < 10_000_000, "no limit");
            };
            assert!(matches!(error, FileError::Full { .. }), "{error}");
            assert_eq!(fs::metadata(&path).unwrap().len(), complete);
            file.append(b"small").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), complete + 5);
            return;
        }
        let scratch = Scratch::new();
        let test = concat!(module_path!(), "::a_record_without_room_leaves_nothing");
        let limit = "trap '' XFSZ; ulimit -f 256 && exec \"$0\" \"$@\"";
        let output = rerun(&["sh", "-c", limit], test, scratch.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }
}
