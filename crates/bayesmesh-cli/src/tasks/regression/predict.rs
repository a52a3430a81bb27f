//! Predicted values as a file.

use anyhow::Result;
use bayesmesh::metrics::percent;
use bayesmesh::{Dataset as _, Network, Posterior as _, Predictive};
use serde_json::{Value, json};

use super::{CHUNK, Regression};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, Column, Table, TableFile};
use crate::tasks::{chunks, rows_asked_for, rows_at_a_time};
use crate::use_cases::{InputOf, UseCase};

/// The quantiles that are written unless others are asked for.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// What is written of each output.
#[derive(Clone, Debug)]
pub struct Columns {
    /// Levels of the quantiles.
    levels: Vec<f64>,
    /// The level of the band; nothing where there is none.
    band: Option<f64>,
}

impl Columns {
    /// What is asked for. A prediction that is not calibrated has no band.
    pub fn asked<U: UseCase, N: Network>(
        run: &TrainedRun<'_, U, N>,
        arguments: &args::Predict,
    ) -> Self {
        let levels = match arguments.quantiles.as_slice() {
            [] => QUANTILES.to_vec(),
            given => given.to_vec(),
        };
        Self { levels, band: run.trainer.calibration().map(|_| arguments.band) }
    }

    /// Their names: mean, std, quantiles, what the std is made of, and the ends of the band.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec!["mean".to_owned(), "std".to_owned()];
        names.extend(self.levels.iter().map(|level| format!("q{}", percent(*level))));
        names.extend(["epistemic".to_owned(), "aleatoric".to_owned()]);
        let ends = self.band.iter().flat_map(|level| {
            ["lower", "upper"].map(|end| format!("band{}_{end}", percent(*level)))
        });
        names.extend(ends);
        names
    }

    /// The numbers of a prediction in the unit: `[rows, outputs, columns]`.
    pub fn of(&self, task: &Regression, prediction: &Predictive) -> Result<Vec<f32>> {
        let outputs = prediction.outputs();
        let each = |numbers: &[f32], of: fn(&Regression, usize, f32) -> f64| {
            let cells = numbers.iter().enumerate();
            cells.map(|(cell, &z)| of(task, cell % outputs, z) as f32).collect()
        };
        let value = |numbers: &[f32]| -> Vec<f32> { each(numbers, Regression::value) };
        let spread = |numbers: &[f32]| -> Vec<f32> { each(numbers, Regression::spread) };
        let [std, epistemic, aleatoric] = prediction.stds();
        let mut columns: Vec<Vec<f32>> = vec![value(&prediction.mean()), spread(&std)];
        columns.extend(prediction.quantiles(&self.levels)?.iter().map(|q| value(q)));
        columns.extend([spread(&epistemic), spread(&aleatoric)]);
        if let Some(level) = self.band {
            columns.extend(prediction.band(level)?.iter().map(|end| value(end)));
        }
        let cells = columns[0].len();
        let values = (0..cells).flat_map(|cell| columns.iter().map(move |column| column[cell]));
        let values: Vec<f32> = values.collect();
        table_file::refuse_not_finite(&values)?;
        Ok(values)
    }
}

/// Joint sample paths of a prediction in the unit: `[rows, paths, outputs]`.
pub fn paths(
    task: &Regression,
    prediction: &Predictive,
    count: usize,
    seed: u64,
    first_row: usize,
) -> Result<Vec<f32>> {
    let paths = prediction.paths(count, seed, first_row)?;
    let (cells, outputs) = (paths.iter().enumerate(), prediction.outputs());
    let values: Vec<f32> = cells.map(|(cell, &z)| task.value(cell % outputs, z) as f32).collect();
    table_file::refuse_not_finite(&values)?;
    Ok(values)
}

/// The number of paths that is asked for, of so many forecasts of so many values.
pub fn paths_asked_for(
    arguments: &args::Predict,
    forecasts: usize,
    outputs: usize,
) -> Result<Option<usize>> {
    /// Numbers of a file.
    const MOST: usize = 50_000_000;
    let most = (MOST / (forecasts * outputs).max(1)).max(1);
    match arguments.paths {
        Some(0) => Err(Usage("--paths 0 is not possible; use 1 or more".to_owned()).into()),
        Some(paths) if paths > most => Err(Usage(format!(
            "--paths {paths} of {forecasts} forecasts are more than a file should hold; use at \
             most {most}, or fewer forecasts"
        ))
        .into()),
        paths => Ok(paths),
    }
}

/// Predicts examples: one line for each output of each.
pub(super) fn predict<U, N>(
    task: &Regression,
    run: &TrainedRun<'_, U, N>,
    examples: &U::Data,
    arguments: &args::Predict,
) -> Result<Value>
where
    U: UseCase<Task = Regression>,
    N: Network<Input = InputOf<U>> + 'static,
{
    let out = &arguments.out;
    let format = TableFile::of(out)?;
    if arguments.every.is_some() {
        return Err(Usage("--every is for series; examples have --limit".to_owned()).into());
    }
    let columns = Columns::asked(run, arguments);
    let (outputs, draws) = (run.shape()?.outputs, run.draws(arguments.draws)?);
    run.job.agree_on_examples(examples)?;
    let rows = rows_asked_for(examples.len(), arguments.limit)?;
    let paths_asked = paths_asked_for(arguments, rows, outputs)?;
    let device = run.trainer.posterior().parameters().device();
    let seed = run.trainer.settings().seed;
    let mut values = Vec::new();
    for rows in chunks(rows, rows_at_a_time(CHUNK, outputs, draws)) {
        let prediction = run.trainer.predict(&examples.batch(&rows, device)?.0, draws)?;
        values.extend(match paths_asked {
            Some(count) => paths(task, &prediction, count, seed, rows[0])?,
            None => columns.of(task, &prediction)?,
        });
    }
    let each = |count: usize, column: &dyn Fn(usize) -> usize| {
        Column::Integer((0..count).map(|cell| column(cell) as i64).collect())
    };
    let table = match paths_asked {
        Some(count) => {
            let cells = rows * count * outputs;
            let leading = vec![
                ("example", each(cells, &|cell| cell / outputs / count)),
                ("path", each(cells, &|cell| cell / outputs % count)),
                ("output", each(cells, &|cell| cell % outputs)),
            ];
            Table::new(leading, vec!["value".to_owned()], values, vec![rows, count, outputs])
        }
        None => {
            let leading = vec![
                ("example", each(rows * outputs, &|cell| cell / outputs)),
                ("output", each(rows * outputs, &|cell| cell % outputs)),
            ];
            let names = columns.names();
            let shape = vec![rows, outputs, names.len()];
            Table::new(leading, names, values, shape)
        }
    };
    let names = table.names();
    if run.job.leads() {
        table_file::write(out, &table.bytes(format, 6)?)?;
    }
    say!("{rows} {}: {}", U::EXAMPLES, out.display());
    Ok(json!({
        "out": say::path(out), "examples": rows, "draws": draws, "columns": names,
    }))
}
