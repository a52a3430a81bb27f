//! Classifications as a file.

use anyhow::Result;
use bayesmesh::{Dataset as _, Network};
use serde_json::{Value, json};

use super::{Classification, Predictions};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, Column, TableFile, npy, number_columns, parquet};
use crate::tasks::rows_asked_for;
use crate::use_cases::{InputOf, UseCase};

/// Classifies examples with a trained run.
pub(super) fn predict<U, N>(
    task: &Classification,
    run: &TrainedRun<'_, U, N>,
    examples: &U::Data,
    arguments: &args::Predict,
) -> Result<Value>
where
    U: UseCase<Task = Classification>,
    N: Network<Input = InputOf<U>> + 'static,
{
    let (out, format) = (&arguments.out, task.check_arguments(arguments)?);
    run.job.agree_on_examples(examples)?;
    let draws = run.draws(arguments.draws)?;
    let rows = rows_asked_for(examples.len(), arguments.limit)?;
    let predictions =
        Predictions::of::<U, N>(&run.trainer, examples, task.classes.len(), draws)?.first(rows);
    table_file::refuse_not_finite(predictions.probabilities())?;
    let bytes = match format {
        TableFile::Csv => task.csv(&predictions, U::EXAMPLE),
        TableFile::Npy => task.numbers(&predictions, U::EXAMPLE),
        TableFile::Parquet => task.parquet(&predictions, U::EXAMPLE)?,
    };
    if run.job.leads() {
        table_file::write(out, &bytes)?;
    }
    say!("{rows} {}: {}", U::EXAMPLES, out.display());
    let columns = task.columns(U::EXAMPLE);
    let mut result = json!({ "out": say::path(out), "draws": draws, "columns": columns });
    result[U::EXAMPLES] = json!(rows);
    Ok(result)
}

impl Classification {
    /// Refuses arguments that are not for classes; what kind of file is written.
    pub fn check_arguments(&self, arguments: &args::Predict) -> Result<TableFile> {
        if arguments.every.is_some() || !arguments.quantiles.is_empty() {
            let message = "--every and --quantiles are for forecasts; images have --limit N";
            return Err(Usage(message.to_owned()).into());
        }
        TableFile::of(&arguments.out)
    }

    fn columns(&self, example: &str) -> Vec<String> {
        let first = [example, "label", "predicted", "entropy", "mutual_information"];
        let first = first.into_iter().map(str::to_owned);
        first.chain(self.classes.iter().map(|class| format!("p_{class}"))).collect()
    }

    /// One line an example: its number, classes by name, entropies in nats, probabilities.
    fn csv(&self, predictions: &Predictions, name: &str) -> Vec<u8> {
        let mut text = self.columns(name).join(",") + "\n";
        for example in 0..predictions.len() {
            let [label, top] = [predictions.labels[example], predictions.top(example).0];
            let [label, top] = [label, top].map(|class| &self.classes[class]);
            let entropy = predictions.entropy[example];
            let mutual = predictions.mutual_information[example];
            text += &format!("{example},{label},{top},{entropy:.6},{mutual:.6}");
            for p in predictions.row(example) {
                text += &format!(",{p:.6}");
            }
            text.push('\n');
        }
        text.into_bytes()
    }

    /// The same as numbers, classes counted from 0: `[examples, columns]`.
    fn numbers(&self, predictions: &Predictions, name: &str) -> Vec<u8> {
        let mut values = Vec::new();
        for example in 0..predictions.len() {
            let [label, top] = [predictions.labels[example], predictions.top(example).0];
            values.extend([example as f32, label as f32, top as f32]);
            let nats = [predictions.entropy[example], predictions.mutual_information[example]];
            values.extend(nats.map(|h| h as f32));
            values.extend(predictions.row(example));
        }
        npy(&[predictions.len(), self.columns(name).len()], &values)
    }

    /// The columns of the text, numbers unrounded.
    fn parquet(&self, predictions: &Predictions, name: &str) -> Result<Vec<u8>> {
        let examples = 0..predictions.len();
        let nats = |values: &[f64]| Column::Number(values.iter().map(|&h| h as f32).collect());
        let class = |class: usize| self.classes[class].clone();
        let names = self.columns(name);
        let first = [
            Column::Integer(examples.clone().map(|example| example as i64).collect()),
            Column::Text(predictions.labels.iter().map(|&label| class(label)).collect()),
            Column::Text(examples.map(|example| class(predictions.top(example).0)).collect()),
            nats(&predictions.entropy),
            nats(&predictions.mutual_information),
        ];
        let (others, classes) = names.split_at(first.len());
        let mut columns: Vec<_> = others.iter().cloned().zip(first).collect();
        columns.extend(number_columns(classes, predictions.probabilities()));
        parquet(&columns)
    }
}
