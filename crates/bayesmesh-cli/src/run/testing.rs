//! Folders for tests, and tests that run themselves in another process.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

/// A fresh folder, removed at the end.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bayesmesh-run-test-{}-{count}", process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The names in the folder, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Tells a test that it is the other process, and its folder.
const ROLE: &str = "BAYESMESH_TEST_FOLDER";

/// The folder to work in, if this is the process that [`rerun`] describes.
pub(super) fn role() -> Option<PathBuf> {
    env::var_os(ROLE).map(PathBuf::from)
}

/// Describes a process that runs one test of this executable in `folder`, started by the words of
/// `launcher`. The test is named with its crate, as `module_path!` does.
pub(super) fn rerun(launcher: &[&str], test: &str, folder: &Path) -> Command {
    let this = env::current_exe().unwrap();
    let mut command = match launcher {
        [] => Command::new(this),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
    };
    let (_, test) = test.split_once("::").unwrap();
    command.args(["--exact", test, "--nocapture"]);
    command.env(ROLE, folder);
    command
}
