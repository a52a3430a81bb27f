//! Quantiles of draws.

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
}
