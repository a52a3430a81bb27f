//! What a network says of many examples.

use bayesmesh::comm::share;
use bayesmesh::data::Truth;
use bayesmesh::metrics::{DRAW_GROUPS, Score, jackknife_error};
use bayesmesh::{Dataset as _, Error, Evaluation, Network, Predictive, Result, Scoring};

use super::Classification;
use crate::progress::Counter;
use crate::use_cases::{CaseTrainer, InputOf, UseCase};

/// Examples predicted at a time.
pub const CHUNK: usize = 250;

/// What a network says of some examples, averaged over all draws.
#[derive(Clone, Debug)]
pub struct Predictions {
    /// The probability of each class, `[examples, classes]`.
    probabilities: Vec<f32>,
    classes: usize,
    /// The true class of each example.
    pub labels: Vec<usize>,
    /// The entropy of the mean probabilities of each example, in nats.
    pub entropy: Vec<f64>,
    /// The part of it that comes from draws that disagree.
    pub mutual_information: Vec<f64>,
    /// Entropy and mutual information without each group of draws in turn; nothing where standard
    /// errors over draws are not asked for.
    without: Vec<[Vec<f64>; 2]>,
}

/// Groups of draws that are left out in turn.
fn groups_of(scoring: &Scoring) -> usize {
    match scoring.se_draws && scoring.draws >= 3 {
        true => scoring.draws.min(DRAW_GROUPS),
        false => 0,
    }
}

impl Predictions {
    /// Predicts examples with `draws` draws on the whole mesh.
    pub fn of<U, N>(
        trainer: &CaseTrainer<U, N>,
        examples: &U::Data,
        classes: usize,
        draws: usize,
    ) -> Result<Self>
    where
        U: UseCase<Task = Classification>,
        N: Network<Input = InputOf<U>> + 'static,
    {
        let scoring = Scoring { chunk: Some(CHUNK), ..Scoring::new(draws).quick() };
        Ok(Self::scored::<U, N>(trainer, examples, classes, &scoring)?.1)
    }

    /// The same with the scores of the predictions.
    pub fn scored<U, N>(
        trainer: &CaseTrainer<U, N>,
        examples: &U::Data,
        classes: usize,
        scoring: &Scoring,
    ) -> Result<(Evaluation, Self)>
    where
        U: UseCase<Task = Classification>,
        N: Network<Input = InputOf<U>> + 'static,
    {
        // Of each example, probabilities, label, entropy and mutual information, and the last two
        // without each group of draws.
        let groups = groups_of(scoring);
        let columns = classes + 3 + 2 * groups;
        let progress = Counter::new(examples.len(), U::EXAMPLES);
        let row = |_: &[usize], found: &Predictive, truth: &Truth| {
            progress.add(found.rows());
            let Truth::Labels(labels) = truth else {
                return Err(Error::Data("a classification needs labels, not values".to_owned()));
            };
            let (mean, entropy) = (found.mean(), found.entropy()?);
            let mutual = found.mutual_information()?;
            let without: Result<Vec<[Vec<f64>; 2]>> = (0..groups)
                .map(|group| {
                    let rest = found.without_draws(share(found.draws(), groups, group));
                    Ok([rest.entropy()?, rest.mutual_information()?])
                })
                .collect();
            let without = without?;
            let mut numbers = Vec::with_capacity(columns * found.rows());
            for (row, probabilities) in mean.chunks_exact(classes).enumerate() {
                numbers.extend(probabilities.iter().map(|&p| f64::from(p)));
                numbers.extend([labels[row] as f64, entropy[row], mutual[row]]);
                numbers.extend(without.iter().flat_map(|nats| [nats[0][row], nats[1][row]]));
            }
            Ok(numbers)
        };
        let (evaluation, cells) =
            trainer.predictor().evaluate_and_tabulate(examples, scoring, columns, row)?;
        let rows = || cells.chunks_exact(columns);
        let predictions = Self {
            probabilities: rows().flat_map(|row| &row[..classes]).map(|&p| p as f32).collect(),
            classes,
            labels: rows().map(|row| row[classes] as usize).collect(),
            entropy: rows().map(|row| row[classes + 1]).collect(),
            mutual_information: rows().map(|row| row[classes + 2]).collect(),
            without: (0..groups)
                .map(|group| {
                    let place = classes + 3 + 2 * group;
                    [0, 1].map(|which| rows().map(|row| row[place + which]).collect())
                })
                .collect(),
        };
        Ok((evaluation, predictions))
    }

    /// How many examples there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The probability of each class of all examples, `[examples, classes]`.
    pub fn probabilities(&self) -> &[f32] {
        &self.probabilities
    }

    /// The probability of each class of one example.
    pub fn row(&self, example: usize) -> &[f32] {
        &self.probabilities[example * self.classes..][..self.classes]
    }

    /// The classes of an example from the most to the least probable, with their probabilities;
    /// among equal ones the first comes first.
    pub fn ranked(&self, example: usize) -> Vec<(usize, f32)> {
        let mut ranked: Vec<(usize, f32)> = self.row(example).iter().copied().enumerate().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// The most probable class of an example.
    pub fn top(&self, example: usize) -> (usize, f32) {
        self.ranked(example)[0]
    }

    /// Whether the most probable class of an example is the true one.
    pub fn is_right(&self, example: usize) -> bool {
        self.top(example).0 == self.labels[example]
    }

    /// The first so many examples.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self {
            probabilities: self.probabilities[..count * self.classes].to_vec(),
            classes: self.classes,
            labels: self.labels[..count].to_vec(),
            entropy: self.entropy[..count].to_vec(),
            mutual_information: self.mutual_information[..count].to_vec(),
            without: Vec::new(),
        }
    }

    /// A score made of entropies and mutual informations, with its standard error over draws: from
    /// what it is without each group of them.
    pub fn score(&self, name: &str, of: impl Fn(&[f64], &[f64]) -> Result<Score>) -> Result<Score> {
        let score = of(&self.entropy, &self.mutual_information)?;
        let without: Result<Vec<f64>> =
            self.without.iter().map(|[entropy, mutual]| Ok(of(entropy, mutual)?.value)).collect();
        let se_draws = jackknife_error(&without?);
        Ok(Score { name: name.to_owned(), se_draws, ..score })
    }
}
