//! Recipes: a run as one TOML file.
//!
//! A recipe is plain data that the program translates into the library's types. What a file may
//! contain is declared in `schema` and, section by section, beside the types here; a new kind of
//! data, network or loss is a variant and its rows in one of these files.
//!
//! ```text
//! text ── tree ── overrides ── check ──► table ── serde ──► Recipe ── validate
//!         places  --set        schema, defaults                       conflicts between keys
//! ```

mod builtin;
mod check;
mod checkpoint;
mod data;
mod error;
mod evaluate;
mod file;
mod loss;
mod model;
mod optimizer;
mod overrides;
mod posterior;
mod reference;
mod schedule;
mod schema;
mod source;
mod suggest;
#[cfg(test)]
mod tests;
mod train;
mod tree;
mod validate;
mod write;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use builtin::{builtin_names, builtin_text};
pub use checkpoint::Checkpoint;
pub use data::{Data, Images, Normalisation, Windows};
pub use error::{At, Problem, RecipeError};
pub use evaluate::Evaluate;
pub use loss::{Loss, Task};
pub use model::{Activation, Model};
pub use optimizer::{Method, Optimizer};
pub use posterior::{Kl, MeanField, Posterior, Prior, Scale};
pub use reference::reference;
pub use schedule::Schedule;
pub use train::{Augment, Memory, Reduce, Train};

use check::Check;
use source::Source;
use tree::{Node, Place};

/// A run: what is learned from what, and how. `docs/recipes.md` has every key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// What the run is called.
    pub name: String,
    /// What is learned from.
    pub data: Data,
    /// The network.
    pub model: Model,
    /// What the weights are believed to be.
    pub posterior: Posterior,
    /// What is minimised.
    pub loss: Loss,
    /// How training is done.
    pub train: Train,
    /// How a gradient changes the weights.
    pub optimizer: Optimizer,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// How the result is scored.
    pub evaluate: Evaluate,
    /// What is kept on disk.
    pub checkpoint: Checkpoint,
}

impl Recipe {
    /// Reads a file and applies overrides such as `train.steps=50`.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, RecipeError> {
        let text = file::read(path)?;
        Self::parse(&text, &path.display().to_string(), overrides)
    }

    /// A recipe that comes with the program, with overrides.
    pub fn builtin(name: &str, overrides: &[String]) -> Result<Self, RecipeError> {
        Self::parse(builtin_text(name)?, &format!("{name}.toml"), overrides)
    }

    /// Reads the text of a recipe, which messages call `source_name`, and applies overrides.
    pub fn parse(text: &str, source_name: &str, overrides: &[String]) -> Result<Self, RecipeError> {
        let source = Source { name: source_name, text, overrides };
        let mut tree =
            Node::document(text, &Place::File).map_err(|error| source.refuse_syntax(&error))?;
        let malformed = overrides::apply(&source, &mut tree);
        Self::read(&source, &tree, malformed)
    }

    /// Checks everything, for a recipe that was changed or made by hand; one that was read is
    /// valid.
    pub fn validate(&self) -> Result<(), RecipeError> {
        let source = Source { name: &self.name, text: "", overrides: &[] };
        let table = toml::Table::try_from(self).map_err(|error| source.refuse_whole(&error))?;
        let tree = Node::document(&table.to_string(), &|_| Place::Nowhere)
            .map_err(|error| source.refuse_whole(&error))?;
        Self::read(&source, &tree, Vec::new()).map(|_| ())
    }

    fn read(
        source: &Source<'_>,
        tree: &Node,
        mut problems: Vec<Problem>,
    ) -> Result<Self, RecipeError> {
        let mut check = Check::new(source);
        let table = check.section(&schema::RECIPE, Some(tree));
        problems.append(&mut check.problems);
        if !problems.is_empty() {
            return Err(source.refuse(problems));
        }
        let recipe: Self =
            table.try_into().map_err(|error: toml::de::Error| source.refuse_whole(&error))?;
        let conflicts = validate::conflicts(&recipe).into_iter();
        let problems: Vec<Problem> = conflicts
            .map(|conflict| Problem {
                at: source.at(&tree.locate(conflict.key)),
                key: conflict.key.to_owned(),
                message: conflict.message,
                help: Some(conflict.help),
            })
            .collect();
        match problems.is_empty() {
            true => Ok(recipe),
            false => Err(source.refuse(problems)),
        }
    }

    /// The resolved form: a recipe with every key and its value, which reads back as this one.
    ///
    /// # Panics
    ///
    /// If a number was set by hand to more than TOML holds, 2⁶³ − 1; [`Recipe::validate`] refuses
    /// it.
    pub fn to_toml(&self) -> String {
        let table = toml::Table::try_from(self).expect("the numbers of a valid recipe fit TOML");
        write::document(&table)
    }

    /// Every key that is set, e.g. `train.batch`, with its value in TOML, in the order of the
    /// resolved form.
    pub fn keys(&self) -> Vec<(String, String)> {
        let mut section = String::new();
        let mut keys = Vec::new();
        for line in self.to_toml().lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_owned() + ".";
            } else if let Some((key, value)) = line.split_once(" = ")
                && !line.starts_with('#')
            {
                keys.push((format!("{section}{key}"), value.to_owned()));
            }
        }
        keys
    }

    /// The same with full paths, so that its resolved form can be used from any working directory.
    #[must_use]
    pub fn located(mut self) -> Self {
        self.data = self.data.located();
        self
    }
}
