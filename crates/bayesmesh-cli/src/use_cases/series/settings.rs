//! `[data]` of series.

use bayesmesh_data::series::{Cut, Cycle, Period, Roles};
use bayesmesh_schema::{Choice, Keys, Kinds};
use serde::Deserialize;

use super::forecast::shape;
use crate::models::Shape;
use crate::recipe::Conflict;

/// What is learned from.
#[derive(Clone, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SeriesSettings {
    /// one or several series of any period from a CSV or Parquet file, with what goes with them
    Series(SeriesConfig),
}

/// How series are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Each by its own mean and deviation; scores are multiples of that.
    Each,
    /// All by one mean and deviation; scores are in their common unit.
    All,
}

/// A cycle of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calendar {
    /// The time of day.
    Day,
    /// The day of the week.
    Week,
    /// The day of the year.
    Year,
}

/// Series, their columns and how they are cut.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct SeriesConfig {
    /// The file. `~/` is the home folder; a relative path starts at the working directory, not at
    /// the recipe.
    #[key(required = "\"data/sales.csv\"", also("file", "csv", "parquet", "filename"))]
    pub path: String,
    /// The column to forecast. Several columns are several series.
    #[key(required = "[\"sales\"]", items = 1, also("targets", "y", "value", "values"))]
    pub target: Vec<String>,
    /// The column of times, or of numbers that count.
    #[key(unset = "the only column of times", also("time_column", "date", "timestamp"))]
    pub time: Option<String>,
    /// The column of names, where rows of several series are below each other.
    #[key(unset = "the rows are those of one series", also("id", "group", "series_column"))]
    pub series: Option<String>,
    /// Columns that are known for the steps to forecast too, such as holidays. Numbers, booleans or
    /// texts.
    #[key(default = [], also("known_covariates", "future", "future_covariates"))]
    pub known: Vec<String>,
    /// Columns that are known until the forecast only.
    #[key(default = [], also("past_covariates", "covariates", "unknown"))]
    pub past: Vec<String>,
    /// Words that stand for nothing, besides `NA`, `NaN`, `null`, `None`, `?`, `-` and the like.
    #[key(default = [], also("na_values", "null_values"))]
    pub missing: Vec<String>,
    /// From one value to the next: `15 min`, `1 h`, `1 d`, `1 months`, `1 counts`; `rows` counts
    /// rows whatever the time between them.
    #[key(unset = "the most usual one", also("frequency", "freq", "step"))]
    pub period: Option<String>,
    /// Gaps of up to so many steps are interpolated; no window has a longer one.
    #[key(default = 4, also("fill_gaps", "short_gap"))]
    pub fill: usize,
    /// What networks are told of the calendar.
    #[key(unset = "what fits the period and the length", also("cycles"))]
    pub calendar: Option<Vec<Calendar>>,
    /// After how many steps the series may repeat itself: a naïve forecast for each is scored
    /// beside the network.
    #[key(unset = "a day and a week, a week, or a year, by the period", at_least = 1)]
    #[key(also("season", "seasonality", "baselines"))]
    pub seasons: Option<Vec<usize>>,
    /// Values that an example gives.
    #[key(unset = "a long season, or some short ones", at_least = 1)]
    #[key(also("lookback", "context", "window", "input"))]
    pub inputs: Option<usize>,
    /// Values after them that are predicted.
    #[key(unset = "the shortest season", at_least = 1, also("horizon", "forecast", "output"))]
    pub outputs: Option<usize>,
    /// Steps from the start of one example to the start of the next.
    #[key(default = 1, at_least = 1)]
    pub stride: usize,
    /// Whether values are taken relative to the last that is known, so that levels that were never
    /// seen can be forecast.
    #[key(default = true, also("from_last", "difference"))]
    pub relative: bool,
    /// Whether each series has its own scale.
    #[key(default = "each")]
    pub scale: Scaling,
    /// Shares of the time for training, validation and test, in this order; they sum to 1. What is
    /// predicted lies in its part; what it is predicted from may reach back.
    #[key(default = [0.7, 0.1, 0.2], above = 0, below = 1, also("splits", "fractions"))]
    pub split: [f64; 3],
    /// Found in the data: columns of the past, values included, and of the future.
    #[key(unset = "found before the training")]
    pub channels: Option<[usize; 2]>,
    /// Found in the data: how many series there are.
    #[key(unset = "found before the training")]
    pub count: Option<usize>,
}

impl From<Calendar> for Cycle {
    fn from(calendar: Calendar) -> Self {
        match calendar {
            Calendar::Day => Self::Day,
            Calendar::Week => Self::Week,
            Calendar::Year => Self::Year,
        }
    }
}

impl SeriesSettings {
    /// The keys.
    pub fn config(&self) -> &SeriesConfig {
        let Self::Series(config) = self;
        config
    }
}

impl SeriesConfig {
    /// Which columns are what.
    pub fn roles(&self) -> Roles {
        Roles {
            time: self.time.clone(),
            targets: self.target.clone(),
            series: self.series.clone(),
            known: self.known.clone(),
            past: self.past.clone(),
        }
    }

    /// How far apart values are, where the recipe says it.
    pub fn period(&self) -> Option<Period> {
        self.period.as_ref().and_then(|text| text.parse().ok())
    }

    /// The naïve forecasts.
    pub fn seasons(&self, period: Period) -> Vec<usize> {
        self.seasons.clone().unwrap_or_else(|| period.seasons())
    }

    /// What networks are told of the calendar, of series that last so many steps.
    pub fn cycles(&self, period: Period, steps: usize) -> Vec<Cycle> {
        match &self.calendar {
            Some(calendar) => calendar.iter().map(|cycle| Cycle::from(*cycle)).collect(),
            None => period.cycles(steps),
        }
    }

    /// How examples are cut from series of a period: what is not said follows from the seasons.
    pub fn cut(&self, period: Period) -> Cut {
        /// A window of the past has at least about as many values, and at most.
        const USUAL: std::ops::RangeInclusive<usize> = 28..=200;
        let seasons = self.seasons(period);
        let shortest = seasons.iter().copied().min();
        let longest = seasons.iter().copied().filter(|season| USUAL.contains(season)).max();
        let several = |season: usize| season * USUAL.start().div_ceil(season).max(2);
        let outputs = self.outputs.or(shortest).unwrap_or(8);
        let usual = longest.or(shortest.map(several)).unwrap_or(32);
        Cut {
            inputs: self.inputs.unwrap_or(usual),
            outputs,
            stride: self.stride,
            reach_back: true,
            relative: self.relative,
        }
    }

    /// The shape of an example. Before the data have been looked at it has no inputs.
    pub fn shape(&self) -> Shape {
        let (Some(channels), Some(count)) = (self.channels, self.count) else {
            return Shape::new(vec![0], self.outputs.unwrap_or_default());
        };
        let cycles = self.calendar.iter().flatten().map(|cycle| Cycle::from(*cycle).features());
        let [inputs, outputs] = [self.inputs, self.outputs].map(Option::unwrap_or_default);
        shape(channels, inputs, outputs, cycles.sum(), count)
    }

    /// Keys that are right one by one but do not go together.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let shares = Conflict::of_shares(&self.split, "[0.7, 0.1, 0.2]");
        let mut all: Vec<Conflict> = shares.into_iter().collect();
        if let Some(Err(problem)) = self.period.as_ref().map(|text| text.parse::<Period>()) {
            let cure = "or leave `data.period` out: it is found";
            all.push(Conflict::new("data.period", problem, cure));
        }
        all
    }
}
