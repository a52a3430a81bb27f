//! What a network says of images that are made worse.

use anyhow::Result;
use bayesmesh::metrics::{Score, auroc};
use bayesmesh::{Dataset as _, Network};
use bayesmesh_data::cifar10::{CLASSES, Corruption, Images};
use bayesmesh_schema::Keys;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Cifar10;
use crate::tasks::classification::{ClassificationAssessment, Outcome, Predictions, mean};
use crate::use_cases::{InputOf, Trained};

/// The severities at which images are corrupted.
pub const SEVERITIES: [u8; 3] = [1, 3, 5];

/// Keys of `[evaluate]` that only images have.
#[derive(Keys, Deserialize)]
pub struct Corruptions {
    /// Whether test images are also predicted with noise, blurred and with less contrast, to see
    /// whether the network is less sure of what it does not know. For images.
    #[key(default = true, also("ood", "corrupt"))]
    corruptions: bool,
    /// How many of the test images, from the first on; all where there are fewer. Each is predicted
    /// nine times more. For images.
    #[key(default = 2000, at_least = 1, also("corruption_limit", "ood_limit"))]
    corrupted_images: usize,
}

/// What is scored beside what every classification is scored by.
#[derive(Clone, Debug)]
pub struct Extras {
    /// Corrupted images against the same images as they are; empty where the recipe says so.
    pub corrupted: Vec<Corrupted>,
    /// The test images that were corrupted, as they are.
    pub clean: Outcome,
}

/// A way of corrupting the first test images, and what it does.
#[derive(Clone, Debug)]
pub struct Corrupted {
    /// The way.
    pub corruption: Corruption,
    /// How bad it is.
    pub severity: u8,
    /// What they came to.
    pub outcome: Outcome,
    /// What is said of each of them.
    pub predictions: Predictions,
    /// How well entropy tells corrupted images from those as they are; ½ by chance, 1 always.
    pub auroc: f64,
}

impl Extras {
    /// Predicts images again, corrupted.
    pub fn of<N: Network<Input = InputOf<Cifar10>> + 'static>(
        trained: &Trained<'_, Cifar10, N>,
        assessment: &ClassificationAssessment,
    ) -> Result<Self> {
        let Trained { case, recipe, trainer, draws } = *trained;
        let settings: Corruptions = recipe.section("evaluate")?;
        let images = case.first_test_images(settings.corrupted_images.min(case.test.len()))?;
        let clean = assessment.predictions.first(images.len());
        let mut corrupted = Vec::new();
        for corruption in Corruption::ALL.into_iter().filter(|_| settings.corruptions) {
            for severity in SEVERITIES {
                let worse = corrupt(&images, corruption, severity)?;
                let predictions =
                    Predictions::of::<Cifar10, N>(trainer, &worse, CLASSES.len(), draws)?;
                corrupted.push(Corrupted {
                    corruption,
                    severity,
                    outcome: Outcome::of(&predictions)?,
                    auroc: auroc(&predictions.entropy, &clean.entropy)?,
                    predictions,
                });
            }
        }
        Ok(Self { corrupted, clean: Outcome::of(&clean)? })
    }

    /// How well corrupted images are told from those as they are.
    pub fn scores(&self) -> Vec<Score> {
        if self.corrupted.is_empty() {
            return Vec::new();
        }
        let area = |wanted: &dyn Fn(&Corrupted) -> bool| {
            let areas = self.corrupted.iter().filter(|c| wanted(c)).map(|c| c.auroc);
            mean(&areas.collect::<Vec<_>>())
        };
        let mut scores = vec![Score::new("ood_auroc", area(&|_| true))];
        for corruption in Corruption::ALL {
            let name = format!("ood_auroc_{}", corruption.name().replace(' ', "_"));
            scores.push(Score::new(name, area(&|c| c.corruption == corruption)));
        }
        scores
    }

    /// Everything, for the file of the evaluation.
    pub fn details(&self) -> Map<String, Value> {
        let outcome = |outcome: &Outcome| {
            json!({
                "images": outcome.examples,
                "accuracy": outcome.accuracy,
                "nll": outcome.nll,
                "ece": outcome.ece,
                "entropy": outcome.entropy,
                "mutual_information": outcome.mutual_information,
            })
        };
        if self.corrupted.is_empty() {
            return Map::new();
        }
        let corrupted = self.corrupted.iter().map(|corrupted| {
            let mut value = outcome(&corrupted.outcome);
            value["corruption"] = json!(corrupted.corruption.name());
            value["severity"] = json!(corrupted.severity);
            value["auroc"] = json!(corrupted.auroc);
            value
        });
        Map::from_iter([
            ("clean".to_owned(), outcome(&self.clean)),
            ("corrupted".to_owned(), corrupted.collect()),
        ])
    }

    /// Rows of the table for a terminal.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |corrupted: &Corrupted| {
            let name = format!("{} {}", corrupted.corruption.name(), corrupted.severity);
            let mut row = corrupted.outcome.row(name);
            row.push(format!("{:.3}", corrupted.auroc));
            row
        };
        self.corrupted.iter().map(row).collect()
    }
}

/// Images made worse, the same for every run.
pub fn corrupt(images: &Images, corruption: Corruption, severity: u8) -> Result<Images> {
    const SEED: u64 = 0;
    Ok(images.corrupted(corruption, severity, SEED)?)
}
