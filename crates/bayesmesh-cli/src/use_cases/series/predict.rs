//! Forecasts as a file.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use bayesmesh::data::Moment;
use bayesmesh::{CalibrateConfig, Network, Posterior as _, Predictive};
use bayesmesh_data::series::{Encoding, Panel, Period, SeriesWindows};
use serde_json::{Value, json};

use super::forecast::{Forecasts, look_back, task_of};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, Column, Table, TableFile};
use crate::tasks::regression::{CHUNK, Columns, paths, paths_asked_for};
use crate::tasks::rows_at_a_time;
use crate::use_cases::InputOf;

/// What checkpoints call the encoding.
pub const ENCODING: &str = "series";

/// A place in series: which of them, and where in it a window begins.
type At = (usize, usize);

/// Series to forecast.
struct Found {
    panel: Panel,
    encoding: Encoding,
    windows: SeriesWindows,
}

impl Found {
    fn new(panel: Panel, encoding: Encoding) -> Result<Self> {
        let series = Arc::new(encoding.encode(&panel)?);
        let windows = SeriesWindows::new(series, Vec::new(), encoding.cut);
        Ok(Self { panel, encoding, windows })
    }

    /// Why no forecast can begin at a place, if none can.
    fn obstacle(&self, (series, start): At) -> Option<String> {
        let cut = &self.encoding.cut;
        let own = &self.windows.series()[series];
        let end = start + cut.inputs;
        if own.values[start..end].iter().any(|value| value.is_nan()) {
            return Some(format!("values are missing among the last {}", cut.inputs));
        }
        let known = own.known.iter().map(Vec::len).min().unwrap_or(usize::MAX);
        (known < end + cut.outputs).then(|| {
            format!(
                "what is known of the future ({}) must go on for {} rows after the last value, and \
                 there are {}",
                self.encoding.roles.known.join(", "),
                cut.outputs,
                known.saturating_sub(end)
            )
        })
    }

    /// Where the last forecast of each series begins, or why there is none.
    fn last(&self, series: usize) -> Result<usize, String> {
        let (inputs, length) =
            (self.encoding.cut.inputs, self.windows.series()[series].values.len());
        let start = length.checked_sub(inputs).ok_or_else(|| {
            format!("there are {length} values; a forecast needs the last {inputs}")
        })?;
        self.obstacle((series, start)).map_or(Ok(start), Err)
    }

    /// The forecasts that are asked for, series by series.
    fn places(&self, every: Option<usize>, file: &Path) -> Result<Vec<At>> {
        let several = self.panel.series.len() > 1;
        let (mut places, mut left) = (Vec::new(), Vec::new());
        for (series, own) in self.panel.series.iter().enumerate() {
            match self.last(series) {
                Ok(last) => {
                    let earlier = every.into_iter().flat_map(|every| (0..last).step_by(every));
                    let all = earlier.chain([last]).map(|start| (series, start));
                    places.extend(all.filter(|at| self.obstacle(*at).is_none()));
                }
                Err(why) => left.push(match several {
                    true => format!("`{}`: {why}", own.name),
                    false => why,
                }),
            }
        }
        if places.is_empty() {
            return Err(Usage(format!("{}: {}", file.display(), left.join("; "))).into());
        }
        left.iter().for_each(|why| say::warn(format!("no forecast of {why}")));
        Ok(places)
    }
}

/// Forecasts with a trained run.
pub fn predict<U: Forecasts, N: Network<Input = InputOf<U>> + 'static>(
    run: &mut TrainedRun<'_, U, N>,
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
    if arguments.every == Some(0) {
        return Err(Usage("--every 0 is not possible; use 1 or more".into()).into());
    }
    let (encoding, decimals) = learned(run)?;
    let panel = U::read_panel(&encoding, file)?;
    let found = Found::new(panel, encoding)?;
    tell_new_series(&found);
    let (inputs, outputs) = (found.encoding.cut.inputs, found.encoding.cut.outputs);
    let places = found.places(arguments.every, file)?;

    let paths_asked = paths_asked_for(arguments, places.len(), outputs)?;
    let draws = run.draws(arguments.draws)?;
    let columns = Columns::asked(run, arguments);
    let seed = run.trainer.settings().seed;
    let mut values = Vec::new();
    forecast(run, &found, &places, draws, |index, level, prediction| {
        let task = task_of(&found.encoding, &found.panel, places[index].0, level);
        values.extend(match paths_asked {
            Some(count) => paths(&task, prediction, count, seed, index)?,
            None => columns.of(&task, prediction)?,
        });
        Ok(())
    })?;
    let forecasts = places.len();
    let (names, each, shape) = match paths_asked {
        Some(count) => (vec!["value".to_owned()], count, vec![forecasts, count, outputs]),
        None => {
            let names = columns.names();
            let shape = vec![forecasts, outputs, names.len()];
            (names, 1, shape)
        }
    };
    // The forecast, the path and the lead time of each line.
    let cells = || {
        let lines = 0..forecasts * each * outputs;
        lines.map(|line| (line / outputs / each, line / outputs % each, line % outputs))
    };
    let at = |forecast: usize, ahead: usize| {
        let (series, start) = places[forecast];
        found.panel.time(series, start + inputs - 1 + ahead)
    };
    let times = |time: &dyn Fn((usize, usize, usize)) -> Option<i64>| {
        let times = cells().map(|cell| time(cell).unwrap_or_default()).collect();
        match found.encoding.period {
            Period::Counts(_) => Column::Integer(times),
            _ => Column::Time(times),
        }
    };
    let mut leading = Vec::new();
    if found.panel.series.len() > 1 {
        let name = |forecast: usize| found.panel.series[places[forecast].0].name.clone();
        leading.push(("series", Column::Text(cells().map(|(f, _, _)| name(f)).collect())));
    }
    leading.push(("origin", times(&|(forecast, _, _)| at(forecast, 0))));
    if paths_asked.is_some() {
        leading.push(("path", Column::Integer(cells().map(|(_, p, _)| p as i64).collect())));
    }
    leading.push(match found.encoding.period {
        // Which days will be trading days nobody has said.
        Period::Rows => ("lead", Column::Integer(cells().map(|(_, _, k)| k as i64 + 1).collect())),
        _ => ("time", times(&|(forecast, _, lead)| at(forecast, lead + 1))),
    });
    let table = Table::new(leading, names, values, shape);
    if run.job.leads() {
        table_file::write(out, &table.bytes(format, decimals)?)?;
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

/// What a run has learned of its series, and the digits of its forecasts. A run that has noted it
/// needs its data no more, unless it is still to be calibrated.
fn learned<U: Forecasts, N: Network<Input = InputOf<U>> + 'static>(
    run: &mut TrainedRun<'_, U, N>,
) -> Result<(Encoding, usize)> {
    let noted = run.note(ENCODING)?;
    let wanted = run.recipe.calibrate != CalibrateConfig::None;
    let open = run.trainer.loss().leaves_noise_open() && run.trainer.noise().is_empty();
    let calibrated = !open && (!wanted || run.trainer.calibration().is_some());
    if let (Some(noted), true) = (noted, calibrated) {
        const DIGITS: usize = 6;
        return Ok((Encoding::from_json(&noted)?, DIGITS));
    }
    let case = run.load()?;
    run.refuse_other_data(&case)?;
    run.calibrate(&case)?;
    let forecast = case.forecast();
    let decimals = if forecast.unit.is_empty() { 6 } else { forecast.decimals + 1 };
    Ok((forecast.encoding.clone(), decimals))
}

/// Says which series were not learned from.
fn tell_new_series(found: &Found) {
    let new = found.panel.series.iter().filter(|series| found.encoding.of(series).0.is_none());
    let new: Vec<String> = new.map(|series| format!("`{}`", series.name)).collect();
    if !new.is_empty() {
        say::warn(format!(
            "{} of {} series are new to the network, which forecasts them as any other of their \
             scale: {}",
            new.len(),
            found.panel.series.len(),
            new.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
        ));
    }
}

/// Forecasts at each of these places, which ascend, and hands each to `visit` with its level. Where
/// the calibration follows series, it learns from what has come true in each of them before.
fn forecast<U: Forecasts, N: Network<Input = InputOf<U>> + 'static>(
    run: &TrainedRun<'_, U, N>,
    found: &Found,
    places: &[At],
    draws: usize,
    mut visit: impl FnMut(usize, f32, &Predictive) -> Result<()>,
) -> Result<()> {
    let (inputs, outputs) = (found.encoding.cut.inputs, found.encoding.cut.outputs);
    let device = run.trainer.posterior().parameters().device();
    let predictor = run.trainer.predictor();
    let calibration = predictor.calibration().cloned();
    let mut follower = calibration.as_ref().and_then(|calibration| calibration.follower(outputs));
    let raw = predictor.uncalibrated();
    // Forecasts that are asked for, and those that are learned from.
    let mut all = places.to_vec();
    if follower.is_some() {
        let back = look_back(found.encoding.period);
        let of_series = places.chunk_by(|a, b| a.0 == b.0).flat_map(|own| {
            let (series, first, last) = (own[0].0, own[0].1, own[own.len() - 1].1);
            (first.saturating_sub(back)..=last).map(move |start| (series, start))
        });
        all = of_series.filter(|at| found.obstacle(*at).is_none()).collect();
    }
    let chunk = rows_at_a_time(CHUNK, outputs, draws);
    for rows in all.chunks(chunk) {
        let input = found.windows.inputs_at(rows, device);
        let prediction = raw.predict(&input, draws)?;
        table_file::refuse_not_finite(prediction.values())?;
        table_file::refuse_not_finite(&prediction.noise_std())?;
        let deviations = match (&follower, &calibration) {
            (Some(_), Some(calibration)) => {
                let truth: Vec<f32> =
                    rows.iter().flat_map(|&at| found.windows.truth_at(at)).collect();
                let places = rows.iter().map(|&(_, start)| start as u64).collect::<Vec<_>>();
                calibration.widened(prediction.clone()).deviations(&truth, &places)?
            }
            _ => Vec::new(),
        };
        for (row, &(series, start)) in rows.iter().enumerate() {
            let own = &found.windows.series()[series];
            let time = own.first + (start + inputs) as i64;
            let moment = Moment { series: series as u64, time };
            if let Ok(index) = places.binary_search(&(series, start)) {
                let prediction = prediction.of_rows(row..row + 1);
                let prediction = match (&calibration, &mut follower) {
                    (Some(calibration), Some(follower)) => {
                        calibration.seen_through(prediction, follower.lens(moment))
                    }
                    (Some(calibration), None) => calibration.apply(prediction)?,
                    (None, _) => prediction,
                };
                visit(index, own.level(&found.encoding.cut, start), &prediction)?;
            }
            if let Some(follower) = &mut follower {
                follower.observe(moment, deviations[row * outputs..][..outputs].to_vec());
            }
        }
    }
    Ok(())
}
