//! From predictions and their truth to scores.

use std::sync::Arc;

use bayesmesh_comm::{Communicator, Operation, Reduce};

use super::Predictive;
use crate::calibrate::Calibration;
use crate::data::Truth;
use crate::error::{Error, Result};
use crate::metrics::{
    ClassificationScores, Coverage, Evaluation, FieldLayout, FieldScores, Jackknife, MetricSet,
    RegressionScores,
};

/// How predictions are scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Scoring {
    /// Draws of a prediction.
    pub draws: usize,
    /// Whether scores come with their standard errors over draws, for which most of them are
    /// computed eight times more. Pairs of draws, the most work by far, are not.
    pub se_draws: bool,
    /// Deviation of noise to add, one for each output; none where it is empty. For losses that say
    /// nothing of the noise: [`Predictor::estimate_noise`](super::Predictor::estimate_noise) finds
    /// it.
    pub noise: Vec<f64>,
    /// Levels of the central intervals whose coverage is counted.
    pub levels: Vec<f64>,
    /// Rows that are predicted at a time; by default as many as a batch of the training has.
    pub chunk: Option<usize>,
    /// The group of each example, if coverage is counted by groups.
    pub groups: Arc<[usize]>,
}

impl Scoring {
    /// With so many draws and all standard errors; intervals at 0.5, 0.8, 0.9 and 0.95.
    pub fn new(draws: usize) -> Self {
        let levels = Coverage::LEVELS.to_vec();
        let groups = Arc::new([]);
        Self { draws, se_draws: true, noise: Vec::new(), levels, chunk: None, groups }
    }

    /// Without standard errors over draws, as scores on validation data during training are.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.se_draws = false;
        self
    }
}

/// Collects the scores of predictions, of classes or of values.
pub(crate) struct Scorer<'a> {
    scoring: &'a Scoring,
    classes: bool,
    calibration: Option<&'a Calibration>,
    /// How outputs are fields, where they are.
    fields: Option<&'a FieldLayout>,
    /// Deviations at which predictions become wide.
    spreads: Vec<f64>,
    /// How many draws of a prediction one draw makes.
    values_per_draw: usize,
    /// Nothing before the first prediction, which says how many outputs there are.
    set: Option<Set>,
}

enum Set {
    Regression(Box<Jackknife<RegressionScores>>),
    Classification(Box<Jackknife<ClassificationScores>>),
    Fields(Box<FieldScores>),
}

impl Set {
    /// For predictions of so many draws and outputs.
    fn new(
        scoring: &Scoring,
        classes: bool,
        calibration: Option<&Calibration>,
        fields: Option<&FieldLayout>,
        spreads: &[f64],
        [draws, outputs]: [usize; 2],
    ) -> Result<Self> {
        if let Some(layout) = fields {
            let set = FieldScores::new(layout.clone(), draws)?;
            return Ok(Self::Fields(Box::new(set)));
        }
        fn jackknife<M: MetricSet + Clone>(
            scoring: &Scoring,
            draws: usize,
            set: M,
        ) -> Jackknife<M> {
            match scoring.se_draws {
                true => Jackknife::new(draws, || set.clone()),
                false => Jackknife::without_groups(draws, set),
            }
        }
        if classes {
            let mut set = ClassificationScores::new(outputs);
            if let Some(sets) = calibration.and_then(Calibration::of_classes) {
                set = set.with_sets(sets, &scoring.levels);
            }
            return Ok(Self::Classification(Box::new(jackknife(scoring, draws, set))));
        }
        let groups = scoring.groups.iter().max().map_or(0, |last| last + 1);
        let set = RegressionScores::new(outputs, draws)
            .with_levels(&scoring.levels)?
            .with_strata(groups, spreads);
        Ok(Self::Regression(Box::new(jackknife(scoring, draws, set))))
    }

    fn outputs(&self) -> usize {
        match self {
            Self::Regression(set) => set.whole().outputs(),
            Self::Classification(set) => set.whole().classes(),
            Self::Fields(set) => set.outputs(),
        }
    }

    fn metrics(&mut self) -> &mut dyn MetricSet {
        match self {
            Self::Regression(set) => &mut **set,
            Self::Classification(set) => &mut **set,
            Self::Fields(set) => &mut **set,
        }
    }
}

impl<'a> Scorer<'a> {
    /// For predictions of classes or of values.
    pub fn new(scoring: &'a Scoring, classes: bool) -> Self {
        let (calibration, fields, spreads, set) = (None, None, Vec::new(), None);
        Self { scoring, classes, calibration, fields, spreads, values_per_draw: 1, set }
    }

    /// For predictions whose draws are several values each, as quantiles are.
    pub fn with_values_per_draw(self, values_per_draw: usize) -> Self {
        Self { values_per_draw, ..self }
    }

    /// For predictions whose outputs are fields, if they are.
    pub fn of_fields(self, fields: Option<&'a FieldLayout>) -> Self {
        Self { fields, ..self }
    }

    /// For predictions that are calibrated so.
    pub fn calibrated(self, calibration: &'a Calibration) -> Self {
        let own = self.with_spreads(Some(calibration));
        Self { calibration: Some(calibration), ..own }
    }

    /// With coverage of narrow and wide predictions, if a calibration says what that is.
    pub fn with_spreads(self, calibration: Option<&Calibration>) -> Self {
        let values = calibration.and_then(Calibration::of_values);
        Self { spreads: values.map(|values| values.spreads()).unwrap_or_default(), ..self }
    }

    /// Adds a prediction of these examples and its truth.
    pub fn add(&mut self, rows: &[usize], prediction: &Predictive, truth: &Truth) -> Result<()> {
        let noisy;
        let prediction = match self.scoring.noise.is_empty() {
            true => prediction,
            false => {
                noisy = prediction.clone().with_noise(&self.scoring.noise)?;
                &noisy
            }
        };
        let outputs = prediction.outputs();
        let set = match &mut self.set {
            Some(set) => set,
            none => none.insert(Set::new(
                self.scoring,
                self.classes,
                self.calibration,
                self.fields,
                &self.spreads,
                [self.scoring.draws * self.values_per_draw, outputs],
            )?),
        };
        match (set, truth) {
            (Set::Classification(set), Truth::Labels(labels)) => {
                set.add(prediction.values(), labels, rows)?;
            }
            (Set::Regression(set), Truth::Values(values)) => {
                let groups = rows.iter().map_while(|row| self.scoring.groups.get(*row).copied());
                let groups: Vec<usize> = groups.collect();
                set.add(&prediction.mixtures(values)?.in_groups(&groups))?;
            }
            (Set::Fields(set), Truth::Values(values)) => set.add(prediction, values)?,
            (set, _) => {
                let [read, found] = match set {
                    Set::Classification(_) => ["logits of classes", "values"],
                    Set::Regression(_) | Set::Fields(_) => ["values", "class labels"],
                };
                return Err(Error::Setting(format!(
                    "the loss reads outputs as {read}, but the targets are {found}"
                )));
            }
        }
        Ok(())
    }

    /// Adds what the other ranks have, each having seen other rows. Collective.
    pub fn merge_on(&mut self, world: &dyn Communicator) -> Result<()> {
        // A rank without rows learns the number of outputs from the others.
        let outputs = self.set.as_ref().map_or(0, Set::outputs);
        let mut known = [outputs as u64];
        world.all_reduce_u64(&mut known, Operation::Max)?;
        let set = match &mut self.set {
            Some(set) => set,
            none => none.insert(Set::new(
                self.scoring,
                self.classes,
                self.calibration,
                self.fields,
                &self.spreads,
                [self.scoring.draws * self.values_per_draw, known[0] as usize],
            )?),
        };
        merge_set(set.metrics(), world)
    }

    /// The scores of all that was added.
    pub fn evaluation(&self) -> Result<Evaluation> {
        match &self.set {
            Some(Set::Regression(set)) => Ok((&**set).into()),
            Some(Set::Classification(set)) => Ok((&**set).into()),
            Some(Set::Fields(set)) => Ok((&**set).into()),
            None => Err(Error::Data("there are no examples to score".to_owned())),
        }
    }
}

/// Adds the statistics of the sets of all ranks. Collective.
pub(super) fn merge_set(set: &mut dyn MetricSet, world: &dyn Communicator) -> Result<()> {
    let mut statistics = set.statistics();
    world.all_reduce_f64(&mut statistics, Operation::Sum, Reduce::Reproducible)?;
    Ok(set.set_statistics(&statistics)?)
}
