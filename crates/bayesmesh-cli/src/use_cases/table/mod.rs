//! Tables of one's own: from a CSV or Parquet file to the report.
//!
//! One kind of data serves two tasks, and the loss says which: [`TableValues`] predicts numbers,
//! [`TableClasses`] classes.

mod commands;
mod data;
mod defaults;
mod predict;
mod settings;

pub(crate) use defaults::default_recipe;

use anyhow::Result;
use bayesmesh::Network;
use bayesmesh::metrics::Score;
use bayesmesh_data::table::{Examples, Labels, Values};
use bayesmesh_models::MlpConfig;
use bayesmesh_report::Report;
use serde_json::Value;

use super::{DataCommand, InputOf, Reported, Splits, Trained, UseCase};
use crate::args;
use crate::commands::TrainedRun;
use crate::models::{ModelEntry, Shape};
use crate::recipe::{Conflict, Recipe};
use crate::tasks::RAW;
use crate::tasks::Task as _;
use crate::tasks::classification::{Classification, ClassificationAssessment};
use crate::tasks::regression::{OutputTarget, Regression, RegressionAssessment};
use data::{Case, ENCODER, Prepared};
use settings::TableSettings;

/// What the baseline of numbers is called.
const BASELINE: &str = "mean of the training rows";

/// A table of which numbers are predicted.
pub struct TableValues {
    case: Case<Values>,
    task: Regression,
}

/// A table of which classes are predicted.
pub struct TableClasses {
    case: Case<Labels>,
}

/// What is scored beside what every regression is scored by.
pub struct ValueExtras {
    scores: Vec<Score>,
    /// The RMSE of always predicting the mean, in the units of the scores.
    baseline: f64,
}

/// Whether a loss counts events, and so reads targets as they are.
fn counts(recipe: &Recipe) -> bool {
    ["poisson", "negative-binomial"].iter().any(|count| recipe.kind("loss").contains(count))
}

/// The task of predicting numbers that were scaled as an encoder says.
fn regression(encoder: &bayesmesh_data::table::Encoder) -> Regression {
    let size = |std: f64| (3.0 - std.max(1e-9).log10().floor()).clamp(0.0, 8.0) as usize;
    let spread = |scale: &bayesmesh_data::table::Scale| match scale.std {
        1.0 => (scale.high - scale.low) / 4.0,
        std => std,
    };
    match encoder.scales.as_slice() {
        [only] => Regression {
            decimals: size(spread(only)),
            scale: only.std,
            shift: only.mean,
            ..Regression::plain()
        },
        several => {
            let targets = encoder.targets.iter().zip(several).map(|(name, scale)| OutputTarget {
                name: name.clone(),
                scale: scale.std,
                shift: scale.mean,
            });
            Regression { targets: targets.collect(), ..Regression::plain() }
        }
    }
}

impl UseCase for TableValues {
    const NAME: &'static str = "table";
    const INPUTS: &'static str = "a table";
    const EXAMPLE: &'static str = "row";
    const EXAMPLES: &'static str = "rows";
    const MAIN_SCORES: &'static [&'static str] = &["rmse", "log_likelihood", "crps", "coverage_90"];
    type Settings = TableSettings;
    type Task = Regression;
    type Data = Examples<Values>;
    type Extras = ValueExtras;

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, MlpConfig>()]
    }

    fn shape(settings: &TableSettings) -> Shape {
        settings.config().shape(settings.config().targets().len())
    }

    fn resolve(settings: &TableSettings, recipe: &Recipe) -> Result<toml::Table> {
        Ok(Prepared::new(settings.config(), recipe, false)?.keys())
    }

    fn splits(settings: &TableSettings, recipe: &Recipe) -> Result<Splits> {
        Ok(settings.config().splits(recipe))
    }

    fn conflicts(settings: &TableSettings) -> Vec<Conflict> {
        settings.config().conflicts()
    }

    fn load(settings: &TableSettings, recipe: &Recipe) -> Result<Self> {
        let (config, scaled) = (settings.config(), !counts(recipe));
        let case = Prepared::new(config, recipe, false)?.values(scaled, config.refit)?;
        let task = regression(&case.encoder);
        Ok(Self { case, task })
    }

    fn task(&self) -> Regression {
        self.task.clone()
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        vec![(ENCODER, self.case.encoder.to_json())]
    }

    fn train(&self) -> &Examples<Values> {
        &self.case.train
    }

    fn valid(&self) -> Option<&Examples<Values>> {
        self.case.valid.as_ref()
    }

    fn refit(&self) -> Option<&Examples<Values>> {
        self.case.refit.as_ref()
    }

    fn test(&self) -> &Examples<Values> {
        &self.case.test
    }

    fn describe(&self) -> String {
        self.case.describe()
    }

    fn findings(&self) -> Option<String> {
        Some(self.case.findings())
    }

    fn source(&self, recipe: &Recipe) -> String {
        source(recipe)
    }

    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        _: &Trained<'_, Self, N>,
        assessment: &RegressionAssessment,
    ) -> Result<ValueExtras> {
        let find = |name: &str| assessment.scores.iter().find(|score| score.name == name);
        let outputs = self.case.encoder.targets.len() as f64;
        // A density for each unit, of all targets of a row together.
        let units: f64 = self.task.targets.iter().map(|target| target.scale.ln()).sum();
        let of_row = |nll: &Score, name: &str| Score {
            name: name.to_owned(),
            value: -(outputs * nll.value + units),
            se_draws: outputs * nll.se_draws,
            se_examples: outputs * nll.se_examples,
        };
        let likelihoods = [
            find("nll").map(|nll| of_row(nll, "log_likelihood")),
            find(&format!("nll{RAW}")).map(|nll| of_row(nll, &format!("log_likelihood{RAW}"))),
        ];
        Ok(ValueExtras {
            scores: likelihoods.into_iter().flatten().collect(),
            baseline: self.task.scale * self.baseline(),
        })
    }

    fn extra_scores(extras: &ValueExtras) -> Vec<Score> {
        let baseline = Score::new("mean_rmse", extras.baseline);
        extras.scores.iter().cloned().chain([baseline]).collect()
    }

    fn table(&self, assessment: &RegressionAssessment, extras: &ValueExtras) -> String {
        self.task.table_with(assessment, "prediction", &[(BASELINE, extras.baseline)])
    }

    fn report(&self, run: &Reported<'_, Self>) -> Report {
        with_columns(self.task.report(run), &self.case)
    }

    fn predict<N: Network<Input = InputOf<Self>> + 'static>(
        run: &mut TrainedRun<'_, Self, N>,
        arguments: &args::Predict,
    ) -> Result<Value> {
        predict::values(run, arguments)
    }

    fn data_commands() -> Vec<DataCommand> {
        commands::all()
    }
}

impl TableValues {
    /// The RMSE of the mean of the training rows, in the network's numbers.
    fn baseline(&self) -> f64 {
        let mean_of = |examples: &Examples<Values>, f: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
            let Values { values, outputs } = examples.targets();
            let mut sums = vec![0.0; *outputs];
            for &row in examples.rows() {
                for (output, sum) in sums.iter_mut().enumerate() {
                    *sum += f(output, f64::from(values[row * outputs + output]));
                }
            }
            sums.iter().map(|sum| sum / examples.rows().len() as f64).collect()
        };
        let means = mean_of(&self.case.train, &|_, y| y);
        let squares = mean_of(&self.case.test, &|output, y| (y - means[output]).powi(2));
        (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
    }
}

impl UseCase for TableClasses {
    const NAME: &'static str = "table-classes";
    const INPUTS: &'static str = "a table";
    const EXAMPLE: &'static str = "row";
    const EXAMPLES: &'static str = "rows";
    const MAIN_SCORES: &'static [&'static str] = &["accuracy", "log_likelihood", "brier", "ece"];
    type Settings = TableSettings;
    type Task = Classification;
    type Data = Examples<Labels>;
    type Extras = Vec<Score>;

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, MlpConfig>()]
    }

    fn shape(settings: &TableSettings) -> Shape {
        let config = settings.config();
        config.shape(config.classes.as_ref().map_or(0, Vec::len))
    }

    fn resolve(settings: &TableSettings, recipe: &Recipe) -> Result<toml::Table> {
        Ok(Prepared::new(settings.config(), recipe, true)?.keys())
    }

    fn splits(settings: &TableSettings, recipe: &Recipe) -> Result<Splits> {
        Ok(settings.config().splits(recipe))
    }

    fn conflicts(settings: &TableSettings) -> Vec<Conflict> {
        settings.config().conflicts()
    }

    fn load(settings: &TableSettings, recipe: &Recipe) -> Result<Self> {
        let config = settings.config();
        Ok(Self { case: Prepared::new(config, recipe, true)?.classes(config.refit)? })
    }

    fn task(&self) -> Classification {
        Classification { classes: self.case.encoder.classes.clone().into() }
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        vec![(ENCODER, self.case.encoder.to_json())]
    }

    fn train(&self) -> &Examples<Labels> {
        &self.case.train
    }

    fn valid(&self) -> Option<&Examples<Labels>> {
        self.case.valid.as_ref()
    }

    fn refit(&self) -> Option<&Examples<Labels>> {
        self.case.refit.as_ref()
    }

    fn test(&self) -> &Examples<Labels> {
        &self.case.test
    }

    fn describe(&self) -> String {
        format!("{}, {} classes", self.case.describe(), self.case.encoder.classes.len())
    }

    fn findings(&self) -> Option<String> {
        Some(self.case.findings())
    }

    fn source(&self, recipe: &Recipe) -> String {
        source(recipe)
    }

    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        _: &Trained<'_, Self, N>,
        assessment: &ClassificationAssessment,
    ) -> Result<Vec<Score>> {
        let nll = assessment.scores.iter().filter(|score| score.name.starts_with("nll"));
        let likelihood = nll.map(|nll| Score {
            name: nll.name.replacen("nll", "log_likelihood", 1),
            value: -nll.value,
            ..nll.clone()
        });
        Ok(likelihood.collect())
    }

    fn extra_scores(extras: &Vec<Score>) -> Vec<Score> {
        extras.clone()
    }

    fn report(&self, run: &Reported<'_, Self>) -> Report {
        with_columns(self.task().report(run), &self.case)
    }

    fn predict<N: Network<Input = InputOf<Self>> + 'static>(
        run: &mut TrainedRun<'_, Self, N>,
        arguments: &args::Predict,
    ) -> Result<Value> {
        predict::classes(run, arguments)
    }
}

fn source(recipe: &Recipe) -> String {
    let path = recipe.data_path().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A report with what the columns are, before what ran where.
fn with_columns<T>(mut report: Report, case: &Case<T>) -> Report
where
    Examples<T>: bayesmesh::Dataset,
{
    let place = report.sections.len().saturating_sub(1);
    report.sections.insert(place, case.section());
    report
}
