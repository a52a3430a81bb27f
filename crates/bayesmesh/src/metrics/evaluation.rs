//! What scoring a prediction comes to.

use super::{
    ClassificationScores, CoverageRow, FieldScore, FieldScores, Jackknife, MetricSet as _,
    OutputRow, RegressionScores, ReliabilityRow, Score, SpreadSkillRow, Stratum,
};
use crate::error::{Error, Result};

/// The scores of a prediction, by name and, with what belongs to them, by field.
///
/// ```
/// # use bayesmesh::{Predictive, data::Truth};
/// let prediction = Predictive::of_values(2, 3, vec![0.9, 2.1, 3.2, 1.1, 1.8, 3.0])?;
/// let evaluation = prediction.score(&Truth::Values(vec![1.0, 2.0, 3.0]))?;
/// assert!(evaluation.score("rmse")?.value < 0.1);
/// assert!(evaluation.regression().unwrap().crps.value < 0.1);
/// for score in &evaluation {
///     println!("{}: {} ± {}", score.name, score.value, score.se_examples);
/// }
/// # Ok::<(), bayesmesh::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evaluation {
    scores: Vec<Score>,
    kind: Kind,
    raw: Option<Box<Evaluation>>,
}

#[derive(Clone, Debug)]
enum Kind {
    Regression(Box<RegressionEvaluation>),
    Classification(Box<ClassificationEvaluation>),
    Fields(Vec<FieldScore>),
}

/// Scores of predicted numbers. [`RegressionScores`] says what each of them is.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the fields are scores of the same names
pub struct RegressionEvaluation {
    pub mse: Score,
    pub rmse: Score,
    pub mae: Score,
    pub bias: Score,
    /// NaN where the prediction has no noise.
    pub nll: Score,
    pub crps: Score,
    pub crps_fair: Score,
    pub mace: Score,
    pub mean_std: Score,
    pub spread: Score,
    pub skill: Score,
    pub spread_skill_ratio: Score,
    /// Nominal and observed coverage at the levels that were asked for.
    pub coverage: Vec<CoverageRow>,
    /// The same at 0.05, 0.1, …, 0.95.
    pub calibration: Vec<CoverageRow>,
    /// How many probability integral transforms fall into each of 20 equal parts of `[0, 1]`.
    pub pit: Vec<f64>,
    /// How often the truth has each rank among the draws; empty with noise.
    pub ranks: Vec<f64>,
    /// Spread and skill in bins of the deviation.
    pub spread_skill: Vec<SpreadSkillRow>,
    /// Error and width of each output.
    pub by_output: Vec<OutputRow>,
    /// Coverage of each output.
    pub coverage_by_output: Vec<Stratum>,
    /// Coverage of predictions from narrow to wide, where the calibration says what is wide.
    pub coverage_by_spread: Vec<Stratum>,
    /// Coverage of groups, where examples have any.
    pub coverage_by_group: Vec<Stratum>,
}

/// Scores of predicted classes. [`ClassificationScores`] says what each of them is.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the fields are scores of the same names
pub struct ClassificationEvaluation {
    pub accuracy: Score,
    pub nll: Score,
    pub brier: Score,
    pub ece: Score,
    pub unweighted_calibration_error: Score,
    pub maximum_calibration_error: Score,
    pub classwise_calibration_error: Score,
    pub entropy_right: Score,
    pub entropy_wrong: Score,
    /// Confidence and accuracy in bins of the confidence.
    pub reliability: Vec<ReliabilityRow>,
}

fn find(scores: &[Score], name: &str) -> Score {
    let found = scores.iter().find(|score| score.name == name);
    found.unwrap_or_else(|| unreachable!("every set has the score {name}")).clone()
}

impl From<&Jackknife<RegressionScores>> for Evaluation {
    fn from(set: &Jackknife<RegressionScores>) -> Self {
        let scores = set.scores();
        let of = |name| find(&scores, name);
        let whole = set.whole();
        let ranks = whole.ranks.counts();
        let ranks = if ranks.iter().any(|count| *count > 0.0) { ranks } else { &[] };
        let kind = Kind::Regression(Box::new(RegressionEvaluation {
            mse: of("mse"),
            rmse: of("rmse"),
            mae: of("mae"),
            bias: of("bias"),
            nll: of("nll"),
            crps: of("crps"),
            crps_fair: of("crps_fair"),
            mace: of("mace"),
            mean_std: of("mean_std"),
            spread: of("spread"),
            skill: of("skill"),
            spread_skill_ratio: of("spread_skill_ratio"),
            coverage: whole.coverage.rows(),
            calibration: whole.calibration.curve(),
            pit: whole.pit.counts().to_vec(),
            ranks: ranks.to_vec(),
            spread_skill: whole.spread_skill.curve(),
            by_output: whole.by_output.rows(),
            coverage_by_output: whole.coverage_by_output.rows(),
            coverage_by_spread: whole.coverage_by_spread.rows(),
            coverage_by_group: whole.coverage_by_group.rows(),
        }));
        Self { scores, kind, raw: None }
    }
}

impl From<&Jackknife<ClassificationScores>> for Evaluation {
    fn from(set: &Jackknife<ClassificationScores>) -> Self {
        let scores = set.scores();
        let of = |name| find(&scores, name);
        let kind = Kind::Classification(Box::new(ClassificationEvaluation {
            accuracy: of("accuracy"),
            nll: of("nll"),
            brier: of("brier"),
            ece: of("ece"),
            unweighted_calibration_error: of("unweighted_calibration_error"),
            maximum_calibration_error: of("maximum_calibration_error"),
            classwise_calibration_error: of("classwise_calibration_error"),
            entropy_right: of("entropy_right"),
            entropy_wrong: of("entropy_wrong"),
            reliability: set.whole().calibration.reliability(),
        }));
        Self { scores, kind, raw: None }
    }
}

/// Scores by name are those of all fields together, each in units of its scale: roots of means of
/// squares, and means of the others.
impl From<&FieldScores> for Evaluation {
    fn from(set: &FieldScores) -> Self {
        let fields = set.fields();
        let scores = set.together();
        Self { scores, kind: Kind::Fields(fields), raw: None }
    }
}

impl Evaluation {
    /// The same predictions as they were before calibration; nothing where they were not
    /// calibrated.
    pub fn raw(&self) -> Option<&Self> {
        self.raw.as_deref()
    }

    pub(crate) fn with_raw(self, raw: Self) -> Self {
        Self { raw: Some(Box::new(raw)), ..self }
    }

    /// All scores.
    pub fn scores(&self) -> &[Score] {
        &self.scores
    }

    /// The scores one by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Score> {
        self.scores.iter()
    }

    /// The score of that name; an error that lists the names there are.
    pub fn score(&self, name: &str) -> Result<&Score> {
        self.scores.iter().find(|score| score.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.scores.iter().map(|score| score.name.as_str()).collect();
            Error::Setting(format!("there is no score `{name}`; there are {}", names.join(", ")))
        })
    }

    /// Scores of predicted numbers by field; nothing where classes were predicted.
    pub fn regression(&self) -> Option<&RegressionEvaluation> {
        match &self.kind {
            Kind::Regression(evaluation) => Some(evaluation),
            Kind::Classification(_) | Kind::Fields(_) => None,
        }
    }

    /// Scores of predicted classes by field; nothing where numbers were predicted.
    pub fn classification(&self) -> Option<&ClassificationEvaluation> {
        match &self.kind {
            Kind::Classification(evaluation) => Some(evaluation),
            Kind::Regression(_) | Kind::Fields(_) => None,
        }
    }

    /// Scores of each field in its units; nothing where the outputs are no
    /// [fields](super::FieldLayout).
    pub fn fields(&self) -> Option<&[FieldScore]> {
        match &self.kind {
            Kind::Fields(fields) => Some(fields),
            Kind::Regression(_) | Kind::Classification(_) => None,
        }
    }
}

impl<'a> IntoIterator for &'a Evaluation {
    type Item = &'a Score;
    type IntoIter = std::slice::Iter<'a, Score>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Evaluation {
    type Item = Score;
    type IntoIter = std::vec::IntoIter<Score>;

    fn into_iter(self) -> Self::IntoIter {
        self.scores.into_iter()
    }
}
