//! Points in time as tables have them.

/// Seconds since 1970 UTC of `2024-01-31`, `2024/01/31` or `31.01.2024`, alone or followed by a
/// blank or `T` and `hh:mm`, `hh:mm:ss` or `hh:mm:ss.fff`, and then `Z` or an offset `+hh:mm`.
/// Without an offset it is UTC.
pub fn parse_time(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (year, month, day) = match (date[4], date[2]) {
        (b'-', _) if date[7] == b'-' => (&date[..4], &date[5..7], &date[8..]),
        (b'/', _) if date[7] == b'/' => (&date[..4], &date[5..7], &date[8..]),
        (_, b'.') if date[5] == b'.' => (&date[6..], &date[3..5], &date[..2]),
        _ => return None,
    };
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let midnight = seconds_of(year, month, day)?;
    let (clock, offset) = match rest {
        [] => (0, 0),
        [b'T' | b't' | b' ', clock @ ..] => time_of_day(clock)?,
        _ => return None,
    };
    Some(midnight + clock - offset)
}

/// Seconds from 1970 to the beginning of a day, if there is one.
pub(super) fn seconds_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let valid = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    valid.then(|| 86_400 * days_since_1970(year, month, day))
}

/// Seconds since midnight, and the seconds that the clock is ahead of UTC.
pub(super) fn time_of_day(text: &[u8]) -> Option<(i64, i64)> {
    let end = text.iter().position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-'));
    let (clock, zone) = text.split_at(end.unwrap_or(text.len()));
    let seconds = clock_seconds(clock.trim_ascii_end())?;
    let offset = match zone {
        [] | b"Z" | b"z" => 0,
        [sign, zone @ ..] => {
            let (hours, minutes) = match zone {
                [_, _] => (number(zone)?, 0),
                [_, _, b':', _, _] => (number(&zone[..2])?, number(&zone[3..])?),
                [_, _, _, _] => (number(&zone[..2])?, number(&zone[2..])?),
                _ => return None,
            };
            let seconds = 3600 * hours + 60 * minutes;
            if *sign == b'-' { -seconds } else { seconds }
        }
    };
    (offset.abs() <= 24 * 3600).then_some((seconds, offset))
}

fn clock_seconds(clock: &[u8]) -> Option<i64> {
    let (hours, minutes, seconds) = match clock {
        [_, _, b':', _, _] => (number(&clock[..2])?, number(&clock[3..])?, 0),
        [_, _, b':', _, _, b':', _, _, rest @ ..] => {
            let fraction = match rest {
                [] => true,
                [b'.' | b',', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
                _ => false,
            };
            let seconds = fraction.then(|| number(&clock[6..8]))??;
            (number(&clock[..2])?, number(&clock[3..5])?, seconds)
        }
        _ => return None,
    };
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(3600 * hours + 60 * minutes + seconds)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |sum, digit| {
        digit.is_ascii_digit().then(|| 10 * sum + i64::from(digit - b'0'))
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, by counting from a March, so that the
/// leap day is the last of a year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// The day of the year, from 0, and the day of the week, from 0 for Monday.
pub fn day_of(seconds: i64) -> (i64, i64) {
    let days = seconds.div_euclid(86_400);
    // The year by a guess that is at most one too high.
    let mut year = 1970 + (days as f64 / 365.2425).ceil() as i64;
    while days_since_1970(year, 1, 1) > days {
        year -= 1;
    }
    (days - days_since_1970(year, 1, 1), (days + 3).rem_euclid(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_usual_forms() {
        let read = |text: &str| parse_time(text.as_bytes());
        assert_eq!(read("1970-01-01"), Some(0));
        assert_eq!(read("2024-02-29"), Some(1_709_164_800));
        assert_eq!(read("29.02.2024"), Some(1_709_164_800));
        assert_eq!(read("2024/02/29 00:01"), Some(1_709_164_860));
        assert_eq!(read("2024-02-29T01:00:00+01:00"), Some(1_709_164_800));
        assert_eq!(read("2024-02-28 19:00:00.25-0500"), Some(1_709_164_800));
        assert_eq!(read("1969-12-31T23:59:59Z"), Some(-1));
        for wrong in ["2023-02-29", "2024-13-01", "2024-01-01x", "2024-01-01 25:00", "12345678901"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn days_are_counted_within_years_and_weeks() {
        let day = |text: &str| day_of(parse_time(text.as_bytes()).unwrap());
        assert_eq!(day("1970-01-01"), (0, 3));
        assert_eq!(day("2024-12-31"), (365, 1));
        assert_eq!(day("2023-12-31"), (364, 6));
        assert_eq!(day("1900-03-01"), (59, 3));
    }
}
