//! Runs the program in a folder of its own.

// Every test file uses a part of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

use serde_json::Value;

/// Settings of a training that takes a moment: 40 steps of a small network, 52 steps an epoch.
pub const SMALL: &[&str] = &[
    "data.kind=load-synthetic",
    "data.days=60",
    "data.stride=4",
    "train.steps=40",
    "train.samples=4",
    "train.batch=16",
    "model.hidden=[16,16]",
    "evaluate.draws=8",
    "checkpoint.every=5",
];

/// The same for a classification of generated images: 12 steps, 9 steps an epoch.
pub const SMALL_IMAGES: &[&str] = &[
    "data.count=200",
    "data.test_count=60",
    "train.steps=12",
    "train.samples=4",
    "train.batch=20",
    "evaluate.draws=4",
    "evaluate.validation_draws=4",
    "evaluate.corrupted_images=20",
    "checkpoint.every=4",
];

/// The same for a forecast of generated weather: 20 steps, 11 steps an epoch.
pub const SMALL_WEATHER: &[&str] = &[
    "data.latitudes=12",
    "data.longitudes=24",
    "data.steps=64",
    "data.stride_hours=6",
    "model.width=16",
    "model.heads=[2,4]",
    "model.depths=[1,2,1]",
    "model.window=[3,6]",
    "train.steps=20",
    "train.samples=4",
    "train.batch=4",
    "evaluate.draws=4",
    "evaluate.validation_draws=2",
    "evaluate.roll_out=3",
    "evaluate.roll_out_origins=2",
    "checkpoint.every=5",
];

/// The small settings that suit a recipe.
pub fn small(recipe: &str) -> &'static [&'static str] {
    match recipe {
        "images-demo" => SMALL_IMAGES,
        "era5-demo" => SMALL_WEATHER,
        _ => SMALL,
    }
}

/// A fresh folder, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("bayesmesh-cli-test-{}-{count}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The text of a file in the folder.
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes a file in the folder.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    /// The names in a folder of the folder, sorted.
    pub fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, to be started in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bayesmesh"));
        command.current_dir(&self.0).args(arguments).stdin(Stdio::null());
        command
    }

    /// What the program does with these arguments.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(arguments))
    }

    /// The arguments of a training of `recipe` with [`small`] and then `settings`, for [`run`].
    ///
    /// [`run`]: Self::run
    pub fn train(&self, recipe: &str, settings: &[&str], others: &[&str]) -> Outcome {
        let arguments = training(recipe, settings, others);
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Refuses files that are not meant to stay.
    pub fn assert_nothing_unfinished(&self) {
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                let unfinished = name.contains("tmp") || name.ends_with(".part");
                assert!(!unfinished, "{} is left", path.display());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `train recipe --json` with [`small`], `settings` and other arguments.
pub fn training(recipe: &str, settings: &[&str], others: &[&str]) -> Vec<String> {
    let start = ["train", recipe, "--json"];
    let settings = small(recipe).iter().chain(settings).flat_map(|setting| ["--set", *setting]);
    start.into_iter().chain(settings).chain(others.iter().copied()).map(str::to_owned).collect()
}

/// How a program ended.
#[derive(Debug)]
pub struct Outcome {
    /// `None` if it was killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Of a command that is started and waited for.
    pub fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// The JSON object that is the last line of standard output.
    pub fn json(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_else(|| panic!("no output: {self:?}"));
        let value: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        assert!(value.is_object(), "{last}");
        value
    }

    /// The JSON object of a program that has ended well.
    pub fn success(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.json()
    }

    /// The digest that a training has ended with.
    pub fn digest(&self) -> String {
        let digest = self.success()["digest"].as_str().unwrap().to_owned();
        assert_eq!(digest.len(), 64, "{digest}");
        digest
    }
}

impl From<process::Output> for Outcome {
    fn from(output: process::Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The files of a folder whose names end like those of finished checkpoints, sorted.
pub fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(run.join("checkpoints")) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort();
    paths
}

/// The last step of which there is a checkpoint; 0 without one.
pub fn last_step(run: &Path) -> u64 {
    let step = |path: &PathBuf| path.file_stem()?.to_str()?.strip_prefix("step-")?.parse().ok();
    checkpoints(run).iter().filter_map(step).max().unwrap_or(0)
}
