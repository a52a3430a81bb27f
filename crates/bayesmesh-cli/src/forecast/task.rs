//! A series, divided in time and cut into windows.

use std::sync::Arc;

use anyhow::{Context, Result};
use bayesmesh::Dataset;
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{self, LoadSeries, LoadWindows, Normaliser, RepairReport};

use crate::exit::Usage;
use crate::recipe::{Data, Recipe};

/// Everything about the data of a forecast.
pub struct Forecast {
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

impl Forecast {
    /// Reads or generates the series of a recipe.
    pub fn new(recipe: &Recipe) -> Result<Self> {
        let (series, repairs) = match &recipe.data {
            Data::Load { path, .. } => {
                let file = recipe.data.file().expect("this kind has a file");
                let (series, repairs) = load::read(&file).with_context(|| {
                    format!(
                        "data.path is `{path}`; `bayesmesh data fetch load` gets a series, \
                         `--set data.path=FILE` names another"
                    )
                })?;
                (series, Some(repairs))
            }
            Data::LoadSynthetic { days, seed, .. } => {
                let days = u32::try_from(*days)
                    .map_err(|_| Usage(format!("data.days of {days} is too long")))?;
                let config = SynthConfig { seed: *seed, days, ..SynthConfig::default() };
                (german_like(&config)?, None)
            }
            Data::Cifar10 { .. } | Data::Cifar10Synthetic { .. } => {
                unreachable!("images are not forecast")
            }
        };
        let windows = recipe.data.windows().expect("a series is cut into windows");
        let split = load::split(series.len(), windows.split)?;
        let normaliser = Normaliser::fit(&series.values, split.train.clone())?;
        let values = Arc::new(normaliser.apply_all(&series.values));
        let part = |range: &std::ops::Range<usize>, stride| {
            let (inputs, outputs) = (windows.inputs, windows.outputs);
            LoadWindows::new(values.clone(), range.clone(), inputs, outputs, stride)
        };
        let forecast = Self {
            train: part(&split.train, windows.stride),
            valid: part(&split.valid, windows.stride),
            test: part(&split.test, 1),
            series,
            repairs,
            normaliser,
            inputs: windows.inputs,
            outputs: windows.outputs,
        };
        let parts = [&forecast.train, &forecast.valid, &forecast.test];
        if let Some(index) = parts.iter().position(|part| part.is_empty()) {
            let name = ["training", "validation", "test"][index];
            return Err(Usage(format!(
                "the {name} part of the series is shorter than a window of {} + {} values; use a \
                 longer series, shorter windows or another data.split",
                windows.inputs, windows.outputs
            ))
            .into());
        }
        Ok(forecast)
    }

    /// Normalised values in MW.
    pub fn invert(&self, normalised: &[f32]) -> Vec<f64> {
        normalised.iter().map(|&z| f64::from(self.normaliser.invert(z))).collect()
    }
}
