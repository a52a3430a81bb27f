//! The load forecast: from the series to the report.

mod commands;
mod data;
mod fan;
mod predict;
mod report;

pub use data::Load;

use anyhow::Result;
use bayesmesh::metrics::Score;
use bayesmesh::{Dataset as _, Network};
use bayesmesh_data::load::LoadWindows;
use bayesmesh_models::MlpConfig;
use bayesmesh_report::Report;
use serde_json::Value;

use super::{DataCommand, Groups, InputOf, Reported, Trained, UseCase};
use crate::args;
use crate::commands::TrainedRun;
use crate::models::{ModelEntry, Shape};
use crate::recipe::{Conflict, Recipe};
use crate::tasks::regression::{Regression, RegressionAssessment};
use data::LoadSettings;
use fan::Extras;

/// What the baselines are called.
const BASELINES: [&str; 2] = ["same time yesterday", "persistence"];

impl UseCase for Load {
    const NAME: &'static str = "load";
    const INPUTS: &'static str = "a series";
    const EXAMPLE: &'static str = "window";
    const EXAMPLES: &'static str = "windows";
    const MAIN_SCORES: &'static [&'static str] = &["rmse_mw", "mae_mw", "crps_mw", "coverage_90"];
    const SERIES: bool = true;
    type Settings = LoadSettings;
    type Task = Regression;
    type Data = LoadWindows;
    type Extras = Extras;

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, MlpConfig>()]
    }

    fn shape(settings: &LoadSettings) -> Shape {
        let windows = settings.windows();
        Shape::new(vec![windows.inputs], windows.outputs)
    }

    fn conflicts(settings: &LoadSettings) -> Vec<Conflict> {
        settings.conflicts()
    }

    fn load(settings: &LoadSettings, recipe: &Recipe) -> Result<Self> {
        Self::new(settings, recipe)
    }

    fn task(&self) -> Regression {
        let (scale, shift) = (self.normaliser.std, self.normaliser.mean);
        Regression { unit: "MW".to_owned(), decimals: 0, scale, shift, ..Regression::plain() }
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

    /// By the time of day at which a forecast begins.
    fn groups(&self) -> Option<Groups> {
        const HOURS: i64 = 4;
        let names =
            (0..24 / HOURS).map(|part| format!("{:02}–{:02} h", part * HOURS, (part + 1) * HOURS));
        let group = |window: usize| {
            let time = self.series.time(self.test.start(window) + self.inputs);
            (time.rem_euclid(86_400) / (HOURS * 3600)) as usize
        };
        let of = (0..self.test.len()).map(group).collect();
        Some(Groups { by: "time of day (UTC)", names: names.collect(), of })
    }

    fn findings(&self) -> Option<String> {
        self.repairs.as_ref().map(ToString::to_string)
    }

    fn source(&self, recipe: &Recipe) -> String {
        match recipe.data_path() {
            Some(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            None => "generated series".to_owned(),
        }
    }

    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        trained: &Trained<'_, Self, N>,
        _: &RegressionAssessment,
    ) -> Result<Extras> {
        Extras::of(trained)
    }

    fn extra_scores(extras: &Extras) -> Vec<Score> {
        let names = ["yesterday_rmse_mw", "persistence_rmse_mw"];
        names.into_iter().zip(extras.baselines).map(|(name, rmse)| Score::new(name, rmse)).collect()
    }

    fn table(&self, assessment: &RegressionAssessment, extras: &Extras) -> String {
        self.task().table_with(assessment, "forecast", &extras.named_baselines())
    }

    fn report(&self, run: &Reported<'_, Self>) -> Report {
        report::report(run)
    }

    fn predict<N: Network<Input = InputOf<Self>> + 'static>(
        run: &mut TrainedRun<'_, Self, N>,
        arguments: &args::Predict,
    ) -> Result<Value> {
        predict::predict(run, arguments)
    }

    fn data_commands() -> Vec<DataCommand> {
        commands::all()
    }
}
