//! Classifications as a file.

use anyhow::Result;
use bayesmesh::calibrate::ClassCalibration;
use bayesmesh::metrics::percent;
use bayesmesh::{Calibration, Dataset as _, Network};
use serde_json::{Value, json};

use super::{Classification, Predictions};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, Column, Table, TableFile, npy};
use crate::tasks::rows_asked_for;
use crate::use_cases::{InputOf, UseCase};

/// How sets of classes are made, and at what level.
type Sets = (ClassCalibration, f64);

/// What is known of rows that a user brings.
#[derive(Clone, Debug, Default)]
pub struct RawRows {
    /// Whether their classes are known.
    pub labelled: bool,
    /// A column more for tables of predictions, a text for each row, and its name: `file`.
    pub note: Option<(&'static str, Vec<String>)>,
}

/// Classifies examples with a trained run.
pub(super) fn predict<U, N>(
    task: &Classification,
    run: &TrainedRun<'_, U, N>,
    examples: &U::Data,
    arguments: &args::Predict,
    raw: Option<&RawRows>,
) -> Result<Value>
where
    U: UseCase<Task = Classification>,
    N: Network<Input = InputOf<U>> + 'static,
{
    let (out, format) = (&arguments.out, task.check_arguments(arguments)?);
    run.job.agree_on_examples(examples)?;
    let draws = run.draws(arguments.draws)?;
    let rows = rows_asked_for(examples.len(), arguments.limit)?;
    let sets = run.trainer.calibration().and_then(Calibration::of_classes);
    let wanted = run.recipe.calibrate.method(true, false)?;
    if wanted != run.trainer.calibration().map(Calibration::method) {
        let run = run.folder.path().display();
        say!(
            "calibrated as the run is, not as its recipe says: `bayesmesh evaluate {run}` does that"
        );
    }
    let sets = sets.map(|sets| (sets.clone(), arguments.band));
    let predictions =
        Predictions::of::<U, N>(&run.trainer, examples, task.classes.len(), draws)?.first(rows);
    table_file::refuse_not_finite(predictions.probabilities())?;
    let labelled = raw.is_none_or(|raw| raw.labelled);
    let note = raw.and_then(|raw| raw.note.as_ref());
    let bytes = match format {
        TableFile::Npy => task.numbers(&predictions, U::EXAMPLE, sets.as_ref()),
        text => {
            let table = task.table(&predictions, U::EXAMPLE, sets.as_ref(), labelled);
            let table = match note {
                Some((name, texts)) => {
                    table.ending_with((*name).to_owned(), Column::Text(texts[..rows].to_vec()))
                }
                None => table,
            };
            table.bytes(text, 6)?
        }
    };
    if run.job.leads() {
        table_file::write(out, &bytes)?;
    }
    say!("{rows} {}: {}", U::EXAMPLES, out.display());
    let mut columns = task.columns(U::EXAMPLE, sets.as_ref());
    if format != TableFile::Npy {
        columns.retain(|column| labelled || column != "label");
        columns.extend(note.map(|(name, _)| (*name).to_owned()));
    }
    let mut result = json!({ "out": say::path(out), "draws": draws, "columns": columns });
    result[U::EXAMPLES] = json!(rows);
    Ok(result)
}

impl Classification {
    /// Classifies rows that a user brings.
    pub fn predict_rows<U, N>(
        &self,
        run: &TrainedRun<'_, U, N>,
        examples: &U::Data,
        arguments: &args::Predict,
        raw: &RawRows,
    ) -> Result<Value>
    where
        U: UseCase<Task = Self>,
        N: Network<Input = InputOf<U>> + 'static,
    {
        predict(self, run, examples, arguments, Some(raw))
    }

    /// Refuses arguments that are not for classes; what kind of file is written.
    pub fn check_arguments(&self, arguments: &args::Predict) -> Result<TableFile> {
        let values = !arguments.quantiles.is_empty() || arguments.paths.is_some();
        if arguments.every.is_some() || values {
            let message =
                "--every, --quantiles and --paths are for forecasts; classes have --limit N";
            return Err(Usage(message.to_owned()).into());
        }
        TableFile::of(&arguments.out)
    }

    /// Example, label, predicted class, numbers, and the set of classes that may be the right one.
    fn columns(&self, example: &str, sets: Option<&Sets>) -> Vec<String> {
        let first = [example, "label", "predicted"].into_iter().map(str::to_owned);
        let set = sets.map(|(_, level)| format!("set{}", percent(*level)));
        first.chain(self.numbers_of()).chain(set).collect()
    }

    /// All uncertainty of a prediction, in nats, what more data could take away of it, the
    /// probability of each class, and what no data could take away.
    fn numbers_of(&self) -> Vec<String> {
        let first = ["entropy", "mutual_information"].into_iter().map(str::to_owned);
        let classes = self.classes.iter().map(|class| format!("p_{class}"));
        first.chain(classes).chain(["expected_entropy".to_owned()]).collect()
    }

    fn values(predictions: &Predictions) -> Vec<f32> {
        let examples = 0..predictions.len();
        let values = examples.flat_map(|example| {
            let entropy = predictions.entropy[example];
            let mutual = predictions.mutual_information[example];
            let first = [entropy as f32, mutual as f32].into_iter();
            let last = (entropy - mutual).max(0.0) as f32;
            first.chain(predictions.row(example).iter().copied()).chain([last])
        });
        values.collect()
    }

    /// One line an example, classes by name; those of a set are separated by bars.
    fn table(
        &self,
        predictions: &Predictions,
        name: &str,
        sets: Option<&Sets>,
        labelled: bool,
    ) -> Table {
        let examples = 0..predictions.len();
        let class = |class: usize| self.classes[class].clone();
        let tops = examples.clone().map(|example| class(predictions.top(example).0));
        let mut leading = vec![
            (name, Column::Integer(examples.clone().map(|example| example as i64).collect())),
            ("label", Column::Text(predictions.labels.iter().map(|&label| class(label)).collect())),
            ("predicted", Column::Text(tops.collect())),
        ];
        leading.retain(|(name, _)| labelled || *name != "label");
        let values = Self::values(predictions);
        let table = Table::new(leading, self.numbers_of(), values, Vec::new());
        let Some((sets, level)) = sets else { return table };
        let text = |example: usize| {
            let inside = sets.set(predictions.row(example), example as u64, *level);
            let inside = self.classes.iter().zip(inside).filter(|(_, inside)| *inside);
            inside.map(|(class, _)| class.as_str()).collect::<Vec<_>>().join("|")
        };
        let column = Column::Text(examples.map(text).collect());
        table.ending_with(format!("set{}", percent(*level)), column)
    }

    /// The same as numbers, classes counted from 0, and of a set how many are in it:
    /// `[examples, columns]`.
    fn numbers(&self, predictions: &Predictions, name: &str, sets: Option<&Sets>) -> Vec<u8> {
        let all = Self::values(predictions);
        let width = self.numbers_of().len();
        let mut values = Vec::new();
        for (example, numbers) in all.chunks_exact(width).enumerate() {
            let [label, top] = [predictions.labels[example], predictions.top(example).0];
            values.extend([example as f32, label as f32, top as f32]);
            values.extend(numbers);
            if let Some((sets, level)) = sets {
                let inside = sets.set(predictions.row(example), example as u64, *level);
                values.push(inside.iter().filter(|inside| **inside).count() as f32);
            }
        }
        npy(&[predictions.len(), self.columns(name, sets).len()], &values)
    }
}
