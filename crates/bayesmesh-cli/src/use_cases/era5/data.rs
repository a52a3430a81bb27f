//! Weather, divided in time.

use std::path::Path;

use anyhow::{Context as _, Result};
use bayesmesh::loss::OutputWeights;
use bayesmesh::metrics::FieldLayout;
use bayesmesh_data::era5::{
    self, Best, Climatology, Era5Error, Fields, FieldsConfig, Missing, Parts, Split, Statistics,
    Store, SynthConfig, Synthetic, Variable, parse_date,
};
use bayesmesh_schema::{Choice, Keys, Kinds};
use serde::Deserialize;

use crate::progress::Reading;
use crate::recipe::{Conflict, Recipe};
use crate::tasks::fields::{self, Field};

/// What is learned from.
#[derive(Clone, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Era5Settings {
    /// weather on a grid of latitudes and longitudes, in the Zarr layout of WeatherBench2: ERA5, or
    /// any analysis in the same form
    Era5 {
        /// The store: a folder, or an address that begins with `https://`, `http://`, `gs://` or
        /// `file://`. `~/` is the home folder; a relative path starts at the working directory, not
        /// at the recipe.
        #[key(required = "\"data/era5.zarr\"", also("store", "zarr", "folder"))]
        path: String,
        #[serde(flatten)]
        fields: FieldKeys,
    },
    /// generated weather with the habits of the real one, of which the best possible forecast is
    /// known; needs no file
    Era5Synthetic {
        /// Steps of six hours to generate.
        #[key(default = 1460, at_least = 32, at_most = 200_000, also("length"))]
        steps: usize,
        /// The seed of the generator. Apart from `train.seed`, so that runs with other seeds see
        /// the same data.
        #[key(default = 1)]
        seed: u64,
        #[serde(flatten)]
        fields: FieldKeys,
    },
}

/// Which fields are read, and how examples are made of them.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct FieldKeys {
    /// Rows of the grid, from pole to pole.
    #[key(default = 121, at_least = 2, at_most = 4096, also("lat", "rows", "height"))]
    pub latitudes: usize,
    /// Columns of the grid, around the globe.
    #[key(default = 240, at_least = 2, at_most = 8192, also("lon", "columns", "width"))]
    pub longitudes: usize,
    /// What is predicted, and predicted from: `2m_temperature`, or with a level in hPa
    /// `geopotential.500`.
    #[key(
        unset = "the 69 of Pangu-Weather; of generated weather, four",
        items = 1,
        also("channels", "vars")
    )]
    pub variables: Option<Vec<String>>,
    /// How many times an input has: the present one, and those one lead time apart before it.
    #[key(default = 1, at_least = 1, at_most = 16, also("times", "past"))]
    pub history: usize,
    /// Hours from the input to what is predicted; a multiple of the step of the store.
    #[key(default = 6, at_least = 1, at_most = 8760, also("lead_time", "lead", "horizon"))]
    pub lead_hours: u32,
    /// Hours from one example to the next.
    #[key(unset = "every step of the store", at_least = 1, also("stride", "every"))]
    pub stride_hours: Option<u32>,
    /// Whether the network sees land, soil and topography, which the store must have.
    #[key(default = true, also("constants", "static"))]
    pub masks: bool,
    /// Whether the network sees what is usual at the hour of the input and at that of the forecast,
    /// as the training part has it: of use where the record is short.
    #[key(default = false, also("climatology_channels"))]
    pub climatology: bool,
    /// Whether the network sees the day of the year. Not of use where the record has no year: every
    /// later day is one that it has not seen.
    #[key(default = true, also("day_of_year"))]
    pub season: bool,
    /// What is done with times of which a value is not a number.
    #[key(default = "refuse", also("nan"))]
    pub missing: MissingKey,
    /// Whether the globe is turned by a random number of columns in training. `train.augment` says
    /// which draws see the same.
    #[key(default = true, also("augment", "turn", "shift"))]
    pub augmentation: bool,
    /// What the outputs weigh in the loss. Scores are weighted by area in any case.
    #[key(default = "area", also("weighting"))]
    pub weights: Weighing,
    /// Shares of the times for training, validation and test, in time order; they sum to 1.
    #[key(default = [0.7, 0.1, 0.2], above = 0, below = 1, also("splits", "fractions"))]
    pub split: [f64; 3],
    /// The end of the training part, e.g. `2018-01-01`, which does not belong to it. It replaces
    /// `split`.
    #[key(unset = "as `split` has it")]
    pub train_until: Option<String>,
    /// The end of the validation part, in the same way.
    #[key(unset = "as `split` has it")]
    pub valid_until: Option<String>,
    /// The end of the test part, in the same way.
    #[key(unset = "the end of the store")]
    pub test_until: Option<String>,
    /// A file with the mean and the deviation of every variable, as `bayesmesh data stats era5`
    /// writes it.
    #[key(unset = "computed from the training part", also("stats", "normalisation"))]
    pub statistics: Option<String>,
}

/// What is done with times of which a value is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingKey {
    /// They are an error.
    Refuse,
    /// Examples with them are left out.
    LeaveOut,
}

/// What outputs weigh in the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighing {
    /// Points by their area.
    Area,
    /// Points by their area, and levels by their pressure: most weather is below.
    AreaAndLevel,
    /// All the same, as in the paper.
    None,
}

impl Era5Settings {
    /// Which fields, and how.
    pub fn fields(&self) -> &FieldKeys {
        let (Self::Era5 { fields, .. } | Self::Era5Synthetic { fields, .. }) = self;
        fields
    }

    /// The variables; an error that says how they are written.
    pub fn variables(&self) -> Result<Vec<Variable>, Era5Error> {
        match (&self.fields().variables, self) {
            (Some(names), _) => names.iter().map(|name| name.parse()).collect(),
            (None, Self::Era5 { .. }) => Ok(era5::pangu69()),
            (None, Self::Era5Synthetic { .. }) => Ok(SynthConfig::default().variables),
        }
    }

    /// How many there are.
    pub fn variable_count(&self) -> usize {
        self.variables().map_or(0, |variables| variables.len())
    }

    /// How examples are made.
    pub fn config(&self) -> Result<FieldsConfig, Era5Error> {
        let fields = self.fields();
        Ok(FieldsConfig {
            history: fields.history,
            lead: i64::from(fields.lead_hours) * 3600,
            stride: i64::from(fields.stride_hours.unwrap_or(0)) * 3600,
            masks: fields.masks,
            climatology: fields.climatology,
            season: fields.season,
            missing: match fields.missing {
                MissingKey::Refuse => Missing::Refuse,
                MissingKey::LeaveOut => Missing::LeaveOut,
            },
            turn: fields.augmentation,
            ..FieldsConfig::new(self.variables()?)
        })
    }

    fn split(&self) -> Result<Split, Era5Error> {
        let fields = self.fields();
        let date = |text: &Option<String>| text.as_deref().map(parse_date).transpose();
        let [train, valid, test] =
            [&fields.train_until, &fields.valid_until, &fields.test_until].map(date);
        Ok(match (train?, valid?) {
            (Some(train), Some(valid)) => Split::Until { from: None, train, valid, test: test? },
            _ => Split::Shares(fields.split),
        })
    }

    /// Opens or generates the weather; of generated one also what the best forecast is.
    pub fn open(&self, recipe: &Recipe) -> Result<Store> {
        match self {
            Self::Era5 { path, .. } => {
                let location = recipe.data_path().unwrap_or_else(|| path.into());
                Ok(Store::open(&location.to_string_lossy())?)
            }
            Self::Era5Synthetic { steps, seed, fields } => {
                let config = SynthConfig {
                    latitudes: fields.latitudes,
                    longitudes: fields.longitudes,
                    steps: *steps,
                    seed: *seed,
                    variables: self.variables()?,
                    ..SynthConfig::default()
                };
                let mut bar = Reading::new();
                Ok(Synthetic::new(config)?.store(&mut |p| bar.show(p.what, p.done, p.of))?)
            }
        }
    }

    /// Keys that are right one by one but do not go together.
    pub fn conflicts(&self) -> Vec<Conflict> {
        [self.names(), Conflict::of_shares(&self.fields().split, "[0.7, 0.1, 0.2]"), self.dates()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn names(&self) -> Option<Conflict> {
        let names = self.fields().variables.as_ref()?;
        let example = "for example `variables = [\"2m_temperature\", \"geopotential.500\"]`";
        let wrong = names.iter().find_map(|name| name.parse::<Variable>().err());
        if let Some(error) = wrong {
            return Some(Conflict::new("data.variables", error.to_string(), example));
        }
        let mut seen = Vec::new();
        let double = names.iter().find(|name| {
            let known = seen.contains(name);
            seen.push(name);
            known
        });
        double.map(|name| {
            let message = format!("`{name}` is named twice");
            Conflict::new("data.variables", message, "name each variable once")
        })
    }

    fn dates(&self) -> Option<Conflict> {
        let FieldKeys { train_until, valid_until, test_until, .. } = self.fields();
        let given = [
            ("data.train_until", train_until),
            ("data.valid_until", valid_until),
            ("data.test_until", test_until),
        ];
        for (key, text) in given {
            if let Some(Err(error)) = text.as_deref().map(parse_date) {
                let help = "a date such as `2018-01-01`, or a time such as `2018-01-01T06`";
                return Some(Conflict::new(key, error.to_string(), help));
            }
        }
        match (train_until, valid_until, test_until) {
            (None, None, None) | (Some(_), Some(_), _) => None,
            _ => Some(Conflict::new(
                "data.train_until",
                "a division by dates needs the ends of the training and of the validation part",
                "set both `train_until` and `valid_until`, or use `split`",
            )),
        }
    }
}

/// The weather of a run.
pub struct Era5 {
    /// What is learned from, validated with and tested with.
    pub parts: Parts,
    /// What is expected of a day and an hour.
    pub climatology: Climatology,
    /// The fair CRPS of the best possible forecast of each variable, in its unit, where it is
    /// known.
    pub best_crps: Vec<Option<f64>>,
    /// How outputs are divided into fields, what points weigh, and the units of the fields.
    pub layout: FieldLayout,
    /// What outputs weigh in the loss.
    weighing: Weighing,
}

impl Era5 {
    /// Reads or generates it.
    pub fn new(settings: &Era5Settings, recipe: &Recipe) -> Result<Self> {
        let store = settings.open(recipe)?;
        let fields = settings.fields();
        refuse_other_grid(&store, fields)?;
        let config = settings.config()?;
        let statistics = match &fields.statistics {
            Some(path) => Some(Statistics::load(Path::new(path))?),
            None => None,
        };
        let mut bar = Reading::new();
        let parts = Fields::split(&store, &config, &settings.split()?, statistics, &mut |p| {
            bar.show(p.what, p.done, p.of);
        })?;
        let climatology = Climatology::of(&parts.train, &mut |p| bar.show(p.what, p.done, p.of))
            .context("the climatology of the training part")?;
        let steps = match store.step() {
            Ok(step) if step > 0 => (config.lead / step) as usize,
            _ => 1,
        };
        let best = |variable| Some(Best::of(&store, variable)?.crps(steps));
        let best_crps = config.variables.iter().map(best).collect();
        let layout = layout(&parts.train)?;
        Ok(Self { parts, climatology, best_crps, layout, weighing: fields.weights })
    }

    /// The variables with their units.
    pub fn task(&self) -> fields::Fields {
        let train = &self.parts.train;
        let named = train.variables().iter().zip(train.units());
        let fields = named.map(|(variable, unit)| {
            let moments = train.statistics().get(variable).expect("of every variable");
            Field {
                name: variable.to_string(),
                unit: unit.clone().map(readable).unwrap_or_default(),
                scale: moments.std,
                shift: moments.mean,
            }
        });
        fields::Fields { fields: fields.collect(), layout: self.layout.clone() }
    }

    /// What outputs weigh in the loss; nothing where all weigh the same.
    pub fn weights(&self) -> Result<Option<OutputWeights>> {
        let variables = self.parts.train.variables();
        let of_level = |variable: &Variable| match (self.weighing, variable.level) {
            (Weighing::AreaAndLevel, Some(level)) => level as f32 / 1000.0,
            _ => 1.0,
        };
        let fields: Vec<f32> = variables.iter().map(of_level).collect();
        Ok(match self.weighing {
            Weighing::None => None,
            _ => Some(OutputWeights::of_fields(&fields, self.layout.cells())?),
        })
    }
}

fn layout(train: &Fields) -> Result<FieldLayout> {
    let (grid, variables) = (train.grid(), train.variables());
    let columns = grid.longitudes().len();
    let weights = grid.weights();
    let cells = weights.iter().flat_map(|weight| std::iter::repeat_n(*weight, columns));
    let moments = |variable| train.statistics().get(variable).expect("of every variable");
    let scales = variables.iter().map(|variable| moments(variable).std).collect();
    let cells: Vec<f32> = cells.collect();
    Ok(FieldLayout::new(variables.len(), &cells)?.with_scales(scales)?)
}

/// Units as people write them: `m s**-1` is m/s.
fn readable(unit: String) -> String {
    match unit.as_str() {
        "m s**-1" | "m s-1" => "m/s".to_owned(),
        "m**2 s**-2" | "m2 s-2" => "m²/s²".to_owned(),
        "kg kg**-1" | "kg kg-1" => "kg/kg".to_owned(),
        _ => unit,
    }
}

/// Refuses a store of another grid than the recipe's, from which sizes of the network follow.
pub fn refuse_other_grid(store: &Store, fields: &FieldKeys) -> Result<()> {
    let grid = store.grid();
    let [rows, columns] = [grid.latitudes().len(), grid.longitudes().len()];
    if [rows, columns] == [fields.latitudes, fields.longitudes] {
        return Ok(());
    }
    Err(crate::exit::Usage(format!(
        "{} has {rows} latitudes and {columns} longitudes, the recipe {} and {}; use `--set \
         data.latitudes={rows} --set data.longitudes={columns}`, or another store",
        store.location(),
        fields.latitudes,
        fields.longitudes
    ))
    .into())
}
