//! Forecasts as a file.

use anyhow::{Context as _, Result};
use bayesmesh::metrics::percent;
use bayesmesh_data::load::{self, format_time};
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::{Value, json};

use super::Forecast;
use super::assess::in_mw;
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::say;
use crate::table_file::{self, TableFile, npy};

/// The quantiles that are written unless others are asked for.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// What one forecast says: times, then mean, std and quantiles for each lead time.
struct Rows {
    origins: Vec<i64>,
    step_seconds: u32,
    outputs: usize,
    /// `[forecasts, outputs, 2 + quantiles]`
    values: Vec<f32>,
    columns: Vec<String>,
}

/// Forecasts with a trained run.
pub fn predict(run: &TrainedRun<'_, Forecast>, arguments: &args::Predict) -> Result<Value> {
    let out = &arguments.out;
    let format = TableFile::of(out)?;
    let Some(file) = &arguments.input else {
        return Err(Usage(format!(
            "a forecast needs a series to start from: \
             `bayesmesh predict {} SERIES.csv --out {}`",
            arguments.run.display(),
            out.display()
        ))
        .into());
    };
    if arguments.limit.is_some() {
        return Err(Usage("--limit is for images; a series has --every".into()).into());
    }
    let quantiles = match arguments.quantiles.as_slice() {
        [] => &QUANTILES,
        given => given,
    };
    let forecast = Forecast::new(&run.recipe)?;
    run.refuse_other_data(&forecast)?;
    let noise = noise(run)?;
    let (series, repairs) = load::read(file)?;
    if !repairs.is_clean() {
        say!("{repairs}");
    }
    let inputs = forecast.inputs;
    if series.step_seconds != forecast.series.step_seconds {
        return Err(Usage(format!(
            "{} has a value every {} s, but the network was trained on one every {} s",
            file.display(),
            series.step_seconds,
            forecast.series.step_seconds
        ))
        .into());
    }
    if series.len() < inputs {
        return Err(Usage(format!(
            "{} has {} values; a forecast needs the last {inputs}",
            file.display(),
            series.len()
        ))
        .into());
    }
    let last = series.len() - inputs;
    let mut starts: Vec<usize> = match arguments.every {
        Some(0) => return Err(Usage("--every 0 is not possible; use 1 or more".into()).into()),
        Some(every) => (0..last).step_by(every).collect(),
        None => Vec::new(),
    };
    starts.push(last);

    let windows: Vec<f32> = starts
        .iter()
        .flat_map(|&start| &series.values[start..start + inputs])
        .map(|&mw| forecast.normaliser.apply(mw))
        .collect();
    let data = TensorData::new(windows, [starts.len(), inputs]);
    let input = Tensor::<2>::from_data(data, &Device::default());
    let draws = arguments.draws.unwrap_or(run.recipe.evaluate.draws);
    let noise: Vec<f64> = noise.iter().map(|mw| mw / forecast.normaliser.std).collect();
    let prediction = run.trainer.predict(&input, draws)?.with_noise(&noise)?;
    let values_at = prediction.quantiles(quantiles)?;
    let (mean, std) = in_mw(&prediction, &forecast);
    let values = mean.iter().zip(&std).enumerate().flat_map(|(cell, (&mean, &std))| {
        let quantiles = values_at.iter().map(|q| forecast.normaliser.invert(q[cell]));
        [mean, std].into_iter().chain(quantiles).collect::<Vec<f32>>()
    });
    let values: Vec<f32> = values.collect();
    let quantiles = quantiles.iter().map(|q| format!("q{}", percent(*q)));
    let rows = Rows {
        origins: starts.iter().map(|&start| series.time(start + inputs - 1)).collect(),
        step_seconds: series.step_seconds,
        outputs: forecast.outputs,
        values,
        columns: ["mean".to_owned(), "std".to_owned()].into_iter().chain(quantiles).collect(),
    };
    let bytes = match format {
        TableFile::Csv => rows.csv(),
        TableFile::Npy => rows.npy(),
    };
    if run.job.leads() {
        table_file::write(out, &bytes)?;
    }
    say!("{} forecasts of {} values: {}", starts.len(), forecast.outputs, out.display());
    Ok(json!({ "out": out, "forecasts": starts.len(), "draws": draws, "columns": rows.columns }))
}

/// The noise of each lead time, in MW, as the last evaluation found it.
fn noise(run: &TrainedRun<'_, Forecast>) -> Result<Vec<f64>> {
    let remedy = || run.not_scored();
    let evaluation = run.evaluation()?;
    let noise = evaluation["noise_mw"].as_array().with_context(remedy)?;
    Ok(noise.iter().map(|n| n.as_f64().unwrap_or(0.0)).collect())
}

impl Rows {
    /// One line a lead time: when the forecast was made, what it is for, and what it says in MW.
    fn csv(&self) -> Vec<u8> {
        let mut text = format!("origin,time,{}\n", self.columns.join(","));
        for (cell, values) in self.values.chunks_exact(self.columns.len()).enumerate() {
            let origin = self.origins[cell / self.outputs];
            let lead = (cell % self.outputs + 1) as i64;
            let time = origin + lead * i64::from(self.step_seconds);
            let values: Vec<String> = values.iter().map(|v| format!("{v:.1}")).collect();
            text +=
                &format!("{},{},{}\n", format_time(origin), format_time(time), values.join(","));
        }
        text.into_bytes()
    }

    /// `[forecasts, outputs, columns]`
    fn npy(&self) -> Vec<u8> {
        npy(&[self.origins.len(), self.outputs, self.columns.len()], &self.values)
    }
}
