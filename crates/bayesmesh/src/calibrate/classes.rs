//! Calibration of predicted classes.

use serde::{Deserialize, Serialize};

use super::LEVELS;
use super::config::Temperature;
use super::values::conformal_quantile;
use crate::data::Truth;
use crate::error::{Error, Result};
use crate::metrics::{log_probability, sums_over_examples};
use crate::predict::Predictive;

/// How predicted classes are calibrated.
///
/// In single precision, so that it comes back from the text of a checkpoint as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassCalibration {
    /// What logits are divided by: `p ∝ p^(1/T)` of each draw.
    pub(super) temperature: f32,
    pub(super) sets: Temperature,
    /// The largest score in a set at the first of [`LEVELS`].
    pub(super) thresholds: Vec<f32>,
}

impl ClassCalibration {
    /// Refuses what a damaged text says.
    pub(super) fn check(&self) -> Result<()> {
        let possible = self.temperature.is_finite() && self.temperature > 0.0;
        match possible && self.thresholds.iter().all(|score| score.is_finite()) {
            true => Ok(()),
            false => Err(Error::Mismatch(format!(
                "the calibration in the checkpoint has a temperature of {} or thresholds that are \
                 not finite",
                self.temperature
            ))),
        }
    }

    /// What logits are divided by.
    pub fn temperature(&self) -> f64 {
        self.temperature.into()
    }

    /// The calibrated prediction.
    pub(super) fn apply(&self, prediction: Predictive) -> Predictive {
        prediction.tempered(self.temperature())
    }

    /// The largest score in a set of some level: that of the next level that was learned; nothing
    /// where examples were too few for any, and a set has to have all classes.
    pub fn threshold(&self, level: f64) -> Option<f64> {
        let place = LEVELS.iter().position(|known| *known >= level - 1e-9)?;
        self.thresholds.get(place).map(|&threshold| threshold.into())
    }

    /// The scores of the classes of an example, by which sets are made: the probability of all that
    /// are more probable, and a random part of its own, so that sets hold the right class exactly
    /// as often as they say and not more often.
    ///
    /// The random part is made from the number of the example: it has the same set wherever it is
    /// predicted.
    pub fn scores(&self, probabilities: &[f32], example: u64) -> Vec<f64> {
        let mut ranked: Vec<usize> = (0..probabilities.len()).collect();
        ranked.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
        let u = uniform(example);
        let (mut above, mut scores) = (0.0, vec![0.0; probabilities.len()]);
        for (place, &class) in ranked.iter().enumerate() {
            let own = f64::from(probabilities[class]);
            let late = (place + 1).saturating_sub(self.sets.penalty_from) as f64;
            scores[class] = above + u * own + f64::from(self.sets.penalty) * late;
            above += own;
        }
        scores
    }

    /// Whether each class is in the set of an example, by its number, at a level.
    pub fn set(&self, probabilities: &[f32], example: u64, level: f64) -> Vec<bool> {
        let threshold = self.threshold(level).unwrap_or(f64::INFINITY);
        self.scores(probabilities, example).into_iter().map(|score| score <= threshold).collect()
    }

    /// Learns sets from the scores of the right classes of validation data.
    pub(super) fn learn(&mut self, mut scores: Vec<f64>) {
        scores.sort_by(f64::total_cmp);
        let learned = LEVELS.iter().map_while(|level| conformal_quantile(&scores, *level));
        // Not below what was found, by rounding.
        self.thresholds = learned.map(|score| (score as f32).next_up()).collect();
    }
}

/// A number in (0, 1) for each example.
pub(crate) fn uniform(example: u64) -> f64 {
    // SplitMix64.
    let x = example.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (((x ^ (x >> 31)) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

/// The log-likelihood of labels at many temperatures at once, which adds over examples: so that one
/// pass over the data, on any ranks, finds the best.
#[derive(Clone, Debug)]
pub(super) struct TemperatureSearch {
    /// Examples, then the sum of −ln p for each temperature.
    statistics: Vec<f64>,
}

impl TemperatureSearch {
    /// Temperatures from e^−2.4 to e^2.4.
    const STEPS: usize = 49;

    fn logarithm(step: usize) -> f64 {
        0.1 * (step as f64 - 24.0)
    }

    pub fn new() -> Self {
        Self { statistics: vec![0.0; 1 + Self::STEPS] }
    }

    pub fn add(&mut self, prediction: &Predictive, truth: &Truth) -> Result<()> {
        let Truth::Labels(labels) = truth else {
            return Err(Error::Setting("a temperature is for classes, not for values".to_owned()));
        };
        // Refuses labels that are none.
        prediction.log_probability(labels)?;
        self.statistics[0] += labels.len() as f64;
        for step in 0..Self::STEPS {
            let tempered = prediction.clone().tempered(Self::logarithm(step).exp());
            let mean = tempered.mean();
            let rows = mean.chunks_exact(prediction.outputs()).zip(labels);
            let nll: f64 = rows.map(|(row, &label)| -log_probability(row[label])).sum();
            self.statistics[1 + step] += nll;
        }
        Ok(())
    }

    /// The temperature of the largest likelihood: the vertex of the parabola through the best of
    /// those that were tried and its neighbours.
    pub fn best(&self) -> f64 {
        let sums = &self.statistics[1..];
        let best = (0..Self::STEPS).min_by(|&a, &b| sums[a].total_cmp(&sums[b])).expect("some");
        if best == 0 || best == Self::STEPS - 1 {
            return Self::logarithm(best).exp();
        }
        let [left, middle, right] = [sums[best - 1], sums[best], sums[best + 1]];
        let curvature = left - 2.0 * middle + right;
        let shift = if curvature > 0.0 { 0.5 * (left - right) / curvature } else { 0.0 };
        (Self::logarithm(best) + 0.1 * shift.clamp(-1.0, 1.0)).exp()
    }
}

sums_over_examples!(TemperatureSearch);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::testing::Lcg;

    fn with(sets: Temperature, scores: Vec<f64>) -> ClassCalibration {
        let mut calibration = ClassCalibration { temperature: 1.0, sets, thresholds: Vec::new() };
        calibration.learn(scores);
        calibration
    }

    #[test]
    fn scores_are_what_is_more_probable_and_a_part_of_the_own() {
        let p = [0.2, 0.5, 0.3];
        let u = uniform(4);
        assert!(u > 0.0 && u < 1.0);
        let aps = with(Temperature::default(), Vec::new());
        let expected = [0.8 + 0.2 * u, 0.5 * u, 0.5 + 0.3 * u];
        let close = |a: Vec<f64>, b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7);
        assert!(close(aps.scores(&p, 4), &expected));
        let raps = with(Temperature { penalty: 0.1, penalty_from: 1 }, Vec::new());
        assert!(close(raps.scores(&p, 4), &[expected[0] + 0.2, expected[1], expected[2] + 0.1]));
        // Nothing is known: every class may be the right one.
        assert_eq!(aps.set(&p, 4, 0.9), [true; 3]);
    }

    /// Probabilities that are twice as sure as they should be: the temperature is 2 again.
    #[test]
    fn the_temperature_is_found() {
        let (probabilities, labels) = Lcg(7).classification(20_000, 5);
        let right = Predictive::of_probabilities(1, 20_000, probabilities).unwrap();
        let sharp = right.tempered(0.5);
        let mut search = TemperatureSearch::new();
        search.add(&sharp, &Truth::Labels(labels)).unwrap();
        let found = search.best();
        assert!((found - 2.0).abs() < 0.06, "{found}");
    }

    /// Exchangeable data, many repetitions: sets hold the right class as often as they say, however
    /// few examples they were learned from, and whether or not the probabilities are right.
    #[test]
    fn sets_hold_the_right_class_as_often_as_they_say() {
        let mut lcg = Lcg(21);
        let (repetitions, level) = (1000, 0.9);
        for (n, sets) in
            [(20, Temperature::default()), (100, Temperature { penalty: 0.05, penalty_from: 2 })]
        {
            let mut inside = 0;
            for _ in 0..repetitions {
                let (probabilities, labels) = lcg.classification(n + 1, 6);
                let wrong: Vec<f32> = Predictive::of_probabilities(1, n + 1, probabilities)
                    .unwrap()
                    .tempered(3.0)
                    .mean();
                let rows: Vec<&[f32]> = wrong.chunks_exact(6).collect();
                let empty = with(sets, Vec::new());
                let scores = (0..n).map(|i| empty.scores(rows[i], i as u64)[labels[i]]).collect();
                let learned = with(sets, scores);
                inside += usize::from(learned.set(rows[n], n as u64, level)[labels[n]]);
            }
            let share = f64::from(inside as u32) / f64::from(repetitions);
            // Between the level and the level + 1/(n+1), within three binomial errors.
            let error = 3.0 * (level * (1.0 - level) / f64::from(repetitions)).sqrt();
            let most = level + 1.0 / (n as f64 + 1.0) + error;
            assert!((level - error..most).contains(&share), "{n}: {share}");
        }
    }
}
