//! `bayesmesh data … load`.

use std::path::Path;

use anyhow::{Error, Result};
use bayesmesh_data::Source;
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{self, LoadError, LoadSeries, RepairReport, RepairRules, format_time};
use serde_json::{Value, json};

use crate::say::say;

/// Reads a series and says what was found and repaired.
pub fn check(file: &Path) -> Result<Value> {
    let rules = RepairRules::default();
    let (series, repairs) = load::read_with(file, &rules, &mut |words| say!("{words}"))?;
    Ok(found(file, &series, &repairs))
}

/// Writes a generated series.
pub fn synth(out: &Path, days: u32, seed: u64) -> Result<Value> {
    let series = german_like(&SynthConfig { seed, days, ..SynthConfig::default() })?;
    load::save_csv(&series, out).map_err(of_file)?;
    say!("{} values: {}", series.len(), out.display());
    Ok(json!({ "out": out.display().to_string(), "values": series.len(), "seed": seed }))
}

/// Brings a series to `out`, which appears only when it has been read without an error. An
/// interrupted download goes on where it stopped.
pub fn fetch(out: &Path, from: Option<&str>) -> Result<Value> {
    let source = Source::named(from.map(str::to_owned));
    let fetched = load::fetch(&source, out, &mut |words| say!("{words}"));
    let (series, repairs) = fetched.map_err(of_file)?;
    Ok(found(out, &series, &repairs))
}

fn found(file: &Path, series: &LoadSeries, repairs: &RepairReport) -> Value {
    say!("{repairs}");
    json!({
        "file": file.display().to_string(),
        "format": format!("{:?}", repairs.format),
        "values": series.len(),
        "start": format_time(series.start),
        "step_seconds": series.step_seconds,
        "replaced": repairs.replaced(),
    })
}

/// A file that cannot be written is an error of that file, not of the data.
fn of_file(error: LoadError) -> Error {
    match error {
        LoadError::Write(error) => error.into(),
        error => error.into(),
    }
}
