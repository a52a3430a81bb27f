//! Forecasts of series: one or several, of any period, from a file to the report.
//!
//! What all forecasts have in common is in [`Forecast`] and [`Forecasts`]; the load forecast is one
//! of them, with files and repairs of its own.

mod commands;
mod defaults;
mod fan;
mod forecast;
mod predict;
mod report;
mod settings;

pub(crate) use defaults::default_recipe;
pub(super) use fan::Extras;
pub(super) use forecast::{Baseline, Forecast, Forecasts, shape};
pub(super) use predict::predict;
pub(super) use report::report;

use std::path::Path;

use anyhow::{Context as _, Result};
use bayesmesh::Network;
use bayesmesh::metrics::Score;
use bayesmesh_data::series::{Encoding, Panel, Repairs, SeriesWindows};
use bayesmesh_data::table::{self, Frame, Reading};
use bayesmesh_models::{MlpConfig, PatchTransformerConfig};
use bayesmesh_report::Report;
use serde_json::{Map, Value};

use super::{DataCommand, Groups, InputOf, Reported, Trained, UseCase};
use crate::args;
use crate::commands::TrainedRun;
use crate::models::{ModelEntry, Shape};
use crate::recipe::{Conflict, Recipe};
use crate::say::say;
use crate::tasks::regression::{Regression, RegressionAssessment};
use predict::ENCODING;
use settings::{Scaling, SeriesConfig, SeriesSettings};

/// Series of one's own.
pub struct Series {
    forecast: Forecast,
    repairs: Repairs,
}

/// Reads a file; of the processes of a job one says what is waited for.
fn read(path: &Path, missing: &[String]) -> Result<Frame> {
    Ok(table::read(path, &Reading { texts: &[], missing }, &mut |words| say!("{words}"))?)
}

/// The series of a recipe.
fn gathered(config: &SeriesConfig, recipe: &Recipe) -> Result<(Panel, Repairs)> {
    let path = recipe.data_path().unwrap_or_default();
    let frame = read(&path, &config.missing)?;
    let panel = Panel::gather(&frame, &config.roles(), config.period(), config.fill);
    panel.with_context(|| path.display().to_string())
}

/// How networks see the series of a recipe, with nothing learned yet.
fn unlearned(config: &SeriesConfig, panel: &Panel) -> Encoding {
    let steps = panel.series.iter().map(|series| series.values.len()).max().unwrap_or_default();
    Encoding {
        roles: config.roles(),
        missing: config.missing.clone(),
        fill: config.fill,
        cycles: config.cycles(panel.period, steps),
        ..Encoding::new(panel.period, config.cut(panel.period))
    }
}

/// The same with what the training part says.
fn learned(config: &SeriesConfig, panel: &Panel) -> Result<Encoding> {
    let mut encoding = unlearned(config, panel);
    let [train, ..] = panel.divide(config.split)?;
    encoding.learn(panel, &train, config.scale == Scaling::Each)?;
    Ok(encoding)
}

impl Forecasts for Series {
    const QUANTITY: &'static str = "a series";

    fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    fn read_panel(encoding: &Encoding, path: &Path) -> Result<Panel> {
        let frame = read(path, &encoding.missing)?;
        let period = Some(encoding.period);
        let found = Panel::gather(&frame, &encoding.roles, period, encoding.fill);
        Ok(found.with_context(|| path.display().to_string())?.0)
    }
}

impl UseCase for Series {
    const NAME: &'static str = "series";
    const INPUTS: &'static str = "a series";
    const EXAMPLE: &'static str = "window";
    const EXAMPLES: &'static str = "windows";
    const MAIN_SCORES: &'static [&'static str] = &["rmse", "mae", "crps", "coverage_90"];
    const SERIES: bool = true;
    type Settings = SeriesSettings;
    type Task = Regression;
    type Data = SeriesWindows;
    type Extras = Extras;

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, MlpConfig>(), ModelEntry::of::<Self, PatchTransformerConfig>()]
    }

    fn shape(settings: &SeriesSettings) -> Shape {
        settings.config().shape()
    }

    fn resolve(settings: &SeriesSettings, recipe: &Recipe) -> Result<toml::Table> {
        let config = settings.config();
        let (panel, _) = gathered(config, recipe)?;
        let named = || recipe.data_path().unwrap_or_default().display().to_string();
        let encoding = learned(config, &panel).with_context(named)?;
        let whole = |number: usize| toml::Value::from(number as i64);
        let list = |numbers: &[usize]| {
            toml::Value::from(numbers.iter().map(|&number| whole(number)).collect::<Vec<_>>())
        };
        let cycles = encoding
            .cycles
            .iter()
            .map(|cycle| toml::Value::try_from(cycle).expect("the name of a cycle is a text"));
        let cycles: Vec<toml::Value> = cycles.collect();
        let entry = |name: &str, value: toml::Value| (name.to_owned(), value);
        let time = encoding.roles.time.clone();
        let time = match time {
            Some(time) => time,
            None => {
                let path = recipe.data_path().unwrap_or_default();
                let frame = read(&path, &config.missing)?;
                encoding.roles.time_column(&frame)?.name.clone()
            }
        };
        Ok(toml::Table::from_iter([
            entry("time", time.into()),
            entry("period", panel.period.to_string().into()),
            entry("seasons", list(&config.seasons(panel.period))),
            entry("calendar", cycles.into()),
            entry("inputs", whole(encoding.cut.inputs)),
            entry("outputs", whole(encoding.cut.outputs)),
            entry("channels", list(&encoding.channels())),
            entry("count", whole(panel.series.len())),
        ]))
    }

    fn conflicts(settings: &SeriesSettings) -> Vec<Conflict> {
        settings.config().conflicts()
    }

    fn load(settings: &SeriesSettings, recipe: &Recipe) -> Result<Self> {
        let config = settings.config();
        let (panel, repairs) = gathered(config, recipe)?;
        let named = || recipe.data_path().unwrap_or_default().display().to_string();
        let parts = panel.divide(config.split).with_context(named)?;
        let encoding = learned(config, &panel).with_context(named)?;
        let seasons = config.seasons(panel.period).into_iter();
        let baselines = seasons.map(|season| Baseline::seasonal(season, panel.period));
        let baselines = baselines.chain([Baseline::persistence()]).collect();
        let mut forecast = Forecast::new(panel, encoding, parts, baselines)?;
        let std = forecast.task().scale;
        forecast.decimals = (2.0 - std.max(1e-9).log10().floor()).clamp(0.0, 8.0) as usize;
        Ok(Self { forecast, repairs })
    }

    fn task(&self) -> Regression {
        self.forecast.task()
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        vec![(ENCODING, self.forecast.encoding.to_json())]
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
        Some(commands::found(&self.forecast.panel, &self.repairs, &self.forecast.encoding))
    }

    fn source(&self, recipe: &Recipe) -> String {
        let path = recipe.data_path().unwrap_or_default();
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        trained: &Trained<'_, Self, N>,
        _: &RegressionAssessment,
    ) -> Result<Extras> {
        Extras::of(trained)
    }

    fn extra_scores(extras: &Extras) -> Vec<Score> {
        extras.scores("")
    }

    fn details(extras: &Extras) -> Map<String, Value> {
        extras.details()
    }

    fn table(&self, assessment: &RegressionAssessment, extras: &Extras) -> String {
        self.task().table_with(assessment, "forecast", &extras.named_baselines())
    }

    fn report(&self, run: &Reported<'_, Self>) -> Report {
        report(run, Some(commands::repaired(&self.repairs)).filter(|words| !words.is_empty()))
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
