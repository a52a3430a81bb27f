//! The weather forecast: from a store of analyses to maps.

mod commands;
mod data;
mod forecast;
mod predict;
mod report;

pub use data::Era5;

use anyhow::Result;
use bayesmesh::loss::ValueLoss;
use bayesmesh::metrics::Score;
use bayesmesh::{Dataset as _, Network};
use bayesmesh_data::era5::{FEATURES, Fields, MASKS};
use bayesmesh_models::{GlobeCnnConfig, SwinConfig};
use bayesmesh_report::Report;
use bayesmesh_schema::{Key, Keys as _};
use serde_json::{Map, Value};

use super::{AnyLoss, DataCommand, InputOf, Reported, Trained, UseCase};
use crate::args;
use crate::commands::TrainedRun;
use crate::models::{ModelEntry, Shape};
use crate::recipe::{Conflict, Recipe};
use crate::tasks::fields::{self, FieldsAssessment};
use data::Era5Settings;
use forecast::{Extras, RollOut};

/// What checkpoints call the statistics that variables are normalised by.
const STATISTICS: &str = "era5.statistics";

impl UseCase for Era5 {
    const NAME: &'static str = "era5";
    const INPUTS: &'static str = "weather";
    const EXAMPLE: &'static str = "forecast";
    const EXAMPLES: &'static str = "forecasts";
    const MAIN_SCORES: &'static [&'static str] = &["rmse", "crps", "spread_skill"];
    type Settings = Era5Settings;
    type Task = fields::Fields;
    type Data = Fields;
    type Extras = Extras;

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, SwinConfig>(), ModelEntry::of::<Self, GlobeCnnConfig>()]
    }

    fn shape(settings: &Era5Settings) -> Shape {
        let (fields, variables) = (settings.fields(), settings.variable_count());
        let masks = if fields.masks { MASKS } else { 0 };
        let usual = if fields.climatology { 2 } else { 0 };
        let channels = variables * (fields.history + usual) + masks + FEATURES;
        let [rows, columns] = [fields.latitudes, fields.longitudes];
        Shape::new(vec![channels, rows, columns], variables * rows * columns)
    }

    fn evaluate_keys() -> Vec<Key> {
        RollOut::keys()
    }

    fn conflicts(settings: &Era5Settings) -> Vec<Conflict> {
        settings.conflicts()
    }

    fn load(settings: &Era5Settings, recipe: &Recipe) -> Result<Self> {
        Self::new(settings, recipe)
    }

    fn task(&self) -> fields::Fields {
        self.task()
    }

    fn loss(&self, recipe: &Recipe) -> Result<AnyLoss<Self>> {
        let loss = recipe.section::<ValueLoss>("loss")?;
        Ok(match self.weights()? {
            Some(weights) => loss.init_weighted(weights)?,
            None => loss.init()?,
        })
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        vec![(STATISTICS, self.parts.train.statistics().to_json().to_string())]
    }

    fn train(&self) -> &Fields {
        &self.parts.train
    }

    fn valid(&self) -> Option<&Fields> {
        Some(&self.parts.valid).filter(|valid| !valid.is_empty())
    }

    fn test(&self) -> &Fields {
        &self.parts.test
    }

    fn describe(&self) -> String {
        let [train, valid, test] = [&self.parts.train, &self.parts.valid, &self.parts.test];
        let hours = train.config().lead / 3600;
        format!(
            "{} training, {} validation, {} test forecasts of {hours} h, {} variables on {}",
            train.len(),
            valid.len(),
            test.len(),
            train.variables().len(),
            train.grid()
        )
    }

    fn findings(&self) -> Option<String> {
        let left_out = self.parts.train.left_out();
        (!left_out.is_empty()).then(|| {
            let times: Vec<String> =
                left_out.iter().take(4).map(|time| forecast::date(*time)).collect();
            let more = if left_out.len() > times.len() { " …" } else { "" };
            format!(
                "left out: {} times with values that are not numbers: {}{more}",
                left_out.len(),
                times.join(", ")
            )
        })
    }

    fn source(&self, recipe: &Recipe) -> String {
        match recipe.data_path() {
            Some(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            None => "generated weather".to_owned(),
        }
    }

    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        trained: &Trained<'_, Self, N>,
        _: &FieldsAssessment,
    ) -> Result<Extras> {
        Extras::of(trained)
    }

    fn extra_scores(extras: &Extras) -> Vec<Score> {
        extras.scores()
    }

    fn details(extras: &Extras) -> Map<String, Value> {
        extras.details()
    }

    fn table(&self, assessment: &FieldsAssessment, extras: &Extras) -> String {
        self.task().table_with(assessment, &extras.named_baselines())
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
