//! Escaping, the one inline mark-up, and how wide a text is likely to be.

/// `text` made safe for HTML and XML, in element content and in quoted attributes.
///
/// Control characters that XML forbids are dropped.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// Escaped `text` in which what stands between two backticks is code.
pub(crate) fn rich(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut html = String::new();
    for (i, part) in parts.iter().enumerate() {
        let opens = i % 2 == 1;
        if opens && i + 1 < parts.len() {
            html.push_str(&format!("<code>{}</code>", escape(part)));
        } else {
            // A backtick without its partner is an ordinary character.
            html.push_str(if opens { "`" } else { "" });
            html.push_str(&escape(part));
        }
    }
    html
}

/// Width in pixels of `text` at `size` pixels, estimated for a wide sans-serif face, so that what
/// is laid out by it fits the narrower faces as well.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' | ' ' => 0.34,
            'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | '/' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.97,
            'A'..='Z' => 0.72,
            '⁰'..='ⁿ' | '¹' | '²' | '³' => 0.42,
            c if c.is_ascii() => 0.64,
            // East Asian characters fill their square.
            '\u{1100}'.. => 1.0,
            _ => 0.84,
        })
        .sum();
    em * size
}

/// `text` cut to `room` pixels, with an ellipsis where something is missing.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while cut.pop().is_some() && width(&cut, size) + width("…", size) > room {}
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            escape(r#"<a href="x">&'</a>"#),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;&lt;/a&gt;"
        );
        assert_eq!(escape("a\u{0}b\u{1b}c\nd"), "abc\nd");
    }

    #[test]
    fn backticks_make_code_in_pairs() {
        assert_eq!(rich("run `a<b` now"), "run <code>a&lt;b</code> now");
        assert_eq!(rich("a ` b"), "a ` b");
        assert_eq!(rich("`x` and ` <"), "<code>x</code> and ` &lt;");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(fit("load", 12.0, 100.0), "load");
        let cut = fit("same time yesterday, the naive rule", 12.0, 100.0);
        assert!(cut.starts_with("same time") && cut.ends_with('…') && width(&cut, 12.0) <= 100.0);
        assert_eq!(fit("load", 12.0, 0.0), "…");
    }

    #[test]
    fn width_grows_with_text_and_size() {
        assert!(width("MM", 12.0) > width("ii", 12.0));
        assert_eq!(width("load", 24.0), 2.0 * width("load", 12.0));
    }
}
