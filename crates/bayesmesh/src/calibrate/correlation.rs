//! How the noise of the outputs of an example hangs together.

use crate::metrics::sums_over_examples;
use crate::predict::Predictive;

/// Sums over examples from which the correlation of the noise is estimated.
///
/// The error of an example has two parts, that of the draw, which the draws show, and the noise.
/// With errors r and the covariance of the draws E, both in units of the predicted deviation, and
/// the share w of the noise in it, the errors have the covariance `E + w ∘ C`. So
///
/// `C = (mean r rᵀ − mean E) / mean w`, element by element,
///
/// with mean r rᵀ brought to a diagonal of ones first: how wide predictions are is calibrated
/// elsewhere. What is not a correlation by chance is drawn towards none until it is one.
#[derive(Clone, Debug)]
pub(super) struct NoiseCorrelation {
    outputs: usize,
    /// Examples, then `[outputs, outputs]` sums of r rᵀ, of E and of w.
    statistics: Vec<f64>,
}

impl NoiseCorrelation {
    pub fn new(outputs: usize) -> Self {
        Self { outputs, statistics: vec![0.0; 1 + 3 * outputs * outputs] }
    }

    /// Adds a row of a prediction, given the errors of its outputs in predicted deviations.
    pub fn add(&mut self, prediction: &Predictive, row: usize, errors: &[f64]) {
        let outputs = self.outputs;
        let (covariance, noise) = prediction.covariance_of_row(row);
        let std: Vec<f64> =
            (0..outputs).map(|k| (covariance[k * outputs + k] + noise[k]).sqrt()).collect();
        if !std.iter().all(|std| *std > 0.0) {
            return;
        }
        self.statistics[0] += 1.0;
        let (products, rest) = self.statistics[1..].split_at_mut(outputs * outputs);
        let (draws, shares) = rest.split_at_mut(outputs * outputs);
        for i in 0..outputs {
            for j in 0..outputs {
                let (cell, unit) = (i * outputs + j, std[i] * std[j]);
                products[cell] += errors[i] * errors[j];
                draws[cell] += covariance[cell] / unit;
                shares[cell] += (noise[i] * noise[j]).sqrt() / unit;
            }
        }
    }

    /// The lower triangular root of the correlation; empty where there is nothing to estimate it
    /// from.
    pub fn root(&self) -> Vec<f64> {
        let (n, outputs) = (self.statistics[0], self.outputs);
        let table = |index: usize, i: usize, j: usize| {
            self.statistics[1 + index * outputs * outputs + i * outputs + j] / n
        };
        if n < 2.0 {
            return Vec::new();
        }
        let mut correlation = vec![0.0; outputs * outputs];
        for i in 0..outputs {
            for j in 0..outputs {
                let size = (table(0, i, i) * table(0, j, j)).sqrt();
                let found = (table(0, i, j) / size - table(1, i, j)) / table(2, i, j).max(1e-9);
                let found = if found.is_finite() { found.clamp(-0.9999, 0.9999) } else { 0.0 };
                correlation[i * outputs + j] = if i == j { 1.0 } else { found };
            }
        }
        // The identity always has a root.
        let mut kept = 1.0;
        loop {
            let drawn = correlation.iter().enumerate().map(|(cell, c)| {
                let diagonal = cell / outputs == cell % outputs;
                if diagonal { 1.0 } else { kept * c }
            });
            match cholesky(&drawn.collect::<Vec<_>>(), outputs) {
                Some(root) => return root,
                None => kept -= 0.01,
            }
        }
    }
}

/// The lower triangular L with `L Lᵀ` = the matrix; nothing where it is not positive definite.
fn cholesky(matrix: &[f64], size: usize) -> Option<Vec<f64>> {
    let mut root = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let product: f64 = (0..j).map(|k| root[i * size + k] * root[j * size + k]).sum();
            let rest = matrix[i * size + j] - product;
            root[i * size + j] = match i == j {
                true if rest > 1e-6 => rest.sqrt(),
                true => return None,
                false => rest / root[j * size + j],
            };
        }
    }
    Some(root)
}

sums_over_examples!(NoiseCorrelation);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_times_itself_is_the_matrix() {
        let matrix = [1.0, 0.6, 0.3, 0.6, 1.0, 0.5, 0.3, 0.5, 1.0];
        let root = cholesky(&matrix, 3).unwrap();
        for i in 0..3 {
            for j in 0..3 {
                let product: f64 = (0..3).map(|k| root[3 * i + k] * root[3 * j + k]).sum();
                assert!((product - matrix[3 * i + j]).abs() < 1e-15);
            }
        }
        assert_eq!(cholesky(&[1.0, 1.0, 1.0, 1.0], 2), None);
    }

    /// Draws that move together, noise that has a correlation of 0.8: the first is not taken for
    /// the second.
    #[test]
    fn the_correlation_of_the_noise_is_found_beside_that_of_the_draws() {
        use crate::metrics::testing::Lcg;
        let mut lcg = Lcg(3);
        let (draws, rows) = (16, 4000);
        let mut statistics = NoiseCorrelation::new(2);
        for _ in 0..rows {
            let mut means = Vec::new();
            for _ in 0..draws {
                let shift = 0.5 * lcg.normal();
                means.extend([shift as f32, (-shift) as f32]);
            }
            let variances = vec![1.0; means.len()];
            let prediction = Predictive::of_gaussians(draws, 1, means, variances).unwrap();
            let (shift, first, other) = (0.5 * lcg.normal(), lcg.normal(), lcg.normal());
            let truth = [shift + first, -shift + 0.8 * first + 0.6 * other];
            let (mean, std) = (prediction.mean(), prediction.std());
            let errors: Vec<f64> =
                (0..2).map(|k| (truth[k] - f64::from(mean[k])) / f64::from(std[k])).collect();
            statistics.add(&prediction, 0, &errors);
        }
        let root = statistics.root();
        // Three standard errors of a correlation from as many rows are 0.03.
        assert!((root[2] - 0.8).abs() < 0.05, "{root:?}");
    }
}
