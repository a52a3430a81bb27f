//! The classification of images as the commands see it.

use anyhow::Result;
use bayesmesh::Dataset as _;
use bayesmesh_data::cifar10::{CHANNELS, CLASSES, Images, SIDE};
use bayesmesh_models::{Vit, VitConfig};
use bayesmesh_report::Report;
use burn::tensor::Device;
use serde_json::{Map, Value, json};

use super::assess::{Assessment, Outcome, assess};
use super::loss::{ClassLoss, loss};
use super::{Classification, predict, report};
use crate::args;
use crate::build::TrainerOf;
use crate::commands::TrainedRun;
use crate::recipe::{self, Model, Recipe};
use crate::run::MetricsTable;
use crate::say;
use crate::use_case::{RunFacts, UseCase, Validation, ValidationColumn, standard_errors};

/// The network of a recipe.
fn config(recipe: &Recipe) -> VitConfig {
    let Model::Vit { patch, width, depth, heads, mlp } = recipe.model else {
        unreachable!("a recipe for images without a vision transformer is refused when it is read");
    };
    let (image, channels, classes) = (SIDE, CHANNELS, CLASSES.len());
    VitConfig { image, channels, patch, width, depth, heads, mlp, classes }
}

impl UseCase for Classification {
    type Network = Vit;
    type Loss = ClassLoss;
    type Data = Images;
    type Assessment = Assessment;

    const EXAMPLES: &'static str = "images";
    const MAIN_SCORES: &'static [&'static str] = &["accuracy", "nll", "brier", "ece", "ood_auroc"];
    const LEAST_DRAWS: usize = 1;

    fn load(recipe: &Recipe) -> Result<Self> {
        Self::new(recipe)
    }

    fn loss(recipe: &recipe::Loss) -> Result<ClassLoss> {
        loss(recipe)
    }

    fn network(recipe: &Recipe, _loss: &ClassLoss) -> Vit {
        config(recipe).init(&Device::default())
    }

    fn activations(recipe: &Recipe) -> u64 {
        let VitConfig { image, channels, patch, width, depth, mlp, .. } = config(recipe);
        let tokens = (image / patch).pow(2);
        // Of a block two normalised inputs, query, key and value, attention, two sums, and the
        // perceptron before and after its activation; of the embedding patches and tokens.
        let block = 8 * width + 2 * mlp;
        let embedding = 2 * patch * patch * channels + 3 * width;
        (tokens * (depth * block + embedding)) as u64
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

    fn findings(&self) -> Option<String> {
        None
    }

    fn source(&self, recipe: &Recipe) -> String {
        let name = match (recipe.data.file(), self.is_synthetic()) {
            (None, _) => "generated images",
            (Some(_), true) => "generated images in files",
            (Some(_), false) => "CIFAR-10",
        };
        format!("{name}: {}", self.describe())
    }

    fn validation(&self, _loss: &ClassLoss) -> Validation {
        let column = |name| ValidationColumn { name, score: name, unit: 1.0 };
        Validation { columns: ["accuracy", "nll", "ece"].map(column).into(), judge: "nll" }
    }

    fn assess(
        &self,
        trainer: &TrainerOf<Self>,
        recipe: &Recipe,
        draws: usize,
    ) -> Result<Assessment> {
        assess(trainer, self, recipe, draws)
    }

    fn scores(assessment: &Assessment) -> Map<String, Value> {
        assessment.scores.iter().map(|score| (score.name.clone(), json!(score.value))).collect()
    }

    fn details(assessment: &Assessment) -> Map<String, Value> {
        let classes: Map<String, Value> = CLASSES
            .iter()
            .zip(assessment.class_accuracy())
            .map(|(class, accuracy)| ((*class).to_owned(), json!(accuracy)))
            .collect();
        let reliability = assessment.reliability.iter().map(|row| {
            json!({
                "lower": row.lower,
                "upper": row.upper,
                "images": row.count,
                "confidence": row.confidence,
                "accuracy": row.accuracy,
            })
        });
        let outcome = |outcome: &Outcome| {
            json!({
                "images": outcome.images,
                "accuracy": outcome.accuracy,
                "nll": outcome.nll,
                "ece": outcome.ece,
                "entropy": outcome.entropy,
                "mutual_information": outcome.mutual_information,
            })
        };
        let corrupted = assessment.corrupted.iter().map(|corrupted| {
            let mut value = outcome(&corrupted.outcome);
            value["corruption"] = json!(corrupted.corruption.name());
            value["severity"] = json!(corrupted.severity);
            value["auroc"] = json!(corrupted.auroc);
            value
        });
        let mut details = Map::from_iter([
            ("standard_errors".to_owned(), standard_errors(&assessment.scores)),
            ("images".to_owned(), json!(assessment.predictions.len())),
            ("class_accuracy".to_owned(), Value::Object(classes)),
            ("reliability".to_owned(), reliability.collect()),
            ("confusion".to_owned(), json!(assessment.confusion)),
        ]);
        if !assessment.corrupted.is_empty() {
            details.insert("clean".to_owned(), outcome(&assessment.clean));
            details.insert("corrupted".to_owned(), corrupted.collect());
        }
        details
    }

    fn table(assessment: &Assessment) -> String {
        let row = |name: String, outcome: &Outcome, auroc: Option<f64>| {
            let mut row = vec![
                name,
                format!("{:.1}", 100.0 * outcome.accuracy),
                format!("{:.3}", outcome.nll),
                format!("{:.1}", 100.0 * outcome.ece),
                format!("{:.3}", outcome.entropy),
            ];
            row.extend(auroc.map(|auroc| format!("{auroc:.3}")));
            row
        };
        let all = Outcome {
            images: assessment.predictions.len(),
            accuracy: assessment.score("accuracy"),
            nll: assessment.score("nll"),
            ece: assessment.score("ece"),
            entropy: assessment.score("entropy"),
            mutual_information: assessment.score("mutual_information"),
        };
        let mut rows = vec![row(format!("all {}", all.images), &all, None)];
        for corrupted in &assessment.corrupted {
            let name = format!("{} {}", corrupted.corruption.name(), corrupted.severity);
            rows.push(row(name, &corrupted.outcome, Some(corrupted.auroc)));
        }
        let header = ["test images", "accuracy (%)", "NLL", "ECE (%)", "entropy (nats)", "AUROC"];
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
