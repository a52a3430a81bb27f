//! Quantiles of draws.

use super::MetricError;
use super::batch::{check_count, check_finite};
use super::coverage::check_levels;

/// Quantile of ascending values by linear interpolation between order statistics: at position
/// `p (n − 1)`, counted from 0 ("type 7", the default of numpy and R). NaN for no values or for p
/// outside `[0, 1]`.
pub fn quantile(sorted: &[f32], p: f64) -> f64 {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let position = p * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let (low, high) = (f64::from(sorted[below]), f64::from(sorted[position.ceil() as usize]));
    low + (position - below as f64) * (high - low)
}

/// Ends of the central intervals of the draws, `[q((1 − level)/2), q((1 + level)/2)]`, for
/// [`IntervalCoverage`](super::IntervalCoverage).
///
/// # Shapes
///
/// - `draws`: `[S, n]`, row-major, of `n = examples`
/// - `levels`: strictly ascending in (0, 1)
/// - result, lower and upper ends: `[levels, n]`, row-major
pub fn central_intervals(
    draws: &[f32],
    examples: usize,
    levels: &[f64],
) -> Result<(Vec<f32>, Vec<f32>), MetricError> {
    check_levels(levels)?;
    check_count("draws", draws.len(), draws.len().checked_div(examples).unwrap_or(0) * examples)?;
    check_finite("draw", draws)?;
    let size = levels.len() * examples;
    let (mut lower, mut upper) = (vec![0.0; size], vec![0.0; size]);
    for example in 0..examples {
        let mut column: Vec<f32> = draws.iter().skip(example).step_by(examples).copied().collect();
        column.sort_unstable_by(f32::total_cmp);
        for (i, level) in levels.iter().enumerate() {
            lower[i * examples + example] = quantile(&column, 0.5 - 0.5 * level) as f32;
            upper[i * examples + example] = quantile(&column, 0.5 + 0.5 * level) as f32;
        }
    }
    Ok((lower, upper))
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_close;
    use super::*;

    #[test]
    fn type_seven() {
        // numpy.quantile([1, 2, 4, 8], [0, .1, .25, .5, .9, 1])
        let values = [1.0, 2.0, 4.0, 8.0];
        for (p, expected) in [(0.0, 1.0), (0.1, 1.3), (0.25, 1.75), (0.5, 3.0), (0.9, 6.8)] {
            assert_close(quantile(&values, p), expected, 1e-12);
        }
        assert_eq!(quantile(&values, 1.0), 8.0);
        assert_eq!(quantile(&[3.0], 0.3), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
        assert!(quantile(&values, 1.5).is_nan() && quantile(&values, f64::NAN).is_nan());
    }

    #[test]
    fn intervals_of_columns() {
        // Columns 0..=4 shuffled, and ten times that.
        let draws = [3.0, 30.0, 0.0, 0.0, 4.0, 40.0, 1.0, 10.0, 2.0, 20.0];
        let (lower, upper) = central_intervals(&draws, 2, &[0.5, 0.75]).unwrap();
        assert_eq!(lower, [1.0, 10.0, 0.5, 5.0]);
        assert_eq!(upper, [3.0, 30.0, 3.5, 35.0]);
        assert!(central_intervals(&draws, 3, &[0.5]).is_err());
        assert!(central_intervals(&draws, 2, &[1.5]).is_err());
    }
}
