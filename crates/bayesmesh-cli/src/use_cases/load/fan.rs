//! What a forecast is beside what costs nothing, and three days of it.

use anyhow::Result;
use bayesmesh::{Dataset as _, Network};

use super::{BASELINES, Load};
use crate::use_cases::{InputOf, Trained};

/// The intervals of the fan chart.
pub const LEVELS: [f64; 3] = [0.5, 0.8, 0.95];
/// The band of whole forecasts.
pub const BAND: f64 = 0.9;
/// Sample paths of each forecast.
pub const PATHS: usize = 12;

/// What is scored and shown of a load forecast beside what every regression is scored by.
#[derive(Clone, Debug)]
pub struct Extras {
    /// RMSE in MW of the same time a day before, where the series is that long, and of the last
    /// known value.
    pub baselines: [f64; 2],
    /// Three days of the test part, forecast window by window.
    pub fan: Vec<FanWindow>,
}

/// One window of the fan chart.
#[derive(Clone, Debug)]
pub struct FanWindow {
    /// Times in unix seconds.
    pub times: Vec<f64>,
    /// What happened, in MW.
    pub truth: Vec<f64>,
    /// What was predicted, in MW.
    pub mean: Vec<f64>,
    /// Lower and upper ends of the central interval of each of [`LEVELS`], in MW.
    pub intervals: Vec<[Vec<f64>; 2]>,
    /// Lower and upper ends of the band of [`BAND`], in MW, where there is one.
    pub band: Option<[Vec<f64>; 2]>,
    /// Sample paths, in MW.
    pub paths: Vec<Vec<f64>>,
}

impl Extras {
    /// Of a trained network.
    pub fn of<N: Network<Input = InputOf<Load>> + 'static>(
        trained: &Trained<'_, Load, N>,
    ) -> Result<Self> {
        let load = trained.case;
        let day = load.steps_in(86_400);
        let yesterday = baseline_rmse(load, &|lead| day * (lead / day + 1));
        let persistence = baseline_rmse(load, &|lead| lead + 1);
        Ok(Self { baselines: [yesterday, persistence], fan: fan(trained)? })
    }

    /// The baselines with what they are called.
    pub fn named_baselines(&self) -> [(&'static str, f64); 2] {
        [(BASELINES[0], self.baselines[0]), (BASELINES[1], self.baselines[1])]
    }
}

/// The RMSE over the test windows of predicting, at each lead time, the value `lag(lead)` earlier.
fn baseline_rmse(load: &Load, lag: &dyn Fn(usize) -> usize) -> f64 {
    let values = &load.series.values;
    let (mut squares, mut count) = (0.0, 0u64);
    for window in 0..load.test.len() {
        let first = load.test.start(window) + load.inputs;
        for lead in 0..load.outputs {
            let time = first + lead;
            let Some(earlier) = time.checked_sub(lag(lead)) else {
                continue;
            };
            squares += f64::from(values[time] - values[earlier]).powi(2);
            count += 1;
        }
    }
    (squares / count as f64).sqrt()
}

/// Forecasts one after the other for three days from the middle of the test part. The calibration
/// has followed the series for some weeks before.
fn fan<N: Network<Input = InputOf<Load>> + 'static>(
    trained: &Trained<'_, Load, N>,
) -> Result<Vec<FanWindow>> {
    let Trained { case: load, trainer, draws, .. } = *trained;
    let (outputs, series) = (load.outputs, &load.series);
    let first = load.test.len() / 2;
    let before = first.saturating_sub(load.steps_in(30 * 86_400));
    let last = (first + load.steps_in(3 * 86_400)).min(load.test.len());
    let shown = |row: usize| {
        let row = row + before;
        row >= first && (row - first).is_multiple_of(outputs)
    };
    let windows = load.test.some(before..last);
    let banded = trainer.calibration().is_some();
    // Mean, ends of the intervals, ends of the band, paths.
    let curves = 1 + 2 * LEVELS.len() + 2 * usize::from(banded) + PATHS;
    let seed = trainer.settings().seed;
    let ends: Vec<f64> =
        LEVELS.iter().flat_map(|level| [0.5 - 0.5 * level, 0.5 + 0.5 * level]).collect();
    let columns = curves * outputs;
    let numbers = trainer.predictor().tabulate_with_truth(
        &windows,
        draws,
        columns,
        |rows, prediction, _| {
            let mut numbers = Vec::with_capacity(rows.len() * columns);
            for (index, &row) in rows.iter().enumerate() {
                if !shown(row) {
                    numbers.resize(numbers.len() + columns, 0.0);
                    continue;
                }
                let own = prediction.of_rows(index..index + 1);
                let mut curves = vec![own.mean()];
                curves.extend(own.quantiles(&ends)?);
                if banded {
                    curves.extend(own.band(BAND)?);
                }
                curves.push(own.paths(PATHS, seed, row)?);
                numbers
                    .extend(curves.concat().iter().map(|&z| f64::from(load.normaliser.invert(z))));
            }
            Ok(numbers)
        },
    )?;
    let rows = (0..windows.len()).filter(|&row| shown(row));
    Ok(rows
        .map(|row| {
            let mut curves = numbers[row * columns..][..columns].chunks_exact(outputs);
            let mut next = || curves.next().expect("as many as there are curves").to_vec();
            let start = windows.start(row) + load.inputs;
            FanWindow {
                times: (start..start + outputs).map(|i| series.time(i) as f64).collect(),
                truth: series.values[start..start + outputs].iter().map(|&v| v.into()).collect(),
                mean: next(),
                intervals: LEVELS.iter().map(|_| [next(), next()]).collect(),
                band: banded.then(|| [next(), next()]),
                paths: (0..PATHS).map(|_| next()).collect(),
            }
        })
        .collect())
}
