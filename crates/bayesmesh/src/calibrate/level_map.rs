//! From the levels that a prediction promises to those that it keeps.

use crate::metrics::{NormalTable, normal};

/// The central levels at which intervals are calibrated; between them levels are interpolated.
pub const LEVELS: [f64; 23] = [
    0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85,
    0.9, 0.95, 0.975, 0.99, 0.995, 0.999,
];

/// The largest deviation that is told apart from larger ones; its tail is 1e-197.
pub const MOST: f64 = 30.0;

/// How far apart logarithms of tails are at least, so that maps can be inverted.
const APART: f64 = 1e-6;

/// How far out in its prediction a truth lies, in deviations of a normal distribution: with
/// `p = F(y)`, the c for which the central interval `Φ(−c)…Φ(c)` just holds p. At most 30.
///
/// It is 0 at the median, 1.64 at the ends of the 90 % interval, and for a Gaussian prediction it
/// is `|y − μ|/σ`.
pub fn deviation(p: f64) -> f64 {
    deviation_of_tail(2.0 * p.min(1.0 - p))
}

/// The deviation of the ends of a central interval that leaves so much outside: 1.64 for 0.1.
pub(crate) fn deviation_of_tail(tail: f64) -> f64 {
    if tail <= 2.0 * normal::cdf(-MOST) { MOST } else { -normal::quantile(0.5 * tail.min(1.0)) }
}

/// The deviation of the ends of a central interval: 1.64 for 0.9.
pub(super) fn deviation_of_level(level: f64) -> f64 {
    deviation_of_tail(1.0 - level)
}

/// What remains outside of a central interval whose ends are at so many deviations.
pub(super) fn tail(deviation: f64) -> f64 {
    // The table is quick, and too coarse far out.
    2.0 * match deviation < 5.0 {
        true => NormalTable::get().cdf(-deviation.max(0.0)),
        false => normal::cdf(-deviation.min(MOST)),
    }
}

/// A monotone map of central levels, from those of a prediction to calibrated ones: where the
/// interval that a network calls 94 % holds 90 % of the truth, it is 90 % from now on.
///
/// With the tail `τ = 2 min(p, 1 − p)` of a probability `p = F(y)`, the calibrated distribution is
/// `R∘F`, where R maps each side of the median to itself and tails from knot to knot as powers,
/// `τ' ∝ τ^a`: for tails of normal distributions of which one is wider by s, a is about 1/s². So is
/// it beyond the last knot. The calibrated distribution has the density `R'(F(y)) f(y)`. Medians
/// stay.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelMap {
    /// Logarithms of tails of the prediction, strictly falling from 0.
    raw: Vec<f64>,
    /// Those of what they are calibrated to, strictly falling from 0.
    calibrated: Vec<f64>,
    /// The power beyond the last knot.
    last: f64,
}

impl LevelMap {
    /// The map that makes the interval with its ends at so many deviations of the prediction the
    /// one of each level of `levels`, which ascend. Deviations that do not are put in order.
    pub fn of_deviations(levels: &[f64], deviations: &[f64]) -> Self {
        let mut sorted = deviations.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (mut raw, mut calibrated) = (vec![0.0], vec![0.0]);
        let (mut end, mut last) = (0.0, 1.0);
        for (level, deviation) in levels.iter().zip(sorted) {
            end = tail(deviation).ln().min(end - APART);
            raw.push(end);
            calibrated.push((1.0 - level).ln());
            last = (deviation_of_level(*level) / deviation.clamp(1e-3, MOST)).powi(2);
        }
        Self { raw, calibrated, last }
    }

    /// The calibrated tail of a tail of the prediction.
    pub fn tail(&self, raw: f64) -> f64 {
        interpolate(&self.raw, &self.calibrated, raw.ln(), self.last).exp()
    }

    /// The tail of the prediction that is calibrated to `tail`.
    pub fn raw_tail(&self, tail: f64) -> f64 {
        interpolate(&self.calibrated, &self.raw, tail.ln(), 1.0 / self.last).exp()
    }

    /// The calibrated probability `R(p)`.
    pub fn probability(&self, p: f64) -> f64 {
        let half = 0.5 * self.tail(2.0 * p.min(1.0 - p));
        if p < 0.5 { half } else { 1.0 - half }
    }

    /// `R'` at a tail of the prediction, by which densities are multiplied.
    pub fn density(&self, raw: f64) -> f64 {
        self.tail_and_density(raw).1
    }

    /// Both at once.
    pub fn tail_and_density(&self, raw: f64) -> (f64, f64) {
        let x = raw.max(f64::MIN_POSITIVE).ln();
        let power = power(&self.raw, &self.calibrated, x, self.last);
        let y = interpolate(&self.raw, &self.calibrated, x, self.last);
        (y.exp(), power * (y - x).exp())
    }

    /// How much wider intervals become, where most of the distribution has been.
    pub(crate) fn stretch(&self) -> f64 {
        deviation_of_tail(self.raw_tail(0.02)) / deviation_of_tail(0.02)
    }
}

/// The interval of falling knots that holds x; nothing beyond the last of them.
fn segment(knots: &[f64], x: f64) -> Option<usize> {
    let above = knots.partition_point(|knot| *knot > x);
    (above < knots.len()).then(|| above.max(1) - 1)
}

fn power(from: &[f64], to: &[f64], x: f64, last: f64) -> f64 {
    match segment(from, x) {
        Some(left) if left + 1 < from.len() => {
            (to[left] - to[left + 1]) / (from[left] - from[left + 1])
        }
        _ => last,
    }
}

fn interpolate(from: &[f64], to: &[f64], x: f64, last: f64) -> f64 {
    let x = x.min(0.0);
    let start = segment(from, x).unwrap_or(from.len() - 1);
    to[start] + power(from, to, x, last) * (x - from[start])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn deviations_are_those_of_a_normal_distribution() {
        assert_eq!(deviation(0.5), 0.0);
        close(deviation(0.95), 1.6448536269514722, 1e-12);
        close(deviation(0.05), 1.6448536269514722, 1e-12);
        close(deviation_of_level(0.5), 0.6744897501960817, 1e-12);
        assert_eq!([deviation(0.0), deviation(1.0)], [MOST; 2]);
    }

    #[test]
    fn intervals_become_those_of_their_levels() {
        // Intervals have to be twice as wide.
        let deviations = LEVELS.map(|level| 2.0 * deviation_of_level(level));
        let map = LevelMap::of_deviations(&LEVELS, &deviations);
        for tail in [0.5, 0.1, 0.01, 1e-6, 1e-12] {
            let raw = map.raw_tail(tail);
            close(deviation_of_tail(raw) / deviation_of_tail(tail), 2.0, 0.06);
            close(map.tail(raw) / tail, 1.0, 1e-9);
        }
        let ends = [map.probability(0.5), map.probability(0.0), map.probability(1.0)];
        assert_eq!(ends, [0.5, 0.0, 1.0]);
        close(map.stretch(), 2.0, 0.05);
    }

    #[test]
    fn the_density_is_the_slope() {
        let deviations = LEVELS.map(|level| 0.7 * deviation_of_level(level) + 0.1);
        let map = LevelMap::of_deviations(&LEVELS, &deviations);
        let mut mass = 0.0;
        let steps = 200_000;
        for i in 0..steps {
            let p = (f64::from(i) + 0.5) / f64::from(steps);
            mass += map.density(2.0 * p.min(1.0 - p)) / f64::from(steps);
        }
        close(mass, 1.0, 1e-3);
        for raw in [0.026, 0.62, 0.76, 0.2, 1e-4, 1e-9] {
            let step = 1e-6 * raw;
            let slope = (map.tail(raw + step) - map.tail(raw - step)) / (2.0 * step);
            close(map.density(raw) / slope, 1.0, 1e-4);
        }
    }

    /// Whatever the deviations are, the map is one to one.
    #[test]
    fn maps_are_strictly_monotone() {
        for deviations in [[0.0; 23], [50.0; 23], LEVELS.map(|level| -level)] {
            let map = LevelMap::of_deviations(&LEVELS, &deviations);
            assert!(map.raw.is_sorted_by(|a, b| a > b), "{map:?}");
            assert!(map.calibrated.is_sorted_by(|a, b| a > b), "{map:?}");
            assert!(map.density(0.6).is_finite() && map.density(1e-14).is_finite());
            assert!(map.tail(0.3).is_finite() && map.raw_tail(0.3) > 0.0);
        }
        // Nothing known: as it is.
        let map = LevelMap::of_deviations(&LEVELS, &[]);
        close(map.tail(0.3), 0.3, 1e-12);
    }
}
