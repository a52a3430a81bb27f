//! Ticks of linear and logarithmic axes.

use super::axis::ScaleKind;
use super::time_ticks;
use crate::number::format_tick;

/// A labelled place on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Where it is.
    pub(crate) value: f64,
    /// Its label.
    pub(crate) label: String,
    /// What begins here, shown in a second row, e.g. the day of a time.
    pub(crate) context: Option<Context>,
}

/// The second row of a label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Context {
    /// The text.
    pub(crate) text: String,
    /// The text with the year, for the first one shown.
    pub(crate) full: String,
    /// Whether the day, month or year really begins here, or just the axis.
    pub(crate) begins: bool,
}

impl Tick {
    fn plain(value: f64, step: f64) -> Self {
        Self { value, label: format_tick(value, step), context: None }
    }
}

/// About `count` ticks between both ends of `domain`, never many more.
pub(crate) fn ticks(kind: ScaleKind, domain: (f64, f64), count: usize) -> Vec<Tick> {
    match kind {
        ScaleKind::Linear => linear(domain, count),
        ScaleKind::Log => log(domain, count),
        ScaleKind::Time => time_ticks::ticks(domain, count),
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Multiples of a nice step.
pub(crate) fn linear((from, to): (f64, f64), count: usize) -> Vec<Tick> {
    let step = nice_step((to - from) / count.max(1) as f64);
    // The ends count even if the division rounds to just outside.
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|i| Tick::plain(rounded(i as f64 * step, step), step)).collect()
}

/// `value` without the rounding error of the multiplication, e.g. 0.3 in place of 3 × 0.1.
fn rounded(value: f64, step: f64) -> f64 {
    let scale = 10f64.powf(-step.log10().floor());
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

/// Powers of ten, closer or farther apart as the range asks.
fn log(domain: (f64, f64), count: usize) -> Vec<Tick> {
    let count = count.max(2);
    let (low, high) = (domain.0.log10(), domain.1.log10());
    let (first, last) = ((low - 1e-9).floor() as i32, (high + 1e-9).floor() as i32);
    let with = |factors: &[f64]| -> Vec<Tick> {
        (first..=last)
            .flat_map(|exponent| factors.iter().map(move |f| (f * power(exponent), exponent)))
            .filter(|(value, _)| (domain.0 * 0.999..=domain.1 * 1.001).contains(value))
            .map(|(value, exponent)| Tick::plain(value, power(exponent)))
            .collect()
    };
    let decades = with(&[1.0]);
    if decades.len() > count {
        let stride = decades.len().div_ceil(count);
        return decades.into_iter().step_by(stride).collect();
    }
    let all: Vec<f64> = (1..10).map(f64::from).collect();
    for factors in [&all[..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]] {
        let ticks = with(factors);
        if ticks.len() <= count && ticks.len() >= 2 {
            return ticks;
        }
    }
    linear(domain, count)
}

fn power(exponent: i32) -> f64 {
    // The parser rounds correctly, unlike repeated multiplication.
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn steps_are_one_two_or_five() {
        assert_eq!(nice_step(0.9), 1.0);
        assert_eq!(nice_step(1.1), 2.0);
        assert_eq!(nice_step(2.0), 2.0);
        assert_eq!(nice_step(21.0), 50.0);
        assert_eq!(nice_step(60.0), 100.0);
    }

    #[test]
    fn linear_ticks_are_round_and_inside() {
        assert_eq!(labels(&linear((0.0, 1.0), 5)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(&linear((38_500.0, 61_000.0), 5)),
            ["40,000", "45,000", "50,000", "55,000", "60,000"]
        );
        assert_eq!(labels(&linear((-1.0, 1.0), 4)), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        let third = &linear((0.0, 0.5), 5)[3];
        assert_eq!(third.value, 0.3);
    }

    #[test]
    fn the_count_is_kept_over_many_magnitudes() {
        for exponent in -140..140 {
            let to = 3.7 * 10f64.powi(exponent);
            for count in [2, 5, 9] {
                let n = linear((0.0, to), count).len();
                assert!((1..=count + 1).contains(&n), "{n} ticks up to {to}");
            }
        }
    }

    #[test]
    fn log_ticks_are_decades_when_there_are_enough() {
        assert_eq!(labels(&log((1e-3, 1e2), 6)), ["0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&log((0.02, 1.3), 6)), ["0.02", "0.05", "0.1", "0.2", "0.5", "1"]);
        assert_eq!(labels(&log((1e-30, 1e30), 4)).len(), 4);
        assert_eq!(labels(&log((0.03, 0.07), 6)), ["0.03", "0.04", "0.05", "0.06", "0.07"]);
        assert_eq!(labels(&log((0.041, 0.048), 4)), ["0.042", "0.044", "0.046", "0.048"]);
    }
}
