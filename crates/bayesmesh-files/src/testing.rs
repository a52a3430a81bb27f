//! Folders for tests, and tests that run themselves in another process.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

/// A fresh folder, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one in the folder for temporary files.
    #[expect(clippy::new_without_default, reason = "making one is more than a value")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bayesmesh-test-{}-{count}", process::id());
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        names(&self.0)
    }
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Tells a test that it is the other process, and its folder.
const ROLE: &str = "BAYESMESH_TEST_FOLDER";

/// The folder to work in, if this is the process that [`rerun`] describes.
pub fn role() -> Option<PathBuf> {
    env::var_os(ROLE).map(PathBuf::from)
}

/// Describes a process that runs one test of this executable in `folder`, started by the words of
/// `launcher`. A test within a module is named with its crate, as `module_path!` does.
pub fn rerun(launcher: &[&str], test: &str, folder: &Path) -> Command {
    let this = env::current_exe().unwrap();
    let mut command = match launcher {
        [] => Command::new(this),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
    };
    let test = test.split_once("::").map_or(test, |(_, test)| test);
    command.args(["--exact", test, "--nocapture"]);
    command.env(ROLE, folder);
    command
}
