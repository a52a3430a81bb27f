//! Checked inputs: one look at the numbers before any accumulator changes.

use super::MetricError;

/// How far a probability may leave `[0, 1]`, by rounding of sums of draws, before it is refused.
const PROBABILITY_SLACK: f32 = 1e-3;

/// Predictive probabilities and labels of some examples, known to be valid.
#[derive(Clone, Copy, Debug)]
pub struct ClassificationBatch<'a> {
    probabilities: &'a [f32],
    labels: &'a [usize],
    classes: usize,
    numbers: &'a [usize],
}

impl<'a> ClassificationBatch<'a> {
    /// Checks a batch. The number of classes is `probabilities.len() / labels.len()`.
    ///
    /// # Shapes
    ///
    /// - `probabilities`: `[rows, classes]`, row-major, the mean over all draws
    /// - `labels`: `[rows]`
    pub fn new(probabilities: &'a [f32], labels: &'a [usize]) -> Result<Self, MetricError> {
        let classes = columns("probabilities", probabilities.len(), labels.len())?;
        check_probabilities(probabilities)?;
        if let Some(index) = labels.iter().position(|&label| label >= classes) {
            return Err(MetricError::Label { index, label: labels[index], classes });
        }
        Ok(Self { probabilities, labels, classes, numbers: &[] })
    }

    /// The same with the numbers that the examples have in their data set; by default those that
    /// they have here.
    pub(crate) fn numbered(self, numbers: &'a [usize]) -> Self {
        Self { numbers, ..self }
    }

    /// The number of an example.
    pub(super) fn number(&self, row: usize) -> usize {
        self.numbers.get(row).copied().unwrap_or(row)
    }

    /// Number of classes; 0 if there are no examples.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Each example as its row of probabilities and its label. Values may leave `[0, 1]` by 1e-3.
    pub fn rows(&self) -> impl Iterator<Item = (&'a [f32], usize)> {
        // An empty batch has no columns, and chunks of nothing are not allowed.
        self.probabilities.chunks_exact(self.classes.max(1)).zip(self.labels.iter().copied())
    }

    /// Fails unless the batch has this many classes or no examples at all.
    pub fn expect_classes(&self, classes: usize) -> Result<(), MetricError> {
        if self.is_empty() || self.classes == classes {
            return Ok(());
        }
        Err(MetricError::Count { what: "classes", expected: classes, actual: self.classes })
    }
}

/// Values per example of a row-major table of `values` numbers for `examples` examples.
fn columns(what: &'static str, values: usize, examples: usize) -> Result<usize, MetricError> {
    match (values, examples) {
        (0, 0) => Ok(0),
        (v, n) if v > 0 && n > 0 && v.is_multiple_of(n) => Ok(v / n),
        _ => Err(MetricError::Shape { what, examples, actual: values }),
    }
}

pub(super) fn check_count(
    what: &'static str,
    actual: usize,
    expected: usize,
) -> Result<(), MetricError> {
    if actual == expected { Ok(()) } else { Err(MetricError::Count { what, expected, actual }) }
}

pub(super) fn check_finite(what: &'static str, values: &[f32]) -> Result<(), MetricError> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(index) => Err(MetricError::NotFinite { what, index, value: values[index].into() }),
    }
}

pub(super) fn check_probabilities(values: &[f32]) -> Result<(), MetricError> {
    let allowed = -PROBABILITY_SLACK..=1.0 + PROBABILITY_SLACK;
    match values.iter().position(|v| !allowed.contains(v)) {
        None => Ok(()),
        Some(index) => Err(MetricError::Probability { index, value: values[index] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_classification_batch_names_what_is_wrong() {
        let ok = ClassificationBatch::new(&[0.25, 0.75, 1.0005, -0.0005], &[1, 0]).unwrap();
        assert_eq!((ok.classes(), ok.len()), (2, 2));
        let error = |p: &[f32], y: &[usize]| ClassificationBatch::new(p, y).unwrap_err();
        assert_eq!(
            error(&[0.5; 5], &[0, 1]),
            MetricError::Shape { what: "probabilities", examples: 2, actual: 5 }
        );
        assert!(matches!(error(&[], &[0]), MetricError::Shape { .. }));
        assert!(matches!(error(&[0.5], &[]), MetricError::Shape { .. }));
        assert_eq!(
            error(&[0.5; 4], &[0, 2]),
            MetricError::Label { index: 1, label: 2, classes: 2 }
        );
        assert_eq!(error(&[0.5, 1.01], &[0]), MetricError::Probability { index: 1, value: 1.01 });
        assert!(matches!(error(&[f32::NAN, 0.5], &[0]), MetricError::Probability { index: 0, .. }));
    }
}
