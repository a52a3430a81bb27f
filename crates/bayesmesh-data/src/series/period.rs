//! How far apart the values of a series are, and what that says about the calendar.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

const MINUTE: i64 = 60;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;
const WEEK: i64 = 7 * DAY;

/// The time from one value of a series to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Period {
    /// So many seconds.
    Seconds(i64),
    /// So many months, which are not equally long.
    Months(i64),
    /// So many units of a column that counts.
    Counts(i64),
    /// From row to row, whatever the time between them: trading days.
    Rows,
}

/// A cycle of the calendar that a network is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cycle {
    /// Of 24 hours.
    Day,
    /// Of 7 days.
    Week,
    /// From 1 January on.
    Year,
}

impl Cycle {
    /// Sine and cosine of each harmonic.
    pub const fn features(self) -> usize {
        2 * self.harmonics()
    }

    /// A week has the sharpest edges.
    const fn harmonics(self) -> usize {
        match self {
            Self::Week => 3,
            Self::Day | Self::Year => 2,
        }
    }

    /// How much of the cycle has gone by, from 0 to 1.
    fn phase(self, seconds: i64) -> f64 {
        let part =
            |length: i64, shift: i64| (seconds - shift).rem_euclid(length) as f64 / length as f64;
        match self {
            Self::Day => part(DAY, 0),
            // 1970 began on a Thursday; weeks begin on Monday.
            Self::Week => part(WEEK, 4 * DAY),
            Self::Year => {
                let date = clock(seconds).date();
                let days = f64::from(date.day_of_year() - 1) + part(DAY, 0);
                days / f64::from(date.days_in_year())
            }
        }
    }

    /// What a network is told of a time: `sin 2πkφ, cos 2πkφ` for the harmonics k = 1, 2 …
    pub fn encode(self, seconds: i64) -> impl Iterator<Item = f32> {
        let phase = self.phase(seconds);
        (1..=self.harmonics()).flat_map(move |k| {
            let (sin, cos) = (std::f64::consts::TAU * k as f64 * phase).sin_cos();
            [sin as f32, cos as f32]
        })
    }
}

/// A reading of the UTC clock; the first of 1970 for times that no calendar has.
fn clock(seconds: i64) -> DateTime {
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    TimeZone::UTC.to_datetime(time)
}

fn seconds(date: Date) -> i64 {
    TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).map_or(0, Timestamp::as_second)
}

fn month(seconds: i64) -> i64 {
    let date = clock(seconds).date();
    12 * i64::from(date.year()) + i64::from(date.month()) - 1
}

impl Period {
    /// The most usual one between times, which ascend within each series; nothing where no series
    /// has two.
    pub fn of<'a>(series: impl Iterator<Item = &'a [i64]> + Clone, counts: bool) -> Option<Self> {
        /// Where more than this share of the steps is not there, rows are counted instead.
        const GAPS: f64 = 0.2;
        let differences = series.clone().flat_map(|times| times.windows(2).map(|t| t[1] - t[0]));
        let mut sorted: Vec<i64> = differences.filter(|step| *step > 0).collect();
        sorted.sort_unstable();
        let most = sorted.chunk_by(|a, b| a == b).max_by_key(|run| run.len())?[0];
        if counts {
            return Some(Self::Counts(most));
        }
        let share = |days: [i64; 2]| {
            let within = |step: &&i64| (days[0] * DAY..=days[1] * DAY).contains(*step);
            sorted.iter().filter(within).count() as f64 / sorted.len() as f64
        };
        for (days, months) in [([28, 31], 1), ([89, 92], 3), ([365, 366], 12)] {
            // Four weeks are no month.
            if share(days) > 0.5 && (most % WEEK != 0 || share([30, 31]) > 0.5) {
                return Some(Self::Months(months));
            }
        }
        let several = series.filter(|times| times.len() > 1);
        let steps = |times: &[i64]| (times[times.len() - 1] - times[0]) / most + 1;
        let (rows, steps) =
            several.fold((0, 0), |(rows, sum), times| (rows + times.len(), sum + steps(times)));
        match (rows as f64) < (1.0 - GAPS) * steps as f64 {
            true => Some(Self::Rows),
            false => Some(Self::Seconds(most)),
        }
    }

    /// The step of the grid that begins at `origin` at which a time lies; nothing if it lies
    /// between two.
    pub fn step(self, origin: i64, time: i64) -> Option<i64> {
        let whole = |distance: i64, step: i64| {
            (distance.rem_euclid(step) == 0).then(|| distance.div_euclid(step))
        };
        match self {
            Self::Seconds(step) | Self::Counts(step) => whole(time - origin, step),
            Self::Months(months) => whole(month(time) - month(origin), months),
            Self::Rows => None,
        }
    }

    /// The time of a step of the grid that begins at `origin`; nothing where rows are counted.
    pub fn time(self, origin: i64, step: i64) -> Option<i64> {
        match self {
            Self::Seconds(seconds) | Self::Counts(seconds) => Some(origin + step * seconds),
            Self::Months(months) => {
                let first = clock(origin).date();
                let date = first.checked_add((step * months).months()).ok()?;
                // The last day of a month stays the last.
                let last = first.day() == first.days_in_month();
                let date = if last { date.last_of_month() } else { date };
                Some(seconds(date) + origin.rem_euclid(DAY))
            }
            Self::Rows => None,
        }
    }

    /// After how many steps a series may repeat itself, the shortest first.
    pub fn seasons(self) -> Vec<usize> {
        let steps = |length: i64, period: i64| (length / period) as usize;
        match self {
            Self::Seconds(s) if s <= 6 * HOUR && DAY % s == 0 => {
                vec![steps(DAY, s), steps(WEEK, s)]
            }
            Self::Seconds(s) if s <= DAY && WEEK % s == 0 => vec![steps(WEEK, s)],
            Self::Seconds(WEEK) => vec![52],
            Self::Months(months @ 1..=6) => vec![12 / months as usize],
            _ => Vec::new(),
        }
    }

    /// The cycles that a network should be told about, of a series that lasts so many steps.
    pub fn cycles(self, steps: usize) -> Vec<Cycle> {
        let (length, year) = match self {
            Self::Seconds(s) => (s, steps as i64 * s),
            Self::Months(months) => (30 * DAY, steps as i64 * months * 30 * DAY),
            Self::Counts(_) | Self::Rows => return Vec::new(),
        };
        let mut cycles = Vec::new();
        if length <= 6 * HOUR {
            cycles.push(Cycle::Day);
        }
        if length <= DAY {
            cycles.push(Cycle::Week);
        }
        // From less than two years one cannot tell a season from a trend.
        if length < 183 * DAY && year >= 730 * DAY {
            cycles.push(Cycle::Year);
        }
        cycles
    }

    /// So many steps in words: `6 hours`.
    pub fn words(self, steps: usize) -> String {
        let n = steps as i64;
        let several = |count: i64, unit: &str| match count {
            1 => format!("1 {unit}"),
            _ => format!("{count} {unit}s"),
        };
        match self {
            Self::Seconds(s) => match n * s {
                all if all % DAY == 0 && all >= 2 * DAY || all == DAY && s == DAY => {
                    several(all / DAY, "day")
                }
                all if all % HOUR == 0 => several(all / HOUR, "hour"),
                all if all % MINUTE == 0 => several(all / MINUTE, "minute"),
                all => several(all, "second"),
            },
            Self::Months(months) if (n * months) % 12 == 0 && months == 12 => several(n, "year"),
            Self::Months(months) => several(n * months, "month"),
            Self::Counts(_) | Self::Rows => several(n, "step"),
        }
    }

    /// The unit of lead times and how many of them a step is.
    pub fn lead(self) -> (&'static str, f64) {
        match self {
            Self::Seconds(s) if s < HOUR / 4 => ("minutes", s as f64 / MINUTE as f64),
            Self::Seconds(s) if s < DAY => ("h", s as f64 / HOUR as f64),
            Self::Seconds(s) => ("days", s as f64 / DAY as f64),
            Self::Months(12) => ("years", 1.0),
            Self::Months(months) => ("months", months as f64),
            Self::Counts(_) | Self::Rows => ("steps", 1.0),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Seconds(s) if s % DAY == 0 => write!(f, "{} d", s / DAY),
            Self::Seconds(s) if s % HOUR == 0 => write!(f, "{} h", s / HOUR),
            Self::Seconds(s) if s % MINUTE == 0 => write!(f, "{} min", s / MINUTE),
            Self::Seconds(s) => write!(f, "{s} s"),
            Self::Months(months) => write!(f, "{months} months"),
            Self::Counts(step) => write!(f, "{step} counts"),
            Self::Rows => f.write_str("rows"),
        }
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no period; write for example `15 min`, `1 h`, `1 d`, `1 months`, \
                 `1 counts` for a column that counts, or `rows` for rows at any distance"
            )
        };
        if text == "rows" {
            return Ok(Self::Rows);
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, unit) = text.split_at(digits);
        let count: i64 = if count.is_empty() { 1 } else { count.parse().map_err(|_| wrong())? };
        if !(1..=1_000_000_000).contains(&count) {
            return Err(wrong());
        }
        match unit.trim() {
            "s" | "second" | "seconds" => Ok(Self::Seconds(count)),
            "min" | "minute" | "minutes" => Ok(Self::Seconds(count * MINUTE)),
            "h" | "hour" | "hours" => Ok(Self::Seconds(count * HOUR)),
            "d" | "day" | "days" => Ok(Self::Seconds(count * DAY)),
            "w" | "week" | "weeks" => Ok(Self::Seconds(count * WEEK)),
            "month" | "months" => Ok(Self::Months(count)),
            "quarter" | "quarters" => Ok(Self::Months(3 * count)),
            "year" | "years" => Ok(Self::Months(12 * count)),
            "counts" | "count" => Ok(Self::Counts(count)),
            _ => Err(wrong()),
        }
    }
}

impl From<Period> for String {
    fn from(period: Period) -> Self {
        period.to_string()
    }
}

impl TryFrom<String> for Period {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::parse_time;

    fn times(texts: &[&str]) -> Vec<i64> {
        texts.iter().map(|text| parse_time(text.as_bytes()).unwrap()).collect()
    }

    #[test]
    fn the_most_usual_difference_is_the_period() {
        let found = |times: &[i64]| Period::of([times].into_iter(), false);
        let hours: Vec<i64> = (0..50).filter(|i| *i != 7).map(|i| i * 3600).collect();
        assert_eq!(found(&hours), Some(Period::Seconds(3600)));
        let months = times(&["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]);
        assert_eq!(found(&months), Some(Period::Months(1)));
        let quarters = times(&["2023-01-01", "2023-04-01", "2023-07-01", "2023-10-01"]);
        assert_eq!(found(&quarters), Some(Period::Months(3)));
        let fortnights: Vec<i64> = (0..9).map(|i| i * 28 * DAY).collect();
        assert_eq!(found(&fortnights), Some(Period::Seconds(28 * DAY)));
        // Five days of seven.
        let trading: Vec<i64> = (0..70).filter(|day| day % 7 < 5).map(|day| day * DAY).collect();
        assert_eq!(found(&trading), Some(Period::Rows));
        assert_eq!(found(&[5]), None);
        assert_eq!(Period::of([&[1, 3, 5][..]].into_iter(), true), Some(Period::Counts(2)));
    }

    #[test]
    fn steps_and_times_are_inverse() {
        let origin = times(&["2023-11-30 06:00"])[0];
        for period in ["15 min", "1 h", "1 d", "1 months", "3 months", "12 months", "2 counts"] {
            let period: Period = period.parse().unwrap();
            assert_eq!(period.to_string().parse(), Ok(period));
            for step in [-7, 0, 1, 3, 250] {
                let time = period.time(origin, step).unwrap();
                assert_eq!(period.step(origin, time), Some(step), "{period} {step}");
            }
        }
        let month = Period::Months(1);
        assert_eq!(month.time(origin, 3), times(&["2024-02-29 06:00"]).first().copied());
        assert_eq!(Period::Seconds(3600).step(0, 1800), None);
        assert!("1 fortnight".parse::<Period>().is_err());
        assert!("0 h".parse::<Period>().is_err());
    }

    #[test]
    fn cycles_close() {
        let at =
            |cycle: Cycle, text: &str| -> Vec<f32> { cycle.encode(times(&[text])[0]).collect() };
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near(&at(Cycle::Day, "2024-05-01 06:00"), &[1.0, 0.0, 0.0, -1.0]));
        assert!(near(&at(Cycle::Week, "2024-05-06"), &[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]));
        assert!(near(&at(Cycle::Week, "2024-05-07"), &at(Cycle::Week, "2023-01-03")));
        assert!(near(&at(Cycle::Year, "2024-01-01"), &at(Cycle::Year, "2023-01-01")));
        assert_eq!(at(Cycle::Year, "2024-03-01").len(), Cycle::Year.features());
    }

    #[test]
    fn seasons_and_words() {
        assert_eq!(Period::Seconds(900).seasons(), [96, 672]);
        assert_eq!(Period::Seconds(DAY).seasons(), [7]);
        assert_eq!(Period::Months(3).seasons(), [4]);
        assert!(Period::Rows.seasons().is_empty());
        assert_eq!(Period::Seconds(900).words(24), "6 hours");
        assert_eq!(Period::Seconds(900).words(96), "24 hours");
        assert_eq!(Period::Seconds(DAY).words(1), "1 day");
        assert_eq!(Period::Months(1).words(12), "12 months");
        assert_eq!(Period::Seconds(3600).cycles(1000), [Cycle::Day, Cycle::Week]);
        assert_eq!(Period::Months(1).cycles(48), [Cycle::Year]);
    }
}
