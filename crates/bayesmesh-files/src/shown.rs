//! Text from files, for messages.

/// No message quotes more characters of a file than this.
const MOST: usize = 200;

/// A piece of text as a message can quote it: at most 200 characters, and those that a terminal
/// would obey instead of printing are escaped, for example `\u{1b}`.
pub fn shown(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == MOST {
            out.push('…');
            break;
        }
        match is_printed(character) {
            true => out.push(character),
            false => out.extend(character.escape_default()),
        }
    }
    out
}

/// Whether a terminal prints it where it stands. Marks of direction change what stands around
/// them.
fn is_printed(character: char) -> bool {
    let turns = matches!(character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !(character.is_control() || turns || character == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(shown("Größe [MW]"), "Größe [MW]");
        assert_eq!(shown("a\u{1b}[2J\r\n\0"), "a\\u{1b}[2J\\r\\n\\u{0}");
        assert_eq!(shown("\u{202e}txt\u{9b}"), "\\u{202e}txt\\u{9b}");
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(shown("ä".repeat(200)), "ä".repeat(200));
        assert_eq!(shown("ä".repeat(201)), "ä".repeat(200) + "…");
    }
}
