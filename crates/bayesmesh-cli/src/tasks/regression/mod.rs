//! Values: how far off they are, and whether their intervals hold what they promise.

mod joint;
mod predict;
mod report;

use std::sync::Arc;

use anyhow::Result;
use bayesmesh::calibrate::Method;
use bayesmesh::loss::{Loss, Reading, ValueLoss};
use bayesmesh::metrics::{CoverageRow, Score, Stratum, percent};
use bayesmesh::{Calibration, Dataset as _, Evaluation, Network, Scoring};
use bayesmesh_report::{Report, format_number};
use bayesmesh_schema::Kinds;
use burn::tensor::Tensor;
use serde_json::{Map, Value, json};

use super::{
    Assessment, RAW, Task, TaskInfo, Validation, ValidationColumn, find, rows_at_a_time, with_raw,
};
use crate::args;
use crate::commands::TrainedRun;
use crate::recipe::Recipe;
use crate::say;
use crate::use_cases::{InputOf, Reported, Trained, UseCase};

use joint::Joint;
pub use predict::{Columns, paths, paths_asked_for};
pub use report::{Outputs, calibration, headline, scores, training};

const INFO: &TaskInfo = &TaskInfo {
    name: "regression",
    predicts: "numbers",
    classes: false,
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
    /// Where the outputs are several things, each in a unit of its own: what they are. Scores over
    /// all of them are then those of the network's numbers.
    pub targets: Vec<OutputTarget>,
}

/// One of several things that are predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputTarget {
    /// What it is called.
    pub name: String,
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
    /// The same before calibration, where there was one.
    pub calibration_raw: Option<Vec<(f64, f64)>>,
    /// The histogram of the probability integral transform.
    pub pit: Vec<f64>,
    /// The same before calibration, where there was one.
    pub pit_raw: Option<Vec<f64>>,
    /// RMSE and mean predicted deviation of each output, in the unit.
    pub by_output: Vec<(f64, f64)>,
    /// Coverage of each output.
    pub coverage_by_output: Strata,
    /// Coverage of predictions from narrow to wide.
    pub coverage_by_spread: Strata,
    /// Deviations before calibration that divide them, in the unit.
    pub spreads: Vec<f64>,
    /// Coverage of groups of examples.
    pub coverage_by_group: Strata,
    /// What they are groups by, and their names.
    pub groups: Option<(&'static str, Vec<String>)>,
    /// How predictions are calibrated, and on how many examples.
    pub method: Option<(Method, usize)>,
    /// The level of the interval that is shown first.
    pub level: f64,
    /// Draws of each prediction.
    pub draws: usize,
    suffix: String,
}

/// Coverage under conditions.
#[derive(Clone, Debug)]
pub struct Strata {
    /// Of predictions as they are.
    pub own: Vec<Stratum>,
    /// Before calibration.
    pub raw: Vec<Stratum>,
}

impl Regression {
    /// Pure numbers, as the network gives them.
    pub fn plain() -> Self {
        Self { unit: String::new(), decimals: 4, scale: 1.0, shift: 0.0, targets: Vec::new() }
    }

    /// What the names of scores in the unit end with: `_mw`.
    pub fn suffix(&self) -> String {
        match self.unit.as_str() {
            "" => String::new(),
            unit => format!("_{}", plain(&unit.to_lowercase())),
        }
    }

    /// A label with the unit: `RMSE (MW)`.
    pub fn label(&self, name: &str) -> String {
        match self.unit.as_str() {
            "" => name.to_owned(),
            unit => format!("{name} ({unit})"),
        }
    }

    /// A number of the network for an output, in its unit.
    pub fn value(&self, output: usize, number: f32) -> f64 {
        let shift = self.targets.get(output).map_or(self.shift, |target| target.shift);
        self.spread(output, number) + shift
    }

    /// A difference of numbers of the network for an output, in its unit.
    pub fn spread(&self, output: usize, number: f32) -> f64 {
        f64::from(number) * self.scale_of(output)
    }

    /// What the network's numbers for an output are multiplied by.
    fn scale_of(&self, output: usize) -> f64 {
        self.targets.get(output).map_or(self.scale, |target| target.scale)
    }

    /// A number in the unit, with the digits that a reader wants.
    pub fn shown(&self, number: f64) -> String {
        format_number(number, self.decimals)
    }
}

/// A name as scores have it: letters, digits and `_`.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
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
            Reading::MeanAndLogVariance
            | Reading::ValuesWithNoise { .. }
            | Reading::LogRate
            | Reading::LogMeanAndLogDispersion => {
                let nll = ValidationColumn { name: "nll".to_owned(), score: "nll", unit: 1.0 };
                Validation { columns: vec![with_unit("rmse"), nll], judge: "nll" }
            }
            // Without noise there is no density.
            Reading::Values | Reading::Quantiles { .. } | Reading::Logits => {
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
        let outputs = U::shape(&recipe.section("data")?).outputs;
        let levels = recipe.evaluate.levels.clone();
        let level = levels.iter().copied().find(|level| *level == 0.9);
        let level = level.or(levels.last().copied()).unwrap_or(0.9);
        let groups = case.groups();
        let scoring = Scoring {
            levels,
            chunk: Some(rows_at_a_time(CHUNK, outputs, draws)),
            groups: groups.iter().flat_map(|groups| &groups.of).copied().collect(),
            ..Scoring::new(draws)
        };
        let joint = Joint::new(case.test().len(), outputs, trainer.settings().seed);
        let (evaluation, cells) = predictor.evaluate_and_tabulate(
            case.test(),
            &scoring,
            joint.columns(),
            |rows, prediction, truth| joint.row(rows, prediction, truth),
        )?;
        let raw = evaluation.raw().unwrap_or(&evaluation);
        let mut scores = with_raw(self.scores(&evaluation), self.scores(raw));
        // Calibration changes no mean.
        let unchanged = ["rmse", "mae", "bias"].map(|name| format!("{name}{}{RAW}", self.suffix()));
        scores.retain(|score| !unchanged.contains(&score.name));
        scores.extend(joint.scores(&cells, &self.suffix(), self.scale));
        let found = evaluation.regression().expect("a regression has values");
        let before = raw.regression().expect("a regression has values");
        let by_output = found.by_output.iter().enumerate().map(|(output, row)| {
            let scale = self.scale_of(output);
            (scale * row.rmse, scale * row.mean_std)
        });
        let by_output: Vec<(f64, f64)> = by_output.collect();
        for (target, (rmse, std)) in self.targets.iter().zip(&by_output) {
            let name = plain(&target.name);
            scores.push(Score::new(format!("{name}/rmse"), *rmse));
            scores.push(Score::new(format!("{name}/mean_std"), *std));
        }
        let points = |rows: &[CoverageRow]| {
            rows.iter().map(|row| (row.nominal, row.observed)).collect::<Vec<_>>()
        };
        let spreads = trainer.calibration().and_then(Calibration::of_values);
        let spreads = spreads.map(|values| values.spreads()).unwrap_or_default();
        Ok(RegressionAssessment {
            scores,
            calibration: points(&found.calibration),
            calibration_raw: evaluation.raw().map(|_| points(&before.calibration)),
            pit: found.pit.clone(),
            pit_raw: evaluation.raw().map(|_| before.pit.clone()),
            noise: match trainer.noise() {
                [] => vec![0.0; by_output.len()],
                noise => {
                    let scaled = |(output, std): (usize, &f64)| self.scale_of(output) * std;
                    noise.iter().enumerate().map(scaled).collect()
                }
            },
            by_output,
            coverage_by_output: Strata {
                own: found.coverage_by_output.clone(),
                raw: before.coverage_by_output.clone(),
            },
            coverage_by_spread: Strata {
                own: found.coverage_by_spread.clone(),
                raw: before.coverage_by_spread.clone(),
            },
            spreads: spreads.iter().map(|end| self.scale * end).collect(),
            coverage_by_group: Strata {
                own: found.coverage_by_group.clone(),
                raw: before.coverage_by_group.clone(),
            },
            groups: groups.map(|groups| (groups.by, groups.names)),
            method: trainer
                .calibration()
                .map(|calibration| (calibration.method(), calibration.examples())),
            level,
            draws,
            suffix: self.suffix(),
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
    /// The scores of an evaluation, in the unit.
    fn scores(&self, evaluation: &Evaluation) -> Vec<Score> {
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
        let coverage =
            |score: &&Score| ["coverage_", "band_"].iter().any(|name| score.name.starts_with(name));
        scores.extend(evaluation.iter().filter(coverage).cloned());
        scores.push(found.mace.clone());
        scores
    }

    /// The most important scores for a terminal, beside the RMSE of what costs nothing.
    pub fn table_with(
        &self,
        assessment: &RegressionAssessment,
        name: &str,
        baselines: &[(&str, f64)],
    ) -> String {
        let number = |name: &str| self.shown(assessment.in_unit(name));
        let share = |share: f64| format!("{:.1}", 100.0 * share);
        let mut rows = vec![vec![
            name.to_owned(),
            number("rmse"),
            number("mae"),
            number("crps"),
            share(assessment.covered()),
        ]];
        if assessment.method.is_some() {
            let crps = self.shown(assessment.score(&assessment.raw_name("crps")));
            let before = assessment.covered_before();
            let same = |name| number(name);
            let name = "before calibration".to_owned();
            rows.push(vec![name, same("rmse"), same("mae"), crps, share(before)]);
        }
        let baseline = |(name, rmse): &(&str, f64)| vec![(*name).to_owned(), self.shown(*rmse)];
        rows.extend(baselines.iter().map(baseline));
        let [rmse, mae, crps] = ["RMSE", "MAE", "CRPS"].map(|name| self.label(name));
        let covers = format!("{} % covers (%)", percent(assessment.level));
        say::table(&["test part", &rmse, &mae, &crps, &covers], &rows)
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

    /// The same before calibration.
    pub fn covered_before(&self) -> f64 {
        find(&self.scores, &format!("coverage_{}{RAW}", percent(self.level)))
    }

    /// The name of a score in the unit, before calibration.
    pub fn raw_name(&self, name: &str) -> String {
        format!("{name}{}{RAW}", self.suffix)
    }
}

impl Assessment for RegressionAssessment {
    fn scores(&self) -> &[Score] {
        &self.scores
    }

    fn details(&self) -> Map<String, Value> {
        let strata = |strata: &Strata| -> Value {
            let level = |row: &CoverageRow, raw: &str| {
                (format!("coverage_{}{raw}", percent(row.nominal)), json!(row.observed))
            };
            let row = |(own, raw): (&Stratum, &Stratum)| {
                let coverage = own.coverage.iter().map(|row| level(row, ""));
                let before = raw.coverage.iter().map(|row| level(row, RAW));
                let count = [("values".to_owned(), json!(own.count))];
                coverage.chain(before).chain(count).collect::<Map<_, _>>()
            };
            strata.own.iter().zip(&strata.raw).map(row).collect()
        };
        let (by, names) = self.groups.clone().unzip();
        Map::from_iter([
            (format!("noise{}", self.suffix), json!(self.noise)),
            (
                "calibration".to_owned(),
                json!(self.method.map(|(method, examples)| {
                    json!({ "method": method, "examples": examples })
                })),
            ),
            ("pit".to_owned(), json!(self.pit)),
            ("pit_raw".to_owned(), json!(self.pit_raw)),
            ("coverage_by_output".to_owned(), strata(&self.coverage_by_output)),
            (
                "coverage_by_spread".to_owned(),
                json!({
                    format!("ends{}", self.suffix): self.spreads,
                    "strata": strata(&self.coverage_by_spread),
                }),
            ),
            (
                "coverage_by_group".to_owned(),
                json!({
                    "by": by, "names": names, "strata": strata(&self.coverage_by_group),
                }),
            ),
        ])
    }
}
