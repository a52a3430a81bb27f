//! Fields on a globe: several variables, each with a value at every point of a grid and a unit of
//! its own. What is scored is the ensemble of the draws, weighted by the area of the points.

mod report;

use std::sync::Arc;

use anyhow::Result;
use bayesmesh::loss::{Loss, ValueLoss};
use bayesmesh::metrics::{FieldLayout, FieldScore, Score};
use bayesmesh::{Network, Scoring};
use bayesmesh_report::{Report, format_number};
use burn::tensor::Tensor;
use serde_json::{Map, Value, json};

use super::regression::Regression;
use super::{Assessment, Task, TaskInfo, Validation, ValidationColumn, rows_at_a_time};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::recipe::Recipe;
use crate::say;
use crate::use_cases::{InputOf, Reported, Trained, UseCase};

pub use report::{calibration, headline, scores, training};

/// Examples predicted at a time.
const CHUNK: usize = 16;

/// One of the variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// What it is called: `geopotential.500`.
    pub name: String,
    /// Its unit; empty for pure numbers.
    pub unit: String,
    /// What the network's numbers are multiplied by.
    pub scale: f64,
    /// What is then added to them.
    pub shift: f64,
}

impl Field {
    /// The name of one of its scores. A slash goes one level down in a file of scores:
    /// `geopotential/500/rmse`.
    pub fn score(&self, name: &str) -> String {
        format!("{}/{name}", self.name.replace('.', "/"))
    }

    /// A label with the unit: `RMSE (m/s)`.
    pub fn label(&self, name: &str) -> String {
        match self.unit.as_str() {
            "" => name.to_owned(),
            unit => format!("{name} ({unit})"),
        }
    }

    /// An error of this size with three digits.
    pub fn shown(number: f64) -> String {
        let decimals = match number.abs() {
            size if size > 0.0 => (2.0 - size.log10().floor()).clamp(0.0, 9.0) as usize,
            _ => 2,
        };
        format_number(number, decimals)
    }
}

/// Fields of a globe.
#[derive(Clone, Debug)]
pub struct Fields {
    /// The variables, in the order of the network's outputs.
    pub fields: Vec<Field>,
    /// How the outputs are divided into them, and what each point weighs.
    pub layout: FieldLayout,
}

/// What a forecast of fields came to on the test data.
#[derive(Clone, Debug)]
pub struct FieldsAssessment {
    /// All scores. Those of the normalised variables together come first.
    pub scores: Vec<Score>,
    /// The scores of each variable, in its unit.
    pub by_field: Vec<FieldScore>,
    /// Draws of each prediction.
    pub draws: usize,
}

impl Task for Fields {
    // Losses and words are those of any regression.
    const INFO: &'static TaskInfo = Regression::INFO;
    /// A spread needs two.
    const LEAST_DRAWS: usize = 2;
    /// An interval for every point would need more examples than there are points.
    const CALIBRATES: bool = false;
    type Target = Tensor<2>;
    type Assessment = FieldsAssessment;

    fn loss(recipe: &Recipe) -> Result<Arc<dyn Loss<Target = Tensor<2>>>> {
        Ok(recipe.section::<ValueLoss>("loss")?.init()?)
    }

    fn layout(&self) -> Option<FieldLayout> {
        Some(self.layout.clone())
    }

    fn validation(&self, _: &dyn Loss<Target = Tensor<2>>) -> Validation {
        let column =
            |score: &'static str| ValidationColumn { name: score.to_owned(), score, unit: 1.0 };
        let columns = ["rmse", "crps", "spread_skill"].map(column).into();
        Validation { columns, judge: "crps" }
    }

    fn assess<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        trained: &Trained<'_, U, N>,
    ) -> Result<FieldsAssessment> {
        let Trained { case, recipe, trainer, draws } = *trained;
        let outputs = U::shape(&recipe.section("data")?).outputs;
        let chunk = Some(rows_at_a_time(CHUNK, outputs, draws));
        let scoring = Scoring { chunk, ..Scoring::new(draws) };
        let evaluation = trainer
            .predictor()
            .with_fields(self.layout.clone())
            .evaluate_as(case.test(), &scoring)?;
        let found = evaluation.fields().expect("the trainer knows of the fields");
        let mut scores = evaluation.scores().to_vec();
        let mut by_field = Vec::new();
        for (field, found) in self.fields.iter().zip(found) {
            let own = [&found.rmse, &found.mae, &found.crps, &found.spread, &found.spread_skill];
            scores.extend(own.map(|score| score.in_unit(field.score(&score.name), 1.0)));
            by_field.push(found.clone());
        }
        Ok(FieldsAssessment { scores, by_field, draws })
    }

    fn table(&self, assessment: &FieldsAssessment) -> String {
        self.table_with(assessment, &[])
    }

    fn report<U: UseCase<Task = Self>>(&self, run: &Reported<'_, U>) -> Report {
        report::report(self, run)
    }

    fn predict<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        _: &TrainedRun<'_, U, N>,
        _: &U::Data,
        _: &args::Predict,
    ) -> Result<Value> {
        Err(Usage(format!("{} cannot be written as a table", U::EXAMPLES)).into())
    }
}

impl Fields {
    /// The scores of every variable for a terminal, beside those of what costs nothing: a name and
    /// a number for each variable.
    pub fn table_with(&self, assessment: &FieldsAssessment, others: &[(&str, Vec<f64>)]) -> String {
        let rows: Vec<Vec<String>> = self
            .fields
            .iter()
            .zip(&assessment.by_field)
            .enumerate()
            .map(|(index, (field, found))| {
                let mut row = vec![field.label(&field.name), Field::shown(found.rmse.value)];
                row.extend(others.iter().map(|(_, values)| Field::shown(values[index])));
                row.push(Field::shown(found.crps.value));
                row.push(format!("{:.2}", found.spread_skill.value));
                row
            })
            .collect();
        let mut header = vec!["test part", "RMSE"];
        header.extend(others.iter().map(|(name, _)| *name));
        header.extend(["CRPS", "spread/skill"]);
        say::table(&header, &rows)
    }
}

impl Assessment for FieldsAssessment {
    fn scores(&self) -> &[Score] {
        &self.scores
    }

    fn details(&self) -> Map<String, Value> {
        let histograms = self.by_field.iter().map(|field| &field.rank_histogram);
        Map::from_iter([("rank_histograms".to_owned(), json!(histograms.collect::<Vec<_>>()))])
    }
}
