//! Files to read from, which may be pipes, endless or no text.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::FileError;

/// How long a pipe may keep quiet before people are told what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens a file to read from, and refuses a folder. A pipe that nobody writes to is waited for, and
/// `say` is told so.
pub fn open_input(path: impl AsRef<Path>, say: &mut dyn FnMut(&str)) -> Result<File, FileError> {
    let path = path.as_ref();
    let failed = |error| FileError::new(path, "read", &error);
    let found = fs::metadata(path).map_err(failed)?;
    if found.is_dir() {
        return Err(FileError::IsAFolder { path: path.into() });
    }
    let opened = if is_pipe(&found) { open_pipe(path, say) } else { File::open(path) };
    opened.map_err(failed)
}

/// The text of a file of at most `most` bytes; see [`open_input`].
pub fn read_text(
    path: impl AsRef<Path>,
    most: u64,
    say: &mut dyn FnMut(&str),
) -> Result<String, FileError> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    let read = open_input(path, say)?.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| FileError::new(path, "read", &error))?;
    if bytes.len() as u64 > most {
        return Err(FileError::TooLarge { path: path.into(), most });
    }
    String::from_utf8(bytes).map_err(|error| {
        let (valid, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        let line = bytes[..valid].iter().filter(|&&byte| byte == b'\n').count() + 1;
        FileError::NotText { path: path.into(), line, utf16: is_utf16(bytes) }
    })
}

/// Whether the beginning of a file looks like UTF-16: by its mark, or because every other byte of
/// Latin letters is zero.
pub fn is_utf16(beginning: &[u8]) -> bool {
    let zero_at = |phase: usize| {
        let mut bytes = beginning.iter().skip(phase).step_by(2).take(16);
        beginning.len() >= 8 && bytes.all(|&byte| byte == 0)
    };
    let marked = matches!(beginning, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
    // Both: nothing but zeros, which is no text at all.
    marked || zero_at(0) != zero_at(1)
}

#[cfg(unix)]
fn is_pipe(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: &fs::Metadata) -> bool {
    false
}

/// Opening a pipe waits for somebody who writes to it; most have one already.
fn open_pipe(path: &Path, say: &mut dyn FnMut(&str)) -> io::Result<File> {
    let (sender, opened) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || sender.send(File::open(path)));
        opened.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            say(&format!("waiting for somebody to write to the pipe {}", path.display()));
            opened.recv().map_err(io::Error::other)?
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn texts_have_a_limit() {
        let scratch = Scratch::new();
        let path = scratch.path().join("text");
        fs::write(&path, "12345").unwrap();
        let read = |most| read_text(&path, most, &mut |_| {});
        assert_eq!(read(5).unwrap(), "12345");
        assert_eq!(read(4).unwrap_err(), FileError::TooLarge { path: path.clone(), most: 4 });
        let error = read_text(scratch.path(), 9, &mut |_| {}).unwrap_err();
        assert!(matches!(error, FileError::IsAFolder { .. }), "{error}");
        let error = read_text(scratch.path().join("none"), 9, &mut |_| {}).unwrap_err();
        assert!(matches!(error, FileError::Missing { .. }), "{error}");
    }

    #[test]
    fn what_is_no_text_is_said() {
        let scratch = Scratch::new();
        let path = scratch.path().join("text");
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            read_text(&path, 1000, &mut |_| {}).unwrap_err().to_string()
        };
        let latin = read(b"a\nGr\xf6\xdfe");
        assert!(latin.contains("line 2: not UTF-8") && latin.contains("LATIN1"), "{latin}");
        let wide = read(b"\xff\xfea\0b\0");
        assert!(wide.contains("iconv -f UTF-16"), "{wide}");
        assert!(is_utf16(b"t\0i\0m\0e\0") && is_utf16(b"\0t\0i\0m\0e"));
        assert!(!is_utf16(b"time,load") && !is_utf16(&[0; 40]) && !is_utf16(b""));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn endless_files_and_pipes() {
        let error = read_text("/dev/zero", 1 << 20, &mut |_| {}).unwrap_err();
        assert!(matches!(error, FileError::TooLarge { .. }), "{error}");

        let scratch = Scratch::new();
        let path = scratch.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        for (wait, waited) in [(0, false), (1500, true)] {
            let mut words = String::new();
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_millis(wait));
                    fs::write(&path, "hello").unwrap();
                });
                let text = read_text(&path, 9, &mut |line| words.push_str(line)).unwrap();
                assert_eq!(text, "hello");
            });
            assert_eq!(words.contains("waiting for somebody"), waited, "{words}");
        }
    }
}
