//! Mixtures of count distributions: Poisson and negative binomial.
//!
//! Draw s predicts a count with mean `m_s` and variance `v_s ≥ m_s`: Poisson where both are equal,
//! else negative binomial with size `r = m²/(v − m)`,
//! `P(k) = Γ(k + r)/(Γ(r) k!) · (r/(r+m))^r · (m/(r+m))^k`. All together predict the mixture
//! `F = 1/S Σ_s F_s`, which is a staircase on whole numbers. Its scores are sums over the stairs.

use std::ops::Range;

use crate::calibrate::LevelMap;
use crate::loss::ln_gamma;

/// Counts up to here are looked at one by one; beyond, several may share a stair.
const EXACT: f64 = 512.0;
/// How far from its mean a component is followed, in deviations.
const REACH: f64 = 12.0;
/// What is left of the mixture where the stairs end.
const REST: f64 = 1e-11;

/// One component.
#[derive(Clone, Copy, Debug)]
struct Count {
    mean: f64,
    std: f64,
    /// r; infinite for Poisson.
    size: f64,
}

impl Count {
    fn new(mean: f64, variance: f64) -> Self {
        let mean = mean.max(1e-30);
        // What single precision leaves of the difference is no dispersion.
        let excess = variance - mean;
        let size = if excess > 1e-5 * mean { mean * mean / excess } else { f64::INFINITY };
        Self { mean, std: variance.max(mean).sqrt(), size }
    }

    fn ln_probability(&self, k: f64) -> f64 {
        let Self { mean, size, .. } = *self;
        if k < 0.0 {
            return f64::NEG_INFINITY;
        }
        if size.is_infinite() {
            return k * mean.ln() - mean - ln_gamma(k + 1.0);
        }
        // Of large sizes the two gammas are nearly the same: their ratio by its logarithm.
        let ratio = match size > 1e7 {
            true => k * size.ln() + k * (k - 1.0) / (2.0 * size),
            false => ln_gamma(k + size) - ln_gamma(size),
        };
        ratio - ln_gamma(k + 1.0) - size * (mean / size).ln_1p() + k * (mean / (size + mean)).ln()
    }

    /// `P(k + 1)/P(k)`.
    fn ratio(&self, k: f64) -> f64 {
        match self.size.is_infinite() {
            true => self.mean / (k + 1.0),
            false => (k + self.size) / (k + 1.0) * self.mean / (self.size + self.mean),
        }
    }
}

/// The staircase of a mixture, and of each group of its draws.
pub(crate) struct Stairs {
    /// The last count of each stair, ascending; a stair begins after the one before.
    ends: Vec<f64>,
    /// Before the first stair.
    start: f64,
    /// Of each group the sum over its draws of their distribution functions at the ends.
    groups: Vec<Vec<f64>>,
    /// Draws of each group.
    sizes: Vec<f64>,
    /// Of each group the sum over its draws of `E|X − X'|`, X and X' of the same draw.
    same: Vec<f64>,
}

impl Stairs {
    /// Of draws with these means and variances, in consecutive groups that hold all of them, and
    /// with stairs that end at a place and one before.
    pub fn new(means: &[f64], variances: &[f64], groups: &[Range<usize>], place: f64) -> Self {
        let draws: Vec<Count> =
            means.iter().zip(variances).map(|(&m, &v)| Count::new(m, v)).collect();
        let least = draws.iter().map(|draw| draw.mean - REACH * draw.std);
        let start = least.fold(f64::INFINITY, f64::min).floor().max(0.0).min(place.max(0.0)) - 1.0;
        let narrow = draws.iter().map(|draw| draw.std).fold(f64::INFINITY, f64::min);
        let top = draws.iter().map(|draw| draw.mean + 4.0 * draw.std).fold(0.0, f64::max);
        let mut ends: Vec<f64> = Vec::new();
        let mut last = start;
        let mut at: Vec<Follower> = draws.iter().map(|draw| Follower::new(*draw)).collect();
        let mut rows: Vec<Vec<f64>> = vec![Vec::new(); groups.len()];
        let mut same = vec![0.0; groups.len()];
        loop {
            let width = match last < EXACT {
                true => 1.0,
                false => (narrow / 32.0).min(last / 64.0).floor().max(1.0),
            };
            let mut end = last + width;
            // The truth has a stair of its own.
            if last < place - 1.0 && end > place - 1.0 {
                end = place - 1.0;
            } else if last < place && end > place {
                end = place;
            }
            let mut total = 0.0;
            for ((group, row), same) in groups.iter().zip(&mut rows).zip(&mut same) {
                let mut sum = 0.0;
                for draw in &mut at[group.clone()] {
                    draw.step(last, end);
                    sum += draw.below;
                    *same += 2.0 * (end - last) * draw.below * (1.0 - draw.below).max(0.0);
                }
                row.push(sum);
                total += sum;
            }
            ends.push(end);
            last = end;
            let left = 1.0 - total / draws.len() as f64;
            let far = last > top && last >= place;
            if far && (left < REST || ends.len() > 200_000) {
                break;
            }
            // Rounding may keep a little for ever.
            if far && at.iter().all(Follower::is_done) {
                break;
            }
        }
        let sizes = groups.iter().map(|group| group.len() as f64).collect();
        Self { ends, start, groups: rows, sizes, same }
    }

    /// The distribution function at the ends, of all draws but those of one group.
    fn function(&self, without: Option<usize>) -> Vec<f64> {
        let kept = |index: &usize| Some(*index) != without;
        let count: f64 = (0..self.sizes.len()).filter(kept).map(|g| self.sizes[g]).sum();
        let mut function = vec![0.0; self.ends.len()];
        for group in (0..self.sizes.len()).filter(kept) {
            function.iter_mut().zip(&self.groups[group]).for_each(|(f, own)| *f += own);
        }
        function.iter_mut().for_each(|f| *f = (*f / count).clamp(0.0, 1.0));
        function
    }

    /// `F` just below a place and at it.
    fn around(&self, function: &[f64], place: f64) -> [f64; 2] {
        let at = |place: f64| {
            let stairs = self.ends.partition_point(|end| *end <= place);
            stairs.checked_sub(1).map_or(0.0, |stair| function[stair])
        };
        [at(place - 1.0), at(place)]
    }

    /// What the mixture, calibrated if there is a map, says of a true count; without one group of
    /// draws if asked.
    pub fn say(&self, truth: f64, map: Option<&LevelMap>, without: Option<usize>) -> CountSays {
        let mut function = self.function(without);
        let raw = self.around(&function, truth.floor());
        if let Some(map) = map {
            function.iter_mut().for_each(|f| *f = calibrated(map, *f));
        }
        let [below, at] = self.around(&function, truth.floor());
        let (mut crps, mut distance, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
        let mut last = self.start;
        for (&end, &f) in self.ends.iter().zip(&function) {
            // F of the whole numbers last + 1 … end, each a step of width one.
            let width = end - last;
            let over = f64::from(u8::from(end >= truth));
            crps += width * (f - over).powi(2);
            distance += width * (f - over).abs();
            first += width * (1.0 - f);
            // Σ (2k + 1) over the stair is (end + 1)² − (last + 1)².
            second += width * (last + end + 2.0) * (1.0 - f);
            last = end;
        }
        // Below the first stair F is nothing: E X = Σ_k (1 − F(k)), E X² = Σ_k (2k + 1)(1 − F(k)).
        let before = self.start + 1.0;
        let mean = before + first;
        let square = before * before + second;
        let groups = (0..self.sizes.len()).filter(|group| Some(*group) != without);
        let same: f64 = groups.map(|group| self.same[group]).sum();
        CountSays {
            crps,
            distance,
            same,
            below,
            at,
            raw_below: raw[0],
            raw_at: raw[1],
            variance: (square - mean * mean).max(0.0),
        }
    }

    /// The least count with so much of the mixture at or below it: twice the smaller part is
    /// `tail`, `above` the median or below.
    pub fn quantile(&self, tail: f64, above: bool) -> f64 {
        let function = self.function(None);
        let level = if above { 1.0 - 0.5 * tail } else { 0.5 * tail };
        let stair = function.partition_point(|f| *f < level - 1e-12);
        let stair = stair.min(self.ends.len() - 1);
        let begin = stair.checked_sub(1).map_or(self.start, |before| self.ends[before]);
        let low = stair.checked_sub(1).map_or(0.0, |before| function[before]);
        let share = (level - low) / (function[stair] - low).max(f64::MIN_POSITIVE);
        let width = self.ends[stair] - begin;
        begin + (width * share.clamp(0.0, 1.0)).ceil().max(1.0)
    }
}

/// A level after calibration.
fn calibrated(map: &LevelMap, level: f64) -> f64 {
    let tail = map.tail(2.0 * level.min(1.0 - level));
    if level < 0.5 { 0.5 * tail } else { 1.0 - 0.5 * tail }
}

/// What a mixture of counts says of a true count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountSays {
    /// `Σ_k (F(k) − [k ≥ y])²`
    pub crps: f64,
    /// `E|X − y|`
    pub distance: f64,
    /// The sum over draws of `E|X − X'|`, before calibration.
    pub same: f64,
    /// `F(y − 1)`
    pub below: f64,
    /// `F(y)`
    pub at: f64,
    /// The same before calibration.
    pub raw_below: f64,
    pub raw_at: f64,
    /// Of the calibrated mixture.
    pub variance: f64,
}

impl CountSays {
    /// Half of what is at the truth counts as below it.
    pub fn pit(&self) -> f64 {
        0.5 * (self.below + self.at)
    }

    /// Of the levels at which the truth is a quantile the one next to the median: the truth is in
    /// the central intervals that reach it.
    pub fn nearest(&self) -> f64 {
        0.5f64.clamp(self.below.min(self.at), self.at)
    }

    /// The same before calibration.
    pub fn raw_nearest(&self) -> f64 {
        0.5f64.clamp(self.raw_below.min(self.raw_at), self.raw_at)
    }
}

/// `ln P(k)` of a component with this mean and variance.
pub(crate) fn ln_probability(mean: f64, variance: f64, count: f64) -> f64 {
    match count.fract() == 0.0 {
        true => Count::new(mean, variance).ln_probability(count),
        false => f64::NEG_INFINITY,
    }
}

/// A component that is followed from stair to stair.
struct Follower {
    draw: Count,
    /// Where its probability is known, and that.
    known: Option<(f64, f64)>,
    /// Its distribution function so far.
    below: f64,
}

impl Follower {
    fn new(draw: Count) -> Self {
        Self { draw, known: None, below: 0.0 }
    }

    fn is_done(&self) -> bool {
        self.below > 0.5 && self.known.is_some_and(|(_, probability)| probability < 1e-14)
    }

    /// Adds the counts `last + 1 ..= end`.
    fn step(&mut self, last: f64, end: f64) {
        let first = last + 1.0;
        if end < self.draw.mean - REACH * self.draw.std {
            return;
        }
        if end == first {
            let probability = match self.known {
                Some((count, known)) if count == last && known > 1e-290 => {
                    known * self.draw.ratio(last)
                }
                _ => self.draw.ln_probability(first).exp(),
            };
            self.known = Some((first, probability));
            self.below += probability;
        } else {
            // By Simpson's rule for the sum: the ends of the stair and its middle.
            let p = |count: f64| self.draw.ln_probability(count).exp();
            let width = end - last;
            let (left, right) = (p(first), p(end));
            let middle = p(0.5 * (first + end));
            self.below +=
                (width - 1.0) / 6.0 * (left + 4.0 * middle + right) + 0.5 * (left + right);
            self.known = Some((end, right));
        }
        self.below = self.below.min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stairs(means: &[f64], variances: &[f64], place: f64) -> Stairs {
        Stairs::new(means, variances, std::slice::from_ref(&(0..means.len())), place)
    }

    /// scipy 1.14: `poisson(3.5)`, `nbinom(2, 2/(2+3.5))`.
    #[test]
    fn probabilities_are_scipys() {
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        close(ln_probability(3.5, 3.5, 0.0).exp(), 0.030197383422318504);
        close(ln_probability(3.5, 3.5, 4.0).exp(), 0.188812285408975);
        // v = m + m²/r with r = 2.
        let variance = 3.5 + 3.5f64.powi(2) / 2.0;
        close(ln_probability(3.5, variance, 0.0).exp(), (2.0f64 / 5.5).powi(2));
        let four = 5.0 * (2.0f64 / 5.5).powi(2) * (3.5f64 / 5.5).powi(4);
        close(ln_probability(3.5, variance, 4.0).exp(), four);
        assert_eq!(ln_probability(3.5, 3.5, 1.5), f64::NEG_INFINITY);
        // A negative binomial of hardly any dispersion is a Poisson.
        let near = ln_probability(40.0, 40.001, 50.0);
        assert!((near - ln_probability(40.0, 40.0, 50.0)).abs() < 1e-4, "{near}");
    }

    /// The sums over stairs against sums over single counts.
    #[test]
    fn a_staircase_is_the_distribution() {
        let cases: [(Vec<f64>, Vec<f64>); 4] = [
            (vec![0.3], vec![0.3]),
            (vec![2.0, 9.0], vec![2.0, 30.0]),
            (vec![800.0, 900.0], vec![800.0, 20_000.0]),
            (vec![40.0], vec![3000.0]),
        ];
        for (means, variances) in cases {
            let n = means.len() as f64;
            for truth in [0.0, 1.0, 5.0, 860.0] {
                let found = stairs(&means, &variances, truth).say(truth, None, None);
                let (mut f, mut crps, mut mean, mut square) = (0.0, 0.0, 0.0, 0.0);
                let (mut below, mut at) = (0.0, 0.0);
                for k in 0..20_000 {
                    let k = f64::from(k);
                    let pairs = means.iter().zip(&variances);
                    let p: f64 =
                        pairs.map(|(m, v)| ln_probability(*m, *v, k).exp()).sum::<f64>() / n;
                    if k == truth {
                        (below, at) = (f, f + p);
                    }
                    f += p;
                    crps += (f - f64::from(u8::from(k >= truth))).powi(2);
                    mean += k * p;
                    square += k * k * p;
                }
                let close = |name: &str, a: f64, b: f64| {
                    let error = (a - b).abs() / b.abs().max(1e-3);
                    assert!(error < 2e-3, "{name} of {means:?} at {truth}: {a} {b}");
                };
                close("crps", found.crps, crps);
                close("variance", found.variance, square - mean * mean);
                assert!((found.below - below).abs() < 1e-6, "{} {below}", found.below);
                assert!((found.at - at).abs() < 1e-6, "{} {at}", found.at);
            }
        }
    }

    #[test]
    fn quantiles_are_the_least_counts() {
        let poisson = stairs(&[3.5], &[3.5], 0.0);
        // scipy: poisson(3.5).ppf([0.05, 0.5, 0.95])
        let found = [(0.1, false), (1.0, false), (0.1, true)].map(|(t, a)| poisson.quantile(t, a));
        assert_eq!(found, [1.0, 3.0, 7.0]);
        let zero = stairs(&[0.01], &[0.01], 0.0);
        assert_eq!(zero.quantile(0.1, true), 0.0);
        // Large counts, by interpolation: a Poisson is nearly normal.
        let large = stairs(&[1e6], &[1e6], 0.0);
        let end = large.quantile(0.1, true);
        assert!((end - (1e6 + 1.645 * 1e3)).abs() < 20.0, "{end}");
    }

    /// The mixture without a group is that of the others.
    #[test]
    fn groups_can_be_left_out() {
        let (means, variances) = ([2.0, 4.0, 7.0], [2.0, 9.0, 7.0]);
        let all = Stairs::new(&means, &variances, &[0..1, 1..3], 3.0);
        let rest = stairs(&means[1..], &variances[1..], 3.0);
        let (found, expected) = (all.say(3.0, None, Some(0)), rest.say(3.0, None, None));
        assert!((found.crps - expected.crps).abs() < 1e-9);
        assert!((found.pit() - expected.pit()).abs() < 1e-9);
        assert!((found.same - expected.same).abs() < 1e-8);
    }
}
