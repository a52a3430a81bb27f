//! Times as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970 in UTC; a clock set before that gives 0.
pub(super) fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |duration| duration.as_secs_f64())
}

/// A time in UTC as in `2026-02-28T13:05:09.123Z`.
pub(super) fn iso_8601(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a number of days after 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    // The calendar repeats after 400 years; what is left is few enough to count off.
    let mut year = 1970 + 400 * (days / 146_097);
    days %= 146_097;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Expected values of Python's `datetime.fromtimestamp(…, UTC)`.
    #[test]
    fn times_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_767_225_599_001, "2025-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (32_503_680_000_000, "3000-01-01T00:00:00.000Z"),
        ];
        for (millis, expected) in cases {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(iso_8601(time), expected);
            assert_eq!(unix_seconds(time), millis as f64 / 1e3);
        }
        assert_eq!(iso_8601(UNIX_EPOCH - Duration::from_secs(1)), cases[0].1);
    }
}
