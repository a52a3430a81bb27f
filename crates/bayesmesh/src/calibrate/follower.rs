//! Calibration that goes with time.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

use super::level_map::{deviation_of_tail, tail};
use super::{LEVELS, Lens, LevelMap};
use crate::data::Moment;

/// Levels that say how wide an output is: the middle ones, which many examples have something to
/// say on.
pub(super) const MIDDLE: std::ops::RangeInclusive<f64> = 0.25..=0.95;

/// Where the calibration of a series starts, and how fast it follows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tracking {
    /// How far logarithms of deviations move for a miss.
    pub rate: f64,
    /// How wide each output is, in units of its prediction.
    pub scale: Vec<f64>,
    /// Deviations of the first of [`LEVELS`], for a scale of one.
    pub shape: Vec<f64>,
    /// Deviations of bands at the same levels.
    pub bands: Vec<f64>,
}

impl Tracking {
    fn levels(&self) -> &'static [f64] {
        &LEVELS[..self.shape.len()]
    }

    /// Deviations of the ends of the intervals of an output.
    pub fn deviations(&self, output: usize) -> Vec<f64> {
        self.shape.iter().map(|shape| shape * self.scale[output % self.scale.len()]).collect()
    }

    fn lens(&self, outputs: usize, root: &Arc<[f64]>) -> Lens {
        let levels = self.levels();
        let maps =
            (0..outputs).map(|output| LevelMap::of_deviations(levels, &self.deviations(output)));
        let bands = match self.bands.is_empty() {
            true => Vec::new(),
            false => vec![LevelMap::of_deviations(levels, &self.bands)],
        };
        Lens::new(maps.collect(), bands, Arc::clone(root))
    }
}

/// How much more an interval misses than its level allows, which is 0 in the long run: the level
/// for a miss, and minus what it may miss otherwise.
fn excess(missed: bool, level: f64) -> f64 {
    f64::from(u8::from(missed)) - (1.0 - level)
}

/// The calibration of forecasts of series, which follows what comes true.
///
/// The deviation at which the interval of level L ends is `κ_k δ_L`, a scale for each output k and
/// a shape for each level. Both start from validation data. Whenever a value becomes known, it is
/// held against the intervals that were forecast for it, and
///
/// `ln κ_k += η mean_L (miss_Lk − (1 − L))`, `ln δ_L += η mean_k (miss_Lk − (1 − L))`.
///
/// Added up over time the left sides are differences of bounded numbers. So the share of misses of
/// each level (over all outputs), and that of each output (over the middle levels), go to what they
/// should be as 1/(ηT), **whatever the series does**: this is adaptive conformal inference, as the
/// tracking of a quantile. Bands of whole vectors are followed in the same way. What it does not
/// promise is coverage at any single time.
#[derive(Clone, Debug)]
pub struct Follower {
    start: Tracking,
    outputs: usize,
    root: Arc<[f64]>,
    series: BTreeMap<u64, Track>,
}

/// One series.
#[derive(Clone, Debug)]
struct Track {
    now: Tracking,
    /// What is issued with it, once it has been asked for.
    issued: Option<Arc<Issued>>,
    /// Values before this time have been taken in.
    known: i64,
    /// Forecasts of which values are still to come.
    open: VecDeque<Open>,
}

/// A forecast, with the intervals that it gave.
#[derive(Clone, Debug)]
struct Open {
    origin: i64,
    issued: Arc<Issued>,
    deviations: Vec<f64>,
}

/// The intervals of a forecast.
#[derive(Clone, Debug)]
struct Issued {
    tracking: Tracking,
    lens: Lens,
}

impl Follower {
    pub(super) fn new(start: Tracking, outputs: usize, root: Arc<[f64]>) -> Self {
        Self { start, outputs, root, series: BTreeMap::new() }
    }

    /// The lens of a forecast that is made at a moment, when all values before it are known.
    pub fn lens(&mut self, moment: Moment) -> Lens {
        self.issue(moment).1.lens.clone()
    }

    /// Takes a forecast in that was made at a moment, with how far out the values lie that followed
    /// ([`deviation`](super::deviation) of the uncalibrated prediction), for later; not a number
    /// where they are not known. Forecasts of a series come in the order of time.
    pub fn observe(&mut self, moment: Moment, deviations: Vec<f64>) {
        let (track, issued) = self.issue(moment);
        track.open.push_back(Open { origin: moment.time, issued, deviations });
    }

    /// The series at a moment, and what its forecasts are given.
    fn issue(&mut self, moment: Moment) -> (&mut Track, Arc<Issued>) {
        let (outputs, root) = (self.outputs, &self.root);
        let track = self.series.entry(moment.series).or_insert_with(|| Track {
            now: self.start.clone(),
            issued: None,
            known: moment.time,
            open: VecDeque::new(),
        });
        track.advance(moment.time, outputs);
        let now = &track.now;
        let issue = || Arc::new(Issued { tracking: now.clone(), lens: now.lens(outputs, root) });
        let issued = Arc::clone(track.issued.get_or_insert_with(issue));
        (track, issued)
    }
}

impl Track {
    /// Takes in what became known before `time`.
    fn advance(&mut self, time: i64, outputs: usize) {
        while self.known < time && !self.open.is_empty() {
            self.issued = None;
            self.take(self.known);
            self.known += 1;
            while let Some(first) = self.open.front()
                && first.origin + outputs as i64 <= self.known
            {
                let done = self.open.pop_front().expect("there is a first");
                self.take_band(&done);
            }
        }
        self.known = time.max(self.known);
    }

    /// The value of one time, against all forecasts of it.
    fn take(&mut self, time: i64) {
        let levels = self.now.levels();
        let middle = levels.iter().filter(|level| MIDDLE.contains(level)).count().max(1) as f64;
        let (rate, outputs) = (self.now.rate, self.now.scale.len());
        let mut by_level = vec![0.0; levels.len()];
        let mut count = 0.0;
        for forecast in &self.open {
            let lead = time - forecast.origin;
            let found = usize::try_from(lead).ok().and_then(|lead| forecast.deviations.get(lead));
            let Some(&found) = found.filter(|found| !found.is_nan()) else { continue };
            let output = lead as usize % outputs;
            let mut misses = 0.0;
            let issued = &forecast.issued.tracking;
            for ((sum, level), shape) in by_level.iter_mut().zip(levels).zip(&issued.shape) {
                let excess = excess(found > shape * issued.scale[output], *level);
                *sum += excess;
                if MIDDLE.contains(level) {
                    misses += excess;
                }
            }
            self.now.scale[output] *= (rate * misses / middle).exp();
            count += 1.0;
        }
        if count > 0.0 {
            for (shape, sum) in self.now.shape.iter_mut().zip(by_level) {
                *shape *= (rate * sum / count).exp();
            }
        }
    }

    /// All values of a forecast, against its bands.
    fn take_band(&mut self, forecast: &Open) {
        if forecast.deviations.iter().any(|found| found.is_nan()) {
            return;
        }
        let issued = &forecast.issued;
        let farthest = farthest(&forecast.deviations, |output| issued.lens.map(output));
        let (levels, rate) = (self.now.levels(), self.now.rate);
        let bands = self.now.bands.iter_mut().zip(&issued.tracking.bands).zip(levels);
        for ((band, issued), level) in bands {
            *band *= (rate * excess(farthest > *issued, *level)).exp();
        }
    }
}

/// The calibrated deviation of the output that is farthest out.
pub(super) fn farthest<'a>(deviations: &[f64], map: impl Fn(usize) -> &'a LevelMap) -> f64 {
    let tails = deviations.iter().enumerate().map(|(output, &found)| map(output).tail(tail(found)));
    deviation_of_tail(tails.fold(1.0, f64::min))
}
