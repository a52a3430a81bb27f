//! Times of the CF conventions.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::error::Era5Error;

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// `2026-04-08T00:00:00Z`; the bare number for times that no calendar has.
pub fn utc(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| format!("{seconds} s"), |time| time.to_string())
}

/// Unix seconds of `2020-01-01`, `2020-01-01T06`, `2020-01-01T06:00` or `2020-01-01T06:00:00Z`,
/// UTC.
pub fn parse_date(text: &str) -> Result<i64, Era5Error> {
    stated(text).ok_or_else(|| {
        Era5Error::Setting(format!(
            "`{text}` is no date; write one such as 2020-12-31 or 2020-12-31T18"
        ))
    })
}

/// A date and, if it follows, a time of day in UTC.
fn stated(text: &str) -> Option<i64> {
    let text = text.trim().trim_end_matches('Z').trim_end_matches("UTC").trim();
    let (date, clock) = match text.split_once(['T', ' ']) {
        None => (text, ""),
        Some((date, clock)) => (date, clock.trim()),
    };
    // Months and days may lack their zero.
    let mut numbers = date.split('-').map(str::parse::<i16>);
    let mut number = || numbers.next()?.ok();
    let (year, month, day) = (number()?, number()?, number()?);
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let mut parts = clock.split(':');
    let mut part = || match parts.next() {
        None | Some("") => Some(0.0),
        Some(text) => text.parse::<f64>().ok(),
    };
    let (hour, minute, second) = (part()?, part()?, part()?);
    let inside = (0.0..24.0).contains(&hour) && (0.0..60.0).contains(&minute);
    if !inside || !(0.0..60.0).contains(&second) {
        return None;
    }
    let midnight = TimeZone::UTC.to_timestamp(DateTime::from(date)).ok()?.as_second();
    Some(midnight + (hour * 3600.0 + minute * 60.0 + second) as i64)
}

/// How the numbers of a time axis become Unix seconds: `unit · number + origin`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Units {
    /// Seconds, of which nanoseconds are fractions.
    unit: f64,
    origin: i64,
}

impl Units {
    /// Of `hours since 1959-01-01`, in a calendar that is ours; otherwise what is wrong.
    pub fn parse(units: &str, calendar: Option<&str>) -> Result<Self, String> {
        const CALENDARS: [&str; 3] = ["proleptic_gregorian", "gregorian", "standard"];
        if let Some(calendar) = calendar
            && !CALENDARS.contains(&calendar)
        {
            return Err(format!(
                "calendar `{calendar}`; supported are proleptic_gregorian, gregorian and standard"
            ));
        }
        let parsed = units.split_once(" since ").and_then(|(unit, origin)| {
            let unit = match unit.trim() {
                "days" | "day" | "d" => 86_400.0,
                "hours" | "hour" | "hr" | "h" => 3600.0,
                "minutes" | "minute" | "min" => 60.0,
                "seconds" | "second" | "sec" | "s" => 1.0,
                "milliseconds" | "ms" => 1e-3,
                "microseconds" | "us" => 1e-6,
                "nanoseconds" | "ns" => 1e-9,
                _ => return None,
            };
            Some(Self { unit, origin: stated(origin)? })
        });
        parsed.ok_or_else(|| {
            format!("units `{units}`; expected some such as `hours since 1959-01-01`")
        })
    }

    /// Of a whole number.
    pub fn whole(self, number: i64) -> i64 {
        match self.unit >= 1.0 {
            true => self.origin.saturating_add(number.saturating_mul(self.unit as i64)),
            false => self.origin + number.div_euclid((1.0 / self.unit).round() as i64),
        }
    }

    /// Of any number, rounded to a second.
    pub fn float(self, number: f64) -> i64 {
        self.origin.saturating_add((number * self.unit).round() as i64)
    }
}

/// The hour of the day, with its fraction, and days since the beginning of the year.
pub(super) fn of_day_and_year(time: i64) -> (f64, f64) {
    let hour = time.rem_euclid(DAY) as f64 / 3600.0;
    let days = time as f64 / DAY as f64;
    let year = civil(time).map_or(days / 365.25, |at| f64::from(at.date().year() - 1970));
    let first = Date::new(1970 + year as i16, 1, 1).ok();
    let begin = first.and_then(|date| TimeZone::UTC.to_timestamp(DateTime::from(date)).ok());
    let day =
        begin.map_or(days.rem_euclid(365.25), |at| (time - at.as_second()) as f64 / DAY as f64);
    (hour, day)
}

/// The month, 1 to 12.
pub(super) fn month(time: i64) -> u8 {
    civil(time).map_or(1, |at| at.date().month() as u8)
}

fn civil(time: i64) -> Option<DateTime> {
    let time = Timestamp::from_second(time).ok()?;
    Some(TimeZone::UTC.to_datetime(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_the_conventions_are_decoded() {
        // 1959-01-01 is 4018 days before 1970.
        let origin = -4018 * DAY;
        let hours = Units::parse("hours since 1959-01-01", Some("proleptic_gregorian")).unwrap();
        assert_eq!(hours.whole(589_416), origin + 589_416 * 3600);
        assert_eq!(utc(hours.whole(589_416)), "2026-03-29T00:00:00Z");
        assert_eq!(hours.float(1.5), origin + 5400);
        for (units, number, time) in [
            ("days since 1970-01-01", 2, 2 * DAY),
            ("days since 1970-1-1 00:00:0.0", 2, 2 * DAY),
            ("minutes since 1970-01-01T06", 3, 6 * 3600 + 180),
            ("seconds since 1970-01-01 00:00:10", -3, 7),
            ("nanoseconds since 1970-01-01", 5_000_000_000, 5),
            ("hours since 1900-01-01 00:00:00.0", 613_608, 0),
        ] {
            assert_eq!(Units::parse(units, None).unwrap().whole(number), time, "{units}");
        }
        for units in ["hours", "fortnights since 1970-01-01", "hours since yesterday"] {
            assert!(Units::parse(units, None).unwrap_err().contains("expected"), "{units}");
        }
        assert!(Units::parse("hours since 1970-01-01", Some("noleap")).is_err());
    }

    #[test]
    fn hours_days_and_months() {
        let time = parse_date("2020-03-01T18").unwrap();
        assert_eq!(of_day_and_year(time), (18.0, 60.75));
        assert_eq!(month(time), 3);
        assert_eq!(of_day_and_year(parse_date("1959-01-01").unwrap()), (0.0, 0.0));
        assert!(parse_date("2020-13-01").is_err());
        assert!(parse_date("2020-12-31T25").is_err());
    }
}
