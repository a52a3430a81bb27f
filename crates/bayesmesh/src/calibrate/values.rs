//! Calibration of predicted values.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::follower::{MIDDLE, Tracking, farthest};
use super::level_map::deviation_of_level;
use super::{Follower, LEVELS, Lens, LevelMap, Method};
use crate::error::{Error, Result};
use crate::predict::Predictive;

/// The most outputs that are calibrated one by one. Where there are more, as in fields, they are
/// calibrated together.
pub(crate) const MOST_OUTPUTS: usize = 256;

/// How predicted values are calibrated: what validation data say of their width and their
/// intervals.
///
/// In single precision, so that it comes back from the text of a checkpoint as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueCalibration {
    /// The width of the kernel around draws without noise, in deviations of the draws; 0 for none.
    pub(super) kernel: f32,
    /// What deviations are multiplied by, for each output or for all; empty for nothing.
    pub(super) stretch: Vec<f32>,
    /// The deviations at which intervals of the first of [`LEVELS`] end, for each output or for
    /// all.
    pub(super) deviations: Vec<Vec<f32>>,
    /// The same of bands, which hold all outputs of an example.
    pub(super) bands: Vec<f32>,
    /// How fast it goes with time, for series.
    pub(super) rate: Option<f32>,
    /// The root of the correlation of the noise.
    pub(super) root: Vec<f32>,
    /// Quintiles of the predicted deviation.
    pub(super) spreads: Vec<f32>,
}

/// What is known of some examples: how far out each value lies, its error in predicted deviations,
/// and the predicted deviation.
pub(crate) struct Residuals {
    pub outputs: usize,
    /// `[examples, outputs, 3]`
    pub cells: Vec<f64>,
}

/// Numbers of each cell.
pub(crate) const RESIDUALS: usize = 3;

impl Residuals {
    fn len(&self) -> usize {
        self.cells.len() / (self.outputs * RESIDUALS).max(1)
    }

    /// Some of the examples.
    fn of(&self, examples: Range<usize>) -> Self {
        let width = self.outputs * RESIDUALS;
        let cells = self.cells[examples.start * width..examples.end * width].to_vec();
        Self { outputs: self.outputs, cells }
    }

    /// One number of each example, for an output or for all of them.
    fn column(&self, number: usize, pools: usize, pool: usize) -> Vec<f64> {
        let cells = self.cells.chunks_exact(RESIDUALS).enumerate();
        let own = cells.filter(|(cell, _)| cell % self.outputs % pools == pool);
        own.map(|(_, cell)| cell[number]).collect()
    }

    fn deviations(&self, example: usize) -> Vec<f64> {
        let width = self.outputs * RESIDUALS;
        self.cells[example * width..][..width].iter().step_by(RESIDUALS).copied().collect()
    }
}

/// How many maps there are for so many outputs.
fn pools(outputs: usize) -> usize {
    if outputs > MOST_OUTPUTS { 1 } else { outputs }
}

/// The smallest number that at least a share `level` of n + 1 exchangeable numbers, the n known
/// ones and one more, does not exceed: the ⌈(n + 1) level⌉-th smallest. Nothing where n is too
/// small.
pub(super) fn conformal_quantile(sorted: &[f64], level: f64) -> Option<f64> {
    // A level such as 0.95 is not exact in binary: 21 · 0.95 must not become 20 instead of 19.95.
    let rank = ((sorted.len() + 1) as f64 * level - 1e-9).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The quantiles at all of [`LEVELS`] for which there are enough numbers.
fn conformal_quantiles(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_by(f64::total_cmp);
    LEVELS.iter().map_while(|level| conformal_quantile(&numbers, *level)).collect()
}

/// Numbers in double precision.
fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&number| number.into()).collect()
}

/// Numbers in single precision.
fn narrow(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&number| number as f32).collect()
}

impl ValueCalibration {
    /// Nothing learned yet.
    pub(super) fn start(method: Method) -> Self {
        let rate = match method {
            Method::Adaptive(adaptive) => Some(adaptive.rate),
            _ => None,
        };
        Self {
            kernel: 0.0,
            stretch: Vec::new(),
            deviations: Vec::new(),
            bands: Vec::new(),
            rate,
            root: Vec::new(),
            spreads: Vec::new(),
        }
    }

    /// Refuses what a damaged text says.
    pub(super) fn check(&self) -> Result<()> {
        let lists = [&self.stretch, &self.bands, &self.root, &self.spreads];
        let mut numbers = lists.into_iter().chain(&self.deviations).flatten();
        let mut lists = self.deviations.iter().chain([&self.bands]);
        let short = lists.all(|list| list.len() <= LEVELS.len());
        let equal = self.deviations.windows(2).all(|pair| pair[0].len() == pair[1].len());
        let square = self.root.len().isqrt().pow(2) == self.root.len();
        let possible = self.kernel >= 0.0 && self.rate.is_none_or(|rate| rate > 0.0 && rate < 1.0);
        match numbers.all(|number| number.is_finite()) && short && equal && square && possible {
            true => Ok(()),
            false => Err(Error::Mismatch(
                "the calibration in the checkpoint has numbers that do not fit; it is of another \
                 version, or damaged: calibrate anew"
                    .to_owned(),
            )),
        }
    }

    /// Quintiles of the predicted deviation on validation data.
    pub fn spreads(&self) -> Vec<f64> {
        wide(&self.spreads)
    }

    /// A kernel around each of so many draws, for predictions without noise: as wide as is best for
    /// estimating a density (Silverman's rule).
    pub(super) fn use_kernel(&mut self, draws: usize) {
        self.kernel = (1.06 * (draws as f64).powf(-0.2)) as f32;
    }

    /// The stretch that makes the mean square of errors in predicted deviations one, for each
    /// output: `κ² = mean (y − ȳ)²/σ²`, the best factor for the log-density of a Gaussian.
    pub(super) fn learn_stretch(&mut self, residuals: &Residuals) {
        let pools = pools(residuals.outputs);
        let rms = |pool| {
            let errors = residuals.column(1, pools, pool);
            let squares: f64 = errors.iter().map(|error| error * error).sum();
            (squares / errors.len() as f64).sqrt().max(1e-6) as f32
        };
        self.stretch = (0..pools).map(rms).collect();
    }

    /// Learns intervals from errors on validation data, as the method says, and bands.
    pub(super) fn learn(&mut self, method: Method, residuals: &Residuals) {
        // What a band misses is known only of examples from which its intervals were not learned:
        // each half is held against intervals of the other.
        let pools = pools(residuals.outputs);
        let (n, mut all) = (residuals.len(), Vec::new());
        for (own, other) in [(0..n / 2, n / 2..n), (n / 2..n, 0..n / 2)] {
            self.learn_intervals(method, &residuals.of(other));
            let (own, maps) = (residuals.of(own), self.maps(pools));
            let examples = (0..own.len()).map(|example| own.deviations(example));
            all.extend(examples.map(|found| farthest(&found, |k| &maps[k % pools])));
        }
        self.bands = narrow(&conformal_quantiles(all));
        self.learn_intervals(method, residuals);
        let mut spreads = residuals.column(2, 1, 0);
        spreads.sort_by(f64::total_cmp);
        let quintile = |k: usize| spreads[(k * spreads.len() / 5).min(spreads.len() - 1)];
        self.spreads = narrow(&[1, 2, 3, 4].map(quintile));
        self.spreads.dedup();
    }

    fn learn_intervals(&mut self, method: Method, residuals: &Residuals) {
        let pools = pools(residuals.outputs);
        let own = || (0..pools).map(|pool| conformal_quantiles(residuals.column(0, pools, pool)));
        let deviations = match method {
            Method::Conformal => own().collect(),
            Method::Adaptive(_) => scaled_shape(residuals, &own().collect::<Vec<_>>()),
            Method::Variance | Method::Temperature(_) => Vec::new(),
        };
        self.deviations = deviations.iter().map(|own| narrow(own)).collect();
    }

    /// Takes the root of the correlation of the noise.
    pub(super) fn learn_root(&mut self, root: &[f64]) {
        self.root = narrow(root);
    }

    /// One map for all outputs, or one for each.
    fn maps(&self, pools: usize) -> Vec<LevelMap> {
        match self.deviations.is_empty() {
            true => {
                let as_they_are = LEVELS.map(deviation_of_level);
                vec![LevelMap::of_deviations(&LEVELS, &as_they_are); pools]
            }
            false => {
                let own = self.deviations.iter();
                own.map(|own| LevelMap::of_deviations(&LEVELS, &wide(own))).collect()
            }
        }
    }

    /// What predictions of so many outputs are seen through, where nothing is known of their time.
    fn lens(&self, outputs: usize) -> Result<Lens> {
        self.expect_outputs(outputs)?;
        let bands = match self.bands.is_empty() {
            true => Vec::new(),
            false => vec![LevelMap::of_deviations(&LEVELS, &wide(&self.bands))],
        };
        Ok(Lens::new(self.maps(pools(outputs)), bands, wide(&self.root).into()))
    }

    /// Refuses a calibration of another number of outputs.
    fn expect_outputs(&self, outputs: usize) -> Result<()> {
        let known = self.deviations.len().max(self.stretch.len());
        let root = self.root.len().isqrt();
        match (known > 1 && known != outputs) || (root > 0 && root != outputs) {
            false => Ok(()),
            true => Err(Error::Mismatch(format!(
                "a calibration of {} outputs for a prediction of {outputs}",
                known.max(root)
            ))),
        }
    }

    /// A prediction with a kernel around draws without noise, stretched about its mean.
    pub(super) fn widened(&self, prediction: Predictive) -> Predictive {
        let prediction = match self.kernel > 0.0 {
            true => prediction.with_kernel(self.kernel.into()),
            false => prediction,
        };
        match self.stretch.is_empty() {
            true => prediction,
            false => prediction.stretched(&wide(&self.stretch)),
        }
    }

    /// The calibrated prediction.
    pub(super) fn apply(&self, prediction: Predictive) -> Result<Predictive> {
        let lens = self.lens(prediction.outputs())?;
        Ok(self.widened(prediction).seen_through(lens))
    }

    /// What follows series of so many outputs; nothing where the calibration stays as it is, or is
    /// of another number of outputs.
    pub(super) fn follower(&self, outputs: usize) -> Option<Follower> {
        self.expect_outputs(outputs).ok()?;
        let shape = wide(self.deviations.first().filter(|first| !first.is_empty())?);
        // Deviations are scales times a shape, which are known up to a factor that cancels.
        let middle = shape.len() / 2;
        let scale = |own: &Vec<f32>| f64::from(own[middle]) / shape[middle];
        let start = Tracking {
            rate: self.rate?.into(),
            scale: self.deviations.iter().map(scale).collect(),
            shape: shape.clone(),
            bands: wide(&self.bands),
        };
        Some(Follower::new(start, outputs, Arc::from(wide(&self.root))))
    }
}

/// Deviations that are a scale of each output times a shape in common: less to learn, and so less
/// chance in it, than a shape for each.
fn scaled_shape(residuals: &Residuals, own: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let width = |deviations: &Vec<f64>| {
        let levels = LEVELS.iter().zip(deviations).filter(|(level, _)| MIDDLE.contains(*level));
        let logs: Vec<f64> = levels
            .map(|(level, found)| (found.max(1e-6) / deviation_of_level(*level)).ln())
            .collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    };
    let scales: Vec<f64> = own.iter().map(width).collect();
    let cells = residuals.cells.chunks_exact(RESIDUALS).enumerate();
    let pooled =
        cells.map(|(cell, numbers)| numbers[0] / scales[cell % residuals.outputs % scales.len()]);
    let shape = conformal_quantiles(pooled.collect());
    scales.iter().map(|scale| shape.iter().map(|shape| scale * shape).collect()).collect()
}
