//! Dates such as `1/31/2024` and `31/1/2024`: only the whole column says what comes first.

use serde::{Deserialize, Serialize};

use super::time::{seconds_of, time_of_day};

/// What comes first in a date with slashes whose year is last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// `31/1/2024`
    Day,
    /// `1/31/2024`
    Month,
}

/// What the dates of a column say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slashes {
    /// Not all are such dates.
    None,
    /// One of them can be read in one way only, and the others in the same.
    Known(Order),
    /// Each can be read in both ways.
    Open,
    /// One can be read in one way only, and another in the other.
    Mixed(String, String),
}

impl Slashes {
    /// Of the distinct texts of a column.
    pub fn of(texts: &[String]) -> Self {
        let (mut day, mut month) = (None, None);
        for text in texts {
            let Some(date) = Slashed::parse(text.as_bytes()) else { return Self::None };
            match [Order::Day, Order::Month].map(|order| date.time(order).is_some()) {
                [true, true] => {}
                [true, false] => day = day.or(Some(text)),
                [false, true] => month = month.or(Some(text)),
                [false, false] => return Self::None,
            }
        }
        match (day, month) {
            (Some(day), Some(month)) => Self::Mixed(day.clone(), month.clone()),
            (Some(_), None) => Self::Known(Order::Day),
            (None, Some(_)) => Self::Known(Order::Month),
            (None, None) if texts.is_empty() => Self::None,
            (None, None) => Self::Open,
        }
    }

    /// Why they cannot be read, and what to do.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::None | Self::Known(_) => None,
            Self::Open => Some(
                "each of its dates can be read with the day or with the month first; write them as \
                 2024-01-31"
                    .to_owned(),
            ),
            Self::Mixed(day, month) => Some(format!(
                "`{day}` has the day first and `{month}` the month; write dates as 2024-01-31"
            )),
        }
    }
}

/// A date with slashes and its time of day.
pub(super) struct Slashed {
    numbers: [i64; 2],
    year: i64,
    /// After midnight UTC.
    seconds: i64,
}

impl Slashed {
    /// `3/4/2024` or `03/04/2024`, alone or followed by a time as [`parse_time`] has it, whose hour
    /// may have one digit, and which `AM` or `PM` may follow.
    ///
    /// [`parse_time`]: super::time::parse_time
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut parts = text.splitn(3, |byte| *byte == b'/');
        let [first, second, rest] = [parts.next()?, parts.next()?, parts.next()?];
        let short = |digits: &[u8]| -> Option<i64> {
            let usual = matches!(digits.len(), 1 | 2) && digits.iter().all(u8::is_ascii_digit);
            usual.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
        };
        let (year, rest) = rest.split_at_checked(4)?;
        let digits = year.iter().all(u8::is_ascii_digit);
        let year = std::str::from_utf8(year).ok().filter(|_| digits)?.parse().ok()?;
        let seconds = match rest {
            [] => 0,
            [b' ', clock @ ..] => clock_of(clock)?,
            _ => return None,
        };
        Some(Self { numbers: [short(first)?, short(second)?], year, seconds })
    }

    /// Seconds since 1970 UTC; nothing where there is no such day.
    pub fn time(&self, order: Order) -> Option<i64> {
        let [first, second] = self.numbers;
        let (month, day) = match order {
            Order::Day => (second, first),
            Order::Month => (first, second),
        };
        Some(seconds_of(self.year, month, day)? + self.seconds)
    }
}

/// Seconds after midnight of `9:05`, `09:05:30`, `9:05 PM`.
fn clock_of(text: &[u8]) -> Option<i64> {
    let half = |end: &[u8]| text.len() > 2 && text[text.len() - 2..].eq_ignore_ascii_case(end);
    let (morning, afternoon) = (half(b"AM"), half(b"PM"));
    let clock = match morning || afternoon {
        true => text[..text.len() - 2].trim_ascii_end(),
        false => text,
    };
    let mut padded = clock.to_vec();
    if clock.get(1) == Some(&b':') {
        padded.insert(0, b'0');
    }
    let (seconds, offset) = time_of_day(&padded)?;
    let twelve = 12 * 3600;
    let seconds = match (morning, afternoon) {
        (false, false) => seconds,
        _ if !(3600..twelve + 3600).contains(&seconds) => return None,
        // Midnight is 12 AM, and noon 12 PM.
        _ => seconds % twelve + if afternoon { twelve } else { 0 },
    };
    Some(seconds - offset)
}

#[cfg(test)]
mod tests {
    use super::super::time::parse_time;
    use super::*;

    fn of(texts: &[&str]) -> Slashes {
        Slashes::of(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_whole_column_says_what_comes_first() {
        assert_eq!(of(&["1/2/2024", "31/1/2024", "03/04/2023"]), Slashes::Known(Order::Day));
        assert_eq!(of(&["1/2/2024", "1/31/2024"]), Slashes::Known(Order::Month));
        assert_eq!(of(&["1/2/2024", "12/12/2024"]), Slashes::Open);
        let mixed = of(&["1/2/2024", "1/31/2024", "31/1/2024"]);
        assert_eq!(mixed, Slashes::Mixed("31/1/2024".into(), "1/31/2024".into()));
        for other in [&["1/2/2024", "x"][..], &["32/1/2024"], &["1/2/24"], &["30/2/2024"], &[]] {
            assert_eq!(of(other), Slashes::None, "{other:?}");
        }
    }

    #[test]
    fn times_of_day_are_read() {
        let time = |text: &str| Slashed::parse(text.as_bytes())?.time(Order::Month);
        let iso = |text: &str| parse_time(text.as_bytes());
        assert_eq!(time("2/29/2024"), iso("2024-02-29"));
        assert_eq!(time("2/29/2024 9:05"), iso("2024-02-29 09:05"));
        assert_eq!(time("2/29/2024 13:05:30"), iso("2024-02-29 13:05:30"));
        assert_eq!(time("2/29/2024 9:05 PM"), iso("2024-02-29 21:05"));
        assert_eq!(time("2/29/2024 12:00:00 AM"), iso("2024-02-29"));
        assert_eq!(time("2/29/2024 12:00 pm"), iso("2024-02-29 12:00"));
        for wrong in ["2/30/2024", "2/29/2024 13:00 PM", "2/29/2024x", "2/29/2024 0:10 AM"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }
}
