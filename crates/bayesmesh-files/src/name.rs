//! Names of hidden files.

use std::ffi::{OsStr, OsString};

/// The longest name that file systems take, in bytes.
const LONGEST: usize = 255;

/// The name of a hidden file beside the one called `name`: a dot, the name, `suffix`. Of a long
/// name only as much as the file system can take.
pub fn hidden_name(name: &OsStr, suffix: &str) -> OsString {
    let room = LONGEST.saturating_sub(1 + suffix.len());
    let mut hidden = OsString::from(".");
    if name.len() <= room {
        hidden.push(name);
    } else {
        let text = name.to_string_lossy();
        hidden.push(&text[..text.floor_char_boundary(room)]);
    }
    hidden.push(suffix);
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(hidden_name(OsStr::new("a.csv"), ".part"), ".a.csv.part");
        let cut = hidden_name(OsStr::new(&"ä".repeat(127)), ".part");
        assert_eq!(cut, OsString::from(format!(".{}.part", "ä".repeat(124))));
    }
}
