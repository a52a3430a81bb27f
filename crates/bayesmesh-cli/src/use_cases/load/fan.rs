//! What a forecast is beside what costs nothing, and three days of it.

use anyhow::Result;
use bayesmesh::{Dataset as _, Network};

use super::{BASELINES, Load};
use crate::tasks::regression::RegressionAssessment;
use crate::use_cases::{InputOf, Trained, UseCase as _};

/// The intervals of the fan chart.
pub const LEVELS: [f64; 3] = [0.5, 0.8, 0.95];

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
}

impl Extras {
    /// Of a trained network.
    pub fn of<N: Network<Input = InputOf<Load>> + 'static>(
        trained: &Trained<'_, Load, N>,
        assessment: &RegressionAssessment,
    ) -> Result<Self> {
        let load = trained.case;
        let day = load.steps_in(86_400);
        let yesterday = baseline_rmse(load, &|lead| day * (lead / day + 1));
        let persistence = baseline_rmse(load, &|lead| lead + 1);
        Ok(Self { baselines: [yesterday, persistence], fan: fan(trained, assessment)? })
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

/// Forecasts one after the other for three days from the middle of the test part.
fn fan<N: Network<Input = InputOf<Load>> + 'static>(
    trained: &Trained<'_, Load, N>,
    assessment: &RegressionAssessment,
) -> Result<Vec<FanWindow>> {
    let Trained { case: load, trainer, draws, .. } = *trained;
    let windows = load.steps_in(3 * 86_400).div_ceil(load.outputs);
    let first = load.test.len() / 2;
    let rows: Vec<usize> = (0..windows)
        .map(|window| first + window * load.outputs)
        .filter(|&row| row < load.test.len())
        .collect();
    let (input, _) = load.test.batch(&rows, trainer.posterior().parameters().device())?;
    let mut prediction = trainer.predict(&input, draws)?;
    if trainer.loss().leaves_noise_open() {
        let scale = load.task().scale;
        let noise: Vec<f64> = assessment.noise.iter().map(|std| std / scale).collect();
        prediction = prediction.with_noise(&noise)?;
    }
    let mean = load.invert(&prediction.mean());
    let ends: Vec<f64> =
        LEVELS.iter().flat_map(|level| [0.5 - 0.5 * level, 0.5 + 0.5 * level]).collect();
    let ends: Vec<Vec<f64>> = prediction.quantiles(&ends)?.iter().map(|z| load.invert(z)).collect();
    let (outputs, series) = (load.outputs, &load.series);
    let windows = rows.iter().enumerate().map(|(index, &row)| {
        let start = load.test.start(row) + load.inputs;
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
