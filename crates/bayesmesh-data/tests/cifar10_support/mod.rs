//! What the tests of CIFAR-10 share.
#![allow(dead_code)] // each test uses a part

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use bayesmesh_data::cifar10::write_synthetic;

/// A fresh folder, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("bayesmesh-cifar10-{}-{count}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A stand-in of `images` images a file in a folder of the folder.
    pub fn synthetic(&self, name: &str, images: usize) -> PathBuf {
        let folder = self.path(name);
        write_synthetic(&folder, images, 7).unwrap();
        folder
    }

    /// The names in the folder, hidden ones as well, sorted.
    pub fn names(&self) -> Vec<String> {
        names(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
pub fn assert_says(error: impl ToString, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// The photographs, where this machine has them.
pub fn real() -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let places = [env::var_os("BAYESMESH_DATA").map(PathBuf::from), Some(shared)];
    let mut folders = places.into_iter().flatten().map(|place| place.join("cifar10"));
    let found = folders.find(|folder| folder.is_dir());
    if found.is_none() {
        eprintln!("skipped: CIFAR-10 is neither in $BAYESMESH_DATA nor in ../shared/data");
    }
    found
}
