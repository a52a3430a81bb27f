//! Recipes: a run as one TOML file.
//!
//! What a recipe may contain is the [`Catalogue`]: the sections that every recipe has, and what use
//! cases bring. Their types say by derived schemas which keys they have (`bayesmesh_schema`), and
//! serde reads them.
//!
//! ```text
//! text ── tree ── overrides ── check ──► table of every key ── serde ──► Recipe ── conflicts
//!         places  --set        schema, defaults                                   between keys
//! ```

mod builtin;
mod catalogue;
mod check;
mod conflicts;
mod error;
mod file;
mod overrides;
mod problems;
mod reference;
mod sections;
mod source;
mod suggest;
#[cfg(test)]
mod tests;
mod tree;
mod write;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bayesmesh::posterior::PosteriorConfig;
use bayesmesh::trainer::{OptimizerConfig, Schedule};
use bayesmesh::{CalibrateConfig, Length, Mesh, Settings};
use bayesmesh_schema::KIND;
use serde::de::DeserializeOwned;

pub use builtin::{builtin_names, builtin_text};
pub use catalogue::Catalogue;
pub use conflicts::Conflict;
pub use error::{At, Problem, RecipeError};
pub use sections::{Checkpoint, Evaluate};
pub(crate) use suggest::nearest;

use check::Check;
use problems::{Found, Problems};
use sections::{Rate, RunLength};
use source::Source;
use tree::{Node, Place};

use crate::exit::Usage;
use crate::use_cases::Entry;

/// The section with what is learned from, and its key for where that is.
const DATA: &str = "data";
const PATH: &str = "path";

/// A run: what is learned from what, and how. `docs/recipes.md` has every key.
#[derive(Clone)]
pub struct Recipe {
    catalogue: Arc<Catalogue>,
    /// Every key that is set, with its value.
    table: toml::Table,
    /// What the run is called.
    pub name: String,
    /// How long it lasts.
    pub length: Length,
    /// Epochs without a better validation score after which it ends before.
    pub patience: Option<usize>,
    /// Settings to choose from before it.
    pub tune: Vec<String>,
    /// How training is done, but for the mesh and what has a section of its own; see
    /// [`Recipe::settings`].
    pub train: Settings,
    /// How the result is scored.
    pub evaluate: Evaluate,
    /// How predictions are calibrated.
    pub calibrate: CalibrateConfig,
    /// What is kept on disk.
    pub checkpoint: Checkpoint,
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

/// Recipes are equal when all their keys are.
impl PartialEq for Recipe {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
    }
}

impl Recipe {
    /// Reads a file and applies overrides such as `train.steps=50`.
    pub fn load(
        catalogue: &Arc<Catalogue>,
        path: &Path,
        overrides: &[String],
    ) -> Result<Self, RecipeError> {
        let text = file::read(path)?;
        Self::parse(catalogue, &text, &path.display().to_string(), overrides)
    }

    /// A recipe that comes with the program, with overrides.
    pub fn builtin(
        catalogue: &Arc<Catalogue>,
        name: &str,
        overrides: &[String],
    ) -> Result<Self, RecipeError> {
        Self::parse(catalogue, builtin_text(name)?, &format!("{name}.toml"), overrides)
    }

    /// Reads the text of a recipe, which messages call `source_name`, and applies overrides.
    pub fn parse(
        catalogue: &Arc<Catalogue>,
        text: &str,
        source_name: &str,
        overrides: &[String],
    ) -> Result<Self, RecipeError> {
        let source = Source { name: source_name, text, overrides };
        let mut tree =
            Node::document(text, &Place::File).map_err(|error| source.refuse_syntax(&error))?;
        let mut check = Check::new(catalogue.schema());
        overrides::apply(catalogue.schema(), overrides, &mut tree, &mut check.problems);
        let table = check.section(catalogue.schema(), Some(&tree));
        if !check.problems.is_empty() {
            return Err(source.refuse(check.problems));
        }
        let recipe = Self::read(catalogue, table).map_err(|error| source.refuse_whole(&error))?;
        let mut problems = Problems::default();
        for conflict in conflicts::all(&recipe).map_err(|error| source.refuse_whole(&error))? {
            problems.push(|| Found {
                place: tree.locate(&conflict.key),
                key: conflict.key,
                message: conflict.message,
                help: Some(conflict.help),
            });
        }
        match problems.is_empty() {
            true => Ok(recipe),
            false => Err(source.refuse(problems)),
        }
    }

    /// From a table of every key.
    fn read(catalogue: &Arc<Catalogue>, table: toml::Table) -> Result<Self, toml::de::Error> {
        let length: RunLength = section(&table, "train")?;
        let mut recipe = Self {
            name: section(&table, "name")?,
            patience: length.patience,
            tune: length.tune.clone(),
            length: length.into(),
            train: section(&table, "train")?,
            evaluate: section(&table, "evaluate")?,
            calibrate: section(&table, "calibrate")?,
            checkpoint: section(&table, "checkpoint")?,
            catalogue: Arc::clone(catalogue),
            table,
        };
        // There are no more draws than members.
        if let Some(members) = recipe.members() {
            let Evaluate { draws, validation_draws, .. } = &mut recipe.evaluate;
            *draws = members.min(*draws);
            *validation_draws = validation_draws.map(|draws| members.min(draws));
        }
        Ok(recipe)
    }

    /// How many members the posterior has, where each draw is one: that many draws of a step and at
    /// most that many of a prediction.
    pub fn members(&self) -> Option<usize> {
        (self.kind("posterior") == "ensemble").then_some(self.train.samples)
    }

    /// What recipes may contain.
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// A section as one of its types.
    pub fn section<T: DeserializeOwned>(&self, name: &str) -> Result<T, toml::de::Error> {
        section(&self.table, name)
    }

    /// Which kind a section is.
    pub fn kind(&self, section: &str) -> &str {
        let kind = self.table.get(section).and_then(|section| section.get(KIND));
        kind.and_then(toml::Value::as_str).unwrap_or_default()
    }

    /// What the data are of.
    pub fn use_case(&self) -> &'static dyn Entry {
        let case = self.catalogue.use_case(self.kind(DATA), self.kind("loss"));
        case.expect("kinds of data are those of the use cases")
    }

    /// What the weights are believed to be.
    pub fn posterior(&self) -> Result<PosteriorConfig, toml::de::Error> {
        self.section("posterior")
    }

    /// The settings of the library for a run on a mesh with so many steps.
    pub fn settings(&self, mesh: Mesh, steps: usize) -> Result<Settings, toml::de::Error> {
        let Rate { rate } = self.section("optimizer")?;
        let schedule: Schedule = self.section("schedule")?;
        let optimizer: OptimizerConfig = self.section("optimizer")?;
        Ok(Settings {
            mesh,
            schedule: schedule.with_rate(rate).over(steps),
            optimizer,
            validation_draws: self.evaluate.validation_draws,
            ..self.train.clone()
        })
    }

    /// The file or folder that the data come from, if they do: `~/` is the home folder, and a
    /// relative path starts at the working directory.
    pub fn data_path(&self) -> Option<PathBuf> {
        Some(absolute(self.table.get(DATA)?.get(PATH)?.as_str()?))
    }

    /// The same with full paths, so that its resolved form can be used from any working directory.
    #[must_use]
    pub fn located(mut self) -> Self {
        let full = self.data_path();
        // A folder whose name is not UTF-8 cannot be written in TOML: the path stays relative.
        if let Some(full) = full.as_ref().and_then(|path| path.to_str()) {
            self.table[DATA][PATH] = full.into();
        }
        self
    }

    /// The same with keys of `[data]` that follow from the data.
    #[must_use]
    pub(crate) fn with_data(mut self, keys: toml::Table) -> Self {
        if let Some(toml::Value::Table(data)) = self.table.get_mut(DATA) {
            data.extend(keys);
        }
        self
    }

    /// The same with keys changed.
    pub(crate) fn with(&self, overrides: &[String]) -> Result<Self, RecipeError> {
        Self::parse(&self.catalogue, &self.to_toml(), &self.name, overrides)
    }

    /// The recipes that `train.tune` names; itself where it names none.
    pub(crate) fn candidates(&self) -> Result<Vec<Self>, RecipeError> {
        if self.tune.is_empty() {
            return Ok(vec![self.clone()]);
        }
        let candidate = |settings: &String| {
            let own = settings.split_whitespace().map(str::to_owned);
            self.with(&own.chain(["train.tune=[]".to_owned()]).collect::<Vec<_>>())
        };
        self.tune.iter().map(candidate).collect()
    }

    /// The same if all of it goes together, which may show only when the data are known.
    pub(crate) fn settled(self) -> anyhow::Result<Self> {
        match conflicts::all(&self)?.into_iter().next() {
            None => Ok(self),
            Some(Conflict { key, message, help }) => {
                Err(Usage(format!("{key}: {message}; {help}")).into())
            }
        }
    }

    /// The resolved form: a recipe with every key and its value, which reads back as this one.
    pub fn to_toml(&self) -> String {
        write::document(self.catalogue.schema(), &self.table)
    }

    /// Every key that is set, e.g. `train.batch`, with its value in TOML, in the order of the
    /// resolved form.
    pub fn keys(&self) -> Vec<(String, String)> {
        write::keys(self.catalogue.schema(), &self.table)
    }

    /// The first key in which two recipes are not the same run. How long it lasts, how it is
    /// divided among threads and ranks, where its data are and what is kept or scored can change.
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        const FREE: [&str; 9] = [
            "data.path",
            "train.epochs",
            "train.steps",
            "train.max_steps",
            "train.threads",
            "train.overlap",
            "train.shard_optimizer",
            "train.share_loading",
            "train.load_delay_ms",
        ];
        let fixed = |recipe: &Self| -> Vec<(String, String)> {
            let free = |key: &str| {
                FREE.contains(&key)
                    || key.starts_with("evaluate.")
                    || key.starts_with("calibrate.")
                    || key.starts_with("checkpoint.")
            };
            recipe.keys().into_iter().filter(|(key, _)| !free(key)).collect()
        };
        let (own, other) = (fixed(self), fixed(other));
        let only = |these: &[(String, String)], those: &[(String, String)]| {
            these.iter().find(|pair| !those.contains(pair)).map(|(key, _)| key.clone())
        };
        only(&other, &own).or_else(|| only(&own, &other))
    }
}

fn section<T: DeserializeOwned>(table: &toml::Table, name: &str) -> Result<T, toml::de::Error> {
    let empty = || toml::Value::Table(toml::Table::new());
    table.get(name).cloned().unwrap_or_else(empty).try_into()
}

fn absolute(path: &str) -> PathBuf {
    // An address is no path of this machine.
    if path.contains("://") {
        return path.into();
    }
    let home = path
        .strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with(std::path::is_separator));
    let expanded = match (home, std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches(std::path::is_separator)),
        _ => Path::new(path).to_owned(),
    };
    std::path::absolute(&expanded).unwrap_or(expanded)
}
