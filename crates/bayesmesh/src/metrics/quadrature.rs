//! Integrals of a calibrated mixture, which has no closed forms.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::LazyLock;

use super::{NormalTable, normal};
use crate::calibrate::LevelMap;

/// Places on each side of the centre.
const SIDE: usize = 20;
/// Steps between places, in the variable u in which they are equal.
const H: f64 = 1.0 / SIDE as f64;

/// How quickly places come to stand further apart.
const GROWTH: f64 = 3.45;

/// Places at which a distribution is looked at, in deviations from its mean, `t = a sinh(b u)`, and
/// their density `dt/du`: close together where most of it is, and out to 8.5, where 1e-12 of a
/// Gaussian is left.
static PLACES: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| {
    let (a, b) = (0.54, GROWTH);
    let place = |i: usize| b * (i as f64 - SIDE as f64) * H;
    (0..=2 * SIDE).map(|i| (a * place(i).sinh(), a * b * place(i).cosh())).collect()
});

/// `∫ (G(x) − [x ≥ y])² dx` and the variance of G, for the calibrated distribution `G = R∘F` of a
/// mixture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Integrals {
    pub crps: f64,
    pub variance: f64,
}

/// Of all draws, and the CRPS also without each group of draws, to first order in the difference
/// that the group makes, which is what a standard error needs.
///
/// By the trapezoidal rule in u, which has no error to speak of for a smooth function that ends
/// flat, with the corrections of Euler and Maclaurin where it does not: at the truth and at the
/// centre. The knots of R leave errors of second order, of either sign.
///
/// `pit` is the calibrated `G(y)`.
pub(crate) fn integrals(
    (means, variances): (&[f64], &[f64]),
    groups: &[Range<usize>],
    map: &LevelMap,
    (truth, pit): (f64, f64),
) -> (Integrals, Vec<f64>) {
    let table = NormalTable::get();
    let draws = means.len() as f64;
    let centre = means.iter().sum::<f64>() / draws;
    let spread: f64 = means.iter().map(|mean| (mean - centre).powi(2)).sum();
    let std = ((spread + variances.iter().sum::<f64>()) / draws).sqrt();
    if std == 0.0 {
        let crps = (truth - centre).abs();
        return (Integrals { crps, variance: 0.0 }, vec![crps; groups.len()]);
    }
    // As far out as the calibrated distribution goes. Where that is far out of the mixture, its
    // tails are needed to more digits than the table has.
    let stretch = map.stretch().max(1.0);
    let (std, far) = (std * stretch, stretch > 1.5);
    let inverse: Vec<f64> = variances.iter().map(|variance| 1.0 / variance.sqrt()).collect();
    // How much of some draws is below x, or above it: of the smaller part all digits are right.
    let outside = |draws: Range<usize>, x: f64, sign: f64| -> f64 {
        let draws = means[draws.clone()].iter().zip(&inverse[draws]);
        let z = draws.map(|(mean, inverse)| sign * (x - mean) * inverse);
        match far {
            true => z.map(|z| if z > -5.0 { table.cdf(z) } else { normal::cdf(z) }).sum(),
            false => z.map(|z| table.cdf(z)).sum(),
        }
    };
    let mut calibrated = [0.0; 2 * SIDE + 1];
    let mut own = vec![0.0; groups.len()];
    let mut changes = vec![0.0; groups.len()];
    for (&(t, density), g) in PLACES.iter().zip(&mut calibrated) {
        let x = centre + std * t;
        let sign = if t < 0.0 { 1.0 } else { -1.0 };
        let total = match groups.is_empty() {
            true => outside(0..means.len(), x, sign),
            false => {
                let groups = own.iter_mut().zip(groups);
                groups.for_each(|(own, group)| *own = outside(group.clone(), x, sign));
                own.iter().sum()
            }
        };
        let f = (total / draws).clamp(0.0, 1.0);
        let tail = 2.0 * f.min(1.0 - f);
        let (calibrated_tail, factor) = map.tail_and_density(tail);
        let half = 0.5 * calibrated_tail;
        // Below x, whichever side was counted.
        *g = if (f < 0.5) == (sign > 0.0) { half } else { 1.0 - half };
        // `∂ (G − [x ≥ y])² = 2 (G − [x ≥ y]) R'(F) ∂F`.
        let step = f64::from(u8::from(x >= truth));
        let slope = 2.0 * H * density * sign * (*g - step) * factor;
        for ((change, own), group) in changes.iter_mut().zip(&own).zip(groups) {
            *change += slope * ((total - own) / (draws - group.len() as f64) - f);
        }
    }
    let crps = std * crps(&calibrated, (truth - centre) / std, pit);
    let variance = std * std * variance(&calibrated);
    let without = changes.iter().map(|change| crps + std * change).collect();
    (Integrals { crps, variance }, without)
}

/// `∫ (G − [t ≥ y])² dt` from G at the places.
fn crps(calibrated: &[f64], y: f64, pit: f64) -> f64 {
    let last = PLACES.len() - 1;
    // At the first and the last place G is flat, and only the density of places has a slope, b² t.
    let flat = |i: usize| 2.0 * H * GROWTH * GROWTH * PLACES[i].0;
    let below = |i: usize| calibrated[i].powi(2) * PLACES[i].1;
    let above = |i: usize| (1.0 - calibrated[i]).powi(2) * PLACES[i].1;
    // The sum from or to a place, where the integrand has a slope.
    let up_to = |end: usize| {
        let sum: f64 = (0..end).map(below).sum();
        let slope = match end {
            0 => 0.0,
            end if end == last => flat(end),
            end => below(end + 1) - below(end - 1),
        };
        H * (sum + 0.5 * below(end) - slope / 24.0)
    };
    let from = |start: usize| {
        let sum: f64 = (start + 1..=last).map(above).sum();
        let slope = match start {
            0 => flat(0),
            start if start == last => 0.0,
            start => above(start + 1) - above(start - 1),
        };
        H * (sum + 0.5 * above(start) + slope / 24.0)
    };
    let next = PLACES.partition_point(|(t, _)| *t <= y);
    match next {
        0 => PLACES[0].0 - y + from(0),
        next if next > last => y - PLACES[last].0 + up_to(last),
        next => {
            let (left, right) = (next - 1, next);
            // The square of what is linear in between.
            let part = |width: f64, a: f64, b: f64| width * (a * a + a * b + b * b) / 3.0;
            up_to(left)
                + part(y - PLACES[left].0, calibrated[left], pit)
                + part(PLACES[right].0 - y, 1.0 - pit, 1.0 - calibrated[right])
                + from(right)
        }
    }
}

/// The variance of G: `E T = −∫ (G − [t ≥ 0]) dt`, `E T² = −∫ 2 t (G − [t ≥ 0]) dt`.
fn variance(calibrated: &[f64]) -> f64 {
    let (mut mean, mut square) = (0.0, 0.0);
    for (i, (g, (t, density))) in calibrated.iter().zip(PLACES.iter()).enumerate() {
        // Half a step at the centre.
        let step = match i.cmp(&SIDE) {
            Ordering::Less => 0.0,
            Ordering::Equal => 0.5,
            Ordering::Greater => 1.0,
        };
        mean -= H * density * (g - step);
        square -= H * density * 2.0 * t * (g - step);
    }
    // There the integrand of the square has a slope on either side, which differ by 2.
    let centre = PLACES[SIDE].1;
    (square + H * H * centre * centre / 6.0 - mean * mean).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close};
    use super::super::{MixtureBatch, normal};
    use super::*;
    use crate::calibrate::{LEVELS, deviation};

    fn stretched(factor: f64) -> LevelMap {
        let deviations = LEVELS.map(|level| factor * deviation(0.5 + 0.5 * level));
        LevelMap::of_deviations(&LEVELS, &deviations)
    }

    /// As they are: the closed forms.
    #[test]
    fn without_calibration_they_are_the_closed_forms() {
        let mut lcg = Lcg(8);
        let map = stretched(1.0);
        for draws in [1, 3, 16] {
            let means: Vec<f32> = (0..draws).map(|_| lcg.normal() as f32).collect();
            let noise: Vec<f32> = (0..draws).map(|_| (0.5 + lcg.uniform()) as f32).collect();
            for truth in [-9.0, -0.3, 0.8, 2.5, 40.0] {
                let one = [truth];
                let batch = MixtureBatch::new(&means, &noise, &one, draws, 1).unwrap();
                let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
                let (m, v) = (wide(&means), wide(&noise));
                let at = (truth.into(), batch.pit()[0]);
                let (found, _) = integrals((&m, &v), &[], &map, at);
                assert_close(found.crps, batch.crps()[0], 2e-4);
                let mean = m.iter().sum::<f64>() / draws as f64;
                let spread: f64 = m.iter().map(|x| (x - mean).powi(2)).sum();
                let variance = (spread + v.iter().sum::<f64>()) / draws as f64;
                assert_close(found.variance, variance, 1e-4 * variance);
            }
        }
    }

    /// A Gaussian that is made wider is one nearly: between its knots the map is linear in
    /// probabilities and not in deviations.
    #[test]
    fn a_wider_gaussian_is_a_gaussian_nearly() {
        for factor in [0.5, 2.0, 10.0] {
            let map = stretched(factor);
            for place in [0.0, 0.75, -2.0, 4.0] {
                let truth = factor * place;
                let pit = map.probability(normal::cdf(truth));
                let (found, _) = integrals((&[0.0], &[1.0]), &[], &map, (truth, pit));
                let (variance, y) = ([(factor * factor) as f32], [truth as f32]);
                let wide = MixtureBatch::new(&[0.0], &variance, &y, 1, 1).unwrap().crps()[0];
                assert_close(found.crps, wide, 0.01 * factor);
                assert_close(found.variance.sqrt(), factor, 0.03 * factor);
            }
        }
    }
}
