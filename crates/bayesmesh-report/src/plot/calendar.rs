//! The Gregorian calendar, in days since 1970-01-01.

/// Short names of the months.
pub(crate) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Short names of the days of the week, in the order of [`weekday`].
pub(crate) const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A date. The month and the day count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

/// Days from 1970-01-01 to the first of March of `year`, from which a leap day is the last day.
fn first_of_march(year: i64) -> i64 {
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719,468 days lie between the first of March of year 0 and 1970-01-01.
    365 * year + leap_days - 719_468
}

/// Days from the first of March to the first of the month that is `month` months later: the
/// lengths 31, 30, 31, 30, 31 repeat every five months.
fn days_before(month: i64) -> i64 {
    (153 * month + 2) / 5
}

/// Days since 1970-01-01 of the first of `month`, which may be any number: 13 is the next January.
pub(crate) fn first_of_month(year: i64, month: i64) -> i64 {
    let months = 12 * year + month - 3;
    first_of_march(months.div_euclid(12)) + days_before(months.rem_euclid(12))
}

/// The date `days` after 1970-01-01.
pub(crate) fn date(days: i64) -> Date {
    // 400 years have 146,097 days; the guess from their mean is at most one year off.
    let mut year = (400 * (days + 719_468)).div_euclid(146_097);
    while first_of_march(year + 1) <= days {
        year += 1;
    }
    while first_of_march(year) > days {
        year -= 1;
    }
    let rest = days - first_of_march(year);
    let month = (5 * rest + 2) / 153;
    let day = rest - days_before(month) + 1;
    if month < 10 {
        Date { year, month: month + 3, day }
    } else {
        Date { year: year + 1, month: month - 9, day }
    }
}

/// The day of the week, Monday being 0.
pub(crate) fn weekday(days: i64) -> usize {
    // 1970-01-01 was a Thursday.
    (days + 3).rem_euclid(7) as usize
}

/// A time in seconds since 1970-01-01 00:00 UTC as day and minute, or `None` if it is out of the
/// calendar.
pub(crate) fn date_and_time(seconds: f64) -> Option<String> {
    // A hundred thousand years or so.
    const LARGEST: f64 = 3e12;
    if seconds.is_nan() || seconds.abs() > LARGEST {
        return None;
    }
    let minutes = (seconds / 60.0).round() as i64;
    let (days, minute) = (minutes.div_euclid(24 * 60), minutes.rem_euclid(24 * 60));
    let Date { year, month, day } = date(days);
    let (weekday, month) = (WEEKDAYS[weekday(days)], MONTHS[month as usize - 1]);
    Some(format!("{weekday} {day} {month} {year}, {:02}:{:02}", minute / 60, minute % 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(date(0), Date { year: 1970, month: 1, day: 1 });
        assert_eq!(date(-1), Date { year: 1969, month: 12, day: 31 });
        assert_eq!(date(11_016), Date { year: 2000, month: 2, day: 29 });
        assert_eq!(date(17_239), Date { year: 2017, month: 3, day: 14 });
        assert_eq!(WEEKDAYS[weekday(17_239)], "Tue");
        assert_eq!(first_of_month(2017, 3), 17_226);
        assert_eq!(first_of_month(2016, 15), 17_226);
    }

    #[test]
    fn a_time_has_words() {
        assert_eq!(date_and_time(0.0).as_deref(), Some("Thu 1 Jan 1970, 00:00"));
        assert_eq!(date_and_time(1_489_471_200.0).as_deref(), Some("Tue 14 Mar 2017, 06:00"));
        assert_eq!(date_and_time(-60.0).as_deref(), Some("Wed 31 Dec 1969, 23:59"));
        assert_eq!(date_and_time(f64::NAN), None);
        assert_eq!(date_and_time(1e300), None);
    }

    #[test]
    fn every_day_of_eight_centuries_follows_the_one_before() {
        let mut previous = date(-146_098);
        for days in -146_097..146_097 {
            let today = date(days);
            let same_month = (previous.year, previous.month) == (today.year, today.month);
            if same_month {
                assert_eq!(today.day, previous.day + 1, "{today:?}");
            } else {
                assert_eq!(today.day, 1, "{today:?}");
                let months = |d: Date| 12 * d.year + d.month;
                assert_eq!(months(today), months(previous) + 1, "{today:?}");
                assert_eq!(first_of_month(today.year, today.month), days);
            }
            previous = today;
        }
    }
}
