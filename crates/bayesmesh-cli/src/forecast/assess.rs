//! How good a forecast is, in MW, beside what costs nothing.

use anyhow::Result;
use bayesmesh::data::Truth;
use bayesmesh::metrics::{Metric as _, MetricSet as _, RegressionScores, Score};
use bayesmesh::predict::{Predictive, visit_on};
use bayesmesh::{Dataset, Loss, MeshComm, Reduce};
use bayesmesh_data::load::LoadWindows;

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

/// How often the probability integral transform falls where: counts that add over ranks, fine
/// enough that coverage at any whole percent can be read off.
struct PitCounts(Vec<f64>);

impl PitCounts {
    const BINS: usize = 400;

    fn new() -> Self {
        Self(vec![0.0; Self::BINS])
    }

    fn add(&mut self, pit: &[f64]) {
        for p in pit {
            let bin = (p * Self::BINS as f64) as usize;
            self.0[bin.min(Self::BINS - 1)] += 1.0;
        }
    }

    /// The share within the central interval of a level.
    fn coverage(&self, level: f64) -> f64 {
        let edge = |p: f64| (p * Self::BINS as f64).round() as usize;
        let inside: f64 = self.0[edge(0.5 - 0.5 * level)..edge(0.5 + 0.5 * level)].iter().sum();
        inside / self.0.iter().sum::<f64>()
    }

    /// A histogram of so many bins.
    fn histogram(&self, bins: usize) -> Vec<f64> {
        self.0.chunks(Self::BINS / bins).map(|chunk| chunk.iter().sum()).collect()
    }
}

/// Sums over windows for each lead time, which add over ranks.
struct ByLead {
    /// `[Σ error², Σ variance, Σ deviation]` for each lead time, then the number of windows.
    sums: Vec<f64>,
}

impl ByLead {
    fn new(outputs: usize) -> Self {
        Self { sums: vec![0.0; 3 * outputs + 1] }
    }

    fn add(&mut self, mean: &[f32], std: &[f32], truth: &[f32], outputs: usize) {
        for (cell, ((mean, std), truth)) in mean.iter().zip(std).zip(truth).enumerate() {
            let sums = &mut self.sums[3 * (cell % outputs)..][..3];
            sums[0] += f64::from(mean - truth).powi(2);
            sums[1] += f64::from(*std).powi(2);
            sums[2] += f64::from(*std);
        }
        *self.sums.last_mut().expect("a count") += (mean.len() / outputs) as f64;
    }

    /// Means of squared error, variance and deviation at each lead time.
    fn means(&self) -> Vec<[f64; 3]> {
        let (count, sums) = self.sums.split_last().expect("a count");
        sums.chunks_exact(3).map(|s| [s[0] / count, s[1] / count, s[2] / count]).collect()
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
        true => estimate_noise(trainer, forecast, draws)?,
        false => vec![0.0; forecast.outputs],
    };
    let noise_here: Vec<f64> = noise.iter().map(|mw| mw / forecast.normaliser.std).collect();
    let (scores, by_lead, pit) = trainer.on_mesh(|mesh, rank| {
        let mut scores = RegressionScores::new(0);
        let mut by_lead = ByLead::new(forecast.outputs);
        let mut pit = PitCounts::new();
        visit(mesh, rank, &forecast.test, draws, |prediction, truth| {
            let prediction = prediction.clone().with_noise(&noise_here);
            pit.add(&prediction.pit(truth));
            let (mean, std) = in_mw(&prediction, forecast);
            let truth: Vec<f32> = truth.iter().map(|&z| forecast.normaliser.invert(z)).collect();
            by_lead.add(&mean, &std, &truth, forecast.outputs);
            Ok(scores.add(&mean, &std, &truth, &[])?)
        })?;
        let mut statistics = scores.statistics();
        sum(mesh, &mut statistics)?;
        scores.set_statistics(&statistics)?;
        sum(mesh, &mut by_lead.sums)?;
        sum(mesh, &mut pit.0)?;
        Ok((scores, by_lead, pit))
    })?;
    let grid: Vec<f64> = (1..20).map(|i| f64::from(i) * 0.05).collect();
    let calibration: Vec<(f64, f64)> =
        grid.iter().map(|&level| (level, pit.coverage(level))).collect();
    let mace =
        calibration.iter().map(|(nominal, observed)| (nominal - observed).abs()).sum::<f64>()
            / calibration.len() as f64;
    let mut named: Vec<Score> = Vec::new();
    for score in scores.error.scores().into_iter().filter(|score| score.name != "mse") {
        named.push(Score::new(format!("{}_mw", score.name), score.value));
    }
    named.push(Score::new("crps_mw", scores.crps_gaussian.scores()[0].value));
    named.push(Score::new("mean_std_mw", scores.sharpness.scores()[0].value));
    for &level in levels {
        let name = format!("coverage_{}", (level * 100.0).round());
        named.push(Score::new(name, pit.coverage(level)));
    }
    named.push(Score::new("mace", mace));
    let day = 86_400 / forecast.series.step_seconds as usize;
    let baseline = |lag: &dyn Fn(usize) -> usize| baseline_rmse(forecast, lag);
    Ok(Assessment {
        scores: named,
        calibration,
        pit: pit.histogram(20),
        by_lead: by_lead.means().iter().map(|[square, _, std]| (square.sqrt(), *std)).collect(),
        yesterday: baseline(&|lead| day * (lead / day + 1)),
        persistence: baseline(&|lead| lead + 1),
        fan: fan(trainer, forecast, draws, &noise_here)?,
        noise,
        draws,
    })
}

/// Predicts the windows of this rank's share.
fn visit(
    mesh: &MeshComm,
    rank: &ForecastTrainer,
    windows: &LoadWindows,
    draws: usize,
    mut visit: impl FnMut(&Predictive, &[f32]) -> bayesmesh::Result<()>,
) -> bayesmesh::Result<()> {
    let (posterior, reading) = (rank.posterior(), rank.loss().reading());
    let seed = rank.settings().seed;
    visit_on(mesh, posterior, reading, windows, draws, seed, CHUNK, |_, prediction, truth| {
        let Truth::Values(truth) = truth else {
            unreachable!("windows have values");
        };
        visit(prediction, &truth)
    })
}

fn sum(mesh: &MeshComm, values: &mut [f64]) -> bayesmesh::Result<()> {
    let operation = bayesmesh::Operation::Sum;
    Ok(mesh.data.all_reduce_f64(values, operation, Reduce::Reproducible)?)
}

/// The noise that a squared error leaves open: on the validation part, what the mean squared error
/// at each lead time has beyond the mean variance of the draws.
fn estimate_noise(
    trainer: &ForecastTrainer,
    forecast: &Forecast,
    draws: usize,
) -> Result<Vec<f64>> {
    let by_lead = trainer.on_mesh(|mesh, rank| {
        let mut by_lead = ByLead::new(forecast.outputs);
        visit(mesh, rank, &forecast.valid, draws, |prediction, truth| {
            by_lead.add(&prediction.mean(), &prediction.std(), truth, forecast.outputs);
            Ok(())
        })?;
        sum(mesh, &mut by_lead.sums)?;
        Ok(by_lead)
    })?;
    let noise = by_lead
        .means()
        .into_iter()
        .map(|[square, variance, _]| (square - variance).max(0.0).sqrt() * forecast.normaliser.std);
    Ok(noise.collect())
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
    let prediction = trainer.predict(&input, draws)?.with_noise(noise);
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
