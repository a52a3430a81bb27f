//! The classification of images in folders: from photographs to the report.

mod commands;
mod data;
mod defaults;
mod report;

pub use data::Images;
pub(crate) use defaults::default_recipe;

use std::path::Path;

use anyhow::Result;
use bayesmesh::{Dataset as _, Network};
use bayesmesh_data::images::{CHANNELS, ImageSet};
use bayesmesh_models::{ResNetConfig, VitConfig};
use bayesmesh_report::Report;
use serde_json::{Value, json};

use super::{DataCommand, InputOf, Reported, Trained, UseCase};
use crate::args;
use crate::commands::TrainedRun;
use crate::models::{ModelEntry, Shape};
use crate::recipe::Recipe;
use crate::say;
use crate::tasks::classification::{Classification, ClassificationAssessment, RawRows};
use data::{ImagesSettings, PIXELS, Scale};

impl UseCase for Images {
    const NAME: &'static str = "images";
    const INPUTS: &'static str = "images";
    const EXAMPLE: &'static str = "image";
    const EXAMPLES: &'static str = "images";
    const MAIN_SCORES: &'static [&'static str] = &["accuracy", "nll", "brier", "ece"];
    type Settings = ImagesSettings;
    type Task = Classification;
    type Data = ImageSet;
    type Extras = ();

    fn models() -> Vec<ModelEntry> {
        vec![ModelEntry::of::<Self, ResNetConfig>(), ModelEntry::of::<Self, VitConfig>()]
    }

    fn shape(ImagesSettings::Images(keys): &ImagesSettings) -> Shape {
        let outputs = keys.classes.as_ref().map_or(0, Vec::len);
        Shape::new(vec![CHANNELS, keys.size, keys.size], outputs)
    }

    fn resolve(settings: &ImagesSettings, recipe: &Recipe) -> Result<toml::Table> {
        let classes = settings.folder(recipe)?.classes;
        Ok(toml::Table::from_iter([("classes".to_owned(), classes.into())]))
    }

    fn load(settings: &ImagesSettings, recipe: &Recipe) -> Result<Self> {
        Self::new(settings, recipe)
    }

    fn task(&self) -> Classification {
        Classification { classes: self.classes.clone() }
    }

    fn notes(&self) -> Vec<(&'static str, String)> {
        vec![(PIXELS, self.scale.to_string())]
    }

    fn train(&self) -> &ImageSet {
        &self.train
    }

    fn valid(&self) -> Option<&ImageSet> {
        self.valid.as_ref()
    }

    fn test(&self) -> &ImageSet {
        &self.test
    }

    fn describe(&self) -> String {
        let kept = match self.train.is_kept() {
            true => "",
            false => "; more than data.cache_gib holds, so that files are decoded for every batch",
        };
        format!(
            "{} training, {} validation, {} test images of {} classes, {size}×{size} pixels{kept}",
            self.train.len(),
            self.valid.as_ref().map_or(0, |valid| valid.len()),
            self.test.len(),
            self.classes.len(),
            size = self.train.size(),
        )
    }

    fn source(&self, recipe: &Recipe) -> String {
        let path = recipe.data_path().unwrap_or_default();
        format!("{}: {}", path.display(), self.describe())
    }

    fn findings(&self) -> Option<String> {
        (!self.findings.is_empty()).then(|| self.findings.join("\n"))
    }

    fn extras<N: Network<Input = InputOf<Self>> + 'static>(
        &self,
        _: &Trained<'_, Self, N>,
        _: &ClassificationAssessment,
    ) -> Result<()> {
        Ok(())
    }

    fn report(&self, run: &Reported<'_, Self>) -> Report {
        report::report(run)
    }

    fn predict<N: Network<Input = InputOf<Self>> + 'static>(
        run: &mut TrainedRun<'_, Self, N>,
        arguments: &args::Predict,
    ) -> Result<Value> {
        let settings: ImagesSettings = run.recipe.section("data")?;
        let task = Classification { classes: settings.classes().into() };
        task.check_arguments(arguments)?;
        let (images, broken) = match &arguments.input {
            Some(folder) => {
                // What training images were normalised by: theirs are not needed here.
                let scale = run.note(PIXELS)?;
                let scale = match scale.as_deref().map(str::parse::<Scale>) {
                    Some(Ok(scale)) => scale,
                    _ => run.load()?.scale,
                };
                settings.images_of(folder, scale)?
            }
            None => (run.load()?.test, Vec::new()),
        };
        for broken in &broken {
            say::warn(format!("left out: {}", broken.problem));
        }
        let names = images.files().iter().map(|file| file.name.clone()).collect();
        let raw = RawRows {
            labelled: images.files().iter().all(|file| file.label.is_some()),
            note: Some(("file", names)),
        };
        let mut result = task.predict_rows(run, &images, arguments, &raw)?;
        result["left_out"] = json!(broken.len());
        Ok(result)
    }

    fn read(&self, path: &Path) -> Result<ImageSet> {
        Ok(self.settings.images_of(path, self.scale)?.0)
    }

    fn data_commands() -> Vec<DataCommand> {
        commands::all()
    }
}
