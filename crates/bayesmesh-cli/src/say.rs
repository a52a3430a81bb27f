//! Words and tables for people. They go to standard error; standard output is for results. Of the
//! processes of a job only the first speaks.

use std::fmt;
use std::io::{self, Write as _};
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bayesmesh_files::FileError;
use serde_json::Value;

static SPEAKS: AtomicBool = AtomicBool::new(true);
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says a line to people, where this process speaks. Where nobody can listen, a closed pipe or a
/// full disk, it goes unsaid: no work is lost for words.
macro_rules! say {
    ($($text:tt)*) => {
        if $crate::say::speaks() {
            $crate::say::to_people(format_args!($($text)*));
        }
    };
}

pub(crate) use say;

/// Writes a line to standard error, if that can be.
pub fn to_people(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes to standard output. A reader who has gone away has read enough; any other trouble is an
/// error.
pub fn to_output(text: &str) -> Result<(), FileError> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(FileError::new("standard output", "write to", &error))
        }
        _ => Ok(()),
    }
}

/// A path in a result. What is not UTF-8 is replaced: JSON has no other texts.
pub fn path(path: &Path) -> Value {
    path.to_string_lossy().into()
}

/// Whether this process speaks.
pub fn speaks() -> bool {
    SPEAKS.load(Ordering::Relaxed)
}

/// Lets this process speak, or keeps it quiet.
#[cfg_attr(not(feature = "mpi"), allow(dead_code))]
pub fn let_speak(speaks: bool) {
    SPEAKS.store(speaks, Ordering::Relaxed);
}

/// Warns people. What a quiet process has to say waits until it is taken.
pub fn warn(warning: String) {
    say!("warning: {warning}");
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
}

/// The warnings since this was last asked.
pub fn take_warnings() -> Vec<String> {
    mem::take(&mut WARNINGS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A table with a header, columns as wide as they need to be, all but the first right-aligned.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| match i {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let mut text = line(header.to_vec());
    text +=
        &format!("  {}\n", widths.iter().map(|&w| "─".repeat(w)).collect::<Vec<_>>().join("  "));
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}

/// A number of bytes, e.g. `12.3 MiB`.
pub fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

/// A duration, e.g. `1 min 12 s`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 59.5 => format!("{s:.0} s"),
        s => {
            let whole = s.round() as u64;
            match whole / 3600 {
                0 => format!("{} min {} s", whole / 60, whole % 60),
                hours => format!("{hours} h {} min", whole % 3600 / 60),
            }
        }
    }
}

/// A word of a command line as a POSIX shell reads it, quoted where it has to be.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_word("runs/demo-2"), "runs/demo-2");
        assert_eq!(shell_word("my runs/a"), "'my runs/a'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(12_900_000), "12.3 MiB");
        assert_eq!(seconds(0.42), "0.4 s");
        assert_eq!(seconds(72.3), "1 min 12 s");
        assert_eq!(seconds(7322.0), "2 h 2 min");
    }

    #[test]
    fn columns_line_up() {
        let text = table(&["method", "RMSE"], &[vec!["a".into(), "1,300".into()]]);
        assert_eq!(text, "  method   RMSE\n  ──────  ─────\n  a       1,300\n");
    }
}
