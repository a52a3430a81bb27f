//! What a network says of many images.

use bayesmesh::{Dataset as _, Evaluation, Predictive, Result, Scoring};
use bayesmesh_data::cifar10::{CLASSES, Images};

use super::ClassTrainer;
use crate::progress::Counter;

/// Images predicted at a time.
pub const CHUNK: usize = 250;

/// What a network says of some images, averaged over all draws.
#[derive(Clone, Debug)]
pub struct Predictions {
    /// The probability of each class, `[images, classes]`.
    probabilities: Vec<f32>,
    /// The true class of each image.
    pub labels: Vec<usize>,
    /// The entropy of the mean probabilities of each image, in nats.
    pub entropy: Vec<f64>,
    /// The part of it that comes from draws that disagree.
    pub mutual_information: Vec<f64>,
}

/// Of each image, probabilities, entropy and mutual information.
const COLUMNS: usize = CLASSES.len() + 2;

impl Predictions {
    /// Predicts images with `draws` draws on the whole mesh.
    pub fn of(trainer: &ClassTrainer, images: &Images, draws: usize) -> Result<Self> {
        let scoring = Scoring { chunk: Some(CHUNK), ..Scoring::new(draws).quick() };
        Ok(Self::scored(trainer, images, &scoring)?.1)
    }

    /// The same with the scores of the predictions.
    pub fn scored(
        trainer: &ClassTrainer,
        images: &Images,
        scoring: &Scoring,
    ) -> Result<(Evaluation, Self)> {
        let progress = Counter::new(images.len(), "images");
        let row = |found: &Predictive| {
            progress.add(found.rows());
            let mean = found.mean();
            let (entropy, mutual) = (found.entropy()?, found.mutual_information()?);
            let rows = mean.chunks_exact(CLASSES.len()).zip(entropy.iter().zip(&mutual));
            Ok(rows
                .flat_map(|(row, (entropy, mutual))| {
                    row.iter().map(|&p| f64::from(p)).chain([*entropy, *mutual])
                })
                .collect())
        };
        let (evaluation, cells) =
            trainer.predictor().evaluate_and_tabulate(images, scoring, COLUMNS, row)?;
        let rows = || cells.chunks_exact(COLUMNS);
        let predictions = Self {
            probabilities: rows()
                .flat_map(|row| &row[..CLASSES.len()])
                .map(|&p| p as f32)
                .collect(),
            labels: (0..images.len()).map(|row| usize::from(images.raw(row).1)).collect(),
            entropy: rows().map(|row| row[CLASSES.len()]).collect(),
            mutual_information: rows().map(|row| row[CLASSES.len() + 1]).collect(),
        };
        Ok((evaluation, predictions))
    }

    /// How many images there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The probability of each class of all images, `[images, classes]`.
    pub fn probabilities(&self) -> &[f32] {
        &self.probabilities
    }

    /// The probability of each class of one image.
    pub fn row(&self, image: usize) -> &[f32] {
        &self.probabilities[image * CLASSES.len()..][..CLASSES.len()]
    }

    /// The classes of an image from the most to the least probable, with their probabilities;
    /// among equal ones the first comes first.
    pub fn ranked(&self, image: usize) -> Vec<(usize, f32)> {
        let mut ranked: Vec<(usize, f32)> = self.row(image).iter().copied().enumerate().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// The most probable class of an image.
    pub fn top(&self, image: usize) -> (usize, f32) {
        self.ranked(image)[0]
    }

    /// Whether the most probable class of an image is the true one.
    pub fn is_right(&self, image: usize) -> bool {
        self.top(image).0 == self.labels[image]
    }

    /// The first so many images.
    pub fn first(&self, count: usize) -> Self {
        Self {
            probabilities: self.probabilities[..count * CLASSES.len()].to_vec(),
            labels: self.labels[..count].to_vec(),
            entropy: self.entropy[..count].to_vec(),
            mutual_information: self.mutual_information[..count].to_vec(),
        }
    }
}
