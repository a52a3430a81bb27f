//! How large the noise is that a loss leaves open.

use burn::tensor::Device;
use rayon::prelude::*;

use super::readout::Readout;
use super::scoring::merge_set;
use super::{Predictive, Predictor, Scoring};
use crate::data::{Dataset, Moment, Target as _, Truth};
use crate::error::{Error, Result};
use crate::loss::Reading;
use crate::metrics::sums_over_examples;
use crate::network::Network;
use crate::posterior::Posterior;

/// Variances that are tried in one pass, each half of the one before.
const CANDIDATES: usize = 20;

/// So many examples say where to look.
const FEW: usize = 32;

/// The least variance, beside the mean squared distance of draws from the truth.
const LEAST: f64 = 1e-4;

/// Where noise has not been found after so many passes, it is what the last one says.
const MOST_PASSES: usize = 6;

impl<P: Posterior> Predictor<P> {
    /// The noise that the loss leaves open, as a deviation for each output: the one under which
    /// validation data are likeliest, which maximises `Σ_i ln 1/S Σ_s N(y_i; ŷ_is, σ²)`, and at
    /// least a hundredth of the mean distance of draws from the truth. Noise that was estimated
    /// before, and calibration, do not count.
    ///
    /// A squared error says nothing of the noise in the data, so that the spread of the draws alone
    /// is too narrow. Give this to [`Predictive::with_noise`] or to [`Scoring::noise`];
    /// [`Trainer::calibrate_noise`](crate::Trainer::calibrate_noise) keeps it for all predictions.
    ///
    /// # How
    ///
    /// At the maximum σ² is the mean square of the errors `d = y − ŷ_s` of all draws, each weighted
    /// by how well it fits, the fixed point of expectation and maximisation:
    ///
    /// ```text
    /// σ² = T(σ²),   T(v) = 1/n Σ_i Σ_s w_is d_is²,   w_is ∝ exp(−d_is² / 2v),   Σ_s w_is = 1
    /// ```
    ///
    /// The largest weights are those of the smallest errors, so T is at most the mean of d². One
    /// pass over the data sums the likelihood and T for twenty variances, each half of the one
    /// before: then the exponentials of the next are the squares of the last, so that a draw costs
    /// one exponential. Between the likeliest and its neighbour ln T is interpolated. Where draws
    /// agree that is exact, else within a few percent of σ, which costs less than a thousandth of a
    /// nat. Sums are over examples, so the result is the same on any mesh. What is predicted is
    /// predicted once, but for a few examples that say where to look, and where those mislead.
    pub fn estimate_noise<D>(&self, valid: &D, draws: usize) -> Result<Vec<f64>>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        if valid.is_empty() {
            return Err(Error::Data("noise cannot be estimated without examples".to_owned()));
        }
        match self.reading() {
            Reading::Values | Reading::Quantiles { .. } => {}
            Reading::Logits => {
                let message = "noise is that of values; this network predicts classes";
                return Err(Error::Setting(message.to_owned()));
            }
            _ => {
                let message = "this loss has a noise of its own; none is left to be estimated";
                return Err(Error::Setting(message.to_owned()));
            }
        }
        let outputs = match valid.batch(&[0], &self.device())?.1.truth() {
            Truth::Values(values) => values.len(),
            Truth::Labels(_) => {
                let message = "noise is that of values; these targets are classes";
                return Err(Error::Setting(message.to_owned()));
            }
        };
        let few = Few::of(valid);
        let squares = self.likelihoods(&few, draws, Likelihoods::new(&vec![1.0; outputs]))?;
        let mut tops: Vec<f64> = (0..outputs).map(|k| 4.0 * squares.mean_square(k)).collect();
        let largest = tops.iter().copied().fold(0.0, f64::max);
        let fallback = if largest > 0.0 { largest } else { 1.0 };
        tops.iter_mut().filter(|top| **top == 0.0).for_each(|top| *top = fallback);
        let mut noise = vec![0.0; outputs];
        for _ in 0..MOST_PASSES {
            let sums = self.likelihoods(valid, draws, Likelihoods::new(&tops))?;
            let mut found = true;
            for (k, top) in tops.iter_mut().enumerate() {
                let (variance, next) = sums.likeliest(k);
                noise[k] = variance.sqrt();
                if let Some(next) = next {
                    *top = next;
                    found = false;
                }
            }
            if found {
                break;
            }
        }
        Ok(noise)
    }

    /// Adds up what all examples say, on all ranks.
    fn likelihoods<D>(&self, data: &D, draws: usize, sums: Likelihoods) -> Result<Likelihoods>
    where
        D: Dataset<Input = <P::Network as Network>::Input>,
    {
        let readout = Readout { noise: Vec::new(), calibration: None, ..self.readout.clone() };
        let scoring = Scoring::new(draws);
        self.on_mesh(data, |mesh, members| {
            let mut own = sums.clone();
            readout.visit(mesh, members, data, &scoring, |_, prediction, truth| {
                own.add(prediction, truth)
            })?;
            merge_set(&mut own, &*mesh.world)?;
            Ok(own)
        })
    }
}

/// What examples say of variances.
#[derive(Clone)]
struct Likelihoods {
    /// The largest variance that is tried, for each output.
    tops: Vec<f64>,
    /// Of each output: the number of rows; Σ_i 1/S Σ_s d²; of each variance v the log-likelihood
    /// without its constants, `Σ_i (−½ ln v + ln Σ_s exp(−d²/2v))`; of each n·T(v).
    statistics: Vec<f64>,
}

impl Likelihoods {
    const WIDTH: usize = 2 + 2 * CANDIDATES;

    fn new(tops: &[f64]) -> Self {
        Self { tops: tops.to_vec(), statistics: vec![0.0; Self::WIDTH * tops.len()] }
    }

    fn add(&mut self, prediction: &Predictive, truth: &Truth) -> Result<()> {
        let Truth::Values(truth) = truth else { unreachable!("labels have been refused") };
        // Counts the values.
        prediction.mixtures(truth)?;
        let (draws, outputs) = (prediction.draws(), prediction.outputs());
        let (values, cells) = (prediction.values(), truth.len());
        // A thread has all rows of its outputs, so that sums do not depend on how many there are.
        let own = self.statistics.par_chunks_exact_mut(Self::WIDTH).zip(&self.tops).enumerate();
        own.for_each_init(
            || (vec![0.0; draws], vec![0.0; draws]),
            |(squares, powers), (output, (sums, top))| {
                for cell in (output..cells).step_by(outputs) {
                    let truth = f64::from(truth[cell]);
                    let values = values.iter().skip(cell).step_by(cells);
                    let each = squares.iter_mut().zip(values);
                    each.for_each(|(square, value)| *square = (f64::from(*value) - truth).powi(2));
                    add_example(sums, squares, powers, *top);
                }
            },
        );
        Ok(())
    }

    /// The mean of the squared distances of draws from the truth, of an output.
    fn mean_square(&self, output: usize) -> f64 {
        let sums = &self.statistics[output * Self::WIDTH..];
        sums[1] / sums[0]
    }

    /// The likeliest variance of an output, and from where on to look where it was not among those
    /// that were tried.
    fn likeliest(&self, output: usize) -> (f64, Option<f64>) {
        const LAST: usize = CANDIDATES - 1;
        let sums = &self.statistics[output * Self::WIDTH..][..Self::WIDTH];
        let (rows, most) = (sums[0], self.mean_square(output));
        let (likelihoods, squares) = sums[2..].split_at(CANDIDATES);
        let variance = |j: usize| self.tops[output] * 0.5f64.powi(j as i32);
        // T(v)/v, which is above one where a larger variance is likelier.
        let excess = |j: usize| (squares[j] / rows / variance(j)).ln();
        let best = (0..CANDIDATES).max_by(|a, b| likelihoods[*a].total_cmp(&likelihoods[*b]));
        let best = best.expect("there are candidates");
        let least = LEAST * most;
        match excess(best) {
            _ if most == 0.0 => (0.0, None),
            // No more than that is possible, so that it will be found below.
            more if best == 0 && more > 0.0 => (most, Some(most)),
            less if best == LAST && less < 0.0 && variance(LAST) > least => {
                (variance(LAST), Some(variance(LAST - 1)))
            }
            less if best == LAST && less < 0.0 => (least, None),
            here => {
                // Towards the root of the excess, on the side where it is.
                let next = if here > 0.0 { best - 1 } else { (best + 1).min(LAST) };
                let there = excess(next);
                let way = match here * there < 0.0 {
                    true => here / (here - there),
                    false => 0.0,
                };
                let [from, to] = [best, next].map(|j| variance(j).ln());
                ((from + way * (to - from)).exp().max(least), None)
            }
        }
    }
}

sums_over_examples!(Likelihoods);

/// Adds one true value to the sums of its output, from the squared distances of the draws;
/// `powers` is room for as many numbers.
fn add_example(sums: &mut [f64], squares: &[f64], powers: &mut [f64], top: f64) {
    let least = squares.iter().copied().fold(f64::INFINITY, f64::min);
    // Beside the largest, which may be too small for a number.
    let each = powers.iter_mut().zip(squares);
    each.for_each(|(power, square)| *power = (-(square - least) / (2.0 * top)).exp());
    sums[0] += 1.0;
    sums[1] += squares.iter().sum::<f64>() / squares.len() as f64;
    let (likelihoods, means) = sums[2..].split_at_mut(CANDIDATES);
    let mut variance = top;
    for (likelihood, mean) in likelihoods.iter_mut().zip(means) {
        let (mut all, mut weighted) = (0.0, 0.0);
        for (power, square) in powers.iter_mut().zip(squares) {
            all += *power;
            weighted += *power * square;
            *power *= *power;
        }
        *likelihood += all.ln() - 0.5 * (variance.ln() + least / variance);
        *mean += weighted / all;
        variance *= 0.5;
    }
}

/// A few examples, spread evenly over all.
struct Few<'a, D> {
    all: &'a D,
    rows: Vec<usize>,
}

impl<'a, D: Dataset> Few<'a, D> {
    fn of(all: &'a D) -> Self {
        let few = all.len().min(FEW);
        Self { all, rows: (0..few).map(|row| row * all.len() / few).collect() }
    }
}

impl<D: Dataset> Dataset for Few<'_, D> {
    type Input = D::Input;
    type Target = D::Target;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn batch(&self, rows: &[usize], device: &Device) -> Result<(D::Input, D::Target)> {
        let rows: Vec<usize> = rows.iter().map(|row| self.rows[*row]).collect();
        self.all.batch(&rows, device)
    }

    fn checksum(&self) -> Option<String> {
        self.all.checksum()
    }

    fn moment(&self, row: usize) -> Option<Moment> {
        self.all.moment(self.rows[row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bayesmesh_kernels::stream::{Purpose, Stream};

    /// Distances of `draws` draws around a mean of the prediction from truths around the same.
    fn squares(rows: usize, draws: usize, spread: f64, noise: f64) -> Vec<Vec<f64>> {
        let stream = Stream::new(3, Purpose::Synthesis);
        let normal = |tensor: u32, at: usize| {
            let mut number = [0.0];
            stream.at_tensor(tensor).fill_normal(at as u64, &mut number);
            f64::from(number[0])
        };
        let row = |row: usize| {
            let truth = noise * normal(0, row) + spread * normal(2, row);
            let draw = |s: usize| (spread * normal(1, row * draws + s) - truth).powi(2);
            (0..draws).map(draw).collect()
        };
        (0..rows).map(row).collect()
    }

    fn log_likelihood(data: &[Vec<f64>], variance: f64) -> f64 {
        let each = |row: &Vec<f64>| {
            let terms = row.iter().map(|square| (-square / (2.0 * variance)).exp());
            (terms.sum::<f64>() / row.len() as f64).ln() - 0.5 * variance.ln()
        };
        data.iter().map(each).sum::<f64>() / data.len() as f64
    }

    fn found(data: &[Vec<f64>], top: f64) -> (f64, usize) {
        let mut top = top;
        for pass in 1..=MOST_PASSES {
            let mut sums = Likelihoods::new(&[top]);
            let mut powers = vec![0.0; data[0].len()];
            for row in data {
                add_example(&mut sums.statistics, row, &mut powers, top);
            }
            match sums.likeliest(0) {
                (variance, None) => return (variance, pass),
                (_, Some(next)) => top = next,
            }
        }
        panic!("not found");
    }

    #[test]
    fn the_likeliest_noise_is_found() {
        for (spread, noise) in [(0.0, 2.0), (0.5, 2.0), (2.0, 2.0), (1.0, 0.1), (3.0, 0.5)] {
            let data = squares(300, 16, spread, noise);
            let (variance, _) = found(&data, 100.0);
            let here = log_likelihood(&data, variance);
            for step in -400..400 {
                let other = variance * (f64::from(step) / 100.0).exp();
                let there = log_likelihood(&data, other);
                assert!(there < here + 1e-3, "{spread} {noise}: {other} beats {variance}");
            }
        }
    }

    #[test]
    fn where_draws_agree_it_is_the_mean_squared_error() {
        let data = squares(50, 3, 0.0, 1.7);
        let mean = data.iter().map(|row| row[0]).sum::<f64>() / 50.0;
        for top in [2.0 * mean, 50.0 * mean, 1e3 * mean] {
            assert!((found(&data, top).0 / mean - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_wrong_place_to_look_costs_passes_only() {
        let data = squares(100, 8, 0.5, 1.0);
        let (variance, passes) = found(&data, 10.0);
        assert_eq!(passes, 1);
        for top in [1e-6, 0.3, 1e9] {
            let (other, passes) = found(&data, top);
            assert_eq!(passes, 2, "{top}");
            assert!((other / variance - 1.0).abs() < 0.1, "{other} and {variance}");
        }
    }

    #[test]
    fn truths_that_are_draws_leave_a_little_noise() {
        let mut data = squares(40, 8, 1.0, 1.0);
        data.iter_mut().for_each(|row| row[3] = 0.0);
        let mean = data.iter().flatten().sum::<f64>() / 320.0;
        let (variance, _) = found(&data, 4.0 * mean);
        assert!((variance / (LEAST * mean) - 1.0).abs() < 1e-9);
        let nothing = vec![vec![0.0; 4]; 5];
        assert_eq!(found(&nothing, 1.0).0, 0.0);
    }
}
