//! How good a forecast is, in MW, beside what costs nothing.

use anyhow::Result;
use bayesmesh::metrics::Score;
use bayesmesh::{Dataset as _, Predictive, Scoring};

use super::{Forecast, ForecastTrainer};

/// Rows predicted at a time.
const CHUNK: usize = 2048;

/// What a forecast came to on the test part.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// Scores by name; those with a unit say so: `rmse_mw`.
    pub scores: Vec<Score>,
    /// Deviation of the noise at each lead time, in MW, added to the spread of the draws. Zero
    /// where the network predicts the noise itself.
    pub noise: Vec<f64>,
    /// Nominal and observed coverage of central intervals.
    pub calibration: Vec<(f64, f64)>,
    /// The histogram of the probability integral transform.
    pub pit: Vec<f64>,
    /// RMSE and mean predicted deviation at each lead time, in MW.
    pub by_lead: Vec<(f64, f64)>,
    /// RMSE of the same time a day before, in MW, where the series is that long.
    pub yesterday: f64,
    /// RMSE of the last known value, in MW.
    pub persistence: f64,
    /// Three days of the test part, forecast window by window.
    pub fan: Vec<FanWindow>,
    /// Draws of each prediction.
    pub draws: usize,
}

/// The intervals of the fan chart.
pub const FAN_LEVELS: [f64; 3] = [0.5, 0.8, 0.95];

/// One window of the fan chart.
#[derive(Clone, Debug)]
pub struct FanWindow {
    /// Times in unix seconds.
    pub times: Vec<f64>,
    /// What happened, in MW.
    pub truth: Vec<f64>,
    /// What was predicted, in MW.
    pub mean: Vec<f64>,
    /// Lower and upper ends of the central interval of each of [`FAN_LEVELS`], in MW.
    pub intervals: Vec<[Vec<f64>; 2]>,
}

impl Assessment {
    /// A score by name.
    pub fn score(&self, name: &str) -> f64 {
        self.scores.iter().find(|score| score.name == name).map_or(f64::NAN, |score| score.value)
    }
}

/// Scores a trained network with `draws` draws, on the whole mesh.
pub fn assess(
    trainer: &ForecastTrainer,
    forecast: &Forecast,
    draws: usize,
    levels: &[f64],
) -> Result<Assessment> {
    let noise = match trainer.loss().leaves_noise_open() {
        true => trainer.predictor().estimate_noise(&forecast.valid, draws)?,
        false => Vec::new(),
    };
    let scoring = Scoring {
        levels: levels.to_vec(),
        noise: noise.clone(),
        chunk: Some(CHUNK),
        ..Scoring::new(draws)
    };
    let evaluation = trainer.predictor().evaluate_as(&forecast.test, &scoring)?;
    let found = evaluation.regression().expect("windows have values");
    // Scores are those of normalised values; a unit of them is so many MW.
    let unit = forecast.normaliser.std;
    let mut scores: Vec<Score> =
        [&found.rmse, &found.mae, &found.bias, &found.crps, &found.mean_std]
            .map(|score| score.in_unit(format!("{}_mw", score.name), unit))
            .into();
    // A density for each MW is smaller than one for each unit.
    let nll = Score {
        name: "nll_mw".to_owned(),
        value: found.nll.value + unit.ln(),
        ..found.nll.clone()
    };
    scores.push(nll);
    scores.extend(evaluation.iter().filter(|s| s.name.starts_with("coverage_")).cloned());
    scores.push(found.mace.clone());
    let day = 86_400 / forecast.series.step_seconds as usize;
    let baseline = |lag: &dyn Fn(usize) -> usize| baseline_rmse(forecast, lag);
    Ok(Assessment {
        scores,
        calibration: found.calibration.iter().map(|row| (row.nominal, row.observed)).collect(),
        pit: found.pit.clone(),
        by_lead: found.by_output.iter().map(|row| (unit * row.rmse, unit * row.mean_std)).collect(),
        yesterday: baseline(&|lead| day * (lead / day + 1)),
        persistence: baseline(&|lead| lead + 1),
        fan: fan(trainer, forecast, draws, &noise)?,
        noise: match noise.is_empty() {
            true => vec![0.0; forecast.outputs],
            false => noise.iter().map(|std| unit * std).collect(),
        },
        draws,
    })
}

/// Mean and deviation in MW.
pub fn in_mw(prediction: &Predictive, forecast: &Forecast) -> (Vec<f32>, Vec<f32>) {
    let mean = prediction.mean().iter().map(|&z| forecast.normaliser.invert(z)).collect();
    let std = prediction.std().iter().map(|&z| forecast.normaliser.invert_spread(z)).collect();
    (mean, std)
}

/// The RMSE over the test windows of predicting, at each lead time, the value `lag(lead)` earlier.
fn baseline_rmse(forecast: &Forecast, lag: &dyn Fn(usize) -> usize) -> f64 {
    let values = &forecast.series.values;
    let (mut squares, mut count) = (0.0, 0u64);
    for window in 0..forecast.test.len() {
        let first = forecast.test.start(window) + forecast.inputs;
        for lead in 0..forecast.outputs {
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

/// Forecasts one after the other for three days from the middle of the test part.
fn fan(
    trainer: &ForecastTrainer,
    forecast: &Forecast,
    draws: usize,
    noise: &[f64],
) -> Result<Vec<FanWindow>> {
    let day = 86_400 / forecast.series.step_seconds as usize;
    let windows = (3 * day).div_ceil(forecast.outputs);
    let first = forecast.test.len() / 2;
    let rows: Vec<usize> = (0..windows)
        .map(|window| first + window * forecast.outputs)
        .filter(|&row| row < forecast.test.len())
        .collect();
    let device = burn::tensor::Device::default();
    let (input, _) = forecast.test.batch(&rows, &device)?;
    let mut prediction = trainer.predict(&input, draws)?;
    if !noise.is_empty() {
        prediction = prediction.with_noise(noise)?;
    }
    let mean = forecast.invert(&prediction.mean());
    let ends: Vec<f64> =
        FAN_LEVELS.iter().flat_map(|level| [0.5 - 0.5 * level, 0.5 + 0.5 * level]).collect();
    let ends: Vec<Vec<f64>> =
        prediction.quantiles(&ends)?.iter().map(|z| forecast.invert(z)).collect();
    let outputs = forecast.outputs;
    let series = &forecast.series;
    let windows = rows.iter().enumerate().map(|(index, &row)| {
        let start = forecast.test.start(row) + forecast.inputs;
        FanWindow {
            times: (start..start + outputs).map(|i| series.time(i) as f64).collect(),
            truth: series.values[start..start + outputs].iter().map(|&v| f64::from(v)).collect(),
            mean: mean[index * outputs..][..outputs].to_vec(),
            intervals: ends
                .chunks(2)
                .map(|ends| [0, 1].map(|end| ends[end][index * outputs..][..outputs].to_vec()))
                .collect(),
        }
    });
    Ok(windows.collect())
}
