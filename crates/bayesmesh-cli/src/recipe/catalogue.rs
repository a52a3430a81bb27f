//! Everything that recipes can name.

use std::sync::Arc;

use bayesmesh::posterior::PosteriorConfig;
use bayesmesh::trainer::{OptimizerConfig, Schedule};
use bayesmesh::{CalibrateConfig, Settings};
use bayesmesh_schema::{Absent, Key, Keys, Kind, Kinds, Section, Values};

use super::reference;
use super::sections::{Checkpoint, Evaluate, Rate, RunLength};
use crate::tasks::TaskInfo;
use crate::use_cases::Entry;

/// Everything that recipes can name: the use cases with their data and networks, losses, posteriors
/// and what else a run has, as one schema.
pub struct Catalogue {
    use_cases: Vec<&'static dyn Entry>,
    schema: Section,
}

impl Catalogue {
    /// With these use cases.
    ///
    /// # Panics
    ///
    /// If two of them have a kind of data and a task, or a key of `[evaluate]`, of the same name:
    /// which one is meant could not be told.
    pub fn new(use_cases: &[&'static dyn Entry]) -> Arc<Self> {
        let use_cases = use_cases.to_vec();
        for task in tasks(&use_cases) {
            let of_task = use_cases.iter().filter(|case| case.task().name == task.name);
            let kinds = of_task.flat_map(|case| case.kinds());
            refuse_doubles("kind of data", kinds.map(|kind| kind.name));
        }
        let own = use_cases.iter().flat_map(|case| case.evaluate_keys());
        let keys = Evaluate::keys().into_iter().chain(own);
        refuse_doubles("key of [evaluate]", keys.map(|key| key.name));
        let schema = schema(&use_cases);
        Arc::new(Self { use_cases, schema })
    }

    /// With the use cases of the program.
    pub fn builtin() -> Arc<Self> {
        Self::new(crate::use_cases::BUILTIN)
    }

    /// The use cases, in their order.
    pub fn use_cases(&self) -> &[&'static dyn Entry] {
        &self.use_cases
    }

    /// The use case that has a kind of data. Where several tasks share a kind, the loss says which
    /// is meant.
    pub fn use_case(&self, data_kind: &str, loss_kind: &str) -> Option<&'static dyn Entry> {
        let has = |case: &&&dyn Entry| case.kinds().iter().any(|kind| kind.name == data_kind);
        let suits =
            |case: &&&dyn Entry| (case.task().losses)().iter().any(|loss| loss.name == loss_kind);
        let all = || self.use_cases.iter().filter(has);
        all().find(suits).or_else(|| all().next()).copied()
    }

    /// What there is to predict.
    pub(super) fn tasks(&self) -> Vec<&'static TaskInfo> {
        tasks(&self.use_cases)
    }

    /// What a recipe may contain.
    pub(super) fn schema(&self) -> &Section {
        &self.schema
    }

    /// Every section with its kinds and keys: values, default and meaning, as Markdown.
    pub fn reference(&self) -> String {
        reference::reference(&self.schema)
    }
}

fn refuse_doubles(what: &str, names: impl Iterator<Item = &'static str>) {
    let mut seen = Vec::new();
    for name in names {
        assert!(!seen.contains(&name), "two use cases have the {what} `{name}`");
        seen.push(name);
    }
}

fn schema(use_cases: &[&'static dyn Entry]) -> Section {
    let keys = vec![
        Key::new(
            "name",
            Values::Text,
            Absent::Refused("\"load-mlp\""),
            "What the run is called, in its folder and its report. Letters, digits, `-`, `_` and \
             `.` only.",
        )
        .also(&["title", "experiment"]),
        Key::section("data", data(use_cases)),
        Key::section("model", models(use_cases)),
        Key::section("posterior", PosteriorConfig::section()),
        Key::section("loss", losses(use_cases)),
        Key::section("train", train()),
        Key::section("optimizer", optimizer()).also(&["optimiser", "optim"]),
        Key::section("schedule", Schedule::section()).also(&["scheduler", "lr_schedule"]),
        Key::section("evaluate", evaluate(use_cases)).also(&["evaluation", "eval", "test"]),
        Key::section("calibrate", CalibrateConfig::section()).also(&["calibration"]),
        Key::section("checkpoint", checkpoint()).also(&["checkpoints"]),
    ];
    Section::of_keys("The top of the file.", keys, "").named("")
}

/// The tasks of all use cases, each once.
fn tasks(use_cases: &[&'static dyn Entry]) -> Vec<&'static TaskInfo> {
    let mut tasks: Vec<&TaskInfo> = Vec::new();
    for task in use_cases.iter().map(|case| case.task()) {
        if !tasks.iter().any(|known| known.name == task.name) {
            tasks.push(task);
        }
    }
    tasks
}

fn data(use_cases: &[&'static dyn Entry]) -> Section {
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in use_cases.iter().flat_map(|case| case.kinds()) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let example = "kind = \"load\"\npath = \"data/load.csv\"";
    Section::of_kinds("What is learned from.", kinds, None, example)
}

/// The networks of all use cases, each once.
fn models(use_cases: &[&'static dyn Entry]) -> Section {
    let mut kinds: Vec<Kind> = Vec::new();
    for model in use_cases.iter().flat_map(|case| case.models()) {
        if !kinds.iter().any(|known| known.name == model.name) {
            kinds.push((model.kind)());
        }
    }
    Section::of_kinds("The network.", kinds, None, "kind = \"mlp\"\nhidden = [128, 128]")
}

fn losses(use_cases: &[&'static dyn Entry]) -> Section {
    let meaning = "What is minimised, besides the distance to the prior.";
    let kinds = tasks(use_cases).iter().flat_map(|task| (task.losses)()).collect();
    Section::of_kinds(meaning, kinds, None, "kind = \"squared-error-of-mean\"")
}

fn train() -> Section {
    let meaning =
        "How training is done. How many ranks share the work is said at the command line.";
    let keys = RunLength::keys().into_iter().chain(Settings::keys()).collect();
    Section::of_keys(meaning, keys, "epochs = 10\nsamples = 16\nbatch = 64")
}

/// The optimiser, which a recipe gives the learning rate.
fn optimizer() -> Section {
    let mut section = OptimizerConfig::section();
    for kind in &mut section.kinds {
        let mut keys = Rate::keys();
        if kind.name == "sgd" {
            keys[0].absent = Absent::Value("1e-2");
        }
        keys.append(&mut kind.keys);
        kind.keys = keys;
    }
    section
}

/// What every use case is scored by, and what single ones add.
fn evaluate(use_cases: &[&'static dyn Entry]) -> Section {
    let own = use_cases.iter().flat_map(|case| case.evaluate_keys());
    let keys = Evaluate::keys().into_iter().chain(own).collect();
    Section::of_keys(Evaluate::meaning(), keys, "draws = 64")
}

fn checkpoint() -> Section {
    Section::of_keys(Checkpoint::meaning(), Checkpoint::keys(), "every = 1000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::use_cases::BUILTIN;

    #[test]
    #[should_panic(expected = "two use cases have the kind of data `load`")]
    fn two_use_cases_of_one_kind_cannot_be_told_apart() {
        Catalogue::new(&[BUILTIN[0], BUILTIN[0]]);
    }
}
