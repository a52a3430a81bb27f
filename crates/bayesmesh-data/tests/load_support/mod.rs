//! What several tests of the load series use.
#![allow(dead_code)] // each test uses a part

use bayesmesh_data::load::{
    LoadError, LoadSeries, RepairReport, RepairRules, read_from, write_csv,
};

pub fn try_parse(text: &[u8]) -> Result<(LoadSeries, RepairReport), LoadError> {
    read_from(text, "some.csv", &RepairRules::default())
}

#[track_caller]
pub fn parse(text: &str) -> (LoadSeries, RepairReport) {
    try_parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// 2019-01-01T00:00:00Z.
pub const NEW_YEAR_2019: i64 = 1_546_300_800;

pub fn stamp(seconds: i64) -> String {
    let series = LoadSeries { start: seconds, step_seconds: 900, values: vec![1.0] };
    let mut bytes = Vec::new();
    write_csv(&series, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().nth(1).unwrap().split(',').next().unwrap().to_owned()
}
