//! Ticks of a time axis: full seconds, minutes, hours, days, weeks, months and years in UTC.

use super::calendar::{Date, MONTHS, WEEKDAYS, date, first_of_month, weekday};
use super::ticks::{Context, Tick, linear};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Steps below a month, in seconds.
const STEPS: [i64; 22] = [
    1,
    2,
    5,
    10,
    15,
    30,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    4 * DAY,
    7 * DAY,
    14 * DAY,
];

/// Steps from a month on, in months.
const MONTH_STEPS: [i64; 4] = [1, 2, 3, 6];

/// Seconds of a mean month.
const MEAN_MONTH: f64 = 30.44 * DAY as f64;

/// The first Monday after 1970-01-01, where weeks are counted from.
const FIRST_MONDAY: i64 = 4 * DAY;

/// Beyond this many seconds (some 300,000 years) a calendar makes no sense.
const LATEST: f64 = 1e13;

/// About `count` ticks in `domain`, which is in seconds since 1970-01-01 UTC.
pub(crate) fn ticks(domain: (f64, f64), count: usize) -> Vec<Tick> {
    let (from, to) = domain;
    if from.abs().max(to.abs()) > LATEST {
        return linear(domain, count);
    }
    let wanted = (to - from) / count.max(1) as f64;
    let mut ticks: Vec<Tick> =
        if let Some(&step) = STEPS.iter().find(|&&step| step as f64 >= wanted) {
            let origin = if step >= 7 * DAY { FIRST_MONDAY } else { 0 };
            let index = |t: f64| (t - origin as f64) / step as f64;
            let times = index(from).ceil() as i64..=index(to).floor() as i64;
            times.map(|i| short_tick(origin + i * step, step)).collect()
        } else {
            let months = MONTH_STEPS.iter().find(|&&months| months as f64 * MEAN_MONTH >= wanted);
            // Years go by one, two and five times a power of ten.
            let powers = (0..6).map(|exponent| 12 * 10i64.pow(exponent));
            let years = powers.flat_map(|p| [p, 2 * p, 5 * p]);
            let step = months
                .copied()
                .or_else(|| years.into_iter().find(|&m| m as f64 * MEAN_MONTH >= wanted))
                .unwrap_or(12_000_000);
            let month = |t: f64| {
                let Date { year, month, .. } = date((t as i64).div_euclid(DAY));
                (12 * year + month - 1).div_euclid(step)
            };
            (month(from)..=month(to) + 1)
                .map(|i| month_tick(i * step, step))
                .filter(|tick| (from..=to).contains(&tick.value))
                .collect()
        };
    add_contexts(&mut ticks);
    ticks
}

/// A tick with its own label and the context that it would have; [`add_contexts`] removes what
/// repeats.
fn short_tick(time: i64, step: i64) -> Tick {
    let days = time.div_euclid(DAY);
    let Date { year, month, day } = date(days);
    let month_name = MONTHS[month as usize - 1];
    let (label, text, full) = if step >= DAY {
        (format!("{day} {month_name}"), year.to_string(), year.to_string())
    } else {
        let seconds = time.rem_euclid(DAY);
        let (h, m, s) = (seconds / HOUR, seconds % HOUR / MINUTE, seconds % MINUTE);
        let label = match step {
            MINUTE.. => format!("{h:02}:{m:02}"),
            _ => format!("{h:02}:{m:02}:{s:02}"),
        };
        let text = format!("{} {day} {month_name}", WEEKDAYS[weekday(days)]);
        let full = format!("{text} {year}");
        (label, text, full)
    };
    let begins = step < DAY && time.rem_euclid(DAY) == 0;
    Tick { value: time as f64, label, context: Some(Context { text, full, begins }) }
}

/// A tick `months` months after the beginning of year 0.
fn month_tick(months: i64, step: i64) -> Tick {
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let value = (first_of_month(year, month + 1) * DAY) as f64;
    if step >= 12 {
        return Tick { value, label: year.to_string(), context: None };
    }
    let text = year.to_string();
    let context = Context { full: text.clone(), text, begins: month == 0 };
    Tick { value, label: MONTHS[month as usize].to_owned(), context: Some(context) }
}

/// Leaves each context only where it changes.
fn add_contexts(ticks: &mut [Tick]) {
    let mut previous: Option<String> = None;
    for tick in ticks {
        let Some(context) = &tick.context else {
            continue;
        };
        let full = context.full.clone();
        if previous.as_ref() == Some(&full) {
            tick.context = None;
        }
        previous = Some(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2017-03-14 00:00 UTC, a Tuesday.
    const TUESDAY: f64 = 17_239.0 * DAY as f64;

    fn shown(ticks: &[Tick]) -> Vec<(&str, Option<&str>)> {
        ticks
            .iter()
            .map(|tick| (tick.label.as_str(), tick.context.as_ref().map(|c| c.text.as_str())))
            .collect()
    }

    #[test]
    fn three_days_are_labelled_by_hour_and_day() {
        let ticks = ticks((TUESDAY, TUESDAY + 2.0 * DAY as f64), 5);
        assert_eq!(
            shown(&ticks),
            [
                ("00:00", Some("Tue 14 Mar")),
                ("12:00", None),
                ("00:00", Some("Wed 15 Mar")),
                ("12:00", None),
                ("00:00", Some("Thu 16 Mar")),
            ]
        );
        assert_eq!(ticks[0].context.as_ref().expect("first").full, "Tue 14 Mar 2017");
    }

    #[test]
    fn an_axis_that_starts_within_a_day_says_which() {
        let from = TUESDAY + 5.5 * HOUR as f64;
        let ticks = ticks((from, from + 12.0 * HOUR as f64), 4);
        assert_eq!(shown(&ticks)[0], ("06:00", Some("Tue 14 Mar")));
        assert!(!ticks[0].context.as_ref().expect("first").begins);
    }

    #[test]
    fn weeks_start_on_monday_and_months_on_the_first() {
        for tick in ticks((TUESDAY, TUESDAY + 50.0 * DAY as f64), 8) {
            assert_eq!(weekday(tick.value as i64 / DAY), 0);
        }
        let year = ticks((TUESDAY, TUESDAY + 365.0 * DAY as f64), 5);
        assert_eq!(
            shown(&year),
            [("Apr", Some("2017")), ("Jul", None), ("Oct", None), ("Jan", Some("2018")),]
        );
        let decades = ticks((0.0, TUESDAY), 6);
        assert_eq!(shown(&decades)[0], ("1970", None));
        assert_eq!(decades.len(), 5);
    }

    #[test]
    fn the_count_is_kept_for_every_span() {
        for exponent in 1..12 {
            for count in [2, 4, 8] {
                let n = ticks((TUESDAY, TUESDAY + 10f64.powi(exponent)), count).len();
                assert!(n <= count + 1, "{n} ticks over 1e{exponent} s");
            }
        }
    }
}
