//! Means over cells with the standard error over rows.
//!
//! The outputs of an example depend on each other, so an example is one observation however many
//! outputs it has. With the sum `t_i` of row i over its K outputs, the score is `Σ t_i / (n K)`,
//! and its standard error is `s / (K √n)` with the sample deviation s of the `t_i`. Rows count as
//! independent. Those of a series that overlap are not, and the true error is then larger.

use super::Score;

/// A value and its standard error over examples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub value: f64,
    pub error: f64,
}

impl Estimate {
    /// As a score.
    pub fn named(self, name: impl Into<String>) -> Score {
        Score { se_examples: self.error, ..Score::new(name, self.value) }
    }

    /// `√value`: an error of `error / (2 √value)`.
    pub fn sqrt(self) -> Self {
        let value = self.value.sqrt();
        Self { value, error: 0.5 * self.error / value }
    }
}

/// Adds a row to statistics `[rows, cells, Σ t, Σ t², Σ u, Σ u², …]`: the sums of its terms over
/// its `outputs`.
pub(super) fn count_row(statistics: &mut [f64], outputs: usize, sums: &[f64]) {
    statistics[0] += 1.0;
    statistics[1] += outputs as f64;
    for (pair, sum) in statistics[2..].chunks_exact_mut(2).zip(sums) {
        pair[0] += sum;
        pair[1] += sum * sum;
    }
}

/// The mean over cells of term `index` of such statistics.
pub(super) fn mean_over_rows(statistics: &[f64], index: usize) -> Estimate {
    let [rows, cells] = [statistics[0], statistics[1]];
    let [sum, squares] = [statistics[2 + 2 * index], statistics[3 + 2 * index]];
    let error = standard_error(rows, sum, squares) * rows / cells;
    Estimate { value: sum / cells, error }
}

/// The standard error of the mean of `count` numbers from their sum and sum of squares; NaN for
/// fewer than two, and where a number is infinite.
pub(super) fn standard_error(count: f64, sum: f64, squares: f64) -> f64 {
    if count < 2.0 || !squares.is_finite() {
        return f64::NAN;
    }
    let variance = (squares - sum * sum / count) / (count - 1.0);
    (variance.max(0.0) / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close};
    use super::*;

    #[test]
    fn hand_computed_error() {
        // Rows (1, 3) and (2, 6): sums 4 and 8, their deviation √8, K = 2.
        let mut statistics = [0.0; 4];
        count_row(&mut statistics, 2, &[4.0]);
        assert!(mean_over_rows(&statistics, 0).error.is_nan());
        count_row(&mut statistics, 2, &[8.0]);
        let mean = mean_over_rows(&statistics, 0);
        assert_eq!(mean.value, 3.0);
        assert_close(mean.error, 8f64.sqrt() / (2.0 * 2f64.sqrt()), 1e-15);
        assert_close(mean.sqrt().error, 0.5 / 3f64.sqrt() * mean.error, 1e-15);
    }

    #[test]
    fn what_is_infinite_has_no_error() {
        assert!(standard_error(3.0, f64::INFINITY, f64::INFINITY).is_nan());
        assert!(standard_error(3.0, f64::NAN, f64::NAN).is_nan());
        assert_eq!(standard_error(3.0, 3.0, 3.0), 0.0);
    }

    /// Of rows whose outputs are equal, the standard error is that of the rows, not of the cells.
    #[test]
    fn outputs_that_agree_tell_nothing_new() {
        let (mut one, mut eight) = ([0.0; 4], [0.0; 4]);
        let mut lcg = Lcg(31);
        for _ in 0..500 {
            let x = lcg.normal();
            count_row(&mut one, 1, &[x]);
            count_row(&mut eight, 8, &[8.0 * x]);
        }
        let [one, eight] = [one, eight].map(|statistics| mean_over_rows(&statistics, 0));
        assert_close(one.error, eight.error, 1e-14);
        assert_close(one.error, 1.0 / 500f64.sqrt(), 0.15 / 500f64.sqrt());
    }
}
