//! Forecasts as a file.

use anyhow::Result;
use bayesmesh::data::Moment;
use bayesmesh::{Network, Posterior as _, Predictive};
use bayesmesh_data::load::LoadSeries;
use burn::tensor::{Tensor, TensorData};
use serde_json::{Value, json};

use super::Load;
use super::data::read;
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, Column, Table, TableFile};
use crate::tasks::regression::{CHUNK, Columns, paths, paths_asked_for};
use crate::tasks::rows_at_a_time;
use crate::use_cases::{InputOf, UseCase as _};

/// How far back a forecast looks at what has come true, to know how wide it must be: sixty days.
const LOOK_BACK: i64 = 60 * 86_400;

/// Forecasts with a trained run.
pub fn predict<N: Network<Input = InputOf<Load>> + 'static>(
    run: &mut TrainedRun<'_, Load, N>,
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
    let load = run.load()?;
    run.refuse_other_data(&load)?;
    run.calibrate(&load)?;
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

    let paths_asked = paths_asked_for(arguments, starts.len(), load.outputs)?;
    let draws = run.draws(arguments.draws)?;
    let columns = Columns::asked(run, arguments);
    let seed = run.trainer.settings().seed;
    let task = load.task();
    let mut values = Vec::new();
    forecast(run, &load, &series, &starts, draws, |index, prediction| {
        values.extend(match paths_asked {
            Some(count) => paths(&task, prediction, count, seed, index)?,
            None => columns.of(&task, prediction)?,
        });
        Ok(())
    })?;
    let (forecasts, outputs) = (starts.len(), load.outputs);
    let origin = |forecast: usize| series.time(starts[forecast] + inputs - 1);
    let step = i64::from(series.step_seconds);
    let time = |forecast: usize, lead: usize| origin(forecast) + (lead as i64 + 1) * step;
    let table = match paths_asked {
        Some(count) => {
            let cells =
                || (0..forecasts * count * outputs).map(|cell| (cell / outputs, cell % outputs));
            let leading = vec![
                ("origin", Column::Time(cells().map(|(path, _)| origin(path / count)).collect())),
                ("path", Column::Integer(cells().map(|(path, _)| (path % count) as i64).collect())),
                ("time", Column::Time(cells().map(|(path, k)| time(path / count, k)).collect())),
            ];
            Table::new(leading, vec!["value".to_owned()], values, vec![forecasts, count, outputs])
        }
        None => {
            let cells = || (0..forecasts * outputs).map(|cell| (cell / outputs, cell % outputs));
            let leading = vec![
                ("origin", Column::Time(cells().map(|(forecast, _)| origin(forecast)).collect())),
                ("time", Column::Time(cells().map(|(forecast, k)| time(forecast, k)).collect())),
            ];
            let names = columns.names();
            let shape = vec![forecasts, outputs, names.len()];
            Table::new(leading, names, values, shape)
        }
    };
    if run.job.leads() {
        table_file::write(out, &table.bytes(format, 1)?)?;
    }
    match paths_asked {
        Some(count) => {
            say!("{count} paths of {forecasts} forecasts of {outputs} values: {}", out.display());
        }
        None => say!("{forecasts} forecasts of {outputs} values: {}", out.display()),
    }
    Ok(json!({
        "out": say::path(out), "forecasts": forecasts, "draws": draws, "columns": table.names(),
    }))
}

/// Forecasts from each of these places in a series, which ascend, and hands each to `visit`. Where
/// the calibration follows series, it learns from what has come true in this one before.
fn forecast<N: Network<Input = InputOf<Load>> + 'static>(
    run: &TrainedRun<'_, Load, N>,
    load: &Load,
    series: &LoadSeries,
    starts: &[usize],
    draws: usize,
    mut visit: impl FnMut(usize, &Predictive) -> Result<()>,
) -> Result<()> {
    let (inputs, outputs) = (load.inputs, load.outputs);
    let device = run.trainer.posterior().parameters().device();
    let predictor = run.trainer.predictor();
    let calibration = predictor.calibration().cloned();
    let mut follower = calibration.as_ref().and_then(|calibration| calibration.follower(outputs));
    let raw = predictor.uncalibrated();
    // Forecasts that are asked for, and those that are learned from.
    let mut all = starts.to_vec();
    if let (Some(_), Some(first)) = (&follower, starts.first()) {
        let back = (LOOK_BACK / i64::from(series.step_seconds)) as usize;
        all = (first.saturating_sub(back)..=*starts.last().unwrap_or(first)).collect();
    }
    let chunk = rows_at_a_time(CHUNK, outputs, draws);
    for rows in all.chunks(chunk) {
        let known = rows.iter().flat_map(|&start| &series.values[start..][..inputs]);
        let windows: Vec<f32> = known.map(|&mw| load.normaliser.apply(mw)).collect();
        let input = Tensor::from_data(TensorData::new(windows, [rows.len(), inputs]), device);
        let prediction = raw.predict(&input, draws)?;
        table_file::refuse_not_finite(prediction.values())?;
        table_file::refuse_not_finite(&prediction.noise_std())?;
        let deviations = match (&follower, &calibration) {
            (Some(_), Some(calibration)) => {
                let truth = rows.iter().flat_map(|start| {
                    let values = (start + inputs..start + inputs + outputs).map(|time| {
                        series.values.get(time).map_or(f32::NAN, |&mw| load.normaliser.apply(mw))
                    });
                    values.collect::<Vec<f32>>()
                });
                let truth: Vec<f32> = truth.collect();
                calibration.widened(prediction.clone()).deviations(&truth)?
            }
            _ => Vec::new(),
        };
        for (row, &start) in rows.iter().enumerate() {
            let moment = Moment { series: 0, time: (start + inputs) as i64 };
            if let Ok(index) = starts.binary_search(&start) {
                let own = prediction.of_rows(row..row + 1);
                let own = match (&calibration, &mut follower) {
                    (Some(calibration), Some(follower)) => {
                        calibration.seen_through(own, follower.lens(moment))
                    }
                    (Some(calibration), None) => calibration.apply(own)?,
                    (None, _) => own,
                };
                visit(index, &own)?;
            }
            if let Some(follower) = &mut follower {
                follower.observe(moment, deviations[row * outputs..][..outputs].to_vec());
            }
        }
    }
    Ok(())
}
