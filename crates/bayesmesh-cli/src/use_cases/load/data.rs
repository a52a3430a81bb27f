//! A load series, from a file or generated.

use std::path::Path;

use anyhow::{Context, Result};
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{self, LoadError, LoadSeries, RepairReport, RepairRules};
use bayesmesh_data::series::{Cut, Encoding, Panel, Period};
use bayesmesh_schema::{Keys, Kinds};
use serde::Deserialize;

use crate::recipe::{Conflict, Recipe};
use crate::say::say;
use crate::use_cases::series::{Baseline, Forecast};

/// What is learned from.
#[derive(Clone, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LoadSettings {
    /// a series of electrical load from a CSV file: Open Power System Data, ENTSO-E, SMARD,
    /// Kaggle's `de.csv` or plain `timestamp,load`
    Load {
        /// The file of the series. `~/` is the home folder; a relative path starts at the working
        /// directory, not at the recipe.
        #[key(required = "\"data/load.csv\"", also("file", "csv", "filename"))]
        path: String,
        #[serde(flatten)]
        windows: Windows,
    },
    /// a generated series that looks like the German load; needs no file
    LoadSynthetic {
        /// The length of the generated series; a day has 96 values.
        #[key(default = 730, at_least = 1, at_most = 36_525)]
        days: u32,
        /// The seed of the generator. Apart from `train.seed`, so that runs with other seeds see
        /// the same data.
        #[key(default = 1)]
        seed: u64,
        #[serde(flatten)]
        windows: Windows,
    },
}

/// How examples are cut from a series: `inputs` values, then the `outputs` that follow them.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct Windows {
    /// Values that an example gives; 96 quarter-hours are a day.
    #[key(default = 96, at_least = 1, also("lookback", "context", "window", "input"))]
    pub inputs: usize,
    /// Values after them that are predicted; 24 quarter-hours are 6 hours.
    #[key(default = 24, at_least = 1, also("horizon", "forecast", "output"))]
    pub outputs: usize,
    /// Steps from the start of one example to the start of the next.
    #[key(default = 1, at_least = 1, also("step"))]
    pub stride: usize,
    /// Shares of the series for training, validation and test, in time order; they sum to 1.
    #[key(default = [0.6, 0.1, 0.3], above = 0, below = 1, also("splits", "fractions"))]
    pub split: [f64; 3],
}

impl LoadSettings {
    /// How examples are cut from the series.
    pub fn windows(&self) -> &Windows {
        let (Self::Load { windows, .. } | Self::LoadSynthetic { windows, .. }) = self;
        windows
    }

    /// Keys that are right one by one but do not go together.
    pub fn conflicts(&self) -> Vec<Conflict> {
        [Conflict::of_shares(&self.windows().split, "[0.6, 0.1, 0.3]"), self.length()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// A generated series must be long enough for one example in each of its parts.
    fn length(&self) -> Option<Conflict> {
        const VALUES_PER_DAY: f64 = 96.0;
        let Self::LoadSynthetic { days, windows, .. } = self else {
            return None;
        };
        let smallest = windows.split.iter().copied().fold(f64::INFINITY, f64::min);
        let example = windows.inputs as f64 + windows.outputs as f64;
        let needed = (example / (VALUES_PER_DAY * smallest)).ceil() + 1.0;
        (f64::from(*days) < needed).then(|| {
            Conflict::new(
                "data.days",
                format!(
                    "{days} days are too few: the smallest part of `data.split` must hold an \
                     example of {example} values"
                ),
                format!("use at least `days = {needed}`, or fewer `inputs` and `outputs`"),
            )
        })
    }
}

/// Reads a series; of the processes of a job one says what is waited for.
pub fn read(file: &Path) -> Result<(LoadSeries, RepairReport), LoadError> {
    load::read_with(file, &RepairRules::default(), &mut |words| say!("{words}"))
}

/// A load series as forecasts have it.
pub fn panel(series: &LoadSeries) -> Panel {
    let values = series.values.iter().copied().map(f64::from).collect();
    Panel::of_one(Period::Seconds(series.step_seconds.into()), series.start, values)
}

/// Everything about the data of a load forecast.
pub struct Load {
    /// The series in MW and its windows.
    pub forecast: Forecast,
    /// What was found and repaired, if it comes from a file.
    pub repairs: Option<RepairReport>,
}

impl Load {
    /// Reads or generates the series of a recipe.
    pub fn new(settings: &LoadSettings, recipe: &Recipe) -> Result<Self> {
        let (series, repairs) = match settings {
            LoadSettings::Load { path, .. } => {
                let file = recipe.data_path().unwrap_or_default();
                let (series, repairs) = read(&file).with_context(|| {
                    format!(
                        "data.path is `{path}`; `bayesmesh data fetch load` gets a series, \
                         `--set data.path=FILE` names another"
                    )
                })?;
                (series, Some(repairs))
            }
            &LoadSettings::LoadSynthetic { days, seed, .. } => {
                (german_like(&SynthConfig { seed, days, ..SynthConfig::default() })?, None)
            }
        };
        let &Windows { inputs, outputs, stride, split } = settings.windows();
        let panel = panel(&series);
        let parts = panel.divide(split)?;
        // As in the paper: each part stands for itself, and values are what they are.
        let cut = Cut { inputs, outputs, stride, reach_back: false, relative: false };
        let mut encoding = Encoding::new(panel.period, cut);
        encoding.learn(&panel, &parts[0], false).with_context(|| {
            recipe.data_path().map_or_else(String::new, |path| path.display().to_string())
        })?;
        let name = "same time yesterday".to_owned();
        let key = "yesterday".to_owned();
        let season = Some(series.steps_per_day());
        let baselines = vec![Baseline { name, key, season }, Baseline::persistence()];
        let mut forecast = Forecast::new(panel, encoding, parts, baselines)?;
        forecast.unit = "MW";
        Ok(Self { forecast, repairs })
    }
}
