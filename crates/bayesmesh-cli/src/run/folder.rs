//! The folder of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use bayesmesh_files::{AtomicFile, FileError, Lock, LockError, create_folder};

use super::{RunError, host};
use crate::say;

const RECIPE: &str = "recipe.toml";
const METRICS: &str = "metrics.csv";
const EVENTS: &str = "events.jsonl";
const CHECKPOINTS: &str = "checkpoints";
const REPORT: &str = "report.html";
const LOCK: &str = "run.lock";

/// The folder of a run. While one made by [`create`](Self::create) or [`resume`](Self::resume)
/// lives, no other program can write the run; the operating system ends that with the process,
/// however it ends.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Holds the lock of a writer.
    _lock: Option<Lock>,
}

impl RunFolder {
    /// The folder of a new run, made unless it is there. Refuses one that holds a run or anything
    /// else. It becomes a run folder when [`recipe`](Self::recipe) is written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let path = path.as_ref();
        create_folder(path)?;
        // Before the lock, which would leave a file in the folder of somebody else, and again with
        // it, because another program can have been faster.
        refuse_occupied(path)?;
        let lock = lock(path)?;
        refuse_occupied(path)?;
        create_folder(path.join(CHECKPOINTS))?;
        Self::locked(path, lock)
    }

    /// The folder of a run that is to go on.
    pub fn resume(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let path = path.as_ref();
        refuse_other(path)?;
        Self::locked(path, lock(path)?)
    }

    /// The folder of a run, to read from or to add a file to; the run may be going on.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RunError> {
        let path = path.as_ref();
        refuse_other(path)?;
        Ok(Self { path: path.to_path_buf(), _lock: None })
    }

    fn locked(path: &Path, lock: Lock) -> Result<Self, RunError> {
        AtomicFile::clean(path).map_err(|error| FileError::new(path, "clean", &error))?;
        Ok(Self { path: path.to_path_buf(), _lock: Some(lock) })
    }

    /// The folder, also that of the TensorBoard files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `recipe.toml`, the resolved recipe.
    pub fn recipe(&self) -> PathBuf {
        self.path.join(RECIPE)
    }

    /// `metrics.csv`.
    pub fn metrics(&self) -> PathBuf {
        self.path.join(METRICS)
    }

    /// `events.jsonl`.
    pub fn events(&self) -> PathBuf {
        self.path.join(EVENTS)
    }

    /// `checkpoints/`.
    pub fn checkpoints(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    /// `report.html`.
    pub fn report(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// Writes a file of the folder, complete or not at all, and returns its path.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> Result<PathBuf, RunError> {
        let path = self.path.join(name);
        AtomicFile::write(&path, contents)
            .map_err(|error| FileError::new(&path, "write", &error))?;
        Ok(path)
    }

    /// Reads a text file of the folder.
    pub fn read(&self, name: &str) -> Result<String, RunError> {
        let path = self.path.join(name);
        fs::read_to_string(&path).map_err(|error| FileError::new(&path, "read", &error).into())
    }
}

/// Refuses a folder in which something is that a run killed before it began cannot have left.
fn refuse_occupied(path: &Path) -> Result<(), RunError> {
    if path.join(RECIPE).exists() {
        return Err(RunError::AlreadyRun { path: path.into() });
    }
    let other = names(path)?.into_iter().find(|name| match name.as_str() {
        LOCK => false,
        CHECKPOINTS => names(&path.join(name)).is_ok_and(|names| !names.is_empty()),
        _ => !AtomicFile::is_temporary(name),
    });
    match other {
        None => Ok(()),
        Some(name) => Err(RunError::NotEmpty { path: path.into(), name }),
    }
}

/// Refuses what is not the folder of a run.
fn refuse_other(path: &Path) -> Result<(), RunError> {
    let present = names(path)?;
    let missing: Vec<&str> = [RECIPE, CHECKPOINTS]
        .into_iter()
        .filter(|name| !present.iter().any(|other| other == name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(RunError::NotARun { path: path.into(), missing: missing.join(" and no ") })
}

/// The names in a folder, sorted.
fn names(path: &Path) -> Result<Vec<String>, RunError> {
    let io = |error| FileError::new(path, "read", &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Takes the lock of a folder.
fn lock(folder: &Path) -> Result<Lock, RunError> {
    let owner = format!("process {} on {}", process::id(), host::name());
    let lock = Lock::take(&folder.join(LOCK), &owner).map_err(|error| match error {
        LockError::Busy { owner } => RunError::Locked { path: folder.into(), owner },
        LockError::File(error) => error.into(),
    })?;
    if !lock.is_held() {
        say::warn(format!(
            "{}: this file system has no locks; see to it that no other program writes this run",
            folder.display()
        ));
    }
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufRead, BufReader};
    use std::process::Stdio;

    use super::*;
    use bayesmesh_files::testing::{Scratch, rerun, role};

    #[test]
    fn a_run_is_made_continued_and_read() {
        let scratch = Scratch::new();
        let path = scratch.path().join("runs/a");
        let run = RunFolder::create(&path).unwrap();
        run.write("recipe.toml", "[train]\n").unwrap();
        assert_eq!(run.path(), path);
        assert_eq!(run.recipe(), path.join("recipe.toml"));
        assert_eq!(run.metrics(), path.join("metrics.csv"));
        assert_eq!(run.events(), path.join("events.jsonl"));
        assert_eq!(run.report(), path.join("report.html"));
        assert!(run.checkpoints().is_dir());
        drop(run);

        let leftover = path.join(".report.html.1-0.bayesmesh-tmp");
        fs::write(&leftover, "half").unwrap();
        let reader = RunFolder::open(&path).unwrap();
        assert_eq!(reader.read("recipe.toml").unwrap(), "[train]\n");
        let error = reader.read("report.html").unwrap_err().to_string();
        assert!(error.contains("report.html: no such file"), "{error}");
        assert!(leftover.exists());
        let run = RunFolder::resume(&path).unwrap();
        assert!(!leftover.exists());
        run.write("report.html", "one").unwrap();
        run.write("report.html", "two").unwrap();
        assert_eq!(reader.read("report.html").unwrap(), "two");
        let expected = ["checkpoints", "recipe.toml", "report.html", "run.lock"];
        assert_eq!(names(&path).unwrap(), expected);
    }

    #[test]
    fn a_new_run_needs_an_empty_folder() {
        let scratch = Scratch::new();
        let path = scratch.path();
        // Killed before the recipe was written: nothing is lost by beginning again.
        drop(RunFolder::create(path).unwrap());
        fs::write(path.join(".recipe.toml.1-0.bayesmesh-tmp"), "half").unwrap();
        drop(RunFolder::create(path).unwrap());
        assert_eq!(scratch.names(), ["checkpoints", "run.lock"]);

        fs::write(path.join("checkpoints/step-00000001.safetensors"), "").unwrap();
        let error = RunFolder::create(path).unwrap_err().to_string();
        assert!(error.contains("it has 'checkpoints'"), "{error}");

        fs::write(path.join("recipe.toml"), "").unwrap();
        let error = RunFolder::create(path).unwrap_err();
        assert!(matches!(error, RunError::AlreadyRun { .. }));
        assert!(error.to_string().contains("--resume"), "{error}");
        assert!(error.to_string().contains("--out"), "{error}");
    }

    #[test]
    fn folders_of_others_are_left_alone() {
        let scratch = Scratch::new();
        let path = scratch.path();
        fs::write(path.join("thesis.tex"), "").unwrap();
        let error = RunFolder::create(path).unwrap_err().to_string();
        assert!(error.contains("not empty (it has 'thesis.tex')"), "{error}");
        for error in [RunFolder::open(path), RunFolder::resume(path)] {
            let message = error.unwrap_err().to_string();
            assert!(message.contains("it has no recipe.toml and no checkpoints"), "{message}");
        }
        assert_eq!(scratch.names(), ["thesis.tex"]);

        let file = path.join("thesis.tex");
        for error in [
            RunFolder::create(&file).unwrap_err(),
            RunFolder::open(&file).unwrap_err(),
            RunFolder::create(file.join("below")).unwrap_err(),
        ] {
            let RunError::File(FileError::NotAFolder { .. }) = error else {
                panic!("{error}");
            };
        }
        let missing = path.join("missing");
        let error = RunFolder::open(&missing).unwrap_err();
        assert_eq!(error, FileError::Missing { path: missing }.into());
    }

    /// The other program is this test in another process; killed, it no longer holds the lock.
    #[test]
    fn two_programs_do_not_write_one_run() {
        if let Some(folder) = role() {
            let _run = RunFolder::resume(folder).unwrap();
            println!("\nlocked");
            // Until killed, or until the test is gone.
            let _ = io::stdin().read_line(&mut String::new());
            return;
        }
        let scratch = Scratch::new();
        let run = RunFolder::create(scratch.path()).unwrap();
        run.write("recipe.toml", "").unwrap();
        let error = RunFolder::resume(scratch.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", process::id())));
        drop(run);

        let test = concat!(module_path!(), "::two_programs_do_not_write_one_run");
        let mut other = rerun(&[], test, scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "locked"));

        let error = RunFolder::resume(scratch.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", other.id())), "{error}");
        let error = RunFolder::create(scratch.path()).unwrap_err();
        assert!(matches!(error, RunError::AlreadyRun { .. }));
        RunFolder::open(scratch.path()).unwrap();

        other.kill().unwrap();
        other.wait().unwrap();
        RunFolder::resume(scratch.path()).unwrap();
    }
}
