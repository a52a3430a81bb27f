//! What several test files share.
#![allow(dead_code)] // each test file uses a part

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use bayesmesh_data::cifar10::write_synthetic;
use bayesmesh_data::load::{
    LoadError, LoadSeries, RepairReport, RepairRules, format_time, read_from,
};

/// 2019-01-01T00:00:00Z.
pub const NEW_YEAR_2019: i64 = 1_546_300_800;

pub fn try_parse(text: &[u8]) -> Result<(LoadSeries, RepairReport), LoadError> {
    read_from(text, "some.csv", &RepairRules::default())
}

#[track_caller]
pub fn parse(text: &str) -> (LoadSeries, RepairReport) {
    try_parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// A good series of hours, as a CSV.
pub fn hours(count: usize) -> String {
    let row = |i: usize| {
        let time = format_time(NEW_YEAR_2019 + 3600 * i as i64);
        format!("{time},{}\n", 50_000 + 100 * (i % 24))
    };
    "timestamp,load\n".to_owned() + &(0..count).map(row).collect::<String>()
}

#[track_caller]
pub fn assert_says(text: impl ToString, parts: &[&str]) {
    let text = text.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// A stand-in for CIFAR-10 of `images` images a file.
pub fn synthetic(folder: PathBuf, images: usize) -> PathBuf {
    write_synthetic(&folder, images, 7).unwrap();
    folder
}

/// Data of this machine, if it has them.
pub fn real(name: &str) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let places = [env::var_os("BAYESMESH_DATA").map(PathBuf::from), Some(shared)];
    let mut paths = places.into_iter().flatten().map(|place| place.join(name));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: {name} is neither in $BAYESMESH_DATA nor in ../shared/data");
    }
    found
}

pub fn has_curl() -> bool {
    let found = Command::new("curl").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: there is no curl");
    }
    found
}
