//! German working days, in whole-number arithmetic on days since 1970-01-01.

/// How a day consumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DayKind {
    /// Monday to Friday, unless a holiday.
    Workday,
    /// Saturday, unless a holiday; Christmas Eve and New Year's Eve on a working day.
    Saturday,
    /// Sunday or a nationwide public holiday.
    Sunday,
}

/// A day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(pub i64);

/// Year, month (1 to 12) and day of the month of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
}

impl Day {
    /// The day of a date. Years are counted from March, so that the leap day comes last; 719,468
    /// days lie between 0000-03-01 and 1970-01-01.
    pub(super) fn of(year: i64, month: i64, day: i64) -> Self {
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        Self(365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468)
    }

    /// The date of a day.
    pub(super) fn civil(self) -> Civil {
        // A year is 365.2425 days: this is the year, or the one after it on the last days.
        let guess = (self.0 * 400).div_euclid(146_097) + 1970;
        let year = if Self::of(guess + 1, 1, 1) <= self {
            guess + 1
        } else if Self::of(guess, 1, 1) > self {
            guess - 1
        } else {
            guess
        };
        let month = (1..=12).rev().find(|&m| Self::of(year, m, 1) <= self).unwrap_or(1);
        Civil { year, month, day: self.0 - Self::of(year, month, 1).0 + 1 }
    }

    /// 0 for Monday to 6 for Sunday.
    pub(super) fn weekday(self) -> i64 {
        (self.0 + 3).rem_euclid(7)
    }

    /// The day `days` later.
    pub(super) fn plus(self, days: i64) -> Self {
        Self(self.0 + days)
    }

    /// Easter Sunday, by the Gregorian computus.
    fn easter(year: i64) -> Self {
        let golden = year % 19;
        let century = year / 100;
        let moon_shift = century - century / 4 - (8 * century + 13) / 25;
        let epact = (19 * golden + moon_shift + 15) % 30;
        // Days from 21 March to the paschal full moon, with the two exceptions of the tables.
        let full_moon =
            epact - (epact / 28) * (1 - (epact / 28) * (29 / (epact + 1)) * ((21 - golden) / 11));
        let weekday = (year + year / 4 + full_moon + 2 - century + century / 4) % 7;
        Self::of(year, 3, 28).plus(full_moon - weekday)
    }

    /// Whether it is a public holiday in all of Germany.
    pub(super) fn is_holiday(self) -> bool {
        let Civil { year, month, day } = self.civil();
        let fixed = matches!((month, day), (1, 1) | (5, 1) | (10, 3) | (12, 25) | (12, 26))
            // The 500th Reformation Day, once.
            || (year, month, day) == (2017, 10, 31);
        // Good Friday, Easter Monday, Ascension, Whit Monday.
        fixed || matches!(self.0 - Self::easter(year).0, -2 | 1 | 39 | 50)
    }

    /// How the day consumes.
    pub(super) fn kind(self) -> DayKind {
        let Civil { month, day, .. } = self.civil();
        if self.weekday() == 6 || self.is_holiday() {
            DayKind::Sunday
        } else if self.weekday() == 5 || (month == 12 && (day == 24 || day == 31)) {
            DayKind::Saturday
        } else {
            DayKind::Workday
        }
    }

    /// Whether it is a working day between a holiday and a weekend.
    pub(super) fn is_bridge(self) -> bool {
        self.kind() == DayKind::Workday
            && (self.weekday() == 4 && self.plus(-1).is_holiday()
                || self.weekday() == 0 && self.plus(1).is_holiday())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_both_ways() {
        assert_eq!(Day::of(1970, 1, 1), Day(0));
        assert_eq!(Day::of(2019, 3, 31), Day(17_986));
        assert_eq!(Day(17_986).weekday(), 6);
        for day in (-30_000..60_000).map(Day) {
            let date = day.civil();
            assert_eq!(Day::of(date.year, date.month, date.day), day);
            let known: jiff::civil::Date =
                jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(day.0)).unwrap();
            let parts = (known.year(), known.month(), known.day());
            assert_eq!((date.year as i16, date.month as i8, date.day as i8), parts);
        }
    }

    #[test]
    fn easter_sundays() {
        for (year, month, day) in [
            (1954, 4, 18),
            (1981, 4, 19),
            (2000, 4, 23),
            (2015, 4, 5),
            (2016, 3, 27),
            (2019, 4, 21),
            (2024, 3, 31),
            (2025, 4, 20),
            (2038, 4, 25),
        ] {
            assert_eq!(Day::easter(year), Day::of(year, month, day), "{year}");
            assert_eq!(Day::easter(year).weekday(), 6);
        }
    }

    #[test]
    fn holidays_and_bridges_of_2018() {
        let holidays: Vec<(i64, i64)> = (0..365)
            .map(|i| Day::of(2018, 1, 1).plus(i))
            .filter(|day| day.is_holiday())
            .map(|day| (day.civil().month, day.civil().day))
            .collect();
        let expected =
            [(1, 1), (3, 30), (4, 2), (5, 1), (5, 10), (5, 21), (10, 3), (12, 25), (12, 26)];
        assert_eq!(holidays, expected);
        assert!(Day::of(2018, 4, 30).is_bridge());
        assert!(Day::of(2018, 5, 11).is_bridge());
        assert!(!Day::of(2018, 5, 9).is_bridge());
        assert_eq!(Day::of(2018, 12, 24).kind(), DayKind::Saturday);
        assert_eq!(Day::of(2018, 5, 10).kind(), DayKind::Sunday);
    }
}
