//! Predicted values as a file.

use anyhow::{Context as _, Result};
use bayesmesh::metrics::percent;
use bayesmesh::{Dataset as _, Network};
use serde_json::{Value, json};

use super::{CHUNK, Regression};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::say::{self, say};
use crate::table_file::{self, TableFile, npy};
use crate::tasks::{chunks, rows_asked_for, rows_at_a_time};
use crate::use_cases::{InputOf, UseCase};

/// The quantiles that are written unless others are asked for.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// The quantiles that are asked for.
pub fn quantile_levels(arguments: &args::Predict) -> Vec<f64> {
    match arguments.quantiles.as_slice() {
        [] => QUANTILES.to_vec(),
        given => given.to_vec(),
    }
}

/// The columns of a prediction: mean, std, then quantiles.
pub fn quantile_columns(levels: &[f64]) -> Vec<String> {
    let quantiles = levels.iter().map(|level| format!("q{}", percent(*level)));
    ["mean".to_owned(), "std".to_owned()].into_iter().chain(quantiles).collect()
}

/// The noise of each of so many outputs in numbers of the network, as the last evaluation found it.
fn noise<U: UseCase, N: Network>(
    run: &TrainedRun<'_, U, N>,
    task: &Regression,
    outputs: usize,
) -> Result<Vec<f64>> {
    let evaluation = run.evaluation()?;
    let key = format!("noise{}", task.suffix());
    let noise = evaluation[&key].as_array();
    let noise = noise.and_then(|list| list.iter().map(Value::as_f64).collect::<Option<Vec<_>>>());
    let valid = |noise: &Vec<f64>| noise.len() == outputs && noise.iter().all(|std| *std >= 0.0);
    let noise = noise.filter(valid).with_context(|| {
        let file = run.evaluation_file().display().to_string();
        format!("`{key}` in {file} must be {outputs} numbers, none negative: {}", run.not_scored())
    })?;
    Ok(noise.iter().map(|std| std / task.scale).collect())
}

/// Mean, std and quantiles of each output of so many examples, in the unit:
/// `[examples, outputs, 2 + quantiles]`. Refuses what is not finite.
pub fn tabulate<U, N>(
    task: &Regression,
    run: &TrainedRun<'_, U, N>,
    examples: usize,
    levels: &[f64],
    draws: usize,
    input: impl Fn(&[usize]) -> Result<InputOf<U>>,
) -> Result<Vec<f32>>
where
    U: UseCase<Task = Regression>,
    N: Network<Input = InputOf<U>> + 'static,
{
    let outputs = run.shape()?.outputs;
    let noise = noise(run, task, outputs)?;
    let mut values = Vec::new();
    for rows in chunks(examples, rows_at_a_time(CHUNK, outputs, draws)) {
        let prediction = run.trainer.predict(&input(&rows)?, draws)?.with_noise(&noise)?;
        let quantiles = prediction.quantiles(levels)?;
        let (mean, std) = task.mean_and_std(&prediction);
        for cell in 0..mean.len() {
            values.extend([mean[cell], std[cell]]);
            values.extend(quantiles.iter().map(|q| task.value(q[cell]) as f32));
        }
    }
    table_file::refuse_not_finite(&values)?;
    Ok(values)
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
    let levels = quantile_levels(arguments);
    let columns = quantile_columns(&levels);
    let (outputs, draws) = (run.shape()?.outputs, run.draws(arguments.draws)?);
    run.job.agree_on_examples(examples)?;
    let rows = rows_asked_for(examples.len(), arguments.limit)?;
    let device = run.trainer.posterior().parameters().device();
    let values =
        tabulate(task, run, rows, &levels, draws, |rows| Ok(examples.batch(rows, device)?.0))?;
    let bytes = match format {
        TableFile::Npy => npy(&[rows, outputs, columns.len()], &values),
        TableFile::Csv => {
            let mut text = format!("example,output,{}\n", columns.join(","));
            for (cell, values) in values.chunks_exact(columns.len()).enumerate() {
                let values: Vec<String> = values.iter().map(|v| format!("{v:.6}")).collect();
                let (example, output) = (cell / outputs, cell % outputs);
                text += &format!("{example},{output},{}\n", values.join(","));
            }
            text.into_bytes()
        }
    };
    if run.job.leads() {
        table_file::write(out, &bytes)?;
    }
    say!("{rows} {}: {}", U::EXAMPLES, out.display());
    Ok(json!({
        "out": say::path(out), "examples": rows, "draws": draws, "columns": columns,
    }))
}
