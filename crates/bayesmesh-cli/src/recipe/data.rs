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
    /// The photographs of CIFAR-10 from their folder.
    Cifar10 {
        /// The folder as the recipe names it; [`Data::file`] is where it is.
        path: String,
        /// How many of the training images are used, from the first on.
        limit: Option<usize>,
        /// How many of the test images are used, from the first on.
        test_limit: Option<usize>,
        /// How the images are divided and prepared.
        #[serde(flatten)]
        images: Images,
    },
    /// Generated images in the form of CIFAR-10.
    Cifar10Synthetic {
        /// Training images, those for validation included.
        count: usize,
        /// Test images.
        test_count: usize,
        /// The seed of the generator.
        seed: u64,
        /// How the images are divided and prepared.
        #[serde(flatten)]
        images: Images,
    },
}

/// How images are divided and prepared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Images {
    /// The share of the training images that is set aside for validation.
    pub validation: f64,
    /// The seed of that choice.
    pub split_seed: u64,
    /// Whether training images are cropped and mirrored at random.
    pub augmentation: bool,
    /// What pixels are divided by.
    pub normalisation: Normalisation,
}

/// Which means and deviations make numbers of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// Those of all pixels of the training images.
    Standard,
    /// Those of the paper's reference code.
    Reference,
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
            Self::Cifar10 { .. } | Self::Cifar10Synthetic { .. } => Task::Classification,
        }
    }

    /// How examples are cut from a series, if the data are one.
    pub fn windows(&self) -> Option<&Windows> {
        match self {
            Self::Load { windows, .. } | Self::LoadSynthetic { windows, .. } => Some(windows),
            Self::Cifar10 { .. } | Self::Cifar10Synthetic { .. } => None,
        }
    }

    /// How images are divided and prepared, if the data are images.
    pub fn images(&self) -> Option<&Images> {
        match self {
            Self::Cifar10 { images, .. } | Self::Cifar10Synthetic { images, .. } => Some(images),
            Self::Load { .. } | Self::LoadSynthetic { .. } => None,
        }
    }

    /// The file or folder that the data come from, if they do: `~/` is the home folder, and a
    /// relative path starts at the working directory.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Load { path, .. } | Self::Cifar10 { path, .. } => Some(absolute(path)),
            Self::LoadSynthetic { .. } | Self::Cifar10Synthetic { .. } => None,
        }
    }

    /// Leaves out where the data are, for comparing what they are.
    pub fn forget_place(&mut self) {
        if let Self::Load { path, .. } | Self::Cifar10 { path, .. } = self {
            path.clear();
        }
    }

    /// The same with the full path, so that it can be read from another working directory.
    pub(super) fn located(mut self) -> Self {
        if let Self::Load { path, .. } | Self::Cifar10 { path, .. } = &mut self
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

/// The kinds that are series.
const SERIES: &[&str] = &["load", "load-synthetic"];
/// The kinds that are images.
const IMAGES: &[&str] = &["cifar10", "cifar10-synthetic"];

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
        Kind::new(
            "cifar10",
            "photographs of 32×32 pixels in ten classes, 50,000 to learn from and 10,000 to test \
             with",
        ),
        Kind::new(
            "cifar10-synthetic",
            "generated images of the same form, stripes in ten colours; needs no file",
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
            "path",
            Values::Text,
            Absent::Value("\"data/cifar10\""),
            "The folder of the images, as `bayesmesh data fetch cifar10` makes it. `~/` is the home \
             folder; a relative path starts at the working directory, not at the recipe.",
        )
        .of(&["cifar10"])
        .also(&["folder", "dir", "root"]),
        Key::new(
            "limit",
            Values::at_least(1),
            Absent::Unset("all 50,000"),
            "How many of the training images are used, from the first on, those for validation \
             included.",
        )
        .of(&["cifar10"])
        .also(&["subset", "count", "train_limit"]),
        Key::new(
            "test_limit",
            Values::at_least(1),
            Absent::Unset("all 10,000"),
            "How many of the test images are used, from the first on.",
        )
        .of(&["cifar10"])
        .also(&["test_count"]),
        Key::new(
            "count",
            Values::Count(1, 50_000),
            Absent::Value("2000"),
            "Training images to generate, those for validation included.",
        )
        .of(&["cifar10-synthetic"])
        .also(&["limit"]),
        Key::new(
            "test_count",
            Values::Count(1, 10_000),
            Absent::Value("500"),
            "Test images to generate.",
        )
        .of(&["cifar10-synthetic"])
        .also(&["test_limit"]),
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
             the same data.",
        )
        .of(&["load-synthetic", "cifar10-synthetic"]),
        Key::new(
            "validation",
            Values::Number(Range::BELOW_ONE),
            Absent::Value("0.1"),
            "The share of the training images that is set aside and scored after every epoch; 0 for \
             none.",
        )
        .of(IMAGES)
        .also(&["validation_share", "valid", "val"]),
        Key::new(
            "split_seed",
            Values::at_least(0),
            Absent::Value("0"),
            "The seed of that choice. Apart from `train.seed`, so that runs with other seeds learn \
             from the same images.",
        )
        .of(IMAGES),
        Key::new(
            "augmentation",
            Values::Flag,
            Absent::Value("true"),
            "Whether training images are varied: of the image with 4 black pixels around it a \
             random part of its size, mirrored every other time. `train.augment` says which draws \
             see the same variation.",
        )
        .of(IMAGES)
        .also(&["augment"]),
        Key::new(
            "normalisation",
            Values::Choice(&["standard", "reference"]),
            Absent::Value("\"standard\""),
            "Pixels minus a mean, divided by a deviation, channel by channel: that of all pixels \
             (0.2470, 0.2435, 0.2616), or that of the paper's reference code (0.2023, 0.1994, \
             0.2010).",
        )
        .of(IMAGES)
        .also(&["normalization"]),
        Key::new(
            "inputs",
            Values::at_least(1),
            Absent::Value("96"),
            "Values that an example gives; 96 quarter-hours are a day.",
        )
        .of(SERIES)
        .also(&["lookback", "context", "window", "input"]),
        Key::new(
            "outputs",
            Values::at_least(1),
            Absent::Value("24"),
            "Values after them that are predicted; 24 quarter-hours are 6 hours.",
        )
        .of(SERIES)
        .also(&["horizon", "forecast", "output"]),
        Key::new(
            "stride",
            Values::at_least(1),
            Absent::Value("1"),
            "Steps from the start of one example to the start of the next.",
        )
        .of(SERIES)
        .also(&["step"]),
        Key::new(
            "split",
            Values::List(&Values::Number(Range::INSIDE_ONE), 3, 3),
            Absent::Value("[0.6, 0.1, 0.3]"),
            "Shares of the series for training, validation and test, in time order; they sum to 1.",
        )
        .of(SERIES)
        .also(&["splits", "fractions"]),
    ],
    example: "[data]\nkind = \"load\"\npath = \"data/load.csv\"",
};
