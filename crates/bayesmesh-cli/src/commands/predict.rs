//! `bayesmesh predict`.

use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use bayesmesh::checkpoint::{AtomicFile, FileError};
use bayesmesh_data::load::{self, format_time};
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::{Value, json};

use super::evaluate::TrainedRun;
use crate::args;
use crate::exit::Usage;
use crate::forecast::{Forecast, in_mw};

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
pub fn predict(arguments: args::Predict) -> Result<Value> {
    let out = &arguments.out;
    let format = Format::of(out)?;
    let run = TrainedRun::open(&arguments.run, &arguments.ranks)?;
    let forecast = Forecast::new(&run.recipe)?;
    let noise = run.noise()?;
    let (series, repairs) = load::read(&arguments.input)?;
    if !repairs.is_clean() {
        eprintln!("{repairs}");
    }
    let inputs = forecast.inputs;
    if series.step_seconds != forecast.series.step_seconds {
        return Err(Usage(format!(
            "{} has a value every {} s, but the network was trained on one every {} s",
            arguments.input.display(),
            series.step_seconds,
            forecast.series.step_seconds
        ))
        .into());
    }
    if series.len() < inputs {
        return Err(Usage(format!(
            "{} has {} values; a forecast needs the last {inputs}",
            arguments.input.display(),
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
    let prediction = run.trainer.predict(&input, draws)?.with_noise(&noise);
    let quantiles = prediction.quantiles(&arguments.quantiles)?;
    let (mean, std) = in_mw(&prediction, &forecast);
    let values = mean.iter().zip(&std).enumerate().flat_map(|(cell, (&mean, &std))| {
        let quantiles = quantiles.iter().map(|q| forecast.normaliser.invert(q[cell]));
        [mean, std].into_iter().chain(quantiles).collect::<Vec<f32>>()
    });
    let values: Vec<f32> = values.collect();
    let quantiles = arguments.quantiles.iter().map(|q| format!("q{}", percent(*q)));
    let rows = Rows {
        origins: starts.iter().map(|&start| series.time(start + inputs - 1)).collect(),
        step_seconds: series.step_seconds,
        outputs: forecast.outputs,
        values,
        columns: ["mean".to_owned(), "std".to_owned()].into_iter().chain(quantiles).collect(),
    };
    let bytes = match format {
        Format::Csv => rows.csv(),
        Format::Npy => rows.npy(),
    };
    let io = |error| FileError::new(out, "write", &error);
    let mut file = AtomicFile::create(out).map_err(io)?;
    file.write_all(&bytes).map_err(io)?;
    file.commit().map_err(io)?;
    eprintln!("{} forecasts of {} values: {}", starts.len(), forecast.outputs, out.display());
    Ok(json!({ "out": out, "forecasts": starts.len(), "draws": draws, "columns": rows.columns }))
}

/// A level in percent, without the rounding of the product: 33.3 for 0.333.
fn percent(level: f64) -> f64 {
    (1e8 * level).round() / 1e6
}

enum Format {
    Csv,
    Npy,
}

impl Format {
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("npy") => Ok(Self::Npy),
            _ => {
                Err(Usage(format!("{}: write to a file that ends in .csv or .npy", path.display()))
                    .into())
            }
        }
    }
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

    /// NumPy's format, version 1: `[forecasts, outputs, columns]` of little-endian single precision.
    fn npy(&self) -> Vec<u8> {
        let shape = format!("({}, {}, {})", self.origins.len(), self.outputs, self.columns.len());
        let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        // Magic, version and length are 10 bytes; all of it is padded to a multiple of 64.
        let padding = (64 - (10 + header.len() + 1) % 64) % 64;
        header += &" ".repeat(padding);
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }
}
