//! From the levels that a prediction promises to those that it keeps.

use crate::metrics::{NormalTable, normal};

/// The central levels at which intervals are calibrated; between them levels are interpolated.
pub const LEVELS: [f64; 23] = [
    0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85,
    0.9, 0.95, 0.975, 0.99, 0.995, 0.999,
];

/// The largest deviation that is told apart from larger ones; its tail is 1e-197.
pub const MOST: f64 = 30.0;

/// The largest share of a tail that the next one has, so that maps can be inverted.
const NEXT: f64 = 1.0 - 1e-6;

/// How far out in its prediction a truth lies, in deviations of a normal distribution: with
/// `p = F(y)`, the c for which the central interval `Φ(−c)…Φ(c)` just holds p. At most [`MOST`].
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
/// `R∘F`, where R maps tails piecewise linearly between the knots and each side of the median to
/// itself. It has the density `R'(F(y)) f(y)`: that of the prediction times a step function.
/// Medians stay.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelMap {
    /// Tails of the prediction, strictly falling from 1 to 0.
    raw: Vec<f64>,
    /// What they are calibrated to, strictly falling from 1 to 0.
    calibrated: Vec<f64>,
}

impl LevelMap {
    /// The map that makes the interval with its ends at so many deviations of the prediction the
    /// one of each level of `levels`, which ascend. Deviations that do not are put in order.
    pub fn of_deviations(levels: &[f64], deviations: &[f64]) -> Self {
        let mut sorted = deviations.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (mut raw, mut calibrated) = (vec![1.0], vec![1.0]);
        let mut last = 1.0;
        for (level, deviation) in levels.iter().zip(sorted) {
            last = tail(deviation).min(NEXT * last);
            raw.push(last);
            calibrated.push(1.0 - level);
        }
        raw.push(0.0);
        calibrated.push(0.0);
        Self { raw, calibrated }
    }

    /// The calibrated tail of a tail of the prediction.
    pub fn tail(&self, raw: f64) -> f64 {
        interpolate(&self.raw, &self.calibrated, raw)
    }

    /// The tail of the prediction that is calibrated to `tail`.
    pub fn raw_tail(&self, tail: f64) -> f64 {
        interpolate(&self.calibrated, &self.raw, tail)
    }

    /// The calibrated probability `R(p)`.
    pub fn probability(&self, p: f64) -> f64 {
        both_sides(p, |tail| self.tail(tail))
    }

    /// The probability of the prediction that is calibrated to p.
    pub fn raw_probability(&self, p: f64) -> f64 {
        both_sides(p, |tail| self.raw_tail(tail))
    }

    /// `R'(p)`, by which densities are multiplied.
    pub fn density(&self, p: f64) -> f64 {
        self.density_at_tail(2.0 * p.min(1.0 - p))
    }

    /// The same at a tail of the prediction.
    pub fn density_at_tail(&self, raw: f64) -> f64 {
        let left = segment(&self.raw, raw);
        let rise = |tails: &[f64]| tails[left] - tails[left + 1];
        rise(&self.calibrated) / rise(&self.raw)
    }
}

/// A map of tails as one of probabilities.
fn both_sides(p: f64, map: impl Fn(f64) -> f64) -> f64 {
    match p < 0.5 {
        true => 0.5 * map(2.0 * p),
        false => 1.0 - 0.5 * map(2.0 * (1.0 - p)),
    }
}

/// The interval of falling knots that holds x.
fn segment(knots: &[f64], x: f64) -> usize {
    let above = knots.partition_point(|knot| *knot > x);
    above.clamp(1, knots.len() - 1) - 1
}

fn interpolate(from: &[f64], to: &[f64], x: f64) -> f64 {
    let x = x.clamp(0.0, 1.0);
    let left = segment(from, x);
    let share = (from[left] - x) / (from[left] - from[left + 1]);
    to[left] + share * (to[left + 1] - to[left])
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
        for level in [0.5, 0.9, 0.99] {
            let end = 0.5 + 0.5 * level;
            close(deviation(map.raw_probability(end)), 2.0 * deviation(end), 1e-9);
            close(deviation(map.raw_probability(1.0 - end)), 2.0 * deviation(end), 1e-9);
            close(map.probability(map.raw_probability(end)), end, 1e-12);
        }
        assert_eq!(map.probability(0.5), 0.5);
        assert_eq!([map.probability(0.0), map.probability(1.0)], [0.0, 1.0]);
    }

    #[test]
    fn the_density_is_the_slope() {
        let deviations = LEVELS.map(|level| 0.7 * deviation_of_level(level) + 0.1);
        let map = LevelMap::of_deviations(&LEVELS, &deviations);
        let mut mass = 0.0;
        let steps = 200_000;
        for i in 0..steps {
            mass += map.density((f64::from(i) + 0.5) / f64::from(steps)) / f64::from(steps);
        }
        close(mass, 1.0, 1e-3);
        for p in [0.013, 0.31, 0.62, 0.9] {
            let slope = (map.probability(p + 1e-7) - map.probability(p - 1e-7)) / 2e-7;
            close(map.density(p), slope, 1e-6);
        }
    }

    /// Whatever the deviations are, the map is one to one.
    #[test]
    fn maps_are_strictly_monotone() {
        for deviations in [[0.0; 23], [50.0; 23], LEVELS.map(|level| -level)] {
            let map = LevelMap::of_deviations(&LEVELS, &deviations);
            assert!(map.raw.is_sorted_by(|a, b| a > b), "{map:?}");
            assert!(map.calibrated.is_sorted_by(|a, b| a > b), "{map:?}");
            assert!(map.density(0.3).is_finite() && map.density(1e-14).is_finite());
        }
    }
}
