//! A German-like load without any file.
//!
//! ```text
//! load(t) = profile(day kind, local hour, season) · calendar(day) + carry-over from the day before
//!         + weather(t) · season + fast noise(t) + trend · t
//! ```
//!
//! - **Profile**: hourly means of a working day, a Saturday and a Sunday in deep winter and in high
//!   summer, blended by a yearly curve and joined by cubics (Catmull-Rom); Friday afternoons are
//!   lower. German local time with its clock changes.
//! - **Calendar**: nationwide public holidays are Sundays, a little lower; bridge days are lower;
//!   the load sinks from 22 December and is back on 7 January.
//! - **Carry-over**: the night knows the evening before. Where that was unusual for the kind of day
//!   (a Monday after a Sunday, a holiday after a working day) the difference decays by
//!   noon.
//! - **Weather**: two Ornstein-Uhlenbeck processes, of five days and of eight hours, stronger in
//!   winter. **Fast noise**: one of an hour, and white noise, each of about a hundred MW.
//! - **Trend**: 0.2 % a year.
//!
//! The tables are rounded averages of the German grid load of 2015 to 2019 (Bundesnetzagentur,
//! SMARD.de, CC BY 4.0). Only additions, multiplications, divisions and square roots are used,
//! which IEEE 754 defines to the last bit, and the noise is a hash of its index: a seed gives the
//! same series on every machine.

use jiff::Timestamp;

use super::calendar::{Civil, Day, DayKind};
use super::error::LoadError;
use super::series::LoadSeries;
use super::time::BERLIN;

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynthConfig {
    /// Seed of the noise.
    pub seed: u64,
    /// First time in seconds since 1970-01-01T00:00:00Z, a multiple of the step, in the years 1900
    /// to 2199.
    pub start: i64,
    /// Number of days of 24 hours, from 1 to 36,525.
    pub days: u32,
    /// 900, 1800 or 3600. A coarser series is the mean of the finer one.
    pub step_seconds: u32,
}

impl Default for SynthConfig {
    /// Two years from 2015-01-01T00:00:00Z every 15 minutes.
    fn default() -> Self {
        Self { seed: 1, start: 1_420_070_400, days: 730, step_seconds: 900 }
    }
}

const QUARTER: i64 = 900;
const DAY: i64 = 86_400;

/// Hourly means in GW in high summer: working day, Saturday, Sunday.
const SUMMER: [[f64; 24]; 3] = [
    [
        46.2, 44.4, 43.4, 43.6, 44.7, 48.0, 55.4, 60.8, 63.9, 65.1, 66.6, 67.9, 67.4, 66.6, 65.4,
        64.3, 62.5, 61.7, 61.2, 61.1, 59.5, 57.3, 53.8, 49.5,
    ],
    [
        44.5, 42.5, 41.1, 40.7, 40.8, 41.3, 43.4, 46.7, 50.6, 53.5, 55.2, 56.1, 55.2, 53.4, 51.7,
        50.7, 50.0, 49.9, 50.2, 50.1, 48.8, 47.4, 45.7, 42.6,
    ],
    [
        39.8, 37.8, 36.6, 36.1, 36.1, 36.3, 37.0, 39.2, 42.6, 45.6, 47.8, 49.8, 49.5, 47.7, 46.3,
        45.5, 45.0, 45.7, 46.9, 47.7, 47.9, 47.5, 46.7, 43.6,
    ],
];

/// Hourly means in GW in deep winter.
const WINTER: [[f64; 24]; 3] = [
    [
        55.4, 53.4, 52.5, 53.0, 54.5, 57.9, 65.8, 72.1, 74.0, 74.0, 74.4, 74.9, 74.2, 73.6, 72.5,
        71.9, 72.1, 74.7, 75.9, 74.8, 70.4, 66.3, 63.3, 59.0,
    ],
    [
        53.9, 51.6, 50.4, 50.2, 50.3, 50.4, 51.1, 54.2, 58.0, 61.0, 62.5, 63.2, 62.4, 60.6, 59.0,
        58.6, 59.7, 63.1, 65.0, 63.5, 59.5, 56.6, 55.6, 52.3,
    ],
    [
        49.2, 47.0, 45.9, 45.7, 45.8, 45.6, 45.0, 46.8, 50.1, 53.7, 56.3, 58.7, 58.2, 56.1, 54.6,
        54.3, 55.5, 59.5, 62.1, 61.2, 58.4, 56.4, 56.3, 53.2,
    ],
];

/// How much of winter the middle of each month is.
const WINTER_SHARE: [f64; 12] =
    [1.0, 0.93, 0.65, 0.28, 0.14, 0.12, 0.12, 0.0, 0.18, 0.40, 0.72, 0.88];

/// What Friday's hours differ from other working days, in GW.
const FRIDAY: [f64; 24] = [
    0.0, 0.0, 0.0, -0.1, -0.1, -0.2, -0.4, -0.4, -0.3, -0.3, -0.3, -0.6, -0.9, -1.7, -2.2, -2.3,
    -2.1, -2.1, -2.3, -2.6, -2.8, -2.7, -2.3, -1.8,
];

/// How much of the evening before is left in each hour of the morning.
const CARRY: [f64; 12] = [0.80, 0.73, 0.68, 0.64, 0.57, 0.46, 0.30, 0.20, 0.14, 0.10, 0.07, 0.05];

/// Factors of the days from 22 December to 6 January.
const CHRISTMAS: [f64; 16] = [
    0.95, 0.90, 0.86, 0.87, 0.88, 0.84, 0.83, 0.83, 0.84, 0.87, 0.88, 0.90, 0.95, 0.96, 0.97, 0.97,
];

/// A series like the German grid load; see the [module](self) for how it is made. Roughly 57 GW in
/// the mean and 33 to 82 GW in range, rounded to 0.1 MW.
pub fn german_like(config: &SynthConfig) -> Result<LoadSeries, LoadError> {
    let &SynthConfig { seed, start, days, step_seconds } = config;
    let step = i64::from(step_seconds);
    check(config)?;
    let quarters = i64::from(days) * DAY / QUARTER;
    let profile = Profile::new(start, quarters);
    let first_hour = start.div_euclid(3600) - 1;
    let hours = quarters / 4 + 5;
    let slow = ornstein_uhlenbeck(seed, Stream::Slow, first_hour, hours, 120.0);
    let middle = ornstein_uhlenbeck(seed, Stream::Middle, first_hour, hours, 8.0);
    let first_quarter = start / QUARTER;
    let fast = ornstein_uhlenbeck(seed, Stream::Fast, first_quarter, quarters, 4.0);
    let load = |quarter: i64| {
        let time = start + quarter * QUARTER;
        let (expected, winter) = profile.at(time);
        let hour = (time - first_hour * 3600) as f64 / 3600.0;
        let white = normal(seed, Stream::White, first_quarter + quarter);
        expected
            + (0.75 + 0.65 * winter)
                * (1.45 * cubic_at(&slow, hour) + 0.7 * cubic_at(&middle, hour))
            + 0.12 * fast[quarter as usize]
            + 0.12 * white
            + 0.002 * 57.0 * (quarter * QUARTER) as f64 / (365.25 * DAY as f64)
    };
    let per_step = step / QUARTER;
    let values = (0..quarters / per_step)
        .map(|i| {
            let sum: f64 = (i * per_step..(i + 1) * per_step).map(load).sum();
            // In tenths of a MW.
            ((sum / per_step as f64 * 1e4).round() / 10.0) as f32
        })
        .collect();
    Ok(LoadSeries { start, step_seconds, values })
}

fn check(config: &SynthConfig) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Setting(text));
    let &SynthConfig { start, days, step_seconds, .. } = config;
    if ![900, 1800, 3600].contains(&step_seconds) {
        return wrong(format!("step of {step_seconds} seconds: use 900, 1800 or 3600"));
    }
    if !(1..=36_525).contains(&days) {
        return wrong(format!("{days} days: use 1 to 36525"));
    }
    let years = Day::of(1900, 1, 1).0 * DAY..Day::of(2200, 1, 1).0 * DAY;
    if !years.contains(&start) || start % i64::from(step_seconds) != 0 {
        return wrong(format!(
            "start {start}: use a multiple of {step_seconds} seconds in the years 1900 to 2199"
        ));
    }
    Ok(())
}

/// What the calendar alone expects.
struct Profile {
    first: Day,
    /// GW at the middle of each local hour, for each local day.
    hours: Vec<f64>,
    /// Winter share at noon of each local day.
    winter: Vec<f64>,
}

impl Profile {
    fn new(start: i64, quarters: i64) -> Self {
        // Two days more on either side than UTC days: local time and the cubics reach beyond.
        let first = Day(start.div_euclid(DAY) - 2);
        let count = quarters * QUARTER / DAY + 5;
        let days = || (0..count).map(|i| first.plus(i));
        Self {
            first,
            hours: days().flat_map(hours_of).collect(),
            winter: days().map(winter_share).collect(),
        }
    }

    /// GW expected in the quarter of an hour that begins at `time`, and the winter share.
    fn at(&self, time: i64) -> (f64, f64) {
        let offset = Timestamp::from_second(time).map_or(3600, |t| BERLIN.to_offset(t).seconds());
        let middle = time + i64::from(offset) + QUARTER / 2;
        let since = (middle - self.first.0 * DAY) as f64;
        let expected = cubic_at(&self.hours, since / 3600.0 - 0.5);
        // Between noons.
        let winter = cubic_at(&self.winter, since / DAY as f64 - 0.5);
        (expected, winter)
    }
}

/// GW of the 24 hours of a day.
fn hours_of(day: Day) -> [f64; 24] {
    let mut hours = usual_hours(day, day.kind(), day.weekday() == 4);
    let usual_evening = match day.kind() {
        DayKind::Workday => usual_hours(day, DayKind::Workday, false)[23],
        DayKind::Saturday => usual_hours(day, DayKind::Workday, true)[23],
        DayKind::Sunday => usual_hours(day, DayKind::Saturday, false)[23],
    };
    let before = day.plus(-1);
    let evening = usual_hours(before, before.kind(), before.weekday() == 4)[23];
    for (hour, share) in hours.iter_mut().zip(CARRY) {
        *hour += share * (evening - usual_evening);
    }
    hours
}

/// GW of the 24 hours of a day of this kind at this date, after the usual kind of day.
fn usual_hours(day: Day, kind: DayKind, friday: bool) -> [f64; 24] {
    let winter = winter_share(day);
    let factor = calendar_factor(day);
    std::array::from_fn(|hour| {
        let (low, high) = (SUMMER[kind as usize][hour], WINTER[kind as usize][hour]);
        let friday = if friday && kind == DayKind::Workday { FRIDAY[hour] } else { 0.0 };
        factor * (low + winter * (high - low) + friday)
    })
}

fn calendar_factor(day: Day) -> f64 {
    let Civil { year, month, .. } = day.civil();
    let christmas = Day::of(if month == 1 { year - 1 } else { year }, 12, 22);
    let since = day.0 - christmas.0;
    if let Some(&factor) = usize::try_from(since).ok().and_then(|i| CHRISTMAS.get(i)) {
        factor
    } else if day.is_holiday() && day.weekday() < 5 {
        0.97
    } else if day.is_bridge() {
        0.91
    } else {
        1.0
    }
}

fn winter_share(day: Day) -> f64 {
    let Civil { year, month, day: of_month } = day.civil();
    let next = if month == 12 { Day::of(year + 1, 1, 1) } else { Day::of(year, month + 1, 1) };
    let days = next.0 - Day::of(year, month, 1).0;
    // In months from the middle of December.
    let position = month as f64 + (of_month as f64 - 0.5) / days as f64 - 0.5;
    let months: [f64; 16] = std::array::from_fn(|i| WINTER_SHARE[(i + 10) % 12]);
    cubic_at(&months, position + 1.0)
}

/// Catmull-Rom cubic through `nodes` at `position` (in nodes), flat beyond the ends.
fn cubic_at(nodes: &[f64], position: f64) -> f64 {
    let last = nodes.len() as i64 - 1;
    let node = |i: i64| nodes[i.clamp(0, last) as usize];
    let whole = position.floor();
    let (i, x) = (whole as i64, position - whole);
    let (a, b, c, d) = (node(i - 1), node(i), node(i + 1), node(i + 2));
    b + 0.5 * x * (c - a + x * (2.0 * a - 5.0 * b + 4.0 * c - d + x * (3.0 * (b - c) + d - a)))
}

/// The independent sources of noise.
#[derive(Clone, Copy)]
enum Stream {
    Slow = 1,
    Middle,
    Fast,
    White,
}

/// A stationary first-order autoregression of unit variance whose correlation falls by 1/e in about
/// `memory` steps.
fn ornstein_uhlenbeck(seed: u64, stream: Stream, first: i64, count: i64, memory: f64) -> Vec<f64> {
    let keep = 1.0 - 1.0 / memory;
    let add = (1.0 - keep * keep).sqrt();
    let mut state = normal(seed, stream, first);
    let mut values = vec![state];
    for index in first + 1..first + count {
        state = keep * state + add * normal(seed, stream, index);
        values.push(state);
    }
    values
}

/// Nearly normal number `index` of a stream: the sum of twelve uniform numbers of 16 bits, minus
/// six. Exact on every machine, unlike logarithms and cosines.
fn normal(seed: u64, stream: Stream, index: i64) -> f64 {
    let key = mix(mix(seed).wrapping_add(stream as u64));
    let sum: u64 = (0..3)
        .map(|part| {
            let bits = mix(key.wrapping_add((index as u64).wrapping_mul(3).wrapping_add(part)));
            (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)
        })
        .sum();
    (sum as f64 + 6.0) / 65_536.0 - 6.0
}

/// SplitMix64: step and finaliser.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_standard_normal_and_uncorrelated() {
        let n = 100_000;
        let draw = |stream| (0..n).map(|i| normal(7, stream, i)).collect::<Vec<f64>>();
        let (x, y) = (draw(Stream::White), draw(Stream::Fast));
        let mean = |f: &dyn Fn(usize) -> f64| (0..n as usize - 1).map(f).sum::<f64>() / n as f64;
        // Five standard errors.
        let bound = 5.0 / (n as f64).sqrt();
        assert!(mean(&|i| x[i]).abs() < bound);
        assert!((mean(&|i| x[i] * x[i]) - 1.0).abs() < 1.5 * bound);
        assert!(mean(&|i| x[i] * x[i + 1]).abs() < bound);
        assert!(mean(&|i| x[i] * y[i]).abs() < bound);
    }

    #[test]
    fn cubics_pass_through_their_nodes_and_keep_lines() {
        let nodes = [1.0, 4.0, 2.0, 8.0];
        for (i, &node) in nodes.iter().enumerate() {
            assert_eq!(cubic_at(&nodes, i as f64), node);
        }
        let line: Vec<f64> = (0..5).map(|i| 3.0 * f64::from(i)).collect();
        assert_eq!(cubic_at(&line, 1.75), 5.25);
    }

    #[test]
    fn winter_is_in_january() {
        let share = |month, day| winter_share(Day::of(2018, month, day));
        assert!((share(1, 16) - 1.0).abs() < 0.01);
        assert!(share(8, 16).abs() < 0.01);
        assert!((share(12, 31) - share(1, 1)).abs() < 0.02);
    }
}
