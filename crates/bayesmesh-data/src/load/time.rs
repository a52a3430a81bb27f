//! Reading and writing times; the German clock.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

/// German local time, compiled in so that it does not depend on the machine.
pub(super) static BERLIN: TimeZone = jiff::tz::get!("Europe/Berlin");

/// A time as a file states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Stated {
    /// With a known offset: seconds since 1970-01-01T00:00:00Z.
    Utc(i64),
    /// A clock reading; the file's format says of which clock.
    Clock(DateTime),
}

/// `2015-03-29T00:45:00Z`; the bare number for times that no calendar has.
pub(super) fn utc(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) => time.to_string(),
        Err(_) => format!("{seconds} s"),
    }
}

/// Seconds since 1970 of a reading of the UTC clock.
pub(super) fn from_utc_clock(clock: DateTime) -> Option<i64> {
    let time = TimeZone::UTC.to_timestamp(clock).ok()?;
    Some(time.as_second())
}

/// What a reading of the German clock can mean.
pub(super) enum Local {
    /// One time.
    Once(i64),
    /// The hour repeated in autumn: in summer time, and in winter time.
    Twice(i64, i64),
    /// The hour left out in spring.
    Never,
}

/// Seconds since 1970 of a reading of the German clock.
pub(super) fn from_berlin_clock(clock: DateTime) -> Option<Local> {
    let at = |offset: jiff::tz::Offset| offset.to_timestamp(clock).ok().map(|t| t.as_second());
    Some(match BERLIN.to_ambiguous_timestamp(clock).offset() {
        AmbiguousOffset::Unambiguous { offset } => Local::Once(at(offset)?),
        AmbiguousOffset::Fold { before, after } => Local::Twice(at(before)?, at(after)?),
        AmbiguousOffset::Gap { .. } => Local::Never,
    })
}

/// Whether a German clock change lies in the hour before this time, or in the hour from it or at
/// its end: an hourly value ends with the change that spoils it.
pub(super) fn near_clock_change(seconds: i64) -> bool {
    let offset = |s: i64| Timestamp::from_second(s).ok().map(|t| BERLIN.to_offset(t));
    offset(seconds - 3600) != offset(seconds + 3600)
}

/// A time as ISO 8601 in UTC; unix seconds where it is out of the calendar's range.
pub fn format_time(unix_seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(unix_seconds);
    time.map_or_else(|_| unix_seconds.to_string(), |time| time.to_string())
}

/// ISO 8601, `T` or a blank between date and time, with or without an offset.
pub(super) fn parse_iso(text: &str) -> Option<Stated> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(Stated::Utc(time.as_second()));
    }
    text.parse::<DateTime>().ok().map(Stated::Clock)
}

/// The beginning of `01.01.2019 00:00 - 01.01.2019 00:15`, also with slashes, seconds and a zone in
/// parentheses after the time.
pub(super) fn parse_interval(text: &str) -> Option<Stated> {
    let begin = text.split(" - ").next()?.trim();
    let (clock, hours) = match begin.split_once('(') {
        None => (begin, None),
        Some((clock, zone)) => match zone.trim_end_matches(')').trim() {
            "UTC" => (clock, Some(0)),
            "CET" => (clock, Some(1)),
            "CEST" => (clock, Some(2)),
            _ => return None,
        },
    };
    let clock = parse_clock(clock.trim())?;
    match hours {
        None => Some(Stated::Clock(clock)),
        Some(hours) => Some(Stated::Utc(from_utc_clock(clock)? - hours * 3600)),
    }
}

/// A clock reading as SMARD and ENTSO-E write it: `01.01.2019 00:15`, `01/01/2019 00:15:00`,
/// `Jan 1, 2019 12:15 AM`, or ISO without offset.
pub(super) fn parse_clock(text: &str) -> Option<DateTime> {
    parse_day_first(text)
        .or_else(|| DateTime::strptime("%b %d, %Y %I:%M %p", text).ok())
        .or_else(|| text.parse().ok())
}

fn parse_day_first(text: &str) -> Option<DateTime> {
    let (date, time) = text.split_once(' ')?;
    let mut parts = date.split(['.', '/']);
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    let mut parts = time.split(':');
    let (hour, minute) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let second = parts.next().map_or(Some(0), |s| s.parse().ok())?;
    if parts.next().is_some() {
        return None;
    }
    Some(date.to_datetime(Time::new(hour, minute, second, 0).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2019-01-01T00:00:00Z.
    const NEW_YEAR: i64 = 1_546_300_800;

    #[test]
    fn iso_times_with_and_without_offset() {
        for text in [
            "2019-01-01T00:00:00Z",
            "2019-01-01T00:00Z",
            "2019-01-01 00:00:00+00:00",
            "2019-01-01T01:00:00+0100",
        ] {
            assert_eq!(parse_iso(text), Some(Stated::Utc(NEW_YEAR)), "{text}");
        }
        let clock = "2019-01-01T00:00:00".parse().unwrap();
        assert_eq!(parse_iso("2019-01-01 00:00"), Some(Stated::Clock(clock)));
        assert_eq!(parse_iso("01.01.2019 00:00"), None);
        assert_eq!(parse_iso("2019-02-30T00:00Z"), None);
    }

    #[test]
    fn intervals_and_zone_marks() {
        let clock = "2019-01-01T00:15:00".parse().unwrap();
        for text in
            ["01.01.2019 00:15 - 01.01.2019 00:30", "01/01/2019 00:15:00 - 01/01/2019 00:30:00"]
        {
            assert_eq!(parse_interval(text), Some(Stated::Clock(clock)), "{text}");
        }
        let marked = "01/01/2019 01:00:00 (CET) - 01/01/2019 01:15:00 (CET)";
        assert_eq!(parse_interval(marked), Some(Stated::Utc(NEW_YEAR)));
        let marked = "01/01/2019 02:00:00 (CEST) - 01/01/2019 02:15:00 (CEST)";
        assert_eq!(parse_interval(marked), Some(Stated::Utc(NEW_YEAR)));
        assert_eq!(parse_interval("01.01.2019 00:15 (XYZ) - "), None);
        assert_eq!(parse_interval("1.13.2019 00:15"), None);
    }

    #[test]
    fn english_clock() {
        let noon: DateTime = "2019-01-01T12:15:00".parse().unwrap();
        assert_eq!(parse_clock("Jan 1, 2019 12:15 PM"), Some(noon));
        assert_eq!(parse_clock("01.01.2019 12:15"), Some(noon));
        assert_eq!(parse_clock("2019-01-01 12:15"), Some(noon));
        assert_eq!(parse_clock("01.01.19 12:15"), None);
    }

    #[test]
    fn german_clock_changes() {
        let local = |text: &str| from_berlin_clock(text.parse().unwrap());
        assert!(matches!(local("2019-03-31T02:30"), Some(Local::Never)));
        // 2019-10-27T00:30Z is 02:30 in summer time.
        let summer = 1_572_136_200;
        let Some(Local::Twice(first, second)) = local("2019-10-27T02:30") else {
            panic!("this hour is repeated");
        };
        assert_eq!((first, second), (summer, summer + 3600));
        let change = summer + 1800;
        assert!(near_clock_change(change - 3600));
        assert!(!near_clock_change(change - 3601));
        assert!(near_clock_change(change + 3599));
        assert!(!near_clock_change(change + 3600));
        assert!(!near_clock_change(NEW_YEAR));
    }
}
