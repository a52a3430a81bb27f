//! Forecasts as a file.

use anyhow::Result;
use bayesmesh::Network;
use bayesmesh_data::load::format_time;
use burn::tensor::{Tensor, TensorData};
use serde_json::{Value, json};

use super::Load;
use super::data::read;
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, TableFile, npy};
use crate::tasks::regression::{quantile_columns, quantile_levels, tabulate};
use crate::use_cases::{InputOf, UseCase as _};

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
pub fn predict<N: Network<Input = InputOf<Load>> + 'static>(
    run: &TrainedRun<'_, Load, N>,
    arguments: &args::Predict,
) -> Result<Value> {
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
    let levels = quantile_levels(arguments);
    let load = run.load()?;
    run.refuse_other_data(&load)?;
    let (series, repairs) = read(file)?;
    if !repairs.is_clean() {
        say!("{repairs}");
    }
    let inputs = load.inputs;
    if series.step_seconds != load.series.step_seconds {
        return Err(Usage(format!(
            "{} has a value every {} s, but the network was trained on one every {} s",
            file.display(),
            series.step_seconds,
            load.series.step_seconds
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

    let device = run.trainer.posterior().parameters().device();
    let draws = run.draws(arguments.draws)?;
    let values = tabulate(&load.task(), run, starts.len(), &levels, draws, |rows| {
        let known = rows.iter().flat_map(|&row| &series.values[starts[row]..][..inputs]);
        let windows: Vec<f32> = known.map(|&mw| load.normaliser.apply(mw)).collect();
        Ok(Tensor::from_data(TensorData::new(windows, [rows.len(), inputs]), device))
    })?;
    let rows = Rows {
        origins: starts.iter().map(|&start| series.time(start + inputs - 1)).collect(),
        step_seconds: series.step_seconds,
        outputs: load.outputs,
        values,
        columns: quantile_columns(&levels),
    };
    let bytes = match format {
        TableFile::Csv => rows.csv(),
        TableFile::Npy => rows.npy(),
    };
    if run.job.leads() {
        table_file::write(out, &bytes)?;
    }
    let (forecasts, columns) = (starts.len(), rows.columns);
    say!("{forecasts} forecasts of {} values: {}", load.outputs, out.display());
    Ok(json!({
        "out": say::path(out), "forecasts": forecasts, "draws": draws, "columns": columns,
    }))
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
