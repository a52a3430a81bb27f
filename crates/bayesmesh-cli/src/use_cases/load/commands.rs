//! `bayesmesh data fetch | check | synth load`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use bayesmesh_data::Source;
use bayesmesh_data::load::synth::{SynthConfig, german_like};
use bayesmesh_data::load::{self, LoadSeries, RepairReport, format_time};
use clap::Args;
use serde_json::{Value, json};

use super::super::{DataCommand, DataVerb};
use super::data::read;
use crate::say::{self, say};

/// All of them.
pub fn all() -> Vec<DataCommand> {
    vec![
        DataCommand::of::<super::Load, _>(
            DataVerb::Fetch,
            "The German grid load; downloads with the `curl` of this machine",
            fetch,
        ),
        DataCommand::of::<super::Load, _>(
            DataVerb::Check,
            "Read a load series, say what was found and repaired",
            check,
        ),
        DataCommand::of::<super::Load, _>(
            DataVerb::Synth,
            "A series that looks like the German load",
            synth,
        ),
    ]
}

#[derive(Args)]
struct Fetch {
    /// Where to write
    #[arg(long, value_name = "FILE", default_value = "data/load.csv")]
    out: PathBuf,
    /// A file or an address to take it from instead of the usual source
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
}

#[derive(Args)]
struct Check {
    /// The file
    file: PathBuf,
}

#[derive(Args)]
struct Synth {
    /// Where to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long
    #[arg(long, default_value_t = 730)]
    days: u32,
    /// The seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Reads a series and says what was found and repaired.
fn check(Check { file }: Check) -> Result<Value> {
    let (series, repairs) = read(&file)?;
    Ok(found(&file, &series, &repairs))
}

/// Writes a generated series.
fn synth(Synth { out, days, seed }: Synth) -> Result<Value> {
    let series = german_like(&SynthConfig { seed, days, ..SynthConfig::default() })?;
    load::save_csv(&series, &out)?;
    say!("{} values: {}", series.len(), out.display());
    Ok(json!({ "out": say::path(&out), "values": series.len(), "seed": seed }))
}

/// Brings a series to `out`, which appears only when it has been read without an error. An
/// interrupted download goes on where it stopped.
fn fetch(Fetch { out, from }: Fetch) -> Result<Value> {
    let source = Source::named(from);
    let (series, repairs) = load::fetch(&source, &out, &mut |words| say!("{words}"))?;
    Ok(found(&out, &series, &repairs))
}

fn found(file: &Path, series: &LoadSeries, repairs: &RepairReport) -> Value {
    say!("{repairs}");
    json!({
        "file": say::path(file),
        "format": format!("{:?}", repairs.format),
        "values": series.len(),
        "start": format_time(series.start),
        "step_seconds": series.step_seconds,
        "replaced": repairs.replaced(),
    })
}
