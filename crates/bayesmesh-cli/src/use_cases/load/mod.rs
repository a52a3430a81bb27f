//! The load forecast: a series with files and repairs of its own.

mod commands;
mod data;

pub use data::Load;

use std::path::Path;

use anyhow::Result;
use bayesmesh::Network;
use bayesmesh::metrics::Score;
use bayesmesh_data::series::{Encoding, Panel, Period, SeriesWindows};
use bayesmesh_models::{MlpConfig, PatchTransformerConfig};
use bayesmesh_report::Report;
use serde_json::Value;

use super::series::{Extras, Forecast, Forecasts, predict, report, shape};
use super::{DataCommand, Groups, InputOf, Reported, Trained, UseCase};
use crate::args;
use crate::commands::TrainedRun;
use crate::exit::Usage;
use crate::models::{ModelEntry, Shape};
use crate::recipe::{Conflict, Recipe};
use crate::say::say;
use crate::tasks::regression::{Regression, RegressionAssessment};
use data::{LoadSettings, panel, read};

impl Forecasts for Load {
    const QUANTITY: &'static str = "grid load";

    fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    fn read_panel(encoding: &Encoding, path: &Path) -> Result<Panel> {
        let (series, repairs) = read(path)?;
        if !repairs.is_clean() {
            say!("{repairs}");
        }
        let Period::Seconds(learned) = encoding.period else {
            return Err(Usage("a load has a value every so many seconds".to_owned()).into());
        };
        if i64::from(series.step_seconds) != learned {
            return Err(Usage(format!(
                "{} has a value every {} s, but the network was trained on one every {learned} s",
                path.display(),
                series.step_seconds
            ))
            .into());
        }
        Ok(panel(&series))
    }
}

impl UseCase for Load {
    const NAME: &'static str = "load";
    const INPUTS: &'static str = "a series";
    const EXAMPLE: &'static str = "window";
    const EXAMPLES: &'static str = "windows";
    const MAIN_SCORES: &'static [&'static str] = &["rmse_mw", "mae_mw", "crps_mw", "coverage_90"];
    const SERIES: bool = true;
    type Settings = LoadSettings;
    type Task = Regression;
    type Data = SeriesWindows;
    type Extras = Extras;

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, MlpConfig>(), ModelEntry::of::<Self, PatchTransformerConfig>()]
    }

    fn shape(settings: &LoadSettings) -> Shape {
        let windows = settings.windows();
        shape([1, 0], windows.inputs, windows.outputs, 0, 1)
    }

    fn conflicts(settings: &LoadSettings) -> Vec<Conflict> {
        settings.conflicts()
    }

    fn load(settings: &LoadSettings, recipe: &Recipe) -> Result<Self> {
        Self::new(settings, recipe)
    }

    fn task(&self) -> Regression {
        self.forecast.task()
    }

    fn train(&self) -> &SeriesWindows {
        &self.forecast.train
    }

    fn valid(&self) -> Option<&SeriesWindows> {
        Some(&self.forecast.valid)
    }

    fn test(&self) -> &SeriesWindows {
        &self.forecast.test
    }

    fn describe(&self) -> String {
        self.forecast.describe()
    }

    fn groups(&self) -> Option<Groups> {
        self.forecast.groups()
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
        extras.scores("_mw")
    }

    fn table(&self, assessment: &RegressionAssessment, extras: &Extras) -> String {
        self.task().table_with(assessment, "forecast", &extras.named_baselines())
    }

    fn report(&self, run: &Reported<'_, Self>) -> Report {
        let repairs = self.repairs.as_ref().filter(|repairs| !repairs.is_clean());
        let notes = repairs.map(|repairs| {
            format!(
                "{} values of the series were repaired; `bayesmesh data check load FILE` lists \
                 them.",
                repairs.replaced()
            )
        });
        report(run, notes)
    }

    fn predict<N: Network<Input = InputOf<Self>> + 'static>(
        run: &mut TrainedRun<'_, Self, N>,
        arguments: &args::Predict,
    ) -> Result<Value> {
        predict(run, arguments)
    }

    fn data_commands() -> Vec<DataCommand> {
        commands::all()
    }
}
