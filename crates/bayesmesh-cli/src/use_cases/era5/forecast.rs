//! What a forecast is beside what costs nothing, and how it goes on for days.

use anyhow::Result;
use bayesmesh::metrics::{FieldErrors, FieldScores, Score};
use bayesmesh::{Dataset as _, Error, Network, Posterior, Predictive, Predictor};
use bayesmesh_data::era5::{self, Era5Error, Fields};
use bayesmesh_schema::Keys;
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Era5;
use crate::tasks::fields::Field;
use crate::use_cases::{InputOf, Trained};

/// What the baselines are called.
pub const BASELINES: [&str; 2] = ["persistence", "climatology"];

/// How forecasts of days are scored.
///
/// Keys of `[evaluate]`.
#[derive(Clone, Debug, Keys, Deserialize)]
pub struct RollOut {
    /// How many steps forecasts of weather go on from themselves, for curves and maps; 1 for none.
    #[key(default = 4, at_least = 1, at_most = 1000, also("rollout", "lead_steps"))]
    pub roll_out: usize,
    /// How many of the test forecasts do, evenly chosen.
    #[key(default = 4, at_least = 1, also("roll_outs"))]
    pub roll_out_origins: usize,
}

/// What is scored and shown of a weather forecast beside what every forecast of fields is.
pub struct Extras {
    /// The RMSE of each of [`BASELINES`] for each variable, in its unit.
    pub baselines: [Vec<f64>; 2],
    /// The fair CRPS of the best possible forecast of each variable, where it is known.
    pub best_crps: Vec<Option<f64>>,
    /// The names of scores of each variable.
    fields: Vec<Field>,
    /// Forecasts that go on, lead time by lead time.
    pub leads: Vec<Lead>,
    /// The first of them, to look at.
    pub shown: Option<Shown>,
}

/// How good forecasts of one lead time are, variable by variable, in its unit.
pub struct Lead {
    /// Hours.
    pub hours: f64,
    pub rmse: Vec<f64>,
    pub crps: Vec<f64>,
    pub spread: Vec<f64>,
    pub spread_skill: Vec<f64>,
    /// The RMSE of each of [`BASELINES`].
    pub baselines: [Vec<f64>; 2],
}

/// A forecast to look at, in the units of the variables.
pub struct Shown {
    /// When it begins, in seconds since 1970.
    pub origin: i64,
    /// Its fields, lead time by lead time.
    pub steps: Vec<ShownStep>,
}

/// All variables of a lead time, one after the other.
pub struct ShownStep {
    pub truth: Vec<f32>,
    pub mean: Vec<f32>,
    pub spread: Vec<f32>,
}

/// The most variables of which maps are kept.
pub const MOST_SHOWN: usize = 4;

impl Extras {
    /// Of a trained network.
    pub fn of<N: Network<Input = InputOf<Era5>> + 'static>(
        trained: &Trained<'_, Era5, N>,
    ) -> Result<Self> {
        let case = trained.case;
        let test = &case.parts.test;
        let mut baselines = Baselines::new(case);
        for row in 0..test.len() {
            let truth = test.truth(row, 1)?.expect("an example has its truth");
            baselines.add(case, row, test.target_time(row), &truth)?;
        }
        let (leads, shown) = roll_outs(trained)?;
        Ok(Self {
            baselines: baselines.rmse(),
            best_crps: case.best_crps.clone(),
            fields: case.task().fields,
            leads,
            shown,
        })
    }

    /// The baselines with what they are called, for tables; and the best possible where known.
    pub fn named_baselines(&self) -> Vec<(&'static str, Vec<f64>)> {
        BASELINES.into_iter().zip(self.baselines.clone()).collect()
    }

    /// Scores of each variable.
    pub fn scores(&self) -> Vec<Score> {
        let mut scores = Vec::new();
        for (index, field) in self.fields.iter().enumerate() {
            for (name, values) in BASELINES.into_iter().zip(&self.baselines) {
                let name = field.score(&format!("{name}_rmse"));
                scores.push(Score::new(name, values[index]));
            }
            if let Some(best) = self.best_crps[index] {
                scores.push(Score::new(field.score("best_crps"), best));
            }
        }
        scores
    }

    /// Scores lead time by lead time, variable by variable.
    pub fn details(&self) -> Map<String, Value> {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        let leads = self.leads.iter().map(|lead| {
            let [persistence, climatology] = &lead.baselines;
            json!({
                "hours": lead.hours,
                "rmse": lead.rmse,
                "crps": lead.crps,
                "spread": lead.spread,
                "spread_skill": lead.spread_skill,
                "persistence_rmse": persistence,
                "climatology_rmse": climatology,
            })
        });
        Map::from_iter([(
            "roll_out".to_owned(),
            json!({ "variables": names, "leads": leads.collect::<Vec<_>>() }),
        )])
    }
}

/// Forecasts that cost nothing: all stays as it is, and all is as it usually is.
struct Baselines([FieldErrors; 2]);

impl Baselines {
    fn new(case: &Era5) -> Self {
        let errors = || FieldErrors::new(case.layout.clone());
        Self([errors(), errors()])
    }

    /// Adds those of the forecast from an example for this time.
    fn add(&mut self, case: &Era5, row: usize, time: i64, truth: &[f32]) -> Result<()> {
        let [persistence, climatology] = &mut self.0;
        persistence.add(&case.parts.test.state(row)?, truth)?;
        climatology.add(case.climatology.at(time), truth)?;
        Ok(())
    }

    fn rmse(&self) -> [Vec<f64>; 2] {
        self.0.each_ref().map(|errors| errors.fields().iter().map(|f| f.rmse.value).collect())
    }
}

/// Some test forecasts that go on from themselves: their scores by lead time, and the first of
/// them. Only the first process of a job has them.
fn roll_outs<N: Network<Input = InputOf<Era5>> + 'static>(
    trained: &Trained<'_, Era5, N>,
) -> Result<(Vec<Lead>, Option<Shown>)> {
    let Trained { case, recipe, trainer, draws } = *trained;
    let RollOut { roll_out: steps, roll_out_origins } = recipe.section("evaluate")?;
    let test = &case.parts.test;
    let lead = test.config().lead;
    let rows = origins(test, steps, roll_out_origins);
    let mut scores = Vec::new();
    for _ in 0..steps {
        scores.push((FieldScores::new(case.layout.clone(), draws)?, Baselines::new(case)));
    }
    let mut shown = None;
    let predictor = trainer.predictor();
    for &row in &rows {
        let mut steps_shown = Vec::new();
        forecast(&predictor, test, row, draws, steps, |step, prediction| {
            let time = test.origin_time(row) + step as i64 * lead;
            let truth = test.truth(row, step).map_err(as_data)?;
            let truth = truth.expect("chosen because it has one");
            let (set, baselines) = &mut scores[step - 1];
            set.add(prediction, &truth)?;
            baselines.add(case, row, time, &truth).map_err(|e| Error::Data(format!("{e:#}")))?;
            if shown.is_none() {
                steps_shown.push(ShownStep::of(case, truth, prediction));
            }
            Ok(())
        })?;
        let origin = test.origin_time(row);
        shown.get_or_insert(Shown { origin, steps: steps_shown });
    }
    let leads = scores.iter().enumerate().map(|(index, (set, baselines))| {
        let fields = set.fields();
        let of = |pick: fn(&bayesmesh::metrics::FieldScore) -> &Score| {
            fields.iter().map(|field| pick(field).value).collect()
        };
        Lead {
            hours: (index + 1) as f64 * lead as f64 / 3600.0,
            rmse: of(|field| &field.rmse),
            crps: of(|field| &field.crps),
            spread: of(|field| &field.spread),
            spread_skill: of(|field| &field.spread_skill),
            baselines: baselines.rmse(),
        }
    });
    Ok((leads.collect(), shown))
}

/// Up to so many examples, evenly chosen, whose truth is known for all of these steps.
fn origins(test: &Fields, steps: usize, most: usize) -> Vec<usize> {
    let whole = |row: &usize| (1..=steps).all(|step| test.has_truth(*row, step));
    let known: Vec<usize> = (0..test.len()).filter(whole).collect();
    let count = known.len().min(most);
    (0..count).map(|index| known[index * known.len() / count]).collect()
}

impl ShownStep {
    fn of(case: &Era5, truth: Vec<f32>, prediction: &Predictive) -> Self {
        let task = case.task();
        let cells = case.layout.cells().len();
        let some = MOST_SHOWN.min(task.fields.len()) * cells;
        let in_unit = |values: &[f32], shifted: bool| -> Vec<f32> {
            let fields = task.fields.iter().zip(values[..some].chunks_exact(cells));
            let fields = fields.flat_map(|(field, values)| {
                let shift = if shifted { field.shift } else { 0.0 };
                values.iter().map(move |value| (f64::from(*value) * field.scale + shift) as f32)
            });
            fields.collect()
        };
        Self {
            truth: in_unit(&truth, true),
            mean: in_unit(&prediction.mean(), true),
            spread: in_unit(&prediction.epistemic_std(), false),
        }
    }
}

/// Follows the draws of a forecast from an example on, see [`Predictor::roll_out`].
pub fn forecast<P: Posterior<Network: Network<Input = InputOf<Era5>>>>(
    predictor: &Predictor<P>,
    examples: &Fields,
    row: usize,
    draws: usize,
    steps: usize,
    visit: impl FnMut(usize, &Predictive) -> bayesmesh::Result<()> + Send,
) -> Result<()> {
    let origin = examples.origin_time(row);
    let states = examples.states(row)?;
    let states: Vec<&[f32]> = states.iter().map(Vec::as_slice).collect();
    let device = Device::default();
    let first = as_input(examples, examples.input(&states, origin), &device);
    let config = examples.config();
    let (lead, history) = (config.lead, config.history);
    let size = examples.outputs();
    let next = |step: usize, input: &InputOf<Era5>, output: &[f32]| {
        // What it has just predicted, and what it saw before but for the oldest.
        let before = input.0.to_data().try_into_vec::<f32>().expect("numbers of this type");
        let mut states = vec![output];
        states.extend(before[..(history - 1) * size].chunks_exact(size));
        let time = origin + step as i64 * lead;
        Ok(as_input(examples, examples.input(&states, time), &input.0.device()))
    };
    Ok(predictor.roll_out(&first, draws, steps, next, visit)?)
}

/// One example as a network takes it, the globe not turned.
fn as_input(examples: &Fields, channels: Vec<f32>, device: &Device) -> InputOf<Era5> {
    let grid = examples.grid();
    let shape = [1, examples.channels(), grid.latitudes().len(), grid.longitudes().len()];
    let turn = Tensor::<1, Int>::zeros([1], device);
    (Tensor::from_data(TensorData::new(channels, shape), device), turn)
}

/// An error of the data within a collective call.
fn as_data(error: Era5Error) -> Error {
    Error::Data(error.to_string())
}

/// A time as people write it: `2026-05-01 06 h`.
pub fn date(seconds: i64) -> String {
    let text = era5::utc(seconds);
    text.strip_suffix(":00:00Z")
        .map_or(text.clone(), |hour| format!("{} h", hour.replace('T', " ")))
}
