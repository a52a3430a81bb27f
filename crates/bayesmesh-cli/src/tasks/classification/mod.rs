//! Classes: how often they are right, and whether the network knows.

mod galleries;
mod predict;
mod predictions;
mod report;

use std::sync::Arc;

use anyhow::Result;
use bayesmesh::calibrate::ClassCalibration;
use bayesmesh::loss::{ClassLoss, Loss};
use bayesmesh::metrics::{
    ClassificationScores, MetricError, MetricSet as _, ReliabilityRow, Score, auroc,
};
use bayesmesh::{Calibration, Evaluation, Network, Scoring};
use bayesmesh_report::Report;
use bayesmesh_schema::Kinds;
use burn::tensor::{Int, Tensor};
use serde_json::{Map, Value, json};

use super::{Assessment, RAW, Task, TaskInfo, Validation, ValidationColumn, find, with_raw};
use crate::args;
use crate::commands::TrainedRun;
use crate::recipe::Recipe;
use crate::say;
use crate::use_cases::{InputOf, Reported, Trained, UseCase};

pub use galleries::{certain_mistakes, percent, uncertain};
pub use predict::RawRows;
pub use predictions::{CHUNK, Predictions};
pub use report::{confusion, entropies, headline, reliability, scores, sets, training};

const INFO: &TaskInfo = &TaskInfo {
    name: "classification",
    predicts: "classes",
    classes: true,
    losses: || ClassLoss::section().kinds,
    example: "expected-cross-entropy",
};

/// Classes by their names.
#[derive(Clone, Debug)]
pub struct Classification {
    /// The name of each class.
    pub classes: Arc<[String]>,
}

/// What a classification came to on the test data.
#[derive(Clone, Debug)]
pub struct ClassificationAssessment {
    /// Scores by name.
    pub scores: Vec<Score>,
    /// The name of each class.
    pub classes: Arc<[String]>,
    /// What is said of each test example.
    pub predictions: Predictions,
    /// Confidence and accuracy, in 15 bins of the confidence.
    pub reliability: Vec<ReliabilityRow>,
    /// The same before calibration, where there was one.
    pub reliability_raw: Option<Vec<ReliabilityRow>>,
    /// How predictions are calibrated, and sets of classes are made.
    pub sets: Option<ClassCalibration>,
    /// Levels of the sets.
    pub levels: Vec<f64>,
    /// How many examples of a class, the first index, are taken for which.
    pub confusion: Vec<Vec<usize>>,
    /// Draws of each prediction.
    pub draws: usize,
    examples: &'static str,
}

/// What some examples came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// How many there are.
    pub examples: usize,
    /// The share of right predictions.
    pub accuracy: f64,
    /// Of the mean probabilities, in nats.
    pub nll: f64,
    /// The expected calibration error.
    pub ece: f64,
    /// Mean over examples, in nats.
    pub entropy: f64,
    /// Mean over examples, in nats.
    pub mutual_information: f64,
}

impl Outcome {
    /// Of predictions.
    pub fn of(predictions: &Predictions) -> Result<Self> {
        let scores = scores_of(predictions)?.scores();
        Ok(Self {
            examples: predictions.len(),
            accuracy: find(&scores, "accuracy"),
            nll: find(&scores, "nll"),
            ece: find(&scores, "ece"),
            entropy: mean(&predictions.entropy),
            mutual_information: mean(&predictions.mutual_information),
        })
    }

    /// A row of the table for a terminal.
    pub fn row(&self, name: String) -> Vec<String> {
        vec![
            name,
            format!("{:.1}", 100.0 * self.accuracy),
            format!("{:.3}", self.nll),
            format!("{:.1}", 100.0 * self.ece),
            format!("{:.3}", self.entropy),
        ]
    }
}

fn scores_of(predictions: &Predictions) -> Result<ClassificationScores, MetricError> {
    let mut scores = ClassificationScores::new(predictions.classes());
    scores.add(predictions.probabilities(), &predictions.labels)?;
    Ok(scores)
}

/// The mean of a number of each example, with its standard error over them.
fn mean_score(values: &[f64]) -> Score {
    let (count, centre) = (values.len() as f64, mean(values));
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    let se_examples = (squares / (count - 1.0) / count).sqrt();
    Score { se_examples, ..Score::new("", centre) }
}

/// The area under the curve of two groups, with its standard error over examples (Hanley and
/// McNeil, 1982).
pub fn auroc_score(positive: &[f64], negative: &[f64]) -> Result<Score, MetricError> {
    let area = auroc(positive, negative)?;
    let (p, n) = (positive.len() as f64, negative.len() as f64);
    let (q1, q2) = (area / (2.0 - area), 2.0 * area * area / (1.0 + area));
    let own = area * (1.0 - area);
    let variance =
        (own + (p - 1.0) * (q1 - area * area) + (n - 1.0) * (q2 - area * area)) / (p * n);
    Ok(Score { se_examples: variance.max(0.0).sqrt(), ..Score::new("", area) })
}

/// The mean of some numbers.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Task for Classification {
    const INFO: &'static TaskInfo = INFO;
    const LEAST_DRAWS: usize = 1;
    type Target = Tensor<1, Int>;
    type Assessment = ClassificationAssessment;

    fn loss(recipe: &Recipe) -> Result<Arc<dyn Loss<Target = Tensor<1, Int>>>> {
        Ok(recipe.section::<ClassLoss>("loss")?.init()?)
    }

    fn validation(&self, _: &dyn Loss<Target = Tensor<1, Int>>) -> Validation {
        let column =
            |score: &'static str| ValidationColumn { name: score.to_owned(), score, unit: 1.0 };
        Validation { columns: ["accuracy", "nll", "ece"].map(column).into(), judge: "nll" }
    }

    fn assess<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        trained: &Trained<'_, U, N>,
    ) -> Result<ClassificationAssessment> {
        let Trained { case, recipe, trainer, draws } = *trained;
        let levels = recipe.evaluate.levels.clone();
        let scoring = Scoring { chunk: Some(CHUNK), levels, ..Scoring::new(draws) };
        let classes = self.classes.len();
        let (evaluation, predictions) =
            Predictions::scored::<U, N>(trainer, case.test(), classes, &scoring)?;
        let mut confusion = vec![vec![0; classes]; classes];
        for example in 0..predictions.len() {
            confusion[predictions.labels[example]][predictions.top(example).0] += 1;
        }
        let raw = evaluation.raw().unwrap_or(&evaluation);
        let mut scores = evaluation.scores().to_vec();
        scores.push(predictions.score("entropy", |entropy, _| Ok(mean_score(entropy)))?);
        let mutual = predictions.score("mutual_information", |_, mutual| Ok(mean_score(mutual)))?;
        scores.push(mutual);
        let right: Vec<bool> = (0..predictions.len()).map(|e| predictions.is_right(e)).collect();
        scores.push(predictions.score("error_auroc", |entropy, _| {
            let those = |wanted: bool| -> Vec<f64> {
                let examples = entropy.iter().zip(&right);
                examples.filter(|(_, right)| **right == wanted).map(|(nats, _)| *nats).collect()
            };
            Ok(auroc_score(&those(false), &those(true))?)
        })?);
        let scores = with_raw(scores, raw.scores().to_vec());
        let found = evaluation.classification().expect("a classification has classes");
        let before = evaluation.raw().and_then(Evaluation::classification);
        Ok(ClassificationAssessment {
            scores,
            classes: Arc::clone(&self.classes),
            reliability: found.reliability.clone(),
            reliability_raw: before.map(|before| before.reliability.clone()),
            sets: trainer.calibration().and_then(Calibration::of_classes).cloned(),
            levels: recipe.evaluate.levels.clone(),
            confusion,
            predictions,
            draws,
            examples: U::EXAMPLES,
        })
    }

    fn table(&self, assessment: &ClassificationAssessment) -> String {
        assessment.table(Vec::new())
    }

    fn report<U: UseCase<Task = Self>>(&self, run: &Reported<'_, U>) -> Report {
        report::report(run)
    }

    fn predict<U: UseCase<Task = Self>, N: Network<Input = InputOf<U>> + 'static>(
        &self,
        run: &TrainedRun<'_, U, N>,
        examples: &U::Data,
        arguments: &args::Predict,
    ) -> Result<Value> {
        predict::predict(self, run, examples, arguments, None)
    }
}

impl ClassificationAssessment {
    /// All test examples.
    pub fn all(&self) -> Outcome {
        Outcome {
            examples: self.predictions.len(),
            accuracy: self.score("accuracy"),
            nll: self.score("nll"),
            ece: self.score("ece"),
            entropy: self.score("entropy"),
            mutual_information: self.score("mutual_information"),
        }
    }

    /// The most important scores for a terminal, with rows for other examples.
    pub fn table(&self, others: Vec<Vec<String>>) -> String {
        let mut rows = vec![self.all().row(format!("all {}", self.predictions.len()))];
        if self.sets.is_some() {
            let raw = |name: &str, unit: f64, digits: usize| {
                format!("{:.digits$}", unit * self.score(&format!("{name}{RAW}")))
            };
            rows.push(vec![
                "before calibration".to_owned(),
                raw("accuracy", 100.0, 1),
                raw("nll", 1.0, 3),
                raw("ece", 100.0, 1),
            ]);
        }
        rows.extend(others);
        let test = format!("test {}", self.examples);
        let header = [&test, "accuracy (%)", "NLL", "ECE (%)", "entropy (nats)", "AUROC"];
        say::table(&header, &rows)
    }

    /// The share of each class that is recognised.
    pub fn class_accuracy(&self) -> Vec<f64> {
        let rows = self.confusion.iter().enumerate();
        rows.map(|(class, row)| row[class] as f64 / row.iter().sum::<usize>() as f64).collect()
    }
}

impl Assessment for ClassificationAssessment {
    fn scores(&self) -> &[Score] {
        &self.scores
    }

    fn details(&self) -> Map<String, Value> {
        let accuracy = self.classes.iter().zip(self.class_accuracy());
        let accuracy: Map<String, Value> =
            accuracy.map(|(class, accuracy)| (class.clone(), json!(accuracy))).collect();
        let reliability = self.reliability.iter().map(|row| {
            let mut value = json!({
                "lower": row.lower,
                "upper": row.upper,
                "confidence": row.confidence,
                "accuracy": row.accuracy,
            });
            value[self.examples] = json!(row.count);
            value
        });
        let temperature = self.sets.as_ref().map(ClassCalibration::temperature);
        Map::from_iter([
            ("temperature".to_owned(), json!(temperature)),
            (self.examples.to_owned(), json!(self.predictions.len())),
            ("class_accuracy".to_owned(), Value::Object(accuracy)),
            ("reliability".to_owned(), reliability.collect()),
            ("confusion".to_owned(), json!(self.confusion)),
        ])
    }
}
