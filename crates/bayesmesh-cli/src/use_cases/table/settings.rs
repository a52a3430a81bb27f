//! `[data]` of a table.

use bayesmesh_data::table::{By, Division, Folder, Kinds as Columns};
use bayesmesh_schema::{Keys, Kinds};
use serde::Deserialize;

use crate::models::Shape;
use crate::recipe::{Conflict, Recipe};
use crate::use_cases::Splits;

/// What is learned from.
#[derive(Clone, Debug, PartialEq, Kinds, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TableSettings {
    /// rows of a CSV or Parquet file, or of a folder of the UCI benchmark; whether numbers or
    /// classes are predicted, `[loss]` says
    Table(TableConfig),
}

/// A table, what its columns are and how its rows are divided.
#[derive(Clone, Debug, PartialEq, Keys, Deserialize)]
pub struct TableConfig {
    /// The file, or a folder with `data.txt` and its index files. `~/` is the home folder; a
    /// relative path starts at the working directory, not at the recipe.
    #[key(required = "\"data/houses.csv\"", also("file", "csv", "parquet", "filename", "folder"))]
    pub path: String,
    /// The column to predict; of numbers there may be several.
    #[key(unset = "that of the folder's `index_target.txt`", items = 1)]
    #[key(also("targets", "label", "y", "predict"))]
    pub target: Option<Vec<String>>,
    /// Columns that are numbers. Those that are in none of these lists are inferred; the recipe of
    /// a run has all of them.
    #[key(default = [], also("numeric", "continuous"))]
    pub numbers: Vec<String>,
    /// Columns that are `true` or `false`, or 1 or 0.
    #[key(default = [], also("flags", "bools"))]
    pub booleans: Vec<String>,
    /// Columns that are one of some texts.
    #[key(default = [], also("categorical", "category"))]
    pub categories: Vec<String>,
    /// Columns that are points in time: `2024-01-31`, `2024-01-31 12:00`, `31.01.2024`.
    #[key(default = [], also("times", "datetimes"))]
    pub dates: Vec<String>,
    /// Columns that are not learned from.
    #[key(default = [], also("drop", "exclude", "skip"))]
    pub ignore: Vec<String>,
    /// Words that stand for nothing, besides `NA`, `NaN`, `null`, `None`, `?`, `-` and the like.
    #[key(default = [], also("na_values", "null_values"))]
    pub missing: Vec<String>,
    /// Shares of the rows for training, validation and test; they sum to 1. With folds or given
    /// divisions the first two say how the rows that are not for test are divided.
    #[key(default = [0.7, 0.15, 0.15], at_least = 0, at_most = 1, also("splits", "fractions"))]
    pub split: [f64; 3],
    /// A column by which the rows are divided in time: the last are the test part.
    #[key(unset = "the rows are divided by chance", also("split_by_time"))]
    pub time_column: Option<String>,
    /// A column whose equal values stay together in one part; it is not learned from.
    #[key(unset = "each row stands for itself", also("groups", "split_by_group"))]
    pub group_column: Option<String>,
    /// So many parts of the rows, each of which is the test part of one division.
    #[key(unset = "shares as in `split`", at_least = 2, also("k_folds", "cross_validation"))]
    pub folds: Option<usize>,
    /// Which division: the seed of the chance, the number of the fold, or the K of
    /// `index_train_K.txt`. `compare --splits` goes through them.
    #[key(default = 0, also("split_seed", "fold"))]
    pub split_index: u64,
    /// Whether the network is trained anew on the rows for training and validation together, after
    /// a pilot without the latter has been calibrated on them, and takes its calibration. More to
    /// learn from, which counts in small tables; the calibration is then that of a like network.
    #[key(default = false, also("refit_on_all", "retrain"))]
    pub refit: bool,
    /// Whether the test rows are left out and others taken for test from the rest, by the same
    /// `split`: to choose settings by scores that say nothing of the rows they are judged by in
    /// the end.
    #[key(default = false, also("tune", "nested"))]
    pub tuning: bool,
    /// Found in the data: how many numbers an encoded row has, codes of categories included.
    #[key(unset = "found before the training")]
    pub inputs: Option<usize>,
    /// Found in the data: how many codes each category has, that of unknown ones included.
    #[key(unset = "found before the training")]
    pub codes: Option<Vec<usize>>,
    /// Found in the data: the classes to predict.
    #[key(unset = "found before the training, for classes")]
    pub classes: Option<Vec<String>>,
}

impl TableSettings {
    /// The keys.
    pub fn config(&self) -> &TableConfig {
        let Self::Table(config) = self;
        config
    }
}

impl TableConfig {
    /// What is predicted.
    pub fn targets(&self) -> &[String] {
        self.target.as_deref().unwrap_or_default()
    }

    /// The shape of an encoded row. Before the data have been looked at it has no inputs.
    pub fn shape(&self, outputs: usize) -> Shape {
        let categories = self.codes.clone().unwrap_or_default();
        Shape { categories, ..Shape::new(vec![self.inputs.unwrap_or_default()], outputs) }
    }

    /// What the user says of columns.
    pub fn columns(&self) -> Columns {
        let mut ignore = self.ignore.clone();
        // New groups come with every new row.
        let listed = |name: &String| {
            let lists =
                [&self.numbers, &self.booleans, &self.categories, &self.dates, &self.ignore];
            lists.iter().any(|list| list.contains(name))
        };
        ignore.extend(self.group_column.iter().filter(|name| !listed(name)).cloned());
        Columns {
            targets: self.targets().to_vec(),
            numbers: self.numbers.clone(),
            booleans: self.booleans.clone(),
            categories: self.categories.clone(),
            dates: self.dates.clone(),
            ignore,
        }
    }

    /// How rows are divided, but for divisions that a folder gives.
    pub fn division(&self) -> Division {
        let by = match (&self.time_column, &self.group_column) {
            (Some(time), _) => By::Time(time.clone()),
            (None, Some(group)) => By::Group(group.clone()),
            (None, None) => By::Chance,
        };
        Division {
            shares: self.split,
            index: self.split_index,
            folds: self.folds,
            by,
            tuning: self.tuning,
        }
    }

    /// Into how many divisions the data come.
    pub fn splits(&self, recipe: &Recipe) -> Splits {
        let folder = recipe.data_path().and_then(|path| Folder::at(&path));
        match (folder, self.folds, &self.time_column) {
            (Some(folder), ..) => Splits::Many(folder.splits() as u64),
            (None, Some(folds), _) => Splits::Many(folds as u64),
            (None, None, Some(_)) => Splits::One,
            (None, None, None) => Splits::Any,
        }
    }

    /// Keys that are right one by one but do not go together.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let mut all = Vec::new();
        let sum: f64 = self.split.iter().sum();
        let shown = (sum * 1e6).round() / 1e6;
        if (sum - 1.0).abs() >= 1e-6 || self.split[0] <= 0.0 || self.split[2] <= 0.0 {
            all.push(Conflict::new(
                "data.split",
                format!(
                    "the shares of `data.split` sum to {shown}; they must sum to 1, and those for \
                     training and test be above 0"
                ),
                "for example `split = [0.7, 0.15, 0.15]`",
            ));
        }
        if self.time_column.is_some() && (self.group_column.is_some() || self.folds.is_some()) {
            all.push(Conflict::new(
                "data.time_column",
                "rows that are divided in time have neither groups nor folds",
                "leave out `data.group_column` and `data.folds`, or `data.time_column`",
            ));
        }
        if let Some(folds) = self.folds.filter(|&folds| self.split_index >= folds as u64) {
            all.push(Conflict::new(
                "data.split_index",
                format!("there are {folds} folds, counted from 0"),
                format!("use at most {}, or more `data.folds`", folds - 1),
            ));
        }
        all
    }
}
