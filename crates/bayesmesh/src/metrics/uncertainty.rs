//! Uncertainty of class predictions, split by its source.
//!
//! For draws s of probabilities `p_s` with mean `p̄`, in nats:
//!
//! - predictive entropy `H(p̄)`: all uncertainty;
//! - expected entropy `mean_s H(p_s)`: what remains if the weights were known (aleatoric);
//! - mutual information, their difference: how much the draws disagree (epistemic).

use super::MetricError;
use super::batch::{check_count, check_probabilities};

/// `−Σ_c p_c ln p_c` in nats, with `0 ln 0 = 0`.
pub fn entropy(probabilities: &[f32]) -> f64 {
    let positive = probabilities.iter().filter(|p| **p > 0.0).map(|p| f64::from(*p));
    // Zero minus, because the sum of nothing is −0.
    0.0 - positive.map(|p| p * p.ln()).sum::<f64>()
}

/// The uncertainty of each example, in nats.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassUncertainty {
    /// Entropy of the mean probabilities, `[rows]`.
    pub predictive_entropy: Vec<f64>,
    /// Mean entropy of the draws, `[rows]`.
    pub expected_entropy: Vec<f64>,
    /// Their difference, `[rows]`; 0 where rounding makes it negative.
    pub mutual_information: Vec<f64>,
}

impl ClassUncertainty {
    /// From what adds over draws, and so over ranks.
    ///
    /// # Shapes
    ///
    /// - `mean_probabilities`: `[rows, classes]`, row-major, the mean over all draws
    /// - `expected_entropy`: `[rows]`, the mean over all draws of [`entropy`]
    pub fn new(
        mean_probabilities: &[f32],
        expected_entropy: Vec<f64>,
        classes: usize,
    ) -> Result<Self, MetricError> {
        let rows = expected_entropy.len();
        check_count("mean probabilities", mean_probabilities.len(), rows * classes)?;
        check_probabilities(mean_probabilities)?;
        let predictive_entropy: Vec<f64> =
            mean_probabilities.chunks_exact(classes.max(1)).map(entropy).collect();
        let pairs = predictive_entropy.iter().zip(&expected_entropy);
        let mutual_information = pairs.map(|(all, own)| (all - own).max(0.0)).collect();
        Ok(Self { predictive_entropy, expected_entropy, mutual_information })
    }

    /// From `probabilities` `[draws, rows, classes]`, row-major.
    pub fn from_draws(
        probabilities: &[f32],
        draws: usize,
        classes: usize,
    ) -> Result<Self, MetricError> {
        let rows = probabilities.len().checked_div(draws * classes).unwrap_or(0);
        check_count("probabilities", probabilities.len(), draws * rows * classes)?;
        check_probabilities(probabilities)?;
        let mut sums = vec![0.0f64; rows * classes];
        let mut expected_entropy = vec![0.0; rows];
        for draw in probabilities.chunks_exact((rows * classes).max(1)) {
            for (sum, &p) in sums.iter_mut().zip(draw) {
                *sum += f64::from(p) / draws as f64;
            }
            for (sum, row) in expected_entropy.iter_mut().zip(draw.chunks_exact(classes)) {
                *sum += entropy(row) / draws as f64;
            }
        }
        let mean: Vec<f32> = sums.iter().map(|sum| *sum as f32).collect();
        Self::new(&mean, expected_entropy, classes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;

    #[test]
    fn hand_computed_entropies() {
        assert_close(entropy(&[0.5, 0.25, 0.25]), 1.5 * 2f64.ln(), 1e-15);
        assert!(entropy(&[1.0, 0.0]).is_sign_positive() && entropy(&[1.0, 0.0]) == 0.0);
        assert_close(entropy(&[0.25; 4]), 4f64.ln(), 1e-15);
    }

    #[test]
    fn disagreement_is_information() {
        // First example: two certain draws that disagree. Second: two uncertain ones that agree.
        let draws = [1.0, 0.0, 0.5, 0.5, 0.0, 1.0, 0.5, 0.5];
        let split = ClassUncertainty::from_draws(&draws, 2, 2).unwrap();
        let bit = 2f64.ln();
        for (actual, expected) in [
            (&split.predictive_entropy, [bit, bit]),
            (&split.expected_entropy, [0.0, bit]),
            (&split.mutual_information, [bit, 0.0]),
        ] {
            assert_close(actual[0], expected[0], 1e-15);
            assert_close(actual[1], expected[1], 1e-15);
        }
    }

    #[test]
    fn information_is_never_negative() {
        // Agreeing draws whose mean rounds: the difference is rounding of either sign.
        let row = [0.1, 0.2, 0.7, 0.3, 0.3, 0.4];
        let split = ClassUncertainty::from_draws(&row.repeat(7), 7, 3).unwrap();
        assert!(split.mutual_information.iter().all(|i| (0.0..1e-6).contains(i)));
        let higher = ClassUncertainty::new(&[0.5, 0.5], vec![0.7], 2).unwrap();
        assert_eq!(higher.mutual_information, [0.0]);
    }

    #[test]
    fn shapes_are_checked() {
        assert!(ClassUncertainty::from_draws(&[0.5; 7], 2, 2).is_err());
        assert!(ClassUncertainty::from_draws(&[0.5; 4], 0, 2).is_err());
        assert!(ClassUncertainty::from_draws(&[0.5, 0.5, 0.5, 1.5], 2, 2).is_err());
        assert!(ClassUncertainty::new(&[0.5; 3], vec![0.1], 2).is_err());
        let none = ClassUncertainty::from_draws(&[], 2, 2).unwrap();
        assert!(none.predictive_entropy.is_empty());
    }
}
