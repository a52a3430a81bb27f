//! What a forecast is beside what costs nothing, and some time of it.

use anyhow::Result;
use bayesmesh::data::Truth;
use bayesmesh::metrics::Score;
use bayesmesh::{Dataset as _, Network};
use serde_json::{Map, Value, json};

use super::forecast::{Forecasts, look_back, task_of};
use crate::tasks::regression::Regression;
use crate::use_cases::{InputOf, Trained};

/// The intervals of the fan chart.
pub const LEVELS: [f64; 3] = [0.5, 0.8, 0.95];
/// The band of whole forecasts.
pub const BAND: f64 = 0.9;
/// Sample paths of each forecast.
pub const PATHS: usize = 12;
/// Series that are shown.
const SHOWN: usize = 4;

/// What is scored and shown of a forecast beside what every regression is scored by.
#[derive(Clone, Debug)]
pub struct Extras {
    /// Names of the baselines and of their scores, and their RMSE in the unit of the task.
    pub baselines: Vec<(String, String, f64)>,
    /// Some time of the test part of some series, forecast window by window.
    pub fans: Vec<Fan>,
    /// Of several series, the RMSE of each in its own unit.
    pub by_series: Vec<(String, f64)>,
}

/// Some time of a series.
#[derive(Clone, Debug)]
pub struct Fan {
    /// The name of the series.
    pub series: String,
    /// One forecast after the other.
    pub windows: Vec<FanWindow>,
}

/// One window of the fan chart.
#[derive(Clone, Debug)]
pub struct FanWindow {
    /// Times in unix seconds, or steps.
    pub times: Vec<f64>,
    /// What happened.
    pub truth: Vec<f64>,
    /// What was predicted.
    pub mean: Vec<f64>,
    /// Lower and upper ends of the central interval of each of [`LEVELS`].
    pub intervals: Vec<[Vec<f64>; 2]>,
    /// Lower and upper ends of the band of [`BAND`], where there is one.
    pub band: Option<[Vec<f64>; 2]>,
    /// Sample paths.
    pub paths: Vec<Vec<f64>>,
}

impl Extras {
    /// Of a trained network.
    pub fn of<U: Forecasts, N: Network<Input = InputOf<U>> + 'static>(
        trained: &Trained<'_, U, N>,
    ) -> Result<Self> {
        let forecast = trained.case.forecast();
        let baselines = forecast.baselines.iter().map(|baseline| {
            (baseline.name.clone(), baseline.key.clone(), forecast.baseline_rmse(baseline))
        });
        let series = forecast.panel.series.len();
        let fans = (0..series).filter_map(|number| fan(trained, number).transpose());
        Ok(Self {
            baselines: baselines.collect(),
            fans: fans.take(SHOWN).collect::<Result<_>>()?,
            by_series: if series > 1 { by_series(trained)? } else { Vec::new() },
        })
    }

    /// The baselines with what they are called.
    pub fn named_baselines(&self) -> Vec<(&str, f64)> {
        self.baselines.iter().map(|(name, _, rmse)| (name.as_str(), *rmse)).collect()
    }

    /// The scores of the baselines.
    pub fn scores(&self, suffix: &str) -> Vec<Score> {
        let score =
            |(_, key, rmse): &(_, String, f64)| Score::new(format!("{key}_rmse{suffix}"), *rmse);
        self.baselines.iter().map(score).collect()
    }

    /// What the file of the evaluation has of several series.
    pub fn details(&self) -> Map<String, Value> {
        let series = |(name, rmse): &(String, f64)| json!({ "series": name, "rmse": rmse });
        let rows: Vec<Value> = self.by_series.iter().map(series).collect();
        let entry = ("by_series".to_owned(), Value::from(rows));
        Map::from_iter((!self.by_series.is_empty()).then_some(entry))
    }
}

/// The RMSE of each series in its own unit, over an even choice of test windows.
fn by_series<U: Forecasts, N: Network<Input = InputOf<U>> + 'static>(
    trained: &Trained<'_, U, N>,
) -> Result<Vec<(String, f64)>> {
    const MOST: usize = 4096;
    let forecast = trained.case.forecast();
    let windows = forecast.test.thinned(MOST);
    let outputs = forecast.outputs();
    let squares = trained.trainer.predictor().uncalibrated().tabulate_with_truth(
        &windows,
        trained.draws,
        1,
        |rows, prediction, truth| {
            let Truth::Values(truth) = truth else { return Ok(vec![0.0; rows.len()]) };
            let mean = prediction.mean();
            let errors = mean.iter().zip(truth).map(|(mean, y)| f64::from(mean - y).powi(2));
            let errors: Vec<f64> = errors.collect();
            Ok(errors.chunks(outputs).map(|row| row.iter().sum::<f64>() / outputs as f64).collect())
        },
    )?;
    let mut sums = vec![(0.0, 0usize); forecast.panel.series.len()];
    for (window, square) in squares.iter().enumerate() {
        let (sum, count) = &mut sums[windows.place(window).0];
        *sum += square;
        *count += 1;
    }
    let known = forecast.encoding.series.iter().zip(sums).filter(|(_, (_, count))| *count > 0);
    Ok(known
        .map(|(known, (sum, count))| {
            (known.name.clone(), known.scale.std * (sum / count as f64).sqrt())
        })
        .collect())
}

/// Forecasts one after the other from the middle of the test part, for three seasons or two
/// forecasts. The calibration has followed the series for some time before. Nothing where a series
/// has no test windows.
fn fan<U: Forecasts, N: Network<Input = InputOf<U>> + 'static>(
    trained: &Trained<'_, U, N>,
    series: usize,
) -> Result<Option<Fan>> {
    let Trained { case, trainer, draws, .. } = *trained;
    let forecast = case.forecast();
    let (panel, encoding, outputs) = (&forecast.panel, &forecast.encoding, forecast.outputs());
    let all = 0..forecast.test.len();
    let begin = all.clone().find(|&window| forecast.test.place(window).0 == series);
    let Some(begin) = begin else { return Ok(None) };
    let end = all.rev().find(|&window| forecast.test.place(window).0 == series);
    let own = forecast.test.some(begin..end.unwrap_or(begin) + 1);
    let season = forecast.baselines.iter().find_map(|baseline| baseline.season).unwrap_or(outputs);
    let first = own.len() / 2;
    let before = first.saturating_sub(look_back(encoding.period) / 2);
    let last = (first + (3 * season).max(2 * outputs)).min(own.len());
    let shown = |row: usize| {
        let row = row + before;
        row >= first && (row - first).is_multiple_of(outputs)
    };
    let windows = own.some(before..last);
    let task = |row: usize| -> Regression { task_of(encoding, panel, series, windows.level(row)) };
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
                let task = task(row);
                numbers.extend(curves.concat().iter().map(|&z| task.value(0, z)));
            }
            Ok(numbers)
        },
    )?;
    let rows = (0..windows.len()).filter(|&row| shown(row));
    let windows = rows.map(|row| {
        let mut curves = numbers[row * columns..][..columns].chunks_exact(outputs);
        let mut next = || curves.next().expect("as many as there are curves").to_vec();
        let start = windows.place(row).1 + encoding.cut.inputs;
        let time = |step: usize| panel.time(series, step).map_or(step as f64, |time| time as f64);
        FanWindow {
            times: (start..start + outputs).map(time).collect(),
            truth: panel.series[series].values[start..start + outputs].to_vec(),
            mean: next(),
            intervals: LEVELS.iter().map(|_| [next(), next()]).collect(),
            band: banded.then(|| [next(), next()]),
            paths: (0..PATHS).map(|_| next()).collect(),
        }
    });
    let (series, windows) = (panel.series[series].name.clone(), windows.collect());
    Ok(Some(Fan { series, windows }))
}
