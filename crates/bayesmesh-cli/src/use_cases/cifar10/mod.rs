//! The classification of images: from the photographs of CIFAR-10 to the report.

mod commands;
mod corrupted;
mod data;
mod report;

pub use data::Cifar10;

use anyhow::Result;
use bayesmesh::metrics::Score;
use bayesmesh::{Dataset as _, Network};
use bayesmesh_data::cifar10::{CHANNELS, CLASSES, Images, SIDE};
use bayesmesh_models::VitConfig;
use bayesmesh_report::Report;
use bayesmesh_schema::{Key, Keys as _};
use serde_json::{Map, Value};

use super::{DataCommand, InputOf, Reported, Trained, UseCase};
use crate::args;
use crate::commands::TrainedRun;
use crate::models::{ModelEntry, Shape};
use crate::recipe::Recipe;
use crate::tasks::Task as _;
use crate::tasks::classification::{Classification, ClassificationAssessment};
use corrupted::{Corruptions, Extras};
use data::Cifar10Settings;

fn classes() -> Classification {
    Classification { classes: CLASSES.iter().map(|&class| class.to_owned()).collect() }
}

impl UseCase for Cifar10 {
    const NAME: &'static str = "cifar10";
    const INPUTS: &'static str = "images";
    const EXAMPLE: &'static str = "image";
    const EXAMPLES: &'static str = "images";
    const MAIN_SCORES: &'static [&'static str] = &["accuracy", "nll", "brier", "ece", "ood_auroc"];
    type Settings = Cifar10Settings;
    type Task = Classification;
    type Data = Images;
    type Extras = Extras;

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, VitConfig>()]
    }

    fn shape(_: &Cifar10Settings) -> Shape {
        Shape::new(vec![CHANNELS, SIDE, SIDE], CLASSES.len())
    }

    fn evaluate_keys() -> Vec<Key> {
        Corruptions::keys()
    }

    fn load(settings: &Cifar10Settings, recipe: &Recipe) -> Result<Self> {
        Self::new(settings, recipe)
    }

    fn task(&self) -> Classification {
        classes()
    }

    fn train(&self) -> &Images {
        &self.train
    }

    fn valid(&self) -> Option<&Images> {
        self.valid.as_ref()
    }

    fn test(&self) -> &Images {
        &self.test
    }

    fn describe(&self) -> String {
        format!(
            "{} training, {} validation, {} test images of {SIDE}×{SIDE} pixels",
            self.train.len(),
            self.valid.as_ref().map_or(0, |valid| valid.len()),
            self.test.len(),
        )
    }

    fn source(&self, recipe: &Recipe) -> String {
        let name = match (recipe.data_path(), self.is_synthetic()) {
            (None, _) => "generated images",
            (Some(_), true) => "generated images in files",
            (Some(_), false) => "CIFAR-10",
        };
        format!("{name}: {}", self.describe())
    }

    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        trained: &Trained<'_, Self, N>,
        assessment: &ClassificationAssessment,
    ) -> Result<Extras> {
        Extras::of(trained, assessment)
    }

    fn extra_scores(extras: &Extras) -> Vec<Score> {
        extras.scores()
    }

    fn details(extras: &Extras) -> Map<String, Value> {
        extras.details()
    }

    fn table(&self, assessment: &ClassificationAssessment, extras: &Extras) -> String {
        assessment.table(extras.rows())
    }

    fn report(&self, run: &Reported<'_, Self>) -> Report {
        report::report(run)
    }

    fn predict<N: Network<Input = InputOf<Self>> + 'static>(
        run: &mut TrainedRun<'_, Self, N>,
        arguments: &args::Predict,
    ) -> Result<Value> {
        classes().check_arguments(arguments)?;
        let (input, limit) = (arguments.input.as_deref(), arguments.limit);
        let settings: Cifar10Settings = run.recipe.section("data")?;
        let images = settings.test_images(&run.recipe, input, limit)?;
        classes().predict(run, &images, arguments)
    }

    fn data_commands() -> Vec<DataCommand> {
        commands::all()
    }
}
