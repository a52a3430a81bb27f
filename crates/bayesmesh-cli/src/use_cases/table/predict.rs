//! `bayesmesh predict RUN [rows.csv] --out …`: one line for each row.

use std::sync::Arc;

use anyhow::Result;
use bayesmesh::{CalibrateConfig, Dataset as _, Network, Posterior as _};
use bayesmesh_data::table::{Encoder, Examples, Labels, Values};
use serde_json::{Value, json};

use super::data::{ENCODER, noted, read};
use super::{TableClasses, TableValues, regression};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, Column, Table, TableFile};
use crate::tasks::classification::{Classification, RawRows};
use crate::tasks::regression::{CHUNK, Columns, Regression};
use crate::tasks::{chunks, rows_asked_for, rows_at_a_time};
use crate::use_cases::{InputOf, UseCase};

/// Rows to predict, with what is strange about some of them.
struct Rows<T> {
    examples: Examples<T>,
    /// A line for each example; empty where it is like others.
    unlike: Vec<String>,
    encoder: Encoder,
}

impl<T> Rows<T> {
    /// Those of a file, which need not have the target.
    fn of_file(
        encoder: Encoder,
        path: &std::path::Path,
        targets: impl FnOnce(&Encoder, usize) -> T,
    ) -> Result<Self> {
        let frame = read(path, &encoder.texts(), &encoder.missing)?;
        if frame.rows == 0 {
            return Err(Usage(format!("{}: there are no rows to predict", path.display())).into());
        }
        let encoded = encoder
            .encode(&frame, true)
            .map_err(|error| anyhow::Error::from(error).context(path.display().to_string()))?;
        let mut unlike = vec![String::new(); frame.rows];
        for (row, words) in encoded.unlike {
            unlike[row] = words;
        }
        let targets = Arc::new(targets(&encoder, frame.rows));
        let rows = (0..frame.rows).collect();
        let examples = Examples::new(Arc::new(encoded.inputs), encoded.width, targets, rows);
        Ok(Self { examples, unlike, encoder })
    }

    /// Says how many of the first so many rows are unlike all that were learned from.
    fn tell(&self, rows: usize) -> usize {
        let strange = || self.unlike[..rows].iter().enumerate().filter(|(_, w)| !w.is_empty());
        let count = strange().count();
        if count > 0 {
            say!(
                "{count} of {rows} rows are unlike all that were learned from; the first of them:"
            );
            strange().take(3).for_each(|(row, words)| say!("  row {row}: {words}"));
        }
        count
    }
}

/// Calibrates a run for this time, from its own data, if its checkpoint is not.
fn calibrated<U: UseCase, N: Network<Input = InputOf<U>> + 'static>(
    run: &mut TrainedRun<'_, U, N>,
) -> Result<()> {
    let wanted = run.recipe.calibrate != CalibrateConfig::None;
    let open = run.trainer.loss().leaves_noise_open() && run.trainer.noise().is_empty();
    if open || (wanted && run.trainer.calibration().is_none()) {
        let case = run.load()?;
        run.refuse_other_data(&case)?;
        run.calibrate(&case)?;
    }
    Ok(())
}

/// Predicts numbers.
pub fn values<N: Network<Input = InputOf<TableValues>> + 'static>(
    run: &mut TrainedRun<'_, TableValues, N>,
    arguments: &args::Predict,
) -> Result<Value> {
    let format = TableFile::of(&arguments.out)?;
    if arguments.every.is_some() || arguments.paths.is_some() {
        let message = "--every and --paths are for series; rows have --limit and --quantiles";
        return Err(Usage(message.to_owned()).into());
    }
    calibrated(run)?;
    let rows = match &arguments.input {
        Some(path) => {
            let encoder = noted(run.note(ENCODER)?)?;
            let values = |encoder: &Encoder, rows: usize| {
                let outputs = encoder.targets.len();
                Values { values: vec![0.0; rows * outputs], outputs }
            };
            Rows::of_file(encoder, path, values)?
        }
        None => {
            let TableValues { case, .. } = run.load()?;
            let encoded = case.encoder.encode(&case.frame, true)?;
            let unlike = of_rows(encoded.unlike, case.test.rows());
            Rows { examples: case.test, unlike, encoder: case.encoder }
        }
    };
    let task = regression(&rows.encoder);
    let columns = Columns::asked(run, arguments);
    let (outputs, draws) = (rows.encoder.targets.len(), run.draws(arguments.draws)?);
    run.job.agree_on_examples(&rows.examples)?;
    let count = rows_asked_for(rows.examples.len(), arguments.limit)?;
    let device = run.trainer.posterior().parameters().device();
    let mut values = Vec::new();
    for chunk in chunks(count, rows_at_a_time(CHUNK, outputs, draws)) {
        let batch = rows.examples.batch(&chunk, device)?.0;
        values.extend(columns.of(&task, &run.trainer.predict(&batch, draws)?)?);
    }
    let names: Vec<String> = match rows.encoder.targets.as_slice() {
        [_] => columns.names(),
        several => {
            let of = |target: &String| {
                let name = |column: String| format!("{target}_{column}");
                columns.names().into_iter().map(name).collect::<Vec<_>>()
            };
            several.iter().flat_map(of).collect()
        }
    };
    let shape = vec![count, names.len()];
    let table = Table::new(vec![("row", numbers(&rows, count))], names, values, shape);
    let unlike = rows.tell(count);
    let table = table.ending_with("unlike".to_owned(), Column::Text(rows.unlike[..count].to_vec()));
    if run.job.leads() {
        table_file::write(&arguments.out, &table.bytes(format, decimals(&task))?)?;
    }
    say!("{count} rows: {}", arguments.out.display());
    Ok(json!({
        "out": say::path(&arguments.out), "rows": count, "draws": draws, "unlike": unlike,
        "columns": table.names(),
    }))
}

/// Predicts classes.
pub fn classes<N: Network<Input = InputOf<TableClasses>> + 'static>(
    run: &mut TrainedRun<'_, TableClasses, N>,
    arguments: &args::Predict,
) -> Result<Value> {
    calibrated(run)?;
    let (rows, labelled) = match &arguments.input {
        Some(path) => {
            let encoder = noted(run.note(ENCODER)?)?;
            (Rows::of_file(encoder, path, |_, rows| Labels(vec![0; rows]))?, false)
        }
        None => {
            let TableClasses { case } = run.load()?;
            let encoded = case.encoder.encode(&case.frame, true)?;
            let unlike = of_rows(encoded.unlike, case.test.rows());
            (Rows { examples: case.test, unlike, encoder: case.encoder }, true)
        }
    };
    let task = Classification { classes: rows.encoder.classes.clone().into() };
    let count = rows_asked_for(rows.examples.len(), arguments.limit)?;
    let unlike = rows.tell(count);
    let raw = RawRows { labelled, note: Some(("unlike", rows.unlike)) };
    let mut result = task.predict_rows(run, &rows.examples, arguments, &raw)?;
    result["unlike"] = json!(unlike);
    Ok(result)
}

/// What is strange about some rows of a table.
fn of_rows(unlike: Vec<(usize, String)>, rows: &[usize]) -> Vec<String> {
    let words = |row: &usize| match unlike.binary_search_by_key(row, |(row, _)| *row) {
        Ok(place) => unlike[place].1.clone(),
        Err(_) => String::new(),
    };
    rows.iter().map(words).collect()
}

/// Which row of its table each example is, from 0.
fn numbers<T>(rows: &Rows<T>, count: usize) -> Column {
    Column::Integer(rows.examples.rows()[..count].iter().map(|&row| row as i64).collect())
}

/// Digits after the point of a file: some more than a reader wants.
fn decimals(task: &Regression) -> usize {
    (task.decimals + 3).max(6)
}
