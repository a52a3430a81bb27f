//! How well a score separates two groups.

use super::MetricError;

/// Area under the receiver operating characteristic: the probability that a positive has a larger
/// score than a negative, ties counting ½. For instance the entropies of unfamiliar against those
/// of familiar inputs. NaN if a group is empty; fails on NaN scores (infinite ones have a rank).
///
/// With `R` the sum of the positives' ranks among all scores, equal scores sharing their mean rank,
/// the area is `(R − n₊(n₊ + 1)/2) / (n₊ n₋)`: O(n log n).
pub fn auroc(positive: &[f64], negative: &[f64]) -> Result<f64, MetricError> {
    for (what, scores) in [("positive score", positive), ("negative score", negative)] {
        if let Some(index) = scores.iter().position(|s| s.is_nan()) {
            return Err(MetricError::NotFinite { what, index, value: scores[index] });
        }
    }
    let tagged = positive.iter().map(|&s| (s, true)).chain(negative.iter().map(|&s| (s, false)));
    let mut scores: Vec<(f64, bool)> = tagged.collect();
    scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    // −0 and 0 are neighbours in this order, so equal scores stand together.
    let (mut rank_sum, mut before) = (0.0, 0.0);
    for group in scores.chunk_by(|a, b| a.0 == b.0) {
        let size = group.len() as f64;
        let mean_rank = before + 0.5 * (size + 1.0);
        rank_sum += mean_rank * group.iter().filter(|(_, positive)| *positive).count() as f64;
        before += size;
    }
    let (p, n) = (positive.len() as f64, negative.len() as f64);
    Ok((rank_sum - 0.5 * p * (p + 1.0)) / (p * n))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close};
    use super::*;

    #[test]
    fn hand_computed_values() {
        assert_eq!(auroc(&[3.0, 4.0], &[1.0, 2.0]), Ok(1.0));
        assert_eq!(auroc(&[1.0, 2.0], &[3.0, 4.0]), Ok(0.0));
        assert_eq!(auroc(&[1.0, 1.0], &[1.0]), Ok(0.5));
        assert_eq!(auroc(&[0.0], &[-0.0]), Ok(0.5));
        // Of six pairs: 2 > 1 twice, 2 = 2, 1 < 2, 1 = 1 twice.
        assert_close(auroc(&[2.0, 1.0], &[1.0, 2.0, 1.0]).unwrap(), 3.5 / 6.0, 1e-15);
        assert_eq!(auroc(&[f64::INFINITY], &[5.0]), Ok(1.0));
        assert!(auroc(&[], &[1.0]).unwrap().is_nan());
        assert!(matches!(
            auroc(&[1.0], &[1.0, f64::NAN]),
            Err(MetricError::NotFinite { what: "negative score", index: 1, .. })
        ));
    }

    #[test]
    fn is_the_share_of_pairs() {
        let mut lcg = Lcg(15);
        let mut sample = |shift: f64| (4.0 * lcg.normal() + shift).round();
        let positive: Vec<f64> = (0..150).map(|_| sample(2.0)).collect();
        let negative: Vec<f64> = (0..220).map(|_| sample(0.0)).collect();
        let mut wins = 0.0;
        for p in &positive {
            for n in &negative {
                wins += if p > n {
                    1.0
                } else if p == n {
                    0.5
                } else {
                    0.0
                };
            }
        }
        let expected = wins / (150.0 * 220.0);
        assert_close(auroc(&positive, &negative).unwrap(), expected, 1e-12);
    }
}
