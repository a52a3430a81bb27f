//! `[data]`: what is learned from.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Task;
use super::schema::{Absent, Key, Kind, Range, Section, Values};

/// What is learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Data {
    /// A series of electrical load from a file.
    Load {
        /// The file as the recipe names it; [`Data::file`] is where it is.
        path: String,
        /// How examples are cut from the series.
        #[serde(flatten)]
        windows: Windows,
    },
    /// A generated series that looks like the German load, 96 values a day.
    LoadSynthetic {
        /// The length of the series.
        days: usize,
        /// The seed of the generator.
        seed: u64,
        /// How examples are cut from the series.
        #[serde(flatten)]
        windows: Windows,
    },
}

/// How examples are cut from a series: `inputs` values, then the `outputs` that follow them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// Values that are given.
    pub inputs: usize,
    /// Values that are predicted.
    pub outputs: usize,
    /// Steps from the start of one example to the start of the next.
    pub stride: usize,
    /// Shares of the series, in time order, for training, validation and test; sum 1.
    pub split: [f64; 3],
}

impl Data {
    /// Whether numbers or classes are predicted.
    pub fn task(&self) -> Task {
        match self {
            Self::Load { .. } | Self::LoadSynthetic { .. } => Task::Regression,
        }
    }

    /// How examples are cut from the series.
    pub fn windows(&self) -> &Windows {
        match self {
            Self::Load { windows, .. } | Self::LoadSynthetic { windows, .. } => windows,
        }
    }

    /// The file that the data come from, if they do: `~/` is the home folder, and a relative path
    /// starts at the working directory.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Load { path, .. } => Some(absolute(path)),
            Self::LoadSynthetic { .. } => None,
        }
    }

    /// The same with the full path, so that it can be read from another working directory.
    pub(super) fn located(mut self) -> Self {
        if let Self::Load { path, .. } = &mut self
            // A folder whose name is not UTF-8 cannot be written in TOML: the path stays relative.
            && let Some(full) = absolute(path).to_str()
        {
            *path = full.to_owned();
        }
        self
    }
}

fn absolute(path: &str) -> PathBuf {
    let home = path
        .strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with(std::path::is_separator));
    let expanded = match (home, std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches(std::path::is_separator)),
        _ => Path::new(path).to_owned(),
    };
    std::path::absolute(&expanded).unwrap_or(expanded)
}

pub(super) static SECTION: Section = Section {
    name: "data",
    meaning: "What is learned from.",
    kinds: &[
        Kind::new(
            "load",
            "a series of electrical load from a CSV file: Open Power System Data, ENTSO-E, SMARD, \
             Kaggle's `de.csv` or plain `timestamp,load`",
        ),
        Kind::new(
            "load-synthetic",
            "a generated series that looks like the German load; needs no file",
        ),
    ],
    default_kind: None,
    keys: &[
        Key::new(
            "path",
            Values::Text,
            Absent::Refused("\"data/load.csv\""),
            "The file of the series. `~/` is the home folder; a relative path starts at the \
             working directory, not at the recipe.",
        )
        .of(&["load"])
        .also(&["file", "csv", "filename"]),
        Key::new(
            "days",
            Values::Count(1, 36_525),
            Absent::Value("730"),
            "The length of the generated series; a day has 96 values.",
        )
        .of(&["load-synthetic"]),
        Key::new(
            "seed",
            Values::at_least(0),
            Absent::Value("1"),
            "The seed of the generator. Apart from `train.seed`, so that runs with other seeds see \
             the same series.",
        )
        .of(&["load-synthetic"]),
        Key::new(
            "inputs",
            Values::at_least(1),
            Absent::Value("96"),
            "Values that an example gives; 96 quarter-hours are a day.",
        )
        .also(&["lookback", "context", "window", "input"]),
        Key::new(
            "outputs",
            Values::at_least(1),
            Absent::Value("24"),
            "Values after them that are predicted; 24 quarter-hours are 6 hours.",
        )
        .also(&["horizon", "forecast", "output"]),
        Key::new(
            "stride",
            Values::at_least(1),
            Absent::Value("1"),
            "Steps from the start of one example to the start of the next.",
        )
        .also(&["step"]),
        Key::new(
            "split",
            Values::List(&Values::Number(Range::INSIDE_ONE), 3, 3),
            Absent::Value("[0.6, 0.1, 0.3]"),
            "Shares of the series for training, validation and test, in time order; they sum to 1.",
        )
        .also(&["splits", "fractions"]),
    ],
    example: "[data]\nkind = \"load\"\npath = \"data/load.csv\"",
};
