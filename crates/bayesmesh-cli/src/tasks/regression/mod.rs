//! Values: how far off they are, and whether their intervals hold what they promise.

mod predict;
mod report;

use std::sync::Arc;

use anyhow::Result;
use bayesmesh::loss::{Loss, Reading, ValueLoss};
use bayesmesh::metrics::{Score, percent};
use bayesmesh::{Network, Predictive, Scoring};
use bayesmesh_report::{Report, format_number};
use bayesmesh_schema::Kinds;
use burn::tensor::Tensor;
use serde_json::{Map, Value, json};

use super::{Assessment, Task, TaskInfo, Validation, ValidationColumn, find, rows_at_a_time};
use crate::args;
use crate::commands::TrainedRun;
use crate::recipe::Recipe;
use crate::say;
use crate::use_cases::{InputOf, Reported, Trained, UseCase};

pub use predict::{quantile_columns, quantile_levels, tabulate};
pub use report::{Outputs, calibration, headline, scores, training};

const INFO: &TaskInfo = &TaskInfo {
    name: "regression",
    predicts: "numbers",
    losses: || ValueLoss::section().kinds,
    example: "squared-error-of-mean",
};

/// Rows predicted at a time.
pub const CHUNK: usize = 2048;

/// Values, each a normalised number times a scale plus a shift in some unit.
#[derive(Clone, Debug)]
pub struct Regression {
    /// The unit, e.g. `MW`; empty for pure numbers.
    pub unit: String,
    /// Digits after the point that a reader wants of a value.
    pub decimals: usize,
    /// What the network's numbers are multiplied by.
    pub scale: f64,
    /// What is then added to them.
    pub shift: f64,
}

/// What a regression came to on the test data.
#[derive(Clone, Debug)]
pub struct RegressionAssessment {
    /// Scores by name; those with a unit say so: `rmse_mw`.
    pub scores: Vec<Score>,
    /// Deviation of the noise of each output, in the unit, added to the spread of the draws. Zero
    /// where the network predicts the noise itself.
    pub noise: Vec<f64>,
    /// Nominal and observed coverage of central intervals.
    pub calibration: Vec<(f64, f64)>,
    /// The histogram of the probability integral transform.
    pub pit: Vec<f64>,
    /// RMSE and mean predicted deviation of each output, in the unit.
    pub by_output: Vec<(f64, f64)>,
    /// The level of the interval that is shown first.
    pub level: f64,
    /// Draws of each prediction.
    pub draws: usize,
    suffix: String,
}

impl Regression {
    /// Pure numbers, as the network gives them.
    pub fn plain() -> Self {
        Self { unit: String::new(), decimals: 4, scale: 1.0, shift: 0.0 }
    }

    /// What the names of scores in the unit end with: `_mw`.
    pub fn suffix(&self) -> String {
        match self.unit.as_str() {
            "" => String::new(),
            unit => {
                let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
                format!("_{}", unit.to_lowercase().chars().map(plain).collect::<String>())
            }
        }
    }

    /// A label with the unit: `RMSE (MW)`.
    pub fn label(&self, name: &str) -> String {
        match self.unit.as_str() {
            "" => name.to_owned(),
            unit => format!("{name} ({unit})"),
        }
    }

    /// A number of the network in the unit.
    pub fn value(&self, number: f32) -> f64 {
        f64::from(number) * self.scale + self.shift
    }

    /// A difference of numbers of the network in the unit.
    pub fn spread(&self, number: f32) -> f64 {
        f64::from(number) * self.scale
    }

    /// A number in the unit, with the digits that a reader wants.
    pub fn shown(&self, number: f64) -> String {
        format_number(number, self.decimals)
    }
}

impl Task for Regression {
    const INFO: &'static TaskInfo = INFO;
    /// A spread needs two.
    const LEAST_DRAWS: usize = 2;
    type Target = Tensor<2>;
    type Assessment = RegressionAssessment;

    fn loss(recipe: &Recipe) -> Result<Arc<dyn Loss<Target = Tensor<2>>>> {
        Ok(recipe.section::<ValueLoss>("loss")?.init()?)
    }

    fn validation(&self, loss: &dyn Loss<Target = Tensor<2>>) -> Validation {
        let with_unit = |score: &'static str| ValidationColumn {
            name: format!("{score}{}", self.suffix()),
            score,
            unit: self.scale,
        };
        match loss.reading() {
            Reading::MeanAndLogVariance | Reading::ValuesWithNoise { .. } => {
                let nll = ValidationColumn { name: "nll".to_owned(), score: "nll", unit: 1.0 };
                Validation { columns: vec![with_unit("rmse"), nll], judge: "nll" }
            }
            // Without noise there is no density.
            Reading::Values | Reading::Logits => {
                let columns = vec![with_unit("rmse"), with_unit("crps")];
                Validation { columns, judge: "rmse" }
            }
        }
    }

    fn assess<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        trained: &Trained<'_, U, N>,
    ) -> Result<RegressionAssessment> {
        let Trained { case, recipe, trainer, draws } = *trained;
        let predictor = trainer.predictor();
        let noise = match trainer.loss().leaves_noise_open() {
            // What was learned from is better known than it should be; still better than no noise.
            true => predictor.estimate_noise(case.valid().unwrap_or(case.train()), draws)?,
            false => Vec::new(),
        };
        let outputs = U::shape(&recipe.section("data")?).outputs;
        let levels = recipe.evaluate.levels.clone();
        let level = levels.iter().copied().find(|level| *level == 0.9);
        let level = level.or(levels.last().copied()).unwrap_or(0.9);
        let scoring = Scoring {
            levels,
            noise: noise.clone(),
            chunk: Some(rows_at_a_time(CHUNK, outputs, draws)),
            ..Scoring::new(draws)
        };
        let evaluation = predictor.evaluate_as(case.test(), &scoring)?;
        let found = evaluation.regression().expect("a regression has values");
        let suffix = self.suffix();
        let with_unit =
            |score: &Score| score.in_unit(format!("{}{suffix}", score.name), self.scale);
        let mut scores: Vec<Score> =
            [&found.rmse, &found.mae, &found.bias, &found.crps, &found.mean_std]
                .map(with_unit)
                .into();
        // A density for each unit is smaller than one for each number of the network.
        scores.push(Score {
            name: format!("nll{suffix}"),
            value: found.nll.value + self.scale.ln(),
            ..found.nll.clone()
        });
        scores.extend(evaluation.iter().filter(|s| s.name.starts_with("coverage_")).cloned());
        scores.push(found.mace.clone());
        let by_output = found.by_output.iter();
        let by_output: Vec<(f64, f64)> =
            by_output.map(|row| (self.scale * row.rmse, self.scale * row.mean_std)).collect();
        Ok(RegressionAssessment {
            scores,
            calibration: found.calibration.iter().map(|row| (row.nominal, row.observed)).collect(),
            pit: found.pit.clone(),
            noise: match noise.is_empty() {
                true => vec![0.0; by_output.len()],
                false => noise.iter().map(|std| self.scale * std).collect(),
            },
            by_output,
            level,
            draws,
            suffix,
        })
    }

    fn table(&self, assessment: &RegressionAssessment) -> String {
        self.table_with(assessment, "prediction", &[])
    }

    fn report<U: UseCase<Task = Self>>(&self, run: &Reported<'_, U>) -> Report {
        report::report(self, run)
    }

    fn predict<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        run: &TrainedRun<'_, U, N>,
        examples: &U::Data,
        arguments: &args::Predict,
    ) -> Result<Value> {
        predict::predict(self, run, examples, arguments)
    }
}

impl Regression {
    /// The most important scores for a terminal, beside the RMSE of what costs nothing.
    pub fn table_with(
        &self,
        assessment: &RegressionAssessment,
        name: &str,
        baselines: &[(&str, f64)],
    ) -> String {
        let number = |name: &str| self.shown(assessment.in_unit(name));
        let mut rows = vec![vec![
            name.to_owned(),
            number("rmse"),
            number("mae"),
            number("crps"),
            format!("{:.1}", 100.0 * assessment.covered()),
        ]];
        let baseline = |(name, rmse): &(&str, f64)| vec![(*name).to_owned(), self.shown(*rmse)];
        rows.extend(baselines.iter().map(baseline));
        let [rmse, mae, crps] = ["RMSE", "MAE", "CRPS"].map(|name| self.label(name));
        let covers = format!("{} % covers (%)", percent(assessment.level));
        say::table(&["test part", &rmse, &mae, &crps, &covers], &rows)
    }

    /// Mean and deviation of a prediction in the unit.
    pub fn mean_and_std(&self, prediction: &Predictive) -> (Vec<f32>, Vec<f32>) {
        let mean = prediction.mean().iter().map(|&z| self.value(z) as f32).collect();
        let std = prediction.std().iter().map(|&z| self.spread(z) as f32).collect();
        (mean, std)
    }
}

impl RegressionAssessment {
    /// A score that has a unit, by its name without it.
    pub fn in_unit(&self, name: &str) -> f64 {
        find(&self.scores, &format!("{name}{}", self.suffix))
    }

    /// The share of the truth in the interval that is shown first.
    pub fn covered(&self) -> f64 {
        find(&self.scores, &format!("coverage_{}", percent(self.level)))
    }
}

impl Assessment for RegressionAssessment {
    fn scores(&self) -> &[Score] {
        &self.scores
    }

    fn details(&self) -> Map<String, Value> {
        Map::from_iter([(format!("noise{}", self.suffix), json!(self.noise))])
    }
}
