//! A series, divided in time and cut into windows.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use bayesmesh::Dataset as _;
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{
    self, LoadError, LoadSeries, LoadWindows, Normaliser, RepairReport, RepairRules,
};
use bayesmesh_schema::{Keys, Kinds};
use serde::Deserialize;

use crate::exit::Usage;
use crate::recipe::{Conflict, Recipe};
use crate::say::say;

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
        [self.shares(), self.length()].into_iter().flatten().collect()
    }

    fn shares(&self) -> Option<Conflict> {
        let sum: f64 = self.windows().split.iter().sum();
        // Without the digits that binary fractions add.
        let shown = (sum * 1e6).round() / 1e6;
        ((sum - 1.0).abs() >= 1e-6).then(|| {
            Conflict::new(
                "data.split",
                format!("the shares of `data.split` sum to {shown}, not to 1"),
                "shares for training, validation and test, for example `split = [0.6, 0.1, 0.3]`",
            )
        })
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

/// Everything about the data of a forecast.
pub struct Load {
    /// The series in MW.
    pub series: LoadSeries,
    /// What was found and repaired, if it comes from a file.
    pub repairs: Option<RepairReport>,
    /// Mean and deviation of the training part.
    pub normaliser: Normaliser,
    /// Windows of each part, normalised.
    pub train: LoadWindows,
    /// See `train`.
    pub valid: LoadWindows,
    /// See `train`.
    pub test: LoadWindows,
    /// Values given to the network.
    pub inputs: usize,
    /// Values it predicts.
    pub outputs: usize,
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
        let windows = settings.windows();
        let split = load::split(series.len(), windows.split)?;
        let normaliser =
            Normaliser::fit(&series.values, split.train.clone()).with_context(|| {
                recipe.data_path().map_or_else(String::new, |path| path.display().to_string())
            })?;
        let values = Arc::new(normaliser.apply_all(&series.values));
        let part = |range: &std::ops::Range<usize>, stride| {
            let (inputs, outputs) = (windows.inputs, windows.outputs);
            LoadWindows::new(values.clone(), range.clone(), inputs, outputs, stride)
        };
        let load = Self {
            train: part(&split.train, windows.stride),
            valid: part(&split.valid, windows.stride),
            test: part(&split.test, 1),
            series,
            repairs,
            normaliser,
            inputs: windows.inputs,
            outputs: windows.outputs,
        };
        let parts = [&load.train, &load.valid, &load.test];
        if let Some(index) = parts.iter().position(|part| part.is_empty()) {
            let name = ["training", "validation", "test"][index];
            return Err(Usage(format!(
                "the {name} part of the series is shorter than a window of {} + {} values; use a \
                 longer series, shorter windows or another data.split",
                windows.inputs, windows.outputs
            ))
            .into());
        }
        Ok(load)
    }

    /// Values of the series in an hour, and so on.
    pub fn steps_in(&self, seconds: usize) -> usize {
        seconds / self.series.step_seconds as usize
    }
}
