//! Scores of predictive probabilities, one mean over examples each.

use super::row_mean::{Estimate, count_row, mean_over_rows, standard_error};
use super::uncertainty::entropy;
use super::{
    ClassificationBatch, ClassificationMetric, Metric, MetricError, Score, statistics_field,
};

/// Least probability the logarithm sees: the smallest normal `f32`, so that only a probability that
/// underflowed is changed and no example costs more than 87.4 nats.
const PROBABILITY_FLOOR: f32 = f32::MIN_POSITIVE;

/// `ln p` with that floor, in nats; the log-density of a label of probability p.
pub(crate) fn log_probability(p: f32) -> f64 {
    f64::from(p.clamp(PROBABILITY_FLOOR, 1.0)).ln()
}

/// Class of the largest probability; the first of equal ones.
pub(super) fn top_class(row: &[f32]) -> usize {
    let mut top = 0;
    for (class, p) in row.iter().enumerate() {
        if *p > row[top] {
            top = class;
        }
    }
    top
}

/// `accuracy`: the share of examples whose label is the top class, the first of equal ones.
#[derive(Clone, Debug, Default)]
pub struct Accuracy {
    /// Examples, twice, and the sum and sum of squares of their being right.
    statistics: [f64; 4],
}

impl Accuracy {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for Accuracy {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![mean_over_rows(&self.statistics, 0).named("accuracy")]
    }
}

impl ClassificationMetric for Accuracy {
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        for (row, label) in batch.rows() {
            let right = f64::from(u8::from(top_class(row) == label));
            count_row(&mut self.statistics, 1, &[right]);
        }
        Ok(())
    }
}

/// `nll`: mean of `−ln p_y`, in nats; `p_y` below the smallest normal `f32` (1.2e-38) counts as
/// that.
#[derive(Clone, Debug, Default)]
pub struct Nll {
    /// Examples, twice, and the sum and sum of squares of −ln p_y.
    statistics: [f64; 4],
}

impl Nll {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for Nll {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![mean_over_rows(&self.statistics, 0).named("nll")]
    }
}

impl ClassificationMetric for Nll {
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        for (row, label) in batch.rows() {
            count_row(&mut self.statistics, 1, &[-log_probability(row[label])]);
        }
        Ok(())
    }
}

/// `brier`: mean over examples of `Σ_c (p_c − [c = y])²`, in `[0, 2]`.
#[derive(Clone, Debug, Default)]
pub struct Brier {
    /// Examples, twice, and the sum and sum of squares of their scores.
    statistics: [f64; 4],
}

impl Brier {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for Brier {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        vec![mean_over_rows(&self.statistics, 0).named("brier")]
    }
}

impl ClassificationMetric for Brier {
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        for (row, label) in batch.rows() {
            let truth = |class: usize| f64::from(u8::from(class == label));
            let squares =
                row.iter().enumerate().map(|(class, &p)| (f64::from(p) - truth(class)).powi(2));
            count_row(&mut self.statistics, 1, &[squares.sum()]);
        }
        Ok(())
    }
}

/// `entropy_right`, `entropy_wrong`: mean predictive entropy (nats) of the examples whose top class
/// is, or is not, the label. A useful uncertainty is higher where the prediction is wrong.
#[derive(Clone, Debug, Default)]
pub struct EntropyByOutcome {
    /// Right examples, sum and sum of squares of their entropies; the same of the wrong ones.
    statistics: [f64; 6],
}

impl EntropyByOutcome {
    /// No examples yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Metric for EntropyByOutcome {
    statistics_field!();

    fn scores(&self) -> Vec<Score> {
        let mean = |at: usize| {
            let [count, sum, squares] = std::array::from_fn(|i| self.statistics[at + i]);
            Estimate { value: sum / count, error: standard_error(count, sum, squares) }
        };
        vec![mean(0).named("entropy_right"), mean(3).named("entropy_wrong")]
    }
}

impl ClassificationMetric for EntropyByOutcome {
    fn add_batch(&mut self, batch: &ClassificationBatch) -> Result<(), MetricError> {
        for (row, label) in batch.rows() {
            let at = if top_class(row) == label { 0 } else { 3 };
            let entropy = entropy(row);
            self.statistics[at] += 1.0;
            self.statistics[at + 1] += entropy;
            self.statistics[at + 2] += entropy * entropy;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Lcg, assert_close, assert_merges, score};
    use super::*;

    const PROBABILITIES: [f32; 9] = [0.5, 0.25, 0.25, 0.125, 0.125, 0.75, 1.0, 0.0, 0.0];
    const LABELS: [usize; 3] = [0, 1, 0];

    fn of<M: ClassificationMetric>(mut metric: M) -> M {
        metric.add(&PROBABILITIES, &LABELS).unwrap();
        metric
    }

    #[test]
    fn hand_computed_values() {
        assert_close(score(&of(Accuracy::new()), "accuracy"), 2.0 / 3.0, 1e-15);
        // ln 2, ln 8, 0
        assert_close(score(&of(Nll::new()), "nll"), 4.0 * 2f64.ln() / 3.0, 1e-15);
        // (1/4 + 1/16 + 1/16) + (1/64 + 49/64 + 9/16) + 0
        assert_close(score(&of(Brier::new()), "brier"), (0.375 + 1.34375) / 3.0, 1e-15);
        let entropy = of(EntropyByOutcome::new());
        // Right: 1.5 ln 2 and 0. Wrong: 2·(1/8)·ln 8 + (3/4)·ln(4/3).
        assert_close(score(&entropy, "entropy_right"), 0.75 * 2f64.ln(), 1e-15);
        let wrong = 0.75 * 2f64.ln() + 0.75 * (4f64 / 3.0).ln();
        assert_close(score(&entropy, "entropy_wrong"), wrong, 1e-15);
    }

    #[test]
    fn standard_errors_are_those_of_means() {
        let error = |metric: &dyn Metric| metric.scores()[0].se_examples;
        // Two of three are right: √(2/3 · 1/3 / 2).
        assert_close(error(&of(Accuracy::new())), (1.0f64 / 9.0).sqrt(), 1e-15);
        // ln 2, ln 8 and 0, in units of ln 2: 1, 3, 0, with a variance of 7/3.
        assert_close(error(&of(Nll::new())), 2f64.ln() * (7.0f64 / 9.0).sqrt(), 1e-15);
        // Right are 1.5 ln 2 and 0; only one is wrong.
        let entropy = of(EntropyByOutcome::new()).scores();
        assert_close(entropy[0].se_examples, 0.75 * 2f64.ln(), 1e-15);
        assert!(entropy[1].se_examples.is_nan());
    }

    #[test]
    fn the_first_of_equal_classes_is_the_top() {
        assert_eq!(top_class(&[0.2, 0.4, 0.4]), 1);
        assert_eq!(top_class(&[0.5, 0.5]), 0);
    }

    #[test]
    fn an_impossible_label_costs_a_finite_amount() {
        let mut nll = Nll::new();
        nll.add(&[1.0, 0.0], &[1]).unwrap();
        assert_close(score(&nll, "nll"), 126.0 * 2f64.ln(), 1e-12);
    }

    #[test]
    fn invalid_batches_change_nothing() {
        fn check<M: ClassificationMetric>(metric: M) {
            let mut metric = of(metric);
            let before = metric.statistics().to_vec();
            // The fault is in the last example each time.
            assert!(metric.add(&[0.5, 0.5, 0.5, 0.5], &[0, 2]).is_err());
            assert!(metric.add(&[0.5, 0.5, 0.5, 1.5], &[0, 1]).is_err());
            assert!(metric.add(&[0.5, 0.5, 0.5, f32::NAN], &[0, 1]).is_err());
            assert!(metric.add(&[0.5, 0.5, 0.5], &[0, 1]).is_err());
            assert_eq!(metric.statistics(), before);
        }
        check(Accuracy::new());
        check(Nll::new());
        check(Brier::new());
        check(EntropyByOutcome::new());
    }

    #[test]
    fn parts_merge() {
        fn check<M: ClassificationMetric>(new: impl Fn() -> M) {
            let (p, y) = Lcg(1).classification(200, 4);
            assert_merges(200, new, |metric, rows| {
                metric.add(&p[4 * rows.start..4 * rows.end], &y[rows]).unwrap();
            });
        }
        check(Accuracy::new);
        check(Nll::new);
        check(Brier::new);
        check(EntropyByOutcome::new);
    }
}
