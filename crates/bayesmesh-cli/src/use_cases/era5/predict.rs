//! `bayesmesh predict` of weather: trajectories of every draw, as a Zarr store or an array.

use std::path::Path;

use anyhow::Result;
use bayesmesh::{Dataset as _, Error, Network};
use bayesmesh_data::era5::{Fields, ForecastConfig, ForecastWriter, Statistics, Store};
use serde_json::{Map, Value, json};

use super::data::refuse_other_grid;
use super::forecast::forecast;
use super::{Era5, STATISTICS};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::progress::{Counter, Reading};
use crate::say::{self, say};
use crate::table_file;
use crate::use_cases::InputOf;

/// Numbers of an array that is written at once.
const MOST_IN_ARRAY: usize = 200_000_000;

/// Forecasts from the last time of a store, and with `--every` also from those before.
pub fn predict<N: Network<Input = InputOf<Era5>> + 'static>(
    run: &mut TrainedRun<'_, Era5, N>,
    arguments: &args::Predict,
) -> Result<Value> {
    let out = &arguments.out;
    let array = match out.extension().and_then(|extension| extension.to_str()) {
        Some("zarr") => false,
        Some("npy") => true,
        _ => {
            let message = format!("{}: write to .zarr, or .npy for the small", out.display());
            return Err(Usage(message).into());
        }
    };
    refuse_other_options(arguments)?;
    let steps = match arguments.steps {
        Some(0) => return Err(Usage("--steps 0 is not possible; use 1 or more".into()).into()),
        steps => steps.unwrap_or(1),
    };
    let draws = run.draws(arguments.draws)?;
    let examples = origins(run, arguments.input.as_deref())?;
    let rows = chosen(&examples, arguments)?;

    let lead = examples.config().lead;
    let size = examples.outputs();
    let numbers = rows.len().saturating_mul(steps).saturating_mul(draws).saturating_mul(size);
    if array && numbers > MOST_IN_ARRAY {
        return Err(Usage(format!(
            "{numbers} numbers are more than an array should have; write to a .zarr store, or \
             fewer of them with --limit and --draws"
        ))
        .into());
    }
    let config = ForecastConfig {
        grid: examples.grid().clone(),
        variables: examples.variables().to_vec(),
        units: examples.units().to_vec(),
        times: rows.iter().map(|&row| examples.origin_time(row)).collect(),
        leads: (1..=steps).map(|step| step as i64 * lead).collect(),
        numbers: draws,
        attributes: attributes(run),
    };
    let writer = match run.job.leads() && !array {
        true => Some(ForecastWriter::create(out, config, false)?),
        false => None,
    };
    let statistics = examples.statistics();
    let predictor = run.trainer.predictor();
    let mut values = Vec::new();
    let bar = Counter::new(rows.len() * steps, "steps");
    for (index, &row) in rows.iter().enumerate() {
        forecast(&predictor, &examples, row, draws, steps, |step, prediction| {
            for (number, draw) in prediction.values().chunks_exact(size).enumerate() {
                let mut fields = draw.to_vec();
                statistics.restore(&mut fields);
                table_file::refuse_not_finite(&fields).map_err(refused)?;
                match &writer {
                    Some(writer) => writer
                        .write(index, step - 1, number, &fields)
                        .map_err(|error| Error::Data(error.to_string()))?,
                    None => values.extend(fields),
                }
            }
            bar.add(1);
            Ok(())
        })?;
    }
    drop(bar);
    let grid = examples.grid();
    let shape = [
        rows.len(),
        steps,
        draws,
        examples.variables().len(),
        grid.latitudes().len(),
        grid.longitudes().len(),
    ];
    match writer {
        Some(writer) => writer.finish()?,
        None if run.job.leads() => table_file::write(out, &table_file::npy(&shape, &values))?,
        None => {}
    }
    let hours = lead / 3600;
    say!(
        "{} forecasts of {steps} steps of {hours} h, {draws} draws each: {}",
        rows.len(),
        out.display()
    );
    let names: Vec<String> = examples.variables().iter().map(ToString::to_string).collect();
    Ok(json!({
        "out": say::path(out),
        "forecasts": rows.len(),
        "steps": steps,
        "lead_hours": hours,
        "draws": draws,
        "variables": names,
    }))
}

/// What only forecasts of series have.
fn refuse_other_options(arguments: &args::Predict) -> Result<()> {
    let given =
        [("--paths", arguments.paths.is_some()), ("--quantiles", !arguments.quantiles.is_empty())];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Usage(format!(
            "{option} is for series; a forecast of weather has every draw as a trajectory"
        ))
        .into()),
        None => Ok(()),
    }
}

/// The times of a store that forecasts can begin at, normalised as the run was trained.
fn origins<N: Network<Input = InputOf<Era5>> + 'static>(
    run: &TrainedRun<'_, Era5, N>,
    input: Option<&Path>,
) -> Result<Fields> {
    let settings: super::Era5Settings = run.recipe.section("data")?;
    let store = match input {
        Some(path) => Store::open(&path.to_string_lossy())?,
        None => settings.open(&run.recipe)?,
    };
    refuse_other_grid(&store, settings.fields())?;
    let statistics = match run.note(STATISTICS)? {
        Some(text) => Statistics::from_json(&serde_json::from_str(&text)?, "the checkpoint")?,
        None => {
            let path = run.folder.path().display();
            return Err(Usage(format!("{path} does not say what it was normalised by")).into());
        }
    };
    let config = settings.config()?;
    // What is usual is that of the training part.
    let climatology = if config.climatology { Some(run.load()?.climatology) } else { None };
    let mut bar = Reading::new();
    Ok(Fields::origins(&store, &config, statistics, climatology, &mut |p| {
        bar.show(p.what, p.done, p.of);
    })?)
}

/// The last one, and with `--every` each so many before it.
fn chosen(examples: &Fields, arguments: &args::Predict) -> Result<Vec<usize>> {
    let last = examples.len().checked_sub(1).ok_or_else(|| {
        Usage("the store has no time with everything that a forecast begins from".to_owned())
    })?;
    let mut rows: Vec<usize> = match arguments.every {
        Some(0) => return Err(Usage("--every 0 is not possible; use 1 or more".into()).into()),
        Some(every) => (0..=last).rev().step_by(every).collect(),
        None => vec![last],
    };
    rows.reverse();
    let count = crate::tasks::rows_asked_for(rows.len(), arguments.limit)?;
    rows.truncate(count);
    Ok(rows)
}

fn attributes<N: Network>(run: &TrainedRun<'_, Era5, N>) -> Map<String, Value> {
    let text = |text: &str| Value::from(text);
    Map::from_iter([
        ("Conventions".to_owned(), text("CF-1.10")),
        ("title".to_owned(), text(&run.recipe.name)),
        ("source".to_owned(), format!("BayesMesh {}", env!("CARGO_PKG_VERSION")).into()),
        ("digest".to_owned(), run.trainer.digest().into()),
    ])
}

fn refused(error: anyhow::Error) -> Error {
    Error::Data(format!("{error:#}"))
}
