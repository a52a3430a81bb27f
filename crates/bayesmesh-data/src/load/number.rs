//! Numbers as German and English exports write them.

/// Which character separates the decimals; the other one groups thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decimal {
    /// `12,345.67`.
    Point,
    /// `12.345,67`.
    Comma,
}

impl Decimal {
    /// How a column writes its numbers: by the first one that leaves no doubt (`1.234,5`, `12,5`,
    /// `1.234.567`; but not `12.345`, which is either), else `default`.
    pub(super) fn of_column<'a>(texts: impl Iterator<Item = &'a str>, default: Self) -> Self {
        texts.filter_map(Self::of_number).next().unwrap_or(default)
    }

    fn of_number(text: &str) -> Option<Self> {
        let (last, mark) = text.rmatch_indices(['.', ',']).next()?;
        let (this, other) = match mark {
            "." => (Self::Point, Self::Comma),
            _ => (Self::Comma, Self::Point),
        };
        let before = &text[..last];
        if before.contains(mark) {
            // A mark that occurs twice groups thousands.
            return Some(other);
        }
        let digits_after = text.len() - last - 1;
        (before.contains(['.', ',']) || digits_after != 3).then_some(this)
    }

    /// The number, if `text` is one in this style: thousands grouped by three or not at all.
    /// Infinite for one that is too large.
    pub(super) fn parse(self, text: &str) -> Option<f64> {
        let (decimal, group) = match self {
            Self::Point => ('.', ','),
            Self::Comma => (',', '.'),
        };
        let (whole, fraction) = match text.split_once(decimal) {
            Some((whole, fraction)) => (whole, format!(".{fraction}")),
            None => (text, String::new()),
        };
        let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        let mut groups = unsigned.split(group);
        let first = groups.next()?;
        let mut grouped = false;
        for digits in groups {
            if digits.len() != 3 {
                return None;
            }
            grouped = true;
        }
        if grouped && !(1..=3).contains(&first.len()) {
            return None;
        }
        let plain = whole.replace(group, "") + &fraction;
        // `parse` knows words such as `inf`; a load is made of digits (and perhaps an exponent).
        if plain.contains(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)) {
            return None;
        }
        plain.parse().ok()
    }

    /// For error messages.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::Point => " (numbers of this file are like 12345.67 or 12,345.67)",
            Self::Comma => " (numbers of this file are like 12345,67 or 12.345,67)",
        }
    }
}

/// Whether a cell says that there is no value.
pub(super) fn is_missing(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "-" | "–" | "n/e" | "n/a" | "na" | "nan" | "null" | "none"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles() {
        assert_eq!(Decimal::Comma.parse("12.345,67"), Some(12_345.67));
        assert_eq!(Decimal::Comma.parse("12.345"), Some(12_345.0));
        assert_eq!(Decimal::Comma.parse("12345,5"), Some(12_345.5));
        assert_eq!(Decimal::Point.parse("12,345.67"), Some(12_345.67));
        assert_eq!(Decimal::Point.parse("12.345"), Some(12.345));
        assert_eq!(Decimal::Point.parse("-3"), Some(-3.0));
        assert_eq!(Decimal::Point.parse("4.4e4"), Some(44_000.0));
        assert_eq!(Decimal::Point.parse("4e4"), Some(40_000.0));
        assert_eq!(Decimal::Point.parse("1e999"), Some(f64::INFINITY));
    }

    #[test]
    fn what_is_no_number() {
        for text in ["12345.6", "1.23,4", "1.2345,6", "1,2,3", "x", "inf", "1234.567,8"] {
            assert_eq!(Decimal::Comma.parse(text), None, "{text}");
        }
        for text in ["12,34", "1.2.3", "NaN", "", "--1", "infinity", "-inf", "+nan"] {
            assert_eq!(Decimal::Point.parse(text), None, "{text}");
        }
    }

    #[test]
    fn style_of_a_column() {
        let style = |texts: &[&str], default| Decimal::of_column(texts.iter().copied(), default);
        assert_eq!(style(&["-", "12.345", "12.345,5"], Decimal::Point), Decimal::Comma);
        assert_eq!(style(&["12.345", "12,5"], Decimal::Point), Decimal::Comma);
        assert_eq!(style(&["1.234.567"], Decimal::Point), Decimal::Comma);
        assert_eq!(style(&["12,345.50"], Decimal::Comma), Decimal::Point);
        assert_eq!(style(&["12.345"], Decimal::Comma), Decimal::Comma);
        assert_eq!(style(&["12.345"], Decimal::Point), Decimal::Point);
        assert_eq!(style(&["12345"], Decimal::Comma), Decimal::Comma);
    }
}
