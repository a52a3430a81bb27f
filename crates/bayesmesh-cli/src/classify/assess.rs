//! How good a classification is, and whether it knows.

use anyhow::Result;
use bayesmesh::metrics::{
    ClassificationScores, MetricError, MetricSet as _, ReliabilityRow, Score, auroc,
};
use bayesmesh::{Dataset as _, Scoring};
use bayesmesh_data::cifar10::{CLASSES, Corruption, Images};

use super::predictions::{CHUNK, Predictions};
use super::{ClassTrainer, Classification};
use crate::recipe::Recipe;

/// The severities at which images are corrupted.
pub const SEVERITIES: [u8; 3] = [1, 3, 5];

/// What a classification came to on the test images.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// Scores by name.
    pub scores: Vec<Score>,
    /// What is said of each test image.
    pub predictions: Predictions,
    /// Confidence and accuracy, in 15 bins of the confidence.
    pub reliability: Vec<ReliabilityRow>,
    /// How many images of a class, the first index, are taken for which.
    pub confusion: [[usize; CLASSES.len()]; CLASSES.len()],
    /// Corrupted images against the same images as they are; empty where the recipe says so.
    pub corrupted: Vec<Corrupted>,
    /// The test images that were corrupted, as they are.
    pub clean: Outcome,
    /// Draws of each prediction.
    pub draws: usize,
}

/// A way of corrupting the first test images, and what it does.
#[derive(Clone, Debug)]
pub struct Corrupted {
    pub corruption: Corruption,
    pub severity: u8,
    pub outcome: Outcome,
    /// What is said of each of them.
    pub predictions: Predictions,
    /// How well entropy tells corrupted images from those as they are; ½ by chance, 1 always.
    pub auroc: f64,
}

/// What some images came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub images: usize,
    pub accuracy: f64,
    pub nll: f64,
    pub ece: f64,
    /// Mean over images, in nats.
    pub entropy: f64,
    /// Mean over images, in nats.
    pub mutual_information: f64,
}

impl Outcome {
    fn of(predictions: &Predictions) -> Result<Self> {
        let scores = scores_of(predictions)?.scores();
        Ok(Self {
            images: predictions.len(),
            accuracy: find(&scores, "accuracy"),
            nll: find(&scores, "nll"),
            ece: find(&scores, "ece"),
            entropy: mean(&predictions.entropy),
            mutual_information: mean(&predictions.mutual_information),
        })
    }
}

impl Assessment {
    /// A score by name.
    pub fn score(&self, name: &str) -> f64 {
        find(&self.scores, name)
    }

    /// The share of each class that is recognised.
    pub fn class_accuracy(&self) -> [f64; CLASSES.len()] {
        std::array::from_fn(|class| {
            let images: usize = self.confusion[class].iter().sum();
            self.confusion[class][class] as f64 / images as f64
        })
    }
}

fn find(scores: &[Score], name: &str) -> f64 {
    scores.iter().find(|score| score.name == name).map_or(f64::NAN, |score| score.value)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn scores_of(predictions: &Predictions) -> Result<ClassificationScores, MetricError> {
    let mut scores = ClassificationScores::new(CLASSES.len());
    scores.add(predictions.probabilities(), &predictions.labels)?;
    Ok(scores)
}

/// Scores a trained network with `draws` draws, on the whole mesh.
pub fn assess(
    trainer: &ClassTrainer,
    images: &Classification,
    recipe: &Recipe,
    draws: usize,
) -> Result<Assessment> {
    let scoring = Scoring { chunk: Some(CHUNK), ..Scoring::new(draws) };
    let (evaluation, predictions) = Predictions::scored(trainer, &images.test, &scoring)?;
    let mut confusion = [[0; CLASSES.len()]; CLASSES.len()];
    for image in 0..predictions.len() {
        confusion[predictions.labels[image]][predictions.top(image).0] += 1;
    }
    let head = images.first_test_images(recipe.evaluate.corrupted_images.min(images.test.len()))?;
    let clean = predictions.first(head.len());
    let corrupted = match recipe.evaluate.corruptions {
        true => corrupt(trainer, &head, &clean, draws)?,
        false => Vec::new(),
    };

    let mut scores = evaluation.scores().to_vec();
    scores.push(Score::new("entropy", mean(&predictions.entropy)));
    scores.push(Score::new("mutual_information", mean(&predictions.mutual_information)));
    let entropies = |right: bool| -> Vec<f64> {
        let images = (0..predictions.len()).filter(|&image| predictions.is_right(image) == right);
        images.map(|image| predictions.entropy[image]).collect()
    };
    scores.push(Score::new("error_auroc", auroc(&entropies(false), &entropies(true))?));
    let area = |wanted: &dyn Fn(&Corrupted) -> bool| {
        let areas: Vec<f64> = corrupted.iter().filter(|c| wanted(c)).map(|c| c.auroc).collect();
        mean(&areas)
    };
    if !corrupted.is_empty() {
        scores.push(Score::new("ood_auroc", area(&|_| true)));
        for corruption in Corruption::ALL {
            let name = format!("ood_auroc_{}", corruption.name().replace(' ', "_"));
            scores.push(Score::new(name, area(&|c| c.corruption == corruption)));
        }
    }
    Ok(Assessment {
        scores,
        reliability: evaluation.classification().expect("images have classes").reliability.clone(),
        confusion,
        corrupted,
        clean: Outcome::of(&clean)?,
        predictions,
        draws,
    })
}

/// Predicts images again, corrupted.
fn corrupt(
    trainer: &ClassTrainer,
    images: &Images,
    clean: &Predictions,
    draws: usize,
) -> Result<Vec<Corrupted>> {
    let mut all = Vec::new();
    for corruption in Corruption::ALL {
        for severity in SEVERITIES {
            let worse = corrupted(images, corruption, severity)?;
            let predictions = Predictions::of(trainer, &worse, draws)?;
            all.push(Corrupted {
                corruption,
                severity,
                outcome: Outcome::of(&predictions)?,
                auroc: auroc(&predictions.entropy, &clean.entropy)?,
                predictions,
            });
        }
    }
    Ok(all)
}

/// Images made worse, the same for every run.
pub fn corrupted(images: &Images, corruption: Corruption, severity: u8) -> Result<Images> {
    const SEED: u64 = 0;
    Ok(images.corrupted(corruption, severity, SEED)?)
}
