//! Reads the text of a recipe file.

use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use bayesmesh_files::open_input;

use super::error::RecipeError;
use super::suggest::nearest;
use crate::say::say;

/// The text of a file.
pub(super) fn read(path: &Path) -> Result<String, RecipeError> {
    let bytes = read_limited(path).map_err(|error| RecipeError::Read {
        path: path.display().to_string(),
        reason: reason(path, &error),
        source: error,
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let reason = match bytes {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "it looks like UTF-16".to_owned(),
            _ => format!("the byte 0x{:02X} is no character", bytes[valid]),
        };
        RecipeError::NotText {
            path: path.display().to_string(),
            line: bytes[..valid].iter().filter(|byte| **byte == b'\n').count() + 1,
            reason: format!("{reason}; save the file as UTF-8"),
        }
    })
}

/// The bytes of a file, of which a recipe has few.
fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    // What it refuses, the system refuses too, and says why.
    let file = match open_input(path, &mut |words| say!("{words}")) {
        Ok(file) => file,
        Err(_) => fs::File::open(path)?,
    };
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST {
        true => Err(ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

fn reason(path: &Path, error: &io::Error) -> String {
    if path.is_dir() {
        return "it is a folder; name the file in it".to_owned();
    }
    match error.kind() {
        ErrorKind::NotFound => match similar(path) {
            Some(name) => format!("there is no such file; did you mean {name}?"),
            None => "there is no such file".to_owned(),
        },
        ErrorKind::FileTooLarge => "it has more than 1 MiB, which no recipe needs".to_owned(),
        ErrorKind::PermissionDenied => {
            "you may not read it; change its permissions, for example with `chmod u+r`".to_owned()
        }
        _ => error.to_string(),
    }
}

/// A recipe of a similar name in the same folder.
fn similar(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let folder = match path.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    let mut names: Vec<String> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    let found = nearest(wanted, names.iter().map(String::as_str))?;
    Some(path.with_file_name(found).display().to_string())
}
