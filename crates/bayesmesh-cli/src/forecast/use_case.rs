//! The load forecast as the commands see it.

use anyhow::Result;
use bayesmesh::loss::Reading;
use bayesmesh::{Dataset as _, Loss as _};
use bayesmesh_data::load::LoadWindows;
use bayesmesh_models::{Activation, Mlp, MlpConfig};
use bayesmesh_report::{Report, format_number};
use burn::tensor::Device;
use serde_json::{Map, Value, json};

use super::assess::assess;
use super::loss::{ForecastLoss, loss};
use super::{Assessment, Forecast, predict, report};
use crate::args;
use crate::build::TrainerOf;
use crate::commands::TrainedRun;
use crate::recipe::{self, Model, Recipe, Windows};
use crate::run::MetricsTable;
use crate::say;
use crate::use_case::{RunFacts, UseCase, Validation, ValidationColumn, standard_errors};

const REFUSED: &str =
    "a recipe of a forecast without a series or a perceptron is refused when read";

/// How the series is cut, and the network.
fn parts(recipe: &Recipe) -> (&Windows, &Model) {
    (recipe.data.windows().expect(REFUSED), &recipe.model)
}

impl UseCase for Forecast {
    type Network = Mlp;
    type Loss = ForecastLoss;
    type Data = LoadWindows;
    type Assessment = Assessment;

    const EXAMPLES: &'static str = "windows";
    const MAIN_SCORES: &'static [&'static str] = &["rmse_mw", "mae_mw", "crps_mw", "coverage_90"];
    /// A spread needs two.
    const LEAST_DRAWS: usize = 2;

    fn load(recipe: &Recipe) -> Result<Self> {
        Self::new(recipe)
    }

    fn loss(recipe: &recipe::Loss) -> Result<ForecastLoss> {
        loss(recipe)
    }

    fn network(recipe: &Recipe, loss: &ForecastLoss) -> Mlp {
        let (windows, Model::Mlp { hidden, activation, dropout }) = parts(recipe) else {
            unreachable!("{REFUSED}");
        };
        let outputs = match loss.reading() {
            Reading::MeanAndLogVariance => 2 * windows.outputs,
            Reading::Values | Reading::ValuesWithNoise { .. } | Reading::Logits => windows.outputs,
        };
        let network = MlpConfig {
            inputs: windows.inputs,
            hidden: hidden.clone(),
            outputs,
            activation: match activation {
                recipe::Activation::Relu => Activation::Relu,
                recipe::Activation::Tanh => Activation::Tanh,
                recipe::Activation::Gelu => Activation::Gelu,
            },
            dropout: *dropout,
        };
        network.init(&Device::default())
    }

    fn activations(recipe: &Recipe) -> u64 {
        // Each layer's sum, activation and dropout, and their gradients.
        const PER_UNIT: usize = 6;
        let (windows, Model::Mlp { hidden, .. }) = parts(recipe) else {
            unreachable!("{REFUSED}");
        };
        let units = windows.inputs + windows.outputs + hidden.iter().sum::<usize>();
        (PER_UNIT * units) as u64
    }

    fn train(&self) -> &LoadWindows {
        &self.train
    }

    fn valid(&self) -> Option<&LoadWindows> {
        Some(&self.valid)
    }

    fn test(&self) -> &LoadWindows {
        &self.test
    }

    fn describe(&self) -> String {
        format!(
            "{} training, {} validation, {} test windows of {} + {} values",
            self.train.len(),
            self.valid.len(),
            self.test.len(),
            self.inputs,
            self.outputs
        )
    }

    fn findings(&self) -> Option<String> {
        self.repairs.as_ref().map(ToString::to_string)
    }

    fn source(&self, recipe: &Recipe) -> String {
        match recipe.data.file() {
            Some(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            None => "generated series".to_owned(),
        }
    }

    fn validation(&self, loss: &ForecastLoss) -> Validation {
        let column = |name, score, unit| ValidationColumn { name, score, unit };
        let rmse = column("rmse_mw", "rmse", self.normaliser.std);
        match loss.reading() {
            Reading::MeanAndLogVariance | Reading::ValuesWithNoise { .. } => {
                Validation { columns: vec![rmse, column("nll", "nll", 1.0)], judge: "nll" }
            }
            // Without noise there is no density.
            Reading::Values | Reading::Logits => Validation {
                columns: vec![rmse, column("crps_mw", "crps", self.normaliser.std)],
                judge: "rmse",
            },
        }
    }

    fn assess(
        &self,
        trainer: &TrainerOf<Self>,
        recipe: &Recipe,
        draws: usize,
    ) -> Result<Assessment> {
        assess(trainer, self, draws, &recipe.evaluate.levels)
    }

    fn scores(assessment: &Assessment) -> Map<String, Value> {
        let scores = assessment.scores.iter().map(|score| (score.name.clone(), json!(score.value)));
        let baselines = [
            ("yesterday_rmse_mw".to_owned(), json!(assessment.yesterday)),
            ("persistence_rmse_mw".to_owned(), json!(assessment.persistence)),
        ];
        scores.chain(baselines).collect()
    }

    fn details(assessment: &Assessment) -> Map<String, Value> {
        Map::from_iter([
            ("standard_errors".to_owned(), standard_errors(&assessment.scores)),
            ("noise_mw".to_owned(), json!(assessment.noise)),
        ])
    }

    fn table(assessment: &Assessment) -> String {
        let number = |name: &str| format_number(assessment.score(name), 0);
        let rows = [
            vec![
                "forecast".to_owned(),
                number("rmse_mw"),
                number("mae_mw"),
                number("crps_mw"),
                format!("{:.1}", 100.0 * assessment.score("coverage_90")),
            ],
            vec!["same time yesterday".to_owned(), format_number(assessment.yesterday, 0)],
            vec!["persistence".to_owned(), format_number(assessment.persistence, 0)],
        ];
        let header = ["test part", "RMSE (MW)", "MAE (MW)", "CRPS (MW)", "90 % covers (%)"];
        say::table(&header, &rows)
    }

    fn report(
        &self,
        recipe: &Recipe,
        assessment: &Assessment,
        metrics: &MetricsTable,
        facts: &RunFacts,
    ) -> Report {
        report::report(recipe, self, assessment, metrics, facts)
    }

    fn predict(run: &TrainedRun<'_, Self>, arguments: &args::Predict) -> Result<Value> {
        predict::predict(run, arguments)
    }
}
